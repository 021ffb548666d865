package io.coterie.channel;

import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.ChannelMetrics.Mode;
import io.coterie.channel.SecureChannel.SendOptions;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.InvalidMessageException;
import org.signal.libsignal.protocol.InvalidVersionException;
import org.signal.libsignal.protocol.LegacyMessageException;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.groups.GroupSessionBuilder;
import org.signal.libsignal.protocol.message.SenderKeyDistributionMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings this member and each peer to hold each other's sender keys, and back there after either
 * has restarted. docs/protocols/channel.md, "Hello", is the specification.
 *
 * <p>Each side knows, for each peer, what is missing ({@link #needsHello}); as long as something
 * is, hellos go out, at once when there is news, and otherwise with growing pauses. There is no
 * other state machine: every message may be lost, repeated or come from a process that is gone.
 */
final class KeyExchange {
  private static final Logger LOG = LoggerFactory.getLogger(KeyExchange.class);

  /** Hellos to one peer that may follow each other at once. */
  static final int HELLO_BURST = 8;

  /** After which one more may follow this often: a peer cannot make us flood it. */
  private static final Duration HELLO_REFILL = Duration.ofMillis(100);

  /** Sessions reset for decryption failures: first and longest pause between two of them. */
  private static final Duration RESET_MIN = Duration.ofMillis(250);

  private static final Duration RESET_MAX = Duration.ofSeconds(10);

  /** An unanswered hello opens a fresh session every so many times. */
  private static final int FRESH_EVERY = 3;

  /** Heartbeats a peer may miss before it counts as not reachable. */
  static final int SILENCE = 3;

  private final ChannelConfig config;
  private final ProtocolStore store;
  private final Outbox outbox;
  private final Certificates certificates;
  private final ChannelMetrics metrics;
  private final Executor pool;
  private final SignalProtocolAddress self;
  private final Collection<Peer> peers;

  /** Any number but 0. */
  private final long incarnation = new SecureRandom().nextLong() | 1;

  private final List<Waiter> waiters = new CopyOnWriteArrayList<>();

  /** Guards the choice of sender keys. */
  private final Object keys = new Object();

  private volatile OwnSenderKey current;
  private volatile @Nullable OwnSenderKey next;
  private @Nullable OwnSenderKey previous;
  private long rotateAtNanos;

  private volatile boolean running;
  private volatile boolean closed;

  /** A caller that waits until all of these peers are ready. */
  private record Waiter(
      Collection<Peer> peers,
      Predicate<Peer> ready,
      long deadlineNanos,
      CompletableFuture<Void> done) {}

  /**
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
      Collection<Peer> peers) {
    this.config = config;
    this.store = store;
    this.outbox = outbox;
    this.certificates = certificates;
    this.metrics = metrics;
    this.pool = pool;
    this.self = new SignalProtocolAddress(self.aci().toString(), self.deviceId());
    this.peers = peers;
    this.current = create();
  }

  private OwnSenderKey create() {
    return new OwnSenderKey(store, self, config, System.nanoTime());
  }

  /** Greets a member that has joined. */
  void joined(Peer peer) {
    kick(peer);
  }

  /**
   * Members have left the roster: callers that wait for one are told; the sender key is replaced.
   */
  void left(List<Peer> gone) {
    if (gone.isEmpty()) {
      return;
    }
    for (Waiter waiter : waiters) {
      if (waiter.peers.stream().anyMatch(gone::contains) && waiters.remove(waiter)) {
        // On the pool: the caller of this method holds the lock of the channel.
        pool.execute(
            () ->
                waiter.done.completeExceptionally(
                    new ChannelException(Cause.UNTRUSTED, gone + " left the roster")));
      }
    }
    rotate();
  }

  /** Starts to greet. */
  void start() {
    running = true;
    peers.forEach(this::kick);
  }

  /** Fails every caller that waits, or will wait, for a peer: nobody is greeted any more. */
  void close() {
    running = false;
    closed = true;
    failWaiters();
  }

  private void failWaiters() {
    for (Waiter waiter : waiters) {
      if (waiters.remove(waiter)) {
        waiter.done.completeExceptionally(
            new ChannelException(Cause.CLOSED, "the channel was closed meanwhile"));
      }
    }
  }

  // The state of a peer

  /** Whether sender keys have been exchanged in both directions with a process that is there. */
  boolean established(Peer peer) {
    synchronized (peer) {
      return !peer.farewell
          && peer.holds.contains(current.id())
          && !peer.theirs.isEmpty()
          && outbox.hasSession(peer);
    }
  }

  /** Whether it is established and was heard of lately. */
  boolean reachable(Peer peer) {
    return System.nanoTime() - peer.lastHeardNanos < config.timing().heartbeat().toNanos() * SILENCE
        && established(peer);
  }

  /**
   * Whether a broadcast may go out: the service has accepted the sender key for the peer, and keeps
   * the order. If the peer cannot read it after all, it holds the broadcast and asks.
   */
  boolean offered(Peer peer) {
    synchronized (peer) {
      return peer.offered.contains(current.id()) && outbox.hasSession(peer);
    }
  }

  /** The sender key for broadcasts. */
  OwnSenderKey senderKey() {
    return current;
  }

  /** The frame that tells the peers that this process ends. */
  byte[] farewell() {
    return Frame.farewell(incarnation);
  }

  private boolean needsHello(Peer peer) {
    return peer.confirmationOwed
        || peer.keysOwed
        || peer.asking
        || peer.resetSession
        || peer.theirs.isEmpty()
        || lacksKey(peer)
        || !outbox.hasSession(peer);
  }

  private boolean lacksKey(Peer peer) {
    OwnSenderKey following = next;
    return !peer.holds.contains(current.id())
        || (following != null && !peer.holds.contains(following.id()));
  }

  /** Whether there is something that the peer does not know and should not have to wait for. */
  private boolean urgent(Peer peer, long now) {
    return peer.confirmationOwed
        || peer.keysOwed
        || peer.resetSession
        || (peer.asking && !recent(peer.askedNanos, now))
        || (!recent(peer.offeredNanos, now) && peer.incarnation != 0 && lacksKey(peer));
  }

  /** Whether something was sent so short a time ago that its answer may be under way. */
  private boolean recent(long nanos, long now) {
    return nanos != 0 && now - nanos < config.timing().helloMin().toNanos();
  }

  // Sending

  /** Sends a hello now if one is needed and allowed. Writes to no socket on the calling thread. */
  void kick(Peer peer) {
    boolean fresh;
    synchronized (peer) {
      if (!running || closed || peer.gone || !needsHello(peer)) {
        return;
      }
      if (peer.helloInFlight) {
        peer.kickAgain = true;
        return;
      }
      long now = System.nanoTime();
      boolean due = now - peer.nextHelloNanos >= 0 || urgent(peer, now);
      if (!due || now - peer.notBeforeNanos < 0 || !token(peer, now)) {
        return;
      }
      peer.helloInFlight = true;
      peer.kickAgain = false;
      fresh =
          peer.resetSession
              || !outbox.hasSession(peer)
              || peer.attempts % FRESH_EVERY == FRESH_EVERY - 1;
      if (fresh) {
        peer.resetSession = false;
        peer.lastResetNanos = now;
      }
    }
    // On the pool: the caller may be the timer or hold a lock, and writing a request may block.
    CompletableFuture<Void> session =
        fresh
            ? CompletableFuture.supplyAsync(() -> outbox.open(peer), pool).thenCompose(open -> open)
            : CompletableFuture.completedFuture(null);
    session
        .thenCombine(certificates.own(), (opened, certificate) -> opened)
        .thenComposeAsync(ready -> send(peer, fresh), pool)
        .whenComplete((sent, failure) -> sent(peer, fresh, failure));
  }

  private static boolean token(Peer peer, long now) {
    double refill = (now - peer.tokensAtNanos) / (double) HELLO_REFILL.toNanos();
    peer.tokens = Math.min(HELLO_BURST, peer.tokens + refill);
    peer.tokensAtNanos = now;
    if (peer.tokens < 1) {
      return false;
    }
    peer.tokens--;
    return true;
  }

  private CompletableFuture<Void> send(Peer peer, boolean fresh) {
    List<UUID> ids = new ArrayList<>();
    List<byte[]> distributions = new ArrayList<>();
    Frame.Hello hello;
    long about;
    boolean confirming;
    boolean handing;
    synchronized (peer) {
      long now = System.nanoTime();
      // A key that was offered a moment ago goes along once more, in case it was lost. Then the
      // answer to the first offer may be under way, and no second one is asked for.
      boolean again = peer.keysOwed || !recent(peer.offeredNanos, now);
      boolean confirm = false;
      for (OwnSenderKey key : ownKeys()) {
        if (!peer.holds.contains(key.id())) {
          ids.add(key.id());
          distributions.add(key.distribution());
          confirm |= again || !peer.offered.contains(key.id());
        }
      }
      List<UUID> held = new ArrayList<>(peer.theirs);
      hello =
          new Frame.Hello(
              incarnation, ++peer.helloSequence, confirm, peer.asking, held, distributions);
      about = peer.incarnation;
      confirming = peer.confirmationOwed;
      handing = peer.keysOwed;
      peer.confirmationOwed = false;
      peer.keysOwed = false;
      if (confirm) {
        peer.offeredNanos = now;
      }
      if (peer.asking) {
        peer.askedNanos = now;
      }
    }
    metrics.hello(fresh);
    return outbox
        .pairwise(Mode.CONTROL, peer, List.of(Frame.hello(hello)), SendOptions.online(null))
        .whenComplete(
            (accepted, failure) -> {
              synchronized (peer) {
                if (failure != null) {
                  peer.confirmationOwed |= confirming;
                  peer.keysOwed |= handing;
                  peer.offeredNanos = 0;
                } else if (peer.incarnation == about || about == 0) {
                  peer.offered.addAll(ids);
                }
              }
            });
  }

  private List<OwnSenderKey> ownKeys() {
    OwnSenderKey following = next;
    return following == null ? List.of(current) : List.of(current, following);
  }

  private void sent(Peer peer, boolean fresh, @Nullable Throwable failure) {
    boolean again;
    synchronized (peer) {
      peer.helloInFlight = false;
      long min = config.timing().helloMin().toMillis();
      long pause =
          Math.min(config.timing().helloMax().toMillis(), min << Math.min(peer.attempts, 16));
      peer.attempts++;
      peer.nextHelloNanos =
          System.nanoTime()
              + Duration.ofMillis(pause - ThreadLocalRandom.current().nextLong(pause / 4 + 1))
                  .toNanos();
      again = peer.kickAgain;
      peer.kickAgain = false;
      if (failure != null) {
        peer.notBeforeNanos = peer.nextHelloNanos;
        peer.resetSession |= fresh && !outbox.hasSession(peer);
      }
      if (failure == null) {
        peer.lastFailure = null;
      } else {
        ChannelException last = peer.lastFailure;
        ChannelException now = Failures.of(failure);
        peer.lastFailure = now;
        if ((last == null || last.reason() != now.reason()) && now.reason() != Cause.CLOSED) {
          LOG.info("hello to {} failed: {}", peer, now.getMessage());
        }
      }
    }
    check();
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
    boolean learned = false;
    synchronized (peer) {
      if (hello.incarnation() == peer.incarnation) {
        if (hello.sequence() <= peer.lastSequence) {
          return false;
        }
      } else {
        // Another process of the peer: it has nothing of ours, and what we have of it is void. Only
        // if it is the first we hear of may it have got what was offered a moment ago; if it could
        // not read that, it asks.
        if (peer.incarnation != 0) {
          peer.offered.clear();
          peer.offeredNanos = 0;
        }
        peer.incarnation = hello.incarnation();
        peer.farewell = false;
        for (UUID id : peer.theirs) {
          store.deleteSenderKey(peer.address, id);
        }
        peer.theirs.clear();
        peer.reassembly.clear();
      }
      peer.lastSequence = hello.sequence();
      // Only keys that are in use count: a hostile peer may name any number of others.
      List<UUID> own = ownKeys().stream().map(OwnSenderKey::id).toList();
      peer.holds.clear();
      peer.holds.addAll(hello.holds());
      peer.holds.retainAll(own);
      peer.offered.addAll(peer.holds);
      peer.offered.retainAll(own);
      peer.confirmationOwed |= hello.confirm();
      peer.keysOwed |= hello.asks();
      peer.attempts = 0;
      for (byte[] distribution : hello.distributions()) {
        learned |= learn(peer, distribution);
      }
      peer.confirmationOwed |= learned;
      peer.asking &= !learned;
    }
    check();
    kick(peer);
    return learned;
  }

  private boolean learn(Peer peer, byte[] distribution) {
    try {
      SenderKeyDistributionMessage message = new SenderKeyDistributionMessage(distribution);
      UUID id = message.getDistributionId();
      new GroupSessionBuilder(store).process(peer.address, message);
      boolean added = peer.theirs.add(id);
      if (peer.theirs.size() > Frame.MAX_DISTRIBUTIONS) {
        UUID oldest = peer.theirs.removeFirst();
        store.deleteSenderKey(peer.address, oldest);
      }
      return added;
    } catch (InvalidMessageException
        | InvalidVersionException
        | LegacyMessageException
        | InvalidKeyException e) {
      LOG.info("{} sent a sender key that is not readable", peer);
      return false;
    }
  }

  /**
   * Takes a farewell: nothing is sent to that process alone any more, and nobody counts on it. What
   * is broadcast may still go out, since the next process of the peer can ask for the sender key.
   */
  void received(Peer peer, Frame.Farewell farewell) {
    synchronized (peer) {
      peer.farewell |= farewell.incarnation() == peer.incarnation;
    }
  }

  /** A broadcast came under a sender key that is not here: asks for it. */
  void missingSenderKey(Peer peer) {
    synchronized (peer) {
      peer.asking = true;
    }
    kick(peer);
  }

  /** A pairwise message could not be decrypted: opens a fresh session, not too often. */
  void brokenSession(Peer peer) {
    synchronized (peer) {
      long now = System.nanoTime();
      Duration since = Duration.ofNanos(now - peer.lastResetNanos);
      long pause = Math.max(peer.resetPauseMs, RESET_MIN.toMillis());
      if (peer.lastResetNanos != 0 && since.toMillis() < pause) {
        // A fresh session is on its way to the peer already. It may have what it takes by now.
        peer.asking |= peer.theirs.isEmpty();
      } else {
        peer.resetPauseMs =
            since.compareTo(RESET_MAX.multipliedBy(2)) > 0
                ? RESET_MIN.toMillis()
                : Math.min(pause * 2, RESET_MAX.toMillis());
        peer.resetSession = true;
        peer.asking = true;
      }
    }
    kick(peer);
  }

  // Waiting and time

  /**
   * Completes when all of the peers are ready.
   *
   * @param patience fails after it, with the cause that the last hello failed with or else
   *     NOT_ESTABLISHED; null waits for ever
   */
  CompletableFuture<Void> when(
      Collection<Peer> needed, Predicate<Peer> ready, @Nullable Duration patience) {
    if (closed) {
      return CompletableFuture.failedFuture(
          new ChannelException(Cause.CLOSED, "the channel is closed"));
    }
    if (needed.stream().allMatch(ready)) {
      return CompletableFuture.completedFuture(null);
    }
    long deadline = patience == null ? Long.MAX_VALUE : System.nanoTime() + patience.toNanos();
    Waiter waiter = new Waiter(List.copyOf(needed), ready, deadline, new CompletableFuture<>());
    waiters.add(waiter);
    check();
    if (closed) {
      // Closed since the question above: close may have missed this waiter.
      failWaiters();
    }
    return waiter.done;
  }

  private void check() {
    for (Waiter waiter : waiters) {
      if (waiter.done.isDone() || waiter.peers.stream().allMatch(waiter.ready)) {
        waiters.remove(waiter);
        pool.execute(() -> waiter.done.complete(null));
      }
    }
  }

  /** Called some twenty times a second: what is due because time has passed. */
  void tick(long now) {
    for (Peer peer : peers) {
      kick(peer);
    }
    for (Iterator<Waiter> it = waiters.iterator(); it.hasNext(); ) {
      Waiter waiter = it.next();
      if (waiter.deadlineNanos != Long.MAX_VALUE && now - waiter.deadlineNanos >= 0) {
        waiters.remove(waiter);
        List<Peer> missing = waiter.peers.stream().filter(waiter.ready.negate()).toList();
        Cause cause =
            missing.stream()
                .map(KeyExchange::lastCause)
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(Cause.NOT_ESTABLISHED);
        pool.execute(
            () ->
                waiter.done.completeExceptionally(
                    new ChannelException(cause, "no keys exchanged with " + missing)));
      }
    }
    rotateIfDue(now);
  }

  private static @Nullable Cause lastCause(Peer peer) {
    synchronized (peer) {
      return peer.lastFailure == null ? null : peer.lastFailure.reason();
    }
  }

  private void rotateIfDue(long now) {
    synchronized (keys) {
      ownKeys().forEach(key -> key.age(now));
      OwnSenderKey following = next;
      if (following == null) {
        if (current.worn(config, now)) {
          prepareRotation(now);
        }
        return;
      }
      boolean confirmed =
          peers.stream()
              .filter(this::reachable)
              .allMatch(
                  peer -> {
                    synchronized (peer) {
                      return peer.holds.contains(following.id());
                    }
                  });
      if (confirmed || now - rotateAtNanos >= 0) {
        // Broadcasts under the replaced key may still be in the lane; the one before it is done.
        if (previous != null) {
          store.deleteSenderKey(self, previous.id());
        }
        previous = current;
        current = following;
        next = null;
      }
    }
    check();
  }

  /** Makes a new sender key and hands it out; it is used once the peers that are there have it. */
  void rotate() {
    synchronized (keys) {
      prepareRotation(System.nanoTime());
    }
    peers.forEach(this::kick);
  }

  /** The caller holds {@link #keys}. */
  private void prepareRotation(long now) {
    OwnSenderKey unused = next;
    next = create();
    if (unused != null) {
      store.deleteSenderKey(self, unused.id());
    }
    rotateAtNanos = now + config.timing().rotation().toNanos();
    for (Peer peer : peers) {
      synchronized (peer) {
        peer.attempts = 0;
        peer.offeredNanos = 0;
        peer.nextHelloNanos = now;
      }
    }
  }
}
