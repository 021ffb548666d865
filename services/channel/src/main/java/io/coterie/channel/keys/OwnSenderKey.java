package io.coterie.channel.keys;

import io.coterie.channel.ChannelConfig;
import java.util.UUID;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.groups.GroupSessionBuilder;

/**
 * A sender key of this member. The object itself is the lock around every use of the key: libsignal
 * loads, changes and stores its state.
 *
 * <p>A distribution begins a little in the past: at the older of two snapshots, which are one
 * {@code held} period apart. A peer that has restarted unnoticed can thus still read the broadcasts
 * it kept while it asked for the key. The price is that messages of the last two periods are not
 * yet forward secret against someone who reads this process's memory.
 */
public final class OwnSenderKey {
  private final UUID id;
  private final ProtocolStore store;
  private final SignalProtocolAddress self;
  private final long createdNanos;
  private final long snapshotNanos;
  private volatile int messages;

  // Guarded by this.
  private byte[] older;
  private byte[] newer;
  private long newerSinceNanos;

  /** Makes a key. */
  OwnSenderKey(ProtocolStore store, SignalProtocolAddress self, ChannelConfig config, long now) {
    this.id = UUID.randomUUID();
    this.store = store;
    this.self = self;
    this.createdNanos = now;
    this.snapshotNanos = config.timing().held().toNanos();
    this.newer = snapshot();
    this.older = newer;
    this.newerSinceNanos = now;
  }

  /** Distribution id. */
  public UUID id() {
    return id;
  }

  /** The message that lets a peer follow this key. */
  synchronized byte[] distribution() {
    return older.clone();
  }

  /** Moves the beginning of what is handed out, when it is time. */
  synchronized void age(long now) {
    if (now - newerSinceNanos >= snapshotNanos) {
      older = newer;
      newer = snapshot();
      newerSinceNanos = now;
    }
  }

  private byte[] snapshot() {
    return new GroupSessionBuilder(store).create(self, id).serialize();
  }

  /** Counts a message. The caller holds the lock. */
  @SuppressWarnings("NonAtomicVolatileUpdate") // written under the lock only
  public void used() {
    messages++;
  }

  /** Whether it has been used, or has lived, long enough. */
  boolean worn(ChannelConfig config, long now) {
    return messages >= config.limits().senderKeyMessages()
        || now - createdNanos >= config.timing().senderKeyAge().toNanos();
  }
}
