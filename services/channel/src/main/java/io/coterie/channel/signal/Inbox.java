package io.coterie.channel.signal;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.keys.Certificates;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.link.Link;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.channel.telemetry.ChannelMetrics.Rejection;
import io.coterie.channel.wire.Frame;
import io.coterie.channel.wire.Reassembly;
import io.coterie.proto.signal.Envelope;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.internal.Native;
import org.signal.libsignal.metadata.certificate.InvalidCertificateException;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.metadata.protocol.UnidentifiedSenderMessageContent;
import org.signal.libsignal.protocol.DuplicateMessageException;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.InvalidKeyIdException;
import org.signal.libsignal.protocol.InvalidMessageException;
import org.signal.libsignal.protocol.InvalidVersionException;
import org.signal.libsignal.protocol.LegacyMessageException;
import org.signal.libsignal.protocol.NoSessionException;
import org.signal.libsignal.protocol.SessionCipher;
import org.signal.libsignal.protocol.UntrustedIdentityException;
import org.signal.libsignal.protocol.groups.GroupCipher;
import org.signal.libsignal.protocol.message.CiphertextMessage;
import org.signal.libsignal.protocol.message.PreKeySignalMessage;
import org.signal.libsignal.protocol.message.SignalMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * From envelope to message, in two stages. The outer layer (sealed sender) says who sent it and is
 * opened for all senders in parallel. The inner one is opened in the lane of its sender, in the
 * order in which the envelopes came, so that one sender's messages stay in order and no sender
 * waits for another.
 */
public final class Inbox {
  private static final Logger LOG = LoggerFactory.getLogger(Inbox.class);

  private final ChannelConfig config;
  private final ProtocolStore store;
  private final Certificates certificates;
  private final KeyExchange exchange;
  private final ChannelMetrics metrics;
  private final Executor pool;
  private final Map<Address, Peer> peers;
  private final Consumer<InboundMessage> receiver;
  private final Semaphore room;

  /** Guards the order of arrival. */
  private final ArrayDeque<Arrival> arrivals = new ArrayDeque<>();

  /** Account and device. */
  record Address(UUID aci, int deviceId) {}

  /** An envelope on its way. Written by the thread that opens it, read by others once done. */
  private static final class Arrival {
    final Link.Connection from;
    final WebSocketRequestMessage request;
    final int bytes;
    final long nanos;
    boolean opened;
    @Nullable Peer peer;
    @Nullable UnidentifiedSenderMessageContent content;

    Arrival(Link.Connection from, WebSocketRequestMessage request, int bytes, long nanos) {
      this.from = from;
      this.request = request;
      this.bytes = bytes;
      this.nanos = nanos;
    }
  }

  /** An envelope that is refused, and why. */
  private static final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;
    private final Rejection cause;

    RefusedException(Rejection cause) {
      super(cause.name());
      this.cause = cause;
    }
  }

  Inbox(
      ChannelConfig config,
      ProtocolStore store,
      Certificates certificates,
      KeyExchange exchange,
      ChannelMetrics metrics,
      Executor pool,
      Map<Address, Peer> peers,
      Consumer<InboundMessage> receiver) {
    this.config = config;
    this.store = store;
    this.certificates = certificates;
    this.exchange = exchange;
    this.metrics = metrics;
    this.pool = pool;
    this.peers = peers;
    this.receiver = receiver;
    this.room = new Semaphore(config.limits().maxInbound());
  }

  /**
   * Takes an envelope off the socket. Blocks the reading thread while too many are under way, so
   * that the rest waits at the service.
   */
  void accept(Link.Connection from, WebSocketRequestMessage request, int bytes, long nanos) {
    room.acquireUninterruptibly();
    Arrival arrival = new Arrival(from, request, bytes, nanos);
    synchronized (arrivals) {
      arrivals.add(arrival);
    }
    pool.execute(() -> open(arrival));
  }

  private void open(Arrival arrival) {
    try {
      unsealOrCount(arrival);
    } catch (RuntimeException | Error e) {
      // An Error too, of the JVM or of libsignal: it costs this envelope alone.
      LOG.error("an envelope could not be opened", e);
    } finally {
      // The envelopes behind this one wait for it, so it ends in any case.
      handOn(arrival);
    }
  }

  private void unsealOrCount(Arrival arrival) {
    try {
      unseal(arrival);
    } catch (RefusedException e) {
      metrics.rejected(e.cause);
    }
  }

  /** Gives the opened envelopes, as far as none before them is missing, to their senders' lanes. */
  private void handOn(Arrival arrival) {
    List<MessageLane> idle = new ArrayList<>(1);
    List<Arrival> refused = new ArrayList<>(0);
    synchronized (arrivals) {
      arrival.opened = true;
      for (Arrival head = arrivals.peek(); head != null && head.opened; head = arrivals.peek()) {
        Arrival next = arrivals.remove();
        Peer peer = next.peer;
        if (peer == null) {
          refused.add(next);
        } else if (peer.inbound.add(() -> process(next, peer))) {
          idle.add(peer.inbound);
        }
      }
    }
    refused.forEach(this::finish);
    for (int i = 1; i < idle.size(); i++) {
      pool.execute(idle.get(i)::drain);
    }
    if (!idle.isEmpty()) {
      idle.getFirst().drain();
    }
  }

  /** Opens the outer layer and finds out who sent it. */
  private void unseal(Arrival arrival) throws RefusedException {
    UnidentifiedSenderMessageContent content;
    SenderCertificate certificate;
    Address sender;
    try {
      Envelope envelope = Envelope.parseFrom(arrival.request.getBody());
      if (envelope.getType() != Envelope.Type.UNIDENTIFIED_SENDER) {
        throw new RefusedException(Rejection.MALFORMED);
      }
      // The two layers are opened apart, which the public API of this libsignal version does not
      // offer: SealedSessionCipher.decrypt does both, before it is known whose lock is needed.
      content =
          new UnidentifiedSenderMessageContent(
              Native.SealedSessionCipher_DecryptToUsmc(envelope.getContent().toByteArray(), store));
      certificate = content.getSenderCertificate();
      sender =
          new Address(
              UUID.fromString(certificate.getSenderUuid()), certificate.getSenderDeviceId());
    } catch (RefusedException e) {
      throw e;
    } catch (InvalidProtocolBufferException | InvalidCertificateException e) {
      throw new RefusedException(Rejection.MALFORMED);
    } catch (Exception e) {
      // The native call declares no narrower type; the bytes that it refuses came from outside.
      throw new RefusedException(Rejection.MALFORMED);
    }
    Peer peer = peers.get(sender);
    if (peer == null) {
      throw new RefusedException(Rejection.STRANGER);
    }
    Rejection refusal = certificates.refusal(peer.certificate, certificate);
    if (refusal != null) {
      LOG.warn(
          "a message in the name of {} was refused: {}",
          peer,
          refusal.name().toLowerCase(Locale.ROOT));
      throw new RefusedException(refusal);
    }
    arrival.content = content;
    arrival.peer = peer;
  }

  /** Opens the inner layer. Runs in the lane of the peer. */
  private void process(Arrival arrival, Peer peer) {
    try {
      UnidentifiedSenderMessageContent content = arrival.content;
      if (content == null || peer.gone) {
        throw new RefusedException(Rejection.STRANGER);
      }
      byte[] bytes = content.getContent();
      if (content.getType() == CiphertextMessage.SENDERKEY_TYPE) {
        String traceparent = traceparent(arrival.request);
        Mode mode = group(peer, bytes, arrival.nanos, traceparent, true);
        metrics.received(mode, arrival.bytes);
      } else {
        pairwise(arrival, peer, content.getType(), bytes);
      }
    } catch (RefusedException e) {
      metrics.rejected(e.cause);
      LOG.debug("a message of {} was refused: {}", peer, e.cause);
    } finally {
      finish(arrival);
    }
  }

  private void finish(Arrival arrival) {
    arrival.from.respond(arrival.request.getId(), 200);
    room.release();
  }

  private Mode group(
      Peer peer, byte[] content, long nanos, @Nullable String traceparent, boolean mayHold)
      throws RefusedException {
    byte[] padded;
    try {
      padded = new GroupCipher(store, peer.address).decrypt(content);
    } catch (NoSessionException e) {
      if (!mayHold) {
        throw new RefusedException(Rejection.UNKNOWN_SENDER_KEY);
      }
      hold(peer, new Peer.Held(content, nanos, traceparent));
      return Mode.GROUP;
    } catch (DuplicateMessageException e) {
      throw new RefusedException(Rejection.DUPLICATE);
    } catch (InvalidMessageException | LegacyMessageException e) {
      throw new RefusedException(Rejection.UNDECRYPTABLE);
    }
    peer.keys.alive(System.nanoTime());
    try {
      return switch (Frame.decode(padded)) {
        case Frame.Body(_, byte[] data) -> {
          deliver(peer, data, true, nanos, traceparent);
          yield Mode.GROUP;
        }
        case Frame.Chunk chunk -> {
          assemble(peer, chunk, true, nanos, traceparent);
          yield Mode.GROUP;
        }
        case Frame.Batch(_, List<Frame.Part> parts) -> {
          parts.forEach(part -> deliver(peer, part.data(), true, nanos, part.traceparent()));
          yield Mode.GROUP;
        }
        case Frame.Heartbeat() -> Mode.CONTROL;
        case Frame.Farewell farewell -> {
          exchange.received(peer, farewell);
          yield Mode.CONTROL;
        }
        // A hello belongs to the session of two members, and never comes under a sender key.
        case Frame.Hello _ -> throw new RefusedException(Rejection.FRAME);
      };
    } catch (Frame.MalformedException e) {
      throw new RefusedException(Rejection.FRAME);
    } finally {
      Arrays.fill(padded, (byte) 0);
    }
  }

  private void pairwise(Arrival arrival, Peer peer, int type, byte[] content)
      throws RefusedException {
    byte[] padded = decrypt(peer, type, content);
    peer.keys.alive(System.nanoTime());
    try {
      switch (Frame.decode(padded)) {
        case Frame.Body(boolean broadcast, byte[] data) -> {
          metrics.received(Mode.PAIRWISE, arrival.bytes);
          deliver(peer, data, broadcast, arrival.nanos, traceparent(arrival.request));
        }
        case Frame.Chunk chunk -> {
          metrics.received(Mode.PAIRWISE, arrival.bytes);
          assemble(peer, chunk, false, arrival.nanos, traceparent(arrival.request));
        }
        case Frame.Batch(boolean broadcast, List<Frame.Part> parts) -> {
          metrics.received(Mode.PAIRWISE, arrival.bytes);
          parts.forEach(
              part -> deliver(peer, part.data(), broadcast, arrival.nanos, part.traceparent()));
        }
        case Frame.Hello hello -> {
          metrics.received(Mode.CONTROL, arrival.bytes);
          if (exchange.received(peer, hello)) {
            releaseHeld(peer);
          }
        }
        case Frame.Heartbeat() -> metrics.received(Mode.CONTROL, arrival.bytes);
        case Frame.Farewell farewell -> {
          metrics.received(Mode.CONTROL, arrival.bytes);
          exchange.received(peer, farewell);
        }
      }
    } catch (Frame.MalformedException e) {
      throw new RefusedException(Rejection.FRAME);
    } finally {
      Arrays.fill(padded, (byte) 0);
    }
  }

  private byte[] decrypt(Peer peer, int type, byte[] content) throws RefusedException {
    try {
      return decryptUnderLock(peer, type, content);
    } catch (DuplicateMessageException e) {
      throw new RefusedException(Rejection.DUPLICATE);
    } catch (UntrustedIdentityException e) {
      throw new RefusedException(Rejection.IDENTITY);
    } catch (NoSessionException
        | InvalidMessageException
        | InvalidVersionException
        | InvalidKeyIdException
        | InvalidKeyException
        | LegacyMessageException e) {
      // Expected after a restart of either side: the other one's message was for the process
      // before.
      LOG.debug("a message of {} could not be decrypted: {}", peer, e.getClass().getSimpleName());
      exchange.brokenSession(peer);
      throw new RefusedException(Rejection.UNDECRYPTABLE);
    }
  }

  private byte[] decryptUnderLock(Peer peer, int type, byte[] content)
      throws RefusedException,
          DuplicateMessageException,
          UntrustedIdentityException,
          NoSessionException,
          InvalidMessageException,
          InvalidVersionException,
          InvalidKeyIdException,
          InvalidKeyException,
          LegacyMessageException {
    peer.session.lock();
    try {
      SessionCipher cipher = new SessionCipher(store, peer.address);
      return switch (type) {
        case CiphertextMessage.PREKEY_TYPE -> cipher.decrypt(new PreKeySignalMessage(content));
        case CiphertextMessage.WHISPER_TYPE -> cipher.decrypt(new SignalMessage(content));
        default -> throw new RefusedException(Rejection.MALFORMED);
      };
    } finally {
      peer.session.unlock();
    }
  }

  private void assemble(
      Peer peer, Frame.Chunk chunk, boolean senderKey, long nanos, @Nullable String traceparent)
      throws RefusedException {
    try {
      byte[] body = peer.reassembly.add(chunk, senderKey, System.nanoTime());
      if (body != null) {
        deliver(peer, body, senderKey || chunk.broadcast(), nanos, traceparent);
      }
    } catch (Reassembly.RefusedException e) {
      LOG.info("chunks of {} were refused: {}", peer, e.getMessage());
      throw new RefusedException(Rejection.REASSEMBLY);
    } finally {
      Arrays.fill(chunk.data(), (byte) 0);
    }
  }

  private void deliver(
      Peer peer, byte[] body, boolean broadcast, long nanos, @Nullable String traceparent) {
    if (body.length > config.limits().maxBody()) {
      metrics.rejected(Rejection.FRAME);
      return;
    }
    try {
      receiver.accept(new InboundMessage(peer.member, body, broadcast, nanos, traceparent));
    } catch (RuntimeException | Error e) {
      // An Error too: it costs this body alone, not those that came with it.
      LOG.error("the receiver failed on a message of {}", peer, e);
    }
  }

  // Group messages that came before their sender key

  private void hold(Peer peer, Peer.Held message) {
    dropOld(peer, System.nanoTime());
    if (peer.held.size() >= config.limits().maxHeld()
        || peer.heldBytes + message.content().length > config.limits().maxHeldBytes()) {
      metrics.rejected(Rejection.UNKNOWN_SENDER_KEY);
    } else {
      peer.held.add(message);
      peer.heldBytes += message.content().length;
    }
    exchange.missingSenderKey(peer);
  }

  private void releaseHeld(Peer peer) {
    dropOld(peer, System.nanoTime());
    for (int left = peer.held.size(); left > 0; left--) {
      Peer.Held message = peer.held.remove();
      peer.heldBytes -= message.content().length;
      try {
        group(peer, message.content(), message.nanos(), message.traceparent(), false);
      } catch (RefusedException e) {
        metrics.rejected(e.cause);
      }
    }
  }

  private void dropOld(Peer peer, long now) {
    while (!peer.held.isEmpty()
        && now - peer.held.element().nanos() > config.timing().held().toNanos()) {
      peer.heldBytes -= peer.held.remove().content().length;
      metrics.rejected(Rejection.UNKNOWN_SENDER_KEY);
    }
  }

  /** Called about once a second: drops what has waited for too long. */
  void tick(long now) {
    for (Peer peer : peers.values()) {
      peer.inbound.execute(
          () -> {
            dropOld(peer, now);
            for (int i = peer.reassembly.expire(now); i > 0; i--) {
              metrics.rejected(Rejection.REASSEMBLY);
            }
          });
    }
  }

  private static @Nullable String traceparent(WebSocketRequestMessage request) {
    for (String header : request.getHeadersList()) {
      if (header.regionMatches(true, 0, "traceparent:", 0, 12)) {
        String value = header.substring(12).strip();
        return Frame.TRACEPARENT.matcher(value).matches() ? value : null;
      }
    }
    return null;
  }
}
