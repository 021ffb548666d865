package io.coterie.channel.keys;

import io.coterie.channel.ChannelConfig;
import java.util.List;
import java.util.UUID;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.SignalProtocolAddress;

/**
 * The sender keys of this member: the one in use, and while it is replaced the following one, which
 * is used once the reachable peers hold it. Readers take no lock; changes take the lock of this
 * object, which comes before the lock of a {@link PeerKeys}.
 */
public final class SenderKeyRotation {
  private final ProtocolStore store;
  private final SignalProtocolAddress self;
  private final ChannelConfig config;

  private volatile OwnSenderKey current;
  private volatile @Nullable OwnSenderKey next;

  // Guarded by this.
  private @Nullable OwnSenderKey previous;
  private long switchAtNanos;

  /** Makes the first key. */
  public SenderKeyRotation(
      ProtocolStore store, SignalProtocolAddress self, ChannelConfig config, long now) {
    this.store = store;
    this.self = self;
    this.config = config;
    this.current = new OwnSenderKey(store, self, config, now);
  }

  /** The key for broadcasts. */
  public OwnSenderKey current() {
    return current;
  }

  /** The keys that peers must hold: the current one, and the following one if there is one. */
  List<OwnSenderKey> offered() {
    OwnSenderKey following = next;
    return following == null ? List.of(current) : List.of(current, following);
  }

  /** Makes a following key. One that was made before and never used is forgotten. */
  public synchronized void prepare(long now) {
    OwnSenderKey unused = next;
    next = new OwnSenderKey(store, self, config, now);
    if (unused != null) {
      store.deleteSenderKey(self, unused.id());
    }
    switchAtNanos = now + config.timing().rotation().toNanos();
  }

  /**
   * Does everything that is due because time has passed.
   *
   * @param confirmed whether all reachable peers hold the key of that id
   * @return whether a following key was made, of which the peers must hear
   */
  public synchronized boolean tick(long now, Predicate<UUID> confirmed) {
    offered().forEach(key -> key.age(now));
    OwnSenderKey following = next;
    if (following == null) {
      if (current.worn(config, now)) {
        prepare(now);
        return true;
      }
    } else if (now - switchAtNanos >= 0 || confirmed.test(following.id())) {
      // Broadcasts under the replaced key may still be in the lane; the one before it is done.
      if (previous != null) {
        store.deleteSenderKey(self, previous.id());
      }
      previous = current;
      current = following;
      next = null;
    }
    return false;
  }
}
