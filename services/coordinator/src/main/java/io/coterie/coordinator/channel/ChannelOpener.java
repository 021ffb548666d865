package io.coterie.coordinator.channel;

import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import java.util.function.Consumer;

/** How this replica gets its channel. */
@FunctionalInterface
public interface ChannelOpener {
  /**
   * Waits until this replica is enrolled and pinned in a roster, and starts its channel.
   *
   * @param receiver of all messages; does not block
   */
  SecureChannel open(Consumer<InboundMessage> receiver) throws InterruptedException;
}
