package io.coterie.channel;

import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.SignalProtocolAddress;

/** Another member, and what this process knows of it. */
final class Peer {
  final Member member;
  final SignalProtocolAddress address;
  final IdentityKey identity;
  final byte[] accessKey;

  /** Held around every operation on the pairwise session, and only around those. */
  final ReentrantLock session = new ReentrantLock();

  /** Messages from this peer, in the order in which they came. */
  final Lane inbound;

  /** Pairwise messages to this peer, in the order in which they were given. */
  final Lane outbound;

  final Reassembly reassembly;

  /** The sender certificate that was last verified for this peer. Guarded by {@code this}. */
  byte @Nullable [] verifiedCertificate;

  long verifiedUntilMs;

  /** Has left the roster. */
  volatile boolean gone;

  /** {@link System#nanoTime()} of the last message that was proved to come from this peer. */
  volatile long lastHeardNanos;

  // The state of the key exchange, guarded by this. docs/protocols/channel.md, "Hello".

  /** Which process of the peer the rest is about; 0 before the first hello. */
  long incarnation;

  long lastSequence;

  /** That process has said that it ends. */
  boolean farewell;

  /** Own sender keys the messaging service has accepted for this process of the peer. */
  final Set<UUID> offered = new HashSet<>();

  /** Own sender keys the peer says it holds. */
  final Set<UUID> holds = new HashSet<>();

  /** Sender keys of the peer held here, oldest first. */
  final LinkedHashSet<UUID> theirs = new LinkedHashSet<>();

  /** When one was last offered. */
  long offeredNanos;

  /** The peer wants a confirmation. */
  boolean confirmationOwed;

  /** The peer could not read something: it needs the own sender keys, offered or not. */
  boolean keysOwed;

  /** Something of the peer could not be read here for want of its keys. */
  boolean asking;

  /** When it was last asked for them. */
  long askedNanos;

  /** The session does not serve: the next hello opens a fresh one. */
  boolean resetSession;

  boolean helloInFlight;

  /** Something happened while a hello was in flight. */
  boolean kickAgain;

  /** Hellos since the peer last said something new. */
  int attempts;

  /** When a hello that has had no answer is repeated. */
  long nextHelloNanos;

  /** After a failure: no hello before, whatever happens. */
  long notBeforeNanos;

  long helloSequence;

  /** When a fresh session was last offered, and for how long no other one may be. */
  long lastResetNanos;

  long resetPauseMs;

  /** Hellos that may be sent at once; see {@link KeyExchange}. */
  double tokens = KeyExchange.HELLO_BURST;

  long tokensAtNanos;

  /** Why the last hello could not be sent; null if it was. */
  @Nullable ChannelException lastFailure;

  /** Group messages whose sender key has not come. Only touched in {@link #inbound}. */
  final ArrayDeque<Inbox.Held> held = new ArrayDeque<>();

  /** Bytes in {@link #held}. Only touched in {@link #inbound}. */
  int heldBytes;

  Peer(Member member, Executor pool, ChannelConfig config, AtomicLong reassemblyBytes) {
    this.member = member;
    this.address = new SignalProtocolAddress(member.aci().toString(), member.deviceId());
    try {
      this.identity = new IdentityKey(member.identityKey());
    } catch (InvalidKeyException e) {
      throw new IllegalArgumentException(member.name() + ": identityKey is not a public key", e);
    }
    this.accessKey = Messaging.accessKey(member.identityKey());
    this.inbound = new Lane(pool);
    this.outbound = new Lane(pool);
    this.reassembly = new Reassembly(config, reassemblyBytes);
    long now = System.nanoTime();
    this.nextHelloNanos = now;
    this.notBeforeNanos = now;
    this.tokensAtNanos = now;
    this.lastHeardNanos = now - config.timing().heartbeat().toNanos() * KeyExchange.SILENCE;
  }

  @Override
  public String toString() {
    return member.name();
  }
}
