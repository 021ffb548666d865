package io.coterie.coordinator.channel;

import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.PartyLink;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens the channel in the background, so that the service is alive while it waits for its roster.
 */
public final class ChannelConnector implements PartyLink, AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(ChannelConnector.class);
  private static final Duration RETRY = Duration.ofSeconds(1);

  private final ChannelOpener opener;
  private volatile @Nullable SecureChannel channel;
  private @Nullable Thread opening;
  private boolean closed;

  public ChannelConnector(ChannelOpener opener) {
    this.opener = opener;
  }

  /**
   * Starts opening.
   *
   * @param receiver of all messages
   * @param connected called once the channel is there
   */
  public synchronized void open(Consumer<InboundMessage> receiver, Runnable connected) {
    opening = Thread.ofVirtual().name("channel-opening").start(() -> run(receiver, connected));
  }

  private void run(Consumer<InboundMessage> receiver, Runnable connected) {
    try {
      while (true) {
        try {
          SecureChannel opened = opener.open(receiver);
          synchronized (this) {
            if (closed) {
              opened.close();
              return;
            }
            channel = opened;
          }
          log.info("the channel of {} is open", opened.self().name());
          connected.run();
          return;
        } catch (RuntimeException e) {
          log.error("this replica cannot open its channel yet", e);
          Thread.sleep(RETRY);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public Optional<SecureChannel> channel() {
    return Optional.ofNullable(channel);
  }

  @Override
  public void close() {
    SecureChannel open;
    Thread waiting;
    synchronized (this) {
      closed = true;
      open = channel;
      channel = null;
      waiting = opening;
    }
    if (waiting != null) {
      waiting.interrupt();
    }
    if (open != null) {
      open.close();
    }
  }
}
