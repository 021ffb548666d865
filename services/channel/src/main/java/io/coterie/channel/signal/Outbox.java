package io.coterie.channel.signal;

import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.keys.Certificates;
import io.coterie.channel.keys.OwnSenderKey;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.link.Link.Response;
import io.coterie.channel.link.Messaging;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.metadata.SealedSessionCipher;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.metadata.protocol.UnidentifiedSenderMessageContent;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.InvalidRegistrationIdException;
import org.signal.libsignal.protocol.NoSessionException;
import org.signal.libsignal.protocol.SessionBuilder;
import org.signal.libsignal.protocol.SessionCipher;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.UntrustedIdentityException;
import org.signal.libsignal.protocol.groups.GroupCipher;
import org.signal.libsignal.protocol.message.CiphertextMessage;
import org.signal.libsignal.protocol.state.PreKeyBundle;
import org.signal.libsignal.protocol.state.SessionRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Encrypts frames, hands them to the messaging service, and judges what it answers. */
public final class Outbox {
  private static final Logger LOG = LoggerFactory.getLogger(Outbox.class);

  /**
   * How often one message is sent again after fetching keys anew. More than once, because a message
   * of the peer under its old session may arrive in between and make that the current one again.
   */
  private static final int MAX_REPAIRS = 3;

  /** Nobody waits to be told that one of these could not be decrypted. */
  private static final int HINT = UnidentifiedSenderMessageContent.CONTENT_HINT_IMPLICIT;

  private final ProtocolStore store;
  private final Messaging messaging;
  private final Certificates certificates;
  private final SignalProtocolAddress self;
  private final SealedSessionCipher sealing;
  private final Executor pool;

  /** Broadcasts leave in the order in which they were given. */
  private final MessageLane groupLane;

  Outbox(
      ProtocolStore store,
      Messaging messaging,
      Certificates certificates,
      Member self,
      Executor pool) {
    this.store = store;
    this.messaging = messaging;
    this.certificates = certificates;
    this.self = ProtocolStore.address(self);
    // No phone number: accounts are known by their ACI.
    this.sealing = new SealedSessionCipher(store, self.aci(), null, self.deviceId());
    this.pool = pool;
    this.groupLane = new MessageLane(pool);
  }

  // Sessions

  /** Opens a fresh session with keys from the messaging service. */
  CompletableFuture<Void> open(Peer peer) {
    return messaging
        .fetchKeys(peer.recipient)
        .thenAcceptAsync(bundle -> process(peer, bundle), pool);
  }

  private void process(Peer peer, PreKeyBundle bundle) {
    peer.session.lock();
    try {
      new SessionBuilder(store, peer.address).process(bundle);
    } catch (UntrustedIdentityException e) {
      throw new ChannelException(Cause.UNTRUSTED, peer + ": not the pinned identity key", e);
    } catch (InvalidKeyException e) {
      throw new ChannelException(
          Cause.UNTRUSTED, peer + ": prekeys that its identity key has not signed", e);
    } finally {
      peer.session.unlock();
    }
  }

  boolean hasSession(Peer peer) {
    return store.containsSession(peer.address);
  }

  // Pairwise

  /**
   * Sends frames to one peer under the pairwise session, in order. The frames are wiped.
   *
   * @return completes when the messaging service has accepted all of them
   */
  CompletableFuture<Void> pairwise(Mode mode, Peer peer, List<byte[]> frames, SendOptions options) {
    return inLane(
        peer.outbound,
        frames,
        frame ->
            pairwise(mode, peer, frame, options, MAX_REPAIRS)
                .whenComplete((sent, failure) -> Arrays.fill(frame, (byte) 0)));
  }

  private CompletableFuture<Void> pairwise(
      Mode mode, Peer peer, byte[] frame, SendOptions options, int repairs) {
    CompletableFuture<Response> answer;
    try {
      SenderCertificate certificate = certificate();
      CiphertextMessage message;
      int registrationId;
      peer.session.lock();
      try {
        SessionCipher cipher = new SessionCipher(store, peer.address);
        message = cipher.encrypt(frame);
        registrationId = cipher.getRemoteRegistrationId();
      } finally {
        peer.session.unlock();
      }
      byte[] sealed =
          sealing.encrypt(
              peer.address,
              new UnidentifiedSenderMessageContent(message, certificate, HINT, Optional.empty()));
      answer = messaging.sendOne(mode, peer.recipient, registrationId, sealed, options);
    } catch (NoSessionException e) {
      return failed(Cause.NOT_ESTABLISHED, "no session with " + peer, e);
    } catch (UntrustedIdentityException | InvalidKeyException e) {
      return failed(Cause.UNTRUSTED, peer + ": not the pinned identity key", e);
    } catch (ChannelException e) {
      return CompletableFuture.failedFuture(e);
    }
    return answer.thenCompose(
        response ->
            switch (response.status()) {
              case 409, 410 -> {
                refuseUnpinnedDevices(peer, response.status(), Messaging.deviceProblem(response));
                if (repairs == 0) {
                  throw stale(List.of(peer));
                }
                yield open(peer)
                    .thenComposeAsync(
                        opened -> pairwise(mode, peer, frame, options, repairs - 1), pool);
              }
              default -> {
                Messaging.requireOk(response, "message to " + peer);
                yield CompletableFuture.completedFuture(null);
              }
            });
  }

  // Group

  /**
   * Sends frames to several peers, each as one multi-recipient request. The frames are wiped.
   *
   * @return completes when the messaging service has accepted all of them for all peers
   */
  CompletableFuture<Void> group(
      Mode mode, OwnSenderKey key, List<Peer> peers, List<byte[]> frames, SendOptions options) {
    return inLane(groupLane, frames, frame -> group(mode, key, peers, frame, options));
  }

  private CompletableFuture<Void> group(
      Mode mode, OwnSenderKey key, List<Peer> peers, byte[] frame, SendOptions options) {
    try {
      CiphertextMessage message;
      synchronized (key) {
        message = new GroupCipher(store, self).encrypt(key.id(), frame);
        key.used();
      }
      UnidentifiedSenderMessageContent content =
          new UnidentifiedSenderMessageContent(message, certificate(), HINT, Optional.empty());
      return seal(mode, peers, content, options, MAX_REPAIRS);
    } catch (NoSessionException e) {
      return failed(Cause.INTERNAL, "the own sender key is missing", e);
    } catch (ChannelException e) {
      return CompletableFuture.failedFuture(e);
    } finally {
      Arrays.fill(frame, (byte) 0);
    }
  }

  private CompletableFuture<Void> seal(
      Mode mode,
      List<Peer> peers,
      UnidentifiedSenderMessageContent content,
      SendOptions options,
      int repairs) {
    byte[] sealed;
    try {
      List<SignalProtocolAddress> addresses = new ArrayList<>(peers.size());
      List<SessionRecord> sessions = new ArrayList<>(peers.size());
      for (Peer peer : peers) {
        SessionRecord session = store.loadSession(peer.address);
        if (session == null) {
          throw new NoSessionException(peer.address, "no session with " + peer);
        }
        addresses.add(peer.address);
        sessions.add(session);
      }
      sealed = sealing.multiRecipientEncrypt(addresses, sessions, content);
    } catch (NoSessionException e) {
      return failed(Cause.NOT_ESTABLISHED, "no session with a recipient", e);
    } catch (InvalidRegistrationIdException | InvalidKeyException | UntrustedIdentityException e) {
      return failed(Cause.UNTRUSTED, "keys of a recipient are not usable", e);
    }
    return messaging
        .sendMany(mode, peers.stream().map(peer -> peer.recipient).toList(), sealed, options)
        .thenCompose(
            response ->
                switch (response.status()) {
                  case 409, 410 -> {
                    List<Peer> named;
                    try {
                      named = named(peers, response);
                    } catch (ChannelException e) {
                      if (peers.size() == 1) {
                        throw e;
                      }
                      yield apart(mode, peers, content, options);
                    }
                    if (repairs == 0) {
                      throw stale(named);
                    }
                    yield all(named.stream().map(this::open).toList())
                        .thenComposeAsync(
                            opened -> seal(mode, peers, content, options, repairs - 1), pool);
                  }
                  case 401, 403, 404 -> {
                    if (peers.size() == 1) {
                      throw ChannelException.ofStatus(
                          response.status(), "message to " + peers.getFirst());
                    }
                    yield apart(mode, peers, content, options);
                  }
                  default -> {
                    Messaging.requireOk(response, "broadcast");
                    requireDelivered(peers, response);
                    yield CompletableFuture.completedFuture(null);
                  }
                });
  }

  /**
   * Sends to each by itself what the service has refused for all. One account that is not what the
   * roster says, of a member that has enrolled anew or is corrupt, must not cut the others off.
   */
  private CompletableFuture<Void> apart(
      Mode mode, List<Peer> peers, UnidentifiedSenderMessageContent content, SendOptions options) {
    // Sealing takes time that the thread that reads answers does not have.
    return CompletableFuture.completedFuture(peers)
        .thenComposeAsync(
            each ->
                all(
                    each.stream()
                        .map(peer -> seal(mode, List.of(peer), content, options, 1))
                        .toList()),
            pool);
  }

  /** Those of the recipients whose devices the service finds wrong. */
  private static List<Peer> named(List<Peer> peers, Response response) {
    List<Peer> named = new ArrayList<>();
    for (Messaging.DeviceProblem problem : Messaging.deviceProblems(response)) {
      for (Peer peer : peers) {
        if (peer.member.aci().equals(problem.account())) {
          refuseUnpinnedDevices(peer, response.status(), problem);
          named.add(peer);
        }
      }
    }
    if (named.isEmpty()) {
      throw new ChannelException(
          Cause.INTERNAL, "the messaging service reports wrong devices of nobody we sent to");
    }
    return named;
  }

  /** A member has the one device that is pinned; the service may not add another. */
  private static void refuseUnpinnedDevices(
      Peer peer, int status, Messaging.DeviceProblem problem) {
    if (status == 409 && !problem.missing().isEmpty()) {
      throw new ChannelException(
          Cause.UNTRUSTED, peer + ": the account has devices that the roster does not pin");
    }
    if (status == 409 && problem.extra().contains(peer.member.deviceId())) {
      throw new ChannelException(
          Cause.NOT_ESTABLISHED, peer + ": the pinned device is not registered");
    }
  }

  private static ChannelException stale(List<Peer> peers) {
    return new ChannelException(
        Cause.NOT_ESTABLISHED, peers + ": the device has registered anew, again and again");
  }

  private static void requireDelivered(List<Peer> peers, Response response) {
    if (response.body().isEmpty()) {
      return;
    }
    List<UUID> undelivered = Messaging.undelivered(response);
    List<Peer> missed =
        peers.stream().filter(peer -> undelivered.contains(peer.member.aci())).toList();
    if (!missed.isEmpty()) {
      throw new ChannelException(
          Cause.NOT_ESTABLISHED, missed + ": not registered at the messaging service");
    }
  }

  private SenderCertificate certificate() {
    CompletableFuture<SenderCertificate> own = certificates.own();
    if (own.isCompletedExceptionally() || !own.isDone()) {
      throw new ChannelException(Cause.UNAVAILABLE, "no valid sender certificate at the moment");
    }
    return own.join();
  }

  static CompletableFuture<Void> all(List<CompletableFuture<Void>> parts) {
    return parts.size() == 1
        ? parts.getFirst()
        : CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new));
  }

  /**
   * Sends frames one after another in a lane. Anything thrown on the way, an Error too, fails the
   * message, because its sender waits for an end.
   */
  private static CompletableFuture<Void> inLane(
      MessageLane lane, List<byte[]> frames, Function<byte[], CompletableFuture<Void>> send) {
    CompletableFuture<Void> done = new CompletableFuture<>();
    lane.execute(
        () -> {
          try {
            forward(all(frames.stream().map(send).toList()), done);
          } catch (RuntimeException | Error e) {
            LOG.error("a message could not be sent", e);
            frames.forEach(frame -> Arrays.fill(frame, (byte) 0));
            done.completeExceptionally(ChannelException.of(e));
          }
        });
    return done;
  }

  private static void forward(CompletableFuture<Void> from, CompletableFuture<Void> to) {
    from.whenComplete(
        (done, failure) -> {
          if (failure == null) {
            to.complete(null);
          } else {
            to.completeExceptionally(ChannelException.of(failure));
          }
        });
  }

  private static CompletableFuture<Void> failed(
      Cause cause, String text, @Nullable Throwable reason) {
    return CompletableFuture.failedFuture(
        reason == null
            ? new ChannelException(cause, text)
            : new ChannelException(cause, text, reason));
  }
}
