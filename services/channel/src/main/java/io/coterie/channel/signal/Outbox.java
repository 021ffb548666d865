package io.coterie.channel.signal;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.keys.AccessKey;
import io.coterie.channel.keys.Certificates;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.link.Link.Response;
import io.coterie.channel.link.Messaging;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.trust.Member;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.metadata.SealedSessionCipher;
import org.signal.libsignal.metadata.certificate.SenderCertificate;
import org.signal.libsignal.metadata.protocol.UnidentifiedSenderMessageContent;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.NoSessionException;
import org.signal.libsignal.protocol.SessionBuilder;
import org.signal.libsignal.protocol.SessionCipher;
import org.signal.libsignal.protocol.UntrustedIdentityException;
import org.signal.libsignal.protocol.message.CiphertextMessage;
import org.signal.libsignal.protocol.state.PreKeyBundle;

/**
 * Encrypts frames under pairwise sessions, hands them to the messaging service, and judges what it
 * answers. {@link GroupOutbox} does so under the sender key.
 */
public final class Outbox {
  /**
   * How often one message is sent again after fetching keys anew. More than once, because a message
   * of the peer under its old session may arrive in between and make that the current one again.
   */
  static final int MAX_REPAIRS = 3;

  /** Nobody waits to be told that one of these could not be decrypted. */
  static final int HINT = UnidentifiedSenderMessageContent.CONTENT_HINT_IMPLICIT;

  private final ProtocolStore store;
  private final Messaging messaging;
  private final Certificates certificates;
  private final SealedSessionCipher sealing;
  private final Waiters waiters;
  private final ChannelConfig.Timing timing;
  private final Executor pool;
  private final ChannelMetrics metrics;
  private final Pairwise sender = new Pairwise();

  Outbox(
      ProtocolStore store,
      Messaging messaging,
      Certificates certificates,
      Member self,
      Waiters waiters,
      ChannelConfig.Timing timing,
      Executor pool,
      ChannelMetrics metrics) {
    this.metrics = metrics;
    this.store = store;
    this.messaging = messaging;
    this.certificates = certificates;
    // No phone number: accounts are known by their ACI.
    this.sealing = new SealedSessionCipher(store, self.aci(), null, self.deviceId());
    this.waiters = waiters;
    this.timing = timing;
    this.pool = pool;
  }

  // Sessions

  /**
   * Opens a fresh session with keys from the messaging service. Without the access key of the peer
   * the service is told who asks.
   */
  CompletableFuture<Void> open(Peer peer) {
    AccessKey access = peer.keys.access().orElse(null);
    return messaging
        .fetchKeys(peer.recipient, access)
        .exceptionallyCompose(
            failure -> {
              ChannelException cause = ChannelException.of(failure);
              if (access == null || cause.reason() != Cause.UNAUTHENTICATED) {
                return CompletableFuture.failedFuture(cause);
              }
              peer.keys.forgetAccess(access);
              return messaging.fetchKeys(peer.recipient, null);
            })
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

  /**
   * Completes when the peer has told an access key that was not refused. The next hello asks for
   * it; everything else waits and never goes by name. (That hello tells a service that refuses
   * keys, by timing, who sent.)
   */
  CompletableFuture<Void> accessTold(Peer peer) {
    return waiters
        .when(List.of(peer), p -> p.keys.access().isPresent(), timing.establishWait())
        .exceptionallyCompose(
            failure -> {
              ChannelException cause = ChannelException.of(failure);
              return switch (cause.reason()) {
                case CLOSED, UNTRUSTED -> CompletableFuture.failedFuture(cause);
                default ->
                    failed(Cause.UNAUTHENTICATED, peer + ": its access key is refused", cause);
              };
            });
  }

  // Pairwise

  /**
   * Sends frames to one peer under the pairwise session, in order. The frames are wiped.
   *
   * @return completes when the messaging service has accepted all of them
   */
  CompletableFuture<Void> pairwise(Mode mode, Peer peer, List<byte[]> frames, SendOptions options) {
    return peer.outbound.frames(new Peer.Destination(mode, peer), frames, options, sender);
  }

  /**
   * Sends a body to one peer under the pairwise session, alone or with others. It is wiped.
   *
   * @param broadcast whether the peer is to take it for a broadcast
   * @return completes when the messaging service has accepted it
   */
  CompletableFuture<Void> pairwise(
      Mode mode, Peer peer, boolean broadcast, byte[] body, SendOptions options) {
    return peer.outbound.body(new Peer.Destination(mode, peer), broadcast, body, options, sender);
  }

  private final class Pairwise implements SendQueue.Sender<Peer.Destination> {
    @Override
    public CompletableFuture<Void> send(
        Peer.Destination to, byte[] frame, SendOptions options, AnswerTimes.Question question) {
      return pairwise(to, frame, options, MAX_REPAIRS, question)
          .whenComplete((sent, failure) -> Arrays.fill(frame, (byte) 0));
    }

    @Override
    public void count(Peer.Destination to, int bodies) {
      metrics.left(to.mode(), bodies);
    }
  }

  private CompletableFuture<Void> pairwise(
      Peer.Destination to,
      byte[] frame,
      SendOptions options,
      int repairs,
      AnswerTimes.Question question) {
    Mode mode = to.mode();
    Peer peer = to.peer();
    boolean named = mode == Mode.NAMED_STORED;
    AccessKey access = named ? null : peer.keys.access().orElse(null);
    // Hellos go by name if they have to, because they ask for the key.
    if (access == null && !named && mode != Mode.CONTROL) {
      question.end();
      return repairs == 0
          ? failed(Cause.UNAUTHENTICATED, peer + ": its access key is not known", null)
          : accessTold(peer)
              .thenComposeAsync(told -> pairwise(to, frame, options, repairs - 1, question), pool);
    }
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
      answer =
          messaging.sendOne(
              mode, peer.recipient, access, registrationId, sealed, options, question::answered);
    } catch (NoSessionException e) {
      return failed(Cause.NOT_ESTABLISHED, "no session with " + peer, e);
    } catch (UntrustedIdentityException | InvalidKeyException e) {
      return failed(Cause.UNTRUSTED, peer + ": not the pinned identity key", e);
    } catch (ChannelException e) {
      return CompletableFuture.failedFuture(e);
    }
    return answer.thenCompose(
        response -> {
          CompletableFuture<Void> repaired = repair(peer, access, response, repairs);
          return repaired == null
              ? CompletableFuture.completedFuture(null)
              : repaired.thenComposeAsync(
                  done -> pairwise(to, frame, options, repairs - 1, question), pool);
        });
  }

  /**
   * Judges the answer to a message for one peer.
   *
   * @return completes when the message may be sent again; null if it was accepted
   * @throws ChannelException if nothing can be done
   */
  @Nullable CompletableFuture<Void> repair(
      Peer peer, @Nullable AccessKey access, Response response, int repairs) {
    switch (response.status()) {
      case 401 -> {
        if (access != null) {
          peer.keys.forgetAccess(access);
          if (repairs > 0) {
            return CompletableFuture.completedFuture(null);
          }
        }
      }
      case 409, 410 -> {
        refuseUnpinnedDevices(peer, response.status(), Messaging.deviceProblem(response));
        if (repairs == 0) {
          throw stale(List.of(peer));
        }
        return open(peer);
      }
      default -> {}
    }
    Messaging.requireOk(response, "message to " + peer);
    return null;
  }

  /** A member has the one device that is pinned; the service may not add another. */
  static void refuseUnpinnedDevices(Peer peer, int status, Messaging.DeviceProblem problem) {
    if (status == 409 && !problem.missing().isEmpty()) {
      throw new ChannelException(
          Cause.UNTRUSTED, peer + ": the account has devices that the roster does not pin");
    }
    if (status == 409 && problem.extra().contains(peer.member.deviceId())) {
      throw new ChannelException(
          Cause.NOT_ESTABLISHED, peer + ": the pinned device is not registered");
    }
  }

  static ChannelException stale(List<Peer> peers) {
    return new ChannelException(
        Cause.NOT_ESTABLISHED, peers + ": the device has registered anew, again and again");
  }

  /** The own sender certificate, while it is valid. */
  SenderCertificate certificate() {
    CompletableFuture<SenderCertificate> own = certificates.own();
    if (own.isCompletedExceptionally() || !own.isDone()) {
      throw new ChannelException(Cause.UNAVAILABLE, "no valid sender certificate at the moment");
    }
    return own.join();
  }

  static CompletableFuture<Void> failed(Cause cause, String text, @Nullable Throwable reason) {
    return CompletableFuture.failedFuture(
        reason == null
            ? new ChannelException(cause, text)
            : new ChannelException(cause, text, reason));
  }
}
