package io.coterie.channel;

import java.util.UUID;

/**
 * A sender key of this member. The object itself is the lock around every use of the key: libsignal
 * loads, changes and stores its state.
 */
final class OwnSenderKey {
  private final UUID id;
  private final long createdNanos;
  private volatile int messages;

  OwnSenderKey(UUID id, long createdNanos) {
    this.id = id;
    this.createdNanos = createdNanos;
  }

  /** Distribution id. */
  UUID id() {
    return id;
  }

  /** Counts a message. The caller holds the lock. */
  @SuppressWarnings("NonAtomicVolatileUpdate") // written under the lock only
  void used() {
    messages++;
  }

  /** Whether it has been used, or has lived, long enough. */
  boolean worn(ChannelConfig config, long now) {
    return messages >= config.limits().senderKeyMessages()
        || now - createdNanos >= config.timing().senderKeyAge().toNanos();
  }
}
