package io.coterie.channel.keys;

import io.coterie.channel.ChannelConfig.Timing;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.wire.Frame;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
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
 * The key exchange with one peer, without any input or output: the sender keys that either side
 * holds of the other, the peer's access key, and whether, when and with which content the next
 * hello goes out. docs/protocols/channel.md, "Hello", is the specification.
 *
 * <p>There is no state machine but the question what is missing: every message may be lost,
 * repeated or come from a process that is gone. The object is its own lock. All times are {@link
 * System#nanoTime()}.
 */
public final class PeerKeys {
  private static final Logger LOG = LoggerFactory.getLogger(PeerKeys.class);

  /** Heartbeats that a peer may miss before it counts as not reachable. */
  static final int SILENCE = 3;

  private final String peer;
  private final SignalProtocolAddress address;
  private final ProtocolStore.Name name;
  private final ProtocolStore store;
  private final SenderKeyRotation own;
  private final Supplier<AccessKey> ownAccess;
  private final long incarnation;
  private final Timing timing;
  private final HelloPacer pacer;

  /** The time of the last message that was proved to come from the peer. */
  private volatile long lastHeardNanos;

  // Guarded by this.

  /** The process of the peer that the rest is about; 0 before its first hello. */
  private long theirIncarnation;

  private long theirSequence;

  /** Whether the peer's process has said that it ends. */
  private boolean farewell;

  /** Own sender keys that the messaging service has accepted for that process. */
  private final Set<UUID> offered = new HashSet<>();

  /** Own sender keys that the peer says it holds. */
  private final Set<UUID> holds = new HashSet<>();

  /** Sender keys of the peer that are held here, oldest first. */
  private final LinkedHashSet<UUID> theirs = new LinkedHashSet<>();

  /** The time of the last offer; 0 when the next hello need not wait for an answer to it. */
  private long offeredNanos;

  /** The peer wants a confirmation. */
  private boolean confirmationOwed;

  /** The peer could not read something: it needs the own sender keys, offered or not. */
  private boolean keysOwed;

  /** Something of the peer could not be read here for want of its keys. */
  private boolean asking;

  /** The time at which it was last asked for them. */
  private long askedNanos;

  /** The session does not serve: the next hello opens a fresh one. */
  private boolean resetSession;

  /** The access key of the peer's account; null before its first hello, and once it is refused. */
  private @Nullable AccessKey access;

  /** The messaging service has refused the access key that the peer had told. */
  private boolean accessRefused;

  /** Own access key in the newest hello that the messaging service has accepted. */
  private @Nullable AccessKey told;

  private long sequence;
  private boolean inFlight;

  /** Something happened while a hello was in flight. */
  private boolean again;

  /** The reason why the last hello could not be sent; null if it was. */
  private @Nullable Cause lastFailure;

  /** Whether a hello goes out, and under which session. */
  public enum Next {
    NOTHING,
    UNDER_SESSION,
    UNDER_FRESH_SESSION
  }

  /**
   * A hello on its way to the messaging service.
   *
   * @param about the process of the peer that it is meant for
   * @param keys distribution ids of the sender keys in it
   * @param access the own access key in it
   * @param confirming whether it answers a request to confirm
   * @param handing whether it answers a request for keys
   */
  public record Departing(
      Frame.Hello hello,
      long about,
      List<UUID> keys,
      AccessKey access,
      boolean confirming,
      boolean handing) {}

  /**
   * The news in a hello.
   *
   * @param restarted whether it comes from another process of the peer than the hellos before
   * @param learned whether it brought a sender key that was not held here
   */
  public record Heard(boolean restarted, boolean learned) {
    public static final Heard NOTHING = new Heard(false, false);
  }

  /**
   * @param ownAccess the access key of the own account, as peers hear it
   * @param incarnation number of this process, as peers hear it
   */
  public PeerKeys(
      Member peer,
      ProtocolStore store,
      SenderKeyRotation own,
      Supplier<AccessKey> ownAccess,
      long incarnation,
      Timing timing,
      long now) {
    this.peer = peer.name();
    this.address = ProtocolStore.address(peer);
    this.name = ProtocolStore.Name.of(address);
    this.store = store;
    this.own = own;
    this.ownAccess = ownAccess;
    this.incarnation = incarnation;
    this.timing = timing;
    this.pacer = new HelloPacer(timing, now);
    this.lastHeardNanos = now - timing.heartbeat().toNanos() * SILENCE;
  }

  // Questions

  /** Whether sender keys have been exchanged in both directions with a process that is there. */
  public synchronized boolean established() {
    return !farewell
        && holds.contains(own.current().id())
        && !theirs.isEmpty()
        && access != null
        && store.containsSession(name);
  }

  /** Whether it is established and was heard of lately. */
  public boolean reachable(long now) {
    return now - lastHeardNanos < timing.heartbeat().toNanos() * SILENCE && established();
  }

  /**
   * Whether a broadcast may go out: the service has accepted the sender key for the peer, and keeps
   * the order. If the peer cannot read it after all, it holds the broadcast and asks.
   */
  public synchronized boolean offered() {
    return offered.contains(own.current().id()) && store.containsSession(name);
  }

  /** Whether the peer says that it holds the own sender key of that id. */
  public synchronized boolean holds(UUID key) {
    return holds.contains(key);
  }

  /** The reason why the last hello could not be sent; null if it was. */
  public synchronized @Nullable Cause lastFailure() {
    return lastFailure;
  }

  /** The access key of the peer's account, if it is known. */
  public synchronized Optional<AccessKey> access() {
    return Optional.ofNullable(access);
  }

  /** Whether the key that the peer had told was refused, and it has not told another since. */
  public synchronized boolean accessRefused() {
    return accessRefused;
  }

  private boolean needsHello() {
    return confirmationOwed
        || keysOwed
        || asking
        || resetSession
        || accessRefused
        || theirs.isEmpty()
        || !ownAccess.get().equals(told)
        || lacksKey()
        || !store.containsSession(name);
  }

  private boolean lacksKey() {
    return own.offered().stream().anyMatch(key -> !holds.contains(key.id()));
  }

  /** Whether there is something that the peer does not know and should not have to wait for. */
  private boolean urgent(long now) {
    return confirmationOwed
        || keysOwed
        || resetSession
        || ((asking || accessRefused) && !recent(askedNanos, now))
        || (!recent(offeredNanos, now) && theirIncarnation != 0 && lacksKey());
  }

  /** Whether something was sent so short a time ago that its answer may be under way. */
  private boolean recent(long nanos, long now) {
    return nanos != 0 && now - nanos < timing.helloMin().toNanos();
  }

  // Sending

  /**
   * Decides whether a hello goes out now. After any other answer than NOTHING none goes out until
   * {@link #ended} is called.
   */
  public synchronized Next nextHello(long now) {
    if (!needsHello()) {
      return Next.NOTHING;
    }
    if (inFlight) {
      again = true;
      return Next.NOTHING;
    }
    if (!pacer.take(now, urgent(now))) {
      return Next.NOTHING;
    }
    inFlight = true;
    again = false;
    if (!resetSession && store.containsSession(name) && !pacer.freshTurn()) {
      return Next.UNDER_SESSION;
    }
    resetSession = false;
    pacer.freshSession(now);
    return Next.UNDER_FRESH_SESSION;
  }

  /** The content of the hello, as things stand when its session and certificate are there. */
  public synchronized Departing depart(long now) {
    // A key that was offered a moment ago goes along once more, in case it was lost. Then the
    // answer to the first offer may be under way, and no second one is asked for.
    boolean repeat = keysOwed || !recent(offeredNanos, now);
    boolean confirm = accessRefused;
    List<UUID> ids = new ArrayList<>();
    List<byte[]> distributions = new ArrayList<>();
    for (OwnSenderKey key : own.offered()) {
      if (!holds.contains(key.id())) {
        ids.add(key.id());
        distributions.add(key.distribution());
        confirm |= repeat || !offered.contains(key.id());
      }
    }
    AccessKey ownKey = ownAccess.get();
    Frame.Hello hello =
        new Frame.Hello(
            incarnation,
            ++sequence,
            confirm,
            asking,
            ownKey.bytes(),
            List.copyOf(theirs),
            distributions);
    Departing departing =
        new Departing(hello, theirIncarnation, ids, ownKey, confirmationOwed, keysOwed);
    confirmationOwed = false;
    keysOwed = false;
    if (confirm) {
      offeredNanos = now;
    }
    if (asking || accessRefused) {
      askedNanos = now;
    }
    return departing;
  }

  /** The messaging service has accepted the hello: the peer will get its keys. */
  public synchronized void accepted(Departing hello) {
    if (hello.about == theirIncarnation || hello.about == 0) {
      offered.addAll(hello.keys);
      told = hello.access;
    }
  }

  /** The messaging service has not accepted the hello: the next one must make up for it. */
  public synchronized void lost(Departing hello) {
    confirmationOwed |= hello.confirming;
    keysOwed |= hello.handing;
    offeredNanos = 0;
  }

  /**
   * The hello that {@link #nextHello} has let go is over.
   *
   * @param failure null if the messaging service has accepted it
   * @return whether something happened meanwhile that may need another one at once
   */
  public synchronized boolean ended(Next hello, @Nullable ChannelException failure, long now) {
    inFlight = false;
    pacer.sent(now, failure != null);
    if (failure == null) {
      lastFailure = null;
    } else {
      resetSession |= hello == Next.UNDER_FRESH_SESSION && !store.containsSession(name);
      if (failure.reason() != lastFailure && failure.reason() != Cause.CLOSED) {
        LOG.info("this member could not greet {}: {}", peer, failure.getMessage());
      }
      lastFailure = failure.reason();
    }
    boolean more = again;
    again = false;
    return more;
  }

  /** There is a new own sender or access key, which the peer should not have to wait for. */
  public synchronized void newOwnKey(long now) {
    pacer.news(now);
    offeredNanos = 0;
  }

  // Receiving

  /** A message was proved to come from the peer. */
  public void alive(long now) {
    lastHeardNanos = now;
  }

  /** Takes a hello. */
  public synchronized Heard heard(Frame.Hello hello) {
    boolean restarted = hello.incarnation() != theirIncarnation;
    if (!restarted && hello.sequence() <= theirSequence) {
      return Heard.NOTHING;
    }
    if (restarted) {
      forgetProcess(hello.incarnation());
    }
    theirSequence = hello.sequence();
    access = new AccessKey(hello.accessKey());
    accessRefused = false;
    // Only keys that are in use count: a hostile peer may name any number of others.
    List<UUID> ids = own.offered().stream().map(OwnSenderKey::id).toList();
    holds.clear();
    holds.addAll(hello.holds());
    holds.retainAll(ids);
    offered.addAll(holds);
    offered.retainAll(ids);
    confirmationOwed |= hello.confirm();
    keysOwed |= hello.asks();
    pacer.answered();
    boolean learned = false;
    for (byte[] distribution : hello.distributions()) {
      learned |= learn(distribution);
    }
    confirmationOwed |= learned;
    asking &= !learned;
    return new Heard(restarted, learned);
  }

  /** Another process of the peer: it has nothing of ours, and ours of the one before is void. */
  private void forgetProcess(long next) {
    // Only if it is the first we hear of may it have got what was offered a moment ago; if it could
    // not read that, it asks.
    if (theirIncarnation != 0) {
      offered.clear();
      offeredNanos = 0;
      told = null;
    }
    theirIncarnation = next;
    farewell = false;
    theirs.forEach(key -> store.deleteSenderKey(address, key));
    theirs.clear();
  }

  private boolean learn(byte[] distribution) {
    try {
      SenderKeyDistributionMessage message = new SenderKeyDistributionMessage(distribution);
      new GroupSessionBuilder(store).process(address, message);
      boolean added = theirs.add(message.getDistributionId());
      if (theirs.size() > Frame.MAX_DISTRIBUTIONS) {
        store.deleteSenderKey(address, theirs.removeFirst());
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
   * Takes a farewell: nothing is sent to that process alone any more, and nobody counts on it.
   * Broadcasts may still go out, since the next process of the peer can ask for the sender key.
   */
  public synchronized void heard(Frame.Farewell goodbye) {
    farewell |= goodbye.incarnation() == theirIncarnation;
  }

  /**
   * Forgets an access key that the messaging service has refused for the peer's account, if it is
   * the one that the peer had told. The next hello asks for the one in use.
   */
  public synchronized void forgetAccess(AccessKey refused) {
    if (refused.equals(access)) {
      access = null;
      accessRefused = true;
    }
  }

  /** A broadcast came under a sender key that is not here: the next hello asks for it. */
  public synchronized void missingSenderKey() {
    asking = true;
  }

  /** A pairwise message could not be decrypted: the next hello opens a fresh session, if it may. */
  public synchronized void brokenSession(long now) {
    if (pacer.mayReset(now)) {
      resetSession = true;
      asking = true;
    } else {
      // A fresh session is on its way to the peer already. It may have what it takes by now.
      asking |= theirs.isEmpty();
    }
  }
}
