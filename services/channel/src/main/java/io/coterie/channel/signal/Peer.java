package io.coterie.channel.signal;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.keys.Certificates;
import io.coterie.channel.keys.PeerKeys;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.link.Recipient;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.channel.wire.Reassembly;
import io.coterie.trust.Member;
import java.util.ArrayDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKey;
import org.signal.libsignal.protocol.SignalProtocolAddress;

/** Another member, and what this process knows of it. */
public final class Peer {
  final Member member;
  final SignalProtocolAddress address;
  final IdentityKey identity;
  final Certificates.Pinned certificate;
  final Recipient recipient;

  /** The key exchange with it. */
  final PeerKeys keys;

  /** Held around every operation on the pairwise session, and only around those. */
  final ReentrantLock session = new ReentrantLock();

  /** Messages from this peer, in the order in which they came. */
  final MessageLane inbound;

  /** Pairwise messages to this peer, in the order in which they were given. */
  final SendQueue<Destination> outbound;

  final Reassembly reassembly;

  /** Has left the roster. */
  volatile boolean gone;

  /** Group messages whose sender key has not come. Only touched in {@link #inbound}. */
  final ArrayDeque<Held> held = new ArrayDeque<>();

  /** Bytes in {@link #held}. Only touched in {@link #inbound}. */
  int heldBytes;

  Peer(
      Member member,
      PeerKeys keys,
      Executor pool,
      ChannelConfig config,
      AtomicLong reassemblyBytes) {
    this.member = member;
    this.keys = keys;
    this.address = ProtocolStore.address(member);
    this.recipient = Recipient.of(member);
    this.identity = recipient.identity();
    this.certificate = new Certificates.Pinned(identity);
    this.inbound = new MessageLane(pool);
    this.outbound = new SendQueue<>(pool, config.limits().chunk(), System::nanoTime);
    this.reassembly = new Reassembly(config, reassemblyBytes);
  }

  /** See {@link PeerKeys#established}. */
  boolean established() {
    return keys.established();
  }

  /** See {@link PeerKeys#offered}. */
  boolean offered() {
    return keys.offered();
  }

  /** Where a frame goes under the pairwise session. */
  record Destination(Mode mode, Peer peer) {}

  /** A group message whose sender key has not come yet. */
  record Held(byte[] content, long nanos, @Nullable String traceparent) {}

  @Override
  public String toString() {
    return member.name();
  }
}
