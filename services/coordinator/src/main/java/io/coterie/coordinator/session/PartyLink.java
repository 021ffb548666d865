package io.coterie.coordinator.session;

import io.coterie.channel.SecureChannel;
import java.util.Optional;

/** The way to the parties. */
public interface PartyLink {
  /** The open channel; empty until this replica is enrolled, in the roster, and connected. */
  Optional<SecureChannel> channel();
}
