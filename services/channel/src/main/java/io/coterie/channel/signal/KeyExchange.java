package io.coterie.channel.signal;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.keys.AccessKey;
import io.coterie.channel.keys.Certificates;
import io.coterie.channel.keys.OwnSenderKey;
import io.coterie.channel.keys.PeerKeys;
import io.coterie.channel.keys.PeerKeys.Next;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.keys.SenderKeyRotation;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.channel.wire.Frame;
import io.coterie.trust.Member;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Brings this member and each peer to hold each other's sender keys, and back there after either
 * has restarted. {@link PeerKeys} decides; this class hands it the hellos that come, and sends the
 * hellos that it wants sent: at once when there is news, and otherwise by the timer.
 */
public final class KeyExchange {
  private final ChannelConfig config;
  private final ProtocolStore store;
  private final Outbox outbox;
  private final Certificates certificates;
  private final ChannelMetrics metrics;
  private final Executor pool;
  private final Collection<Peer> peers;
  private final SenderKeyRotation own;
  private final Supplier<AccessKey> ownAccess;
  private final Waiters waiters;

  /** Any number but 0. */
  private final long incarnation = new SecureRandom().nextLong() | 1;

  private volatile boolean running;

  /**
   * @param ownAccess the access key of the own account, as peers are told
   * @param peers all other members; the collection may change under way
   */
  KeyExchange(
      ChannelConfig config,
      ProtocolStore store,
      Outbox outbox,
      Certificates certificates,
      ChannelMetrics metrics,
      Executor pool,
      Member self,
      Supplier<AccessKey> ownAccess,
      Waiters waiters,
      Collection<Peer> peers) {
    this.config = config;
    this.store = store;
    this.outbox = outbox;
    this.certificates = certificates;
    this.metrics = metrics;
    this.pool = pool;
    this.peers = peers;
    this.own = new SenderKeyRotation(store, ProtocolStore.address(self), config, System.nanoTime());
    this.ownAccess = ownAccess;
    this.waiters = waiters;
  }

  /** A key exchange that has not begun, with that member. */
  PeerKeys with(Member member) {
    return new PeerKeys(
        member, store, own, ownAccess, incarnation, config.timing(), System.nanoTime());
  }

  /** Greets a member that has joined. */
  void joined(Peer peer) {
    kick(peer);
  }

  /** Members have left the roster: callers that wait for one fail; the sender key is replaced. */
  void left(List<Peer> gone) {
    if (!gone.isEmpty()) {
      waiters.left(gone);
      rotate();
    }
  }

  /** Starts to greet. */
  void start() {
    running = true;
    peers.forEach(this::kick);
  }

  /** Fails every caller that waits, or will wait, for a peer: nobody is greeted any more. */
  void close() {
    running = false;
    waiters.close();
  }

  /** The sender key for broadcasts. */
  OwnSenderKey senderKey() {
    return own.current();
  }

  /** The frame that tells the peers that this process ends. */
  byte[] farewell() {
    return Frame.farewell(incarnation);
  }

  /** See {@link Waiters#when}. */
  CompletableFuture<Void> when(
      Collection<Peer> needed, Predicate<Peer> ready, @Nullable Duration patience) {
    return waiters.when(needed, ready, patience);
  }

  // Sending

  /** Sends a hello now if one is needed and allowed. Writes to no socket on the calling thread. */
  void kick(Peer peer) {
    if (!running || waiters.closed() || peer.gone) {
      return;
    }
    Next next = peer.keys.nextHello(System.nanoTime());
    // On the pool: the caller may be the timer or hold a lock, and writing a request may block.
    CompletableFuture<Void> session =
        switch (next) {
          case NOTHING -> null;
          case UNDER_SESSION -> CompletableFuture.completedFuture(null);
          case UNDER_FRESH_SESSION ->
              CompletableFuture.supplyAsync(() -> outbox.open(peer), pool)
                  .thenCompose(open -> open);
        };
    if (session != null) {
      session
          .thenCombine(certificates.own(), (opened, certificate) -> opened)
          .thenComposeAsync(ready -> send(peer, next), pool)
          .whenComplete((sent, failure) -> ended(peer, next, failure));
    }
  }

  private CompletableFuture<Void> send(Peer peer, Next next) {
    PeerKeys.Departing departing = peer.keys.depart(System.nanoTime());
    metrics.hello(next == Next.UNDER_FRESH_SESSION);
    List<byte[]> frames = List.of(Frame.hello(departing.hello()));
    return outbox
        .pairwise(Mode.CONTROL, peer, frames, SendOptions.online(null))
        .whenComplete(
            (accepted, failure) -> {
              if (failure == null) {
                peer.keys.accepted(departing);
              } else {
                peer.keys.lost(departing);
              }
            });
  }

  private void ended(Peer peer, Next next, @Nullable Throwable failure) {
    ChannelException cause = failure == null ? null : ChannelException.of(failure);
    boolean again = peer.keys.ended(next, cause, System.nanoTime());
    waiters.check();
    if (again) {
      kick(peer);
    }
  }

  // Receiving

  /**
   * Takes a hello. Runs in the peer's inbound lane.
   *
   * @return whether there are new sender keys
   */
  boolean received(Peer peer, Frame.Hello hello) {
    PeerKeys.Heard heard = peer.keys.heard(hello);
    if (heard.restarted()) {
      peer.reassembly.clear();
    }
    waiters.check();
    kick(peer);
    return heard.learned();
  }

  /** Takes a farewell. */
  void received(Peer peer, Frame.Farewell farewell) {
    peer.keys.heard(farewell);
  }

  /** A broadcast came under a sender key that is not here: asks for it. */
  void missingSenderKey(Peer peer) {
    peer.keys.missingSenderKey();
    kick(peer);
  }

  /** A pairwise message could not be decrypted: opens a fresh session, not too often. */
  void brokenSession(Peer peer) {
    peer.keys.brokenSession(System.nanoTime());
    kick(peer);
  }

  // Time

  /** Called some twenty times a second: does what is due because time has passed. */
  void tick(long now) {
    peers.forEach(this::kick);
    waiters.expire(now);
    if (own.tick(now, this::confirmed)) {
      peers.forEach(peer -> peer.keys.newOwnKey(now));
    }
    waiters.check();
  }

  private boolean confirmed(UUID key) {
    long now = System.nanoTime();
    return peers.stream()
        .filter(peer -> peer.keys.reachable(now))
        .allMatch(peer -> peer.keys.holds(key));
  }

  /** Makes a new sender key and hands it out; it is used once the peers that are there have it. */
  void rotate() {
    own.prepare(System.nanoTime());
    tellOwnKeys();
  }

  /** The own sender or access keys have changed: no peer has to wait for them. */
  void tellOwnKeys() {
    long now = System.nanoTime();
    peers.forEach(peer -> peer.keys.newOwnKey(now));
    peers.forEach(this::kick);
  }
}
