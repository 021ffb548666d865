package io.coterie.channel.signal;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.keys.AccessKey;
import io.coterie.channel.keys.OwnSenderKey;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.link.Link.Response;
import io.coterie.channel.link.Messaging;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.signal.libsignal.metadata.SealedSessionCipher;
import org.signal.libsignal.metadata.protocol.UnidentifiedSenderMessageContent;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.InvalidRegistrationIdException;
import org.signal.libsignal.protocol.NoSessionException;
import org.signal.libsignal.protocol.SignalProtocolAddress;
import org.signal.libsignal.protocol.UntrustedIdentityException;
import org.signal.libsignal.protocol.groups.GroupCipher;
import org.signal.libsignal.protocol.message.CiphertextMessage;
import org.signal.libsignal.protocol.state.SessionRecord;

/**
 * Encrypts frames under the own sender key, once for all recipients, hands them to the messaging
 * service, and judges what it answers.
 */
final class GroupOutbox {
  private final ProtocolStore store;
  private final Messaging messaging;
  private final Outbox outbox;

  /** The own sender key in use: asked when a message leaves, because it may have waited. */
  private final Supplier<OwnSenderKey> senderKey;

  private final SignalProtocolAddress self;
  private final SealedSessionCipher sealing;
  private final ChannelConfig.Timing timing;
  private final Executor pool;

  private final ChannelMetrics metrics;

  /** Broadcasts leave in the order in which they were given. */
  private final SendQueue<Destination> queue;

  private final Group sender = new Group();

  /** Where a frame goes. */
  private record Destination(Mode mode, List<Peer> peers) {}

  private final class Group implements SendQueue.Sender<Destination> {
    @Override
    public CompletableFuture<Void> send(
        Destination to, byte[] frame, SendOptions options, AnswerTimes.Question question) {
      return group(to, frame, options, question);
    }

    @Override
    public void count(Destination to, int bodies) {
      metrics.left(to.mode, bodies);
    }
  }

  GroupOutbox(
      ProtocolStore store,
      Messaging messaging,
      Outbox outbox,
      Supplier<OwnSenderKey> senderKey,
      Member self,
      ChannelConfig config,
      Executor pool,
      ChannelMetrics metrics) {
    this.store = store;
    this.messaging = messaging;
    this.outbox = outbox;
    this.senderKey = senderKey;
    this.self = ProtocolStore.address(self);
    this.sealing = new SealedSessionCipher(store, self.aci(), null, self.deviceId());
    this.timing = config.timing();
    this.pool = pool;
    this.metrics = metrics;
    this.queue = new SendQueue<>(pool, config.limits().chunk(), System::nanoTime);
  }

  /**
   * Sends frames to several peers, each as one multi-recipient request. The frames are wiped.
   *
   * @return completes when the messaging service has accepted all of them for all peers
   */
  CompletableFuture<Void> send(
      Mode mode, List<Peer> peers, List<byte[]> frames, SendOptions options) {
    return queue.frames(new Destination(mode, peers), frames, options, sender);
  }

  /**
   * Sends a body to several peers, alone or with others for the same peers. It is wiped.
   *
   * @return completes when the messaging service has accepted it for all peers
   */
  CompletableFuture<Void> send(Mode mode, List<Peer> peers, byte[] body, SendOptions options) {
    return queue.body(new Destination(mode, peers), true, body, options, sender);
  }

  /**
   * A frame under the sender key, on its way to some of its recipients.
   *
   * @param bytes of the frame, encrypted
   * @param repairs how often it may still be sent again because keys were not right
   * @param pauses how often it has waited for full queues
   * @param deadlineNanos until when it may do so
   * @param question see {@link SendQueue.Sender#send}
   */
  private record Broadcast(
      Mode mode,
      UnidentifiedSenderMessageContent content,
      SendOptions options,
      int bytes,
      int repairs,
      int pauses,
      long deadlineNanos,
      AnswerTimes.Question question) {
    Broadcast withRepairs(int left) {
      return new Broadcast(mode, content, options, bytes, left, pauses, deadlineNanos, question);
    }

    Broadcast repaired() {
      return withRepairs(repairs - 1);
    }

    Broadcast paused() {
      return new Broadcast(
          mode, content, options, bytes, repairs, pauses + 1, deadlineNanos, question);
    }
  }

  private CompletableFuture<Void> group(
      Destination to, byte[] frame, SendOptions options, AnswerTimes.Question question) {
    OwnSenderKey key = senderKey.get();
    try {
      CiphertextMessage message;
      synchronized (key) {
        message = new GroupCipher(store, self).encrypt(key.id(), frame);
        key.used();
      }
      UnidentifiedSenderMessageContent content =
          new UnidentifiedSenderMessageContent(
              message, outbox.certificate(), Outbox.HINT, Optional.empty());
      long deadline = System.nanoTime() + timing.request().toNanos();
      int bytes = message.serialize().length;
      return seal(
          to.peers,
          new Broadcast(
              to.mode, content, options, bytes, Outbox.MAX_REPAIRS, 0, deadline, question));
    } catch (NoSessionException e) {
      return Outbox.failed(Cause.INTERNAL, "the own sender key is missing", e);
    } catch (ChannelException e) {
      return CompletableFuture.failedFuture(e);
    } finally {
      Arrays.fill(frame, (byte) 0);
    }
  }

  /** Sends to those whose access key is known with one request, and to the others one by one. */
  private CompletableFuture<Void> seal(List<Peer> peers, Broadcast broadcast) {
    List<Peer> known = new ArrayList<>(peers.size());
    List<AccessKey> access = new ArrayList<>(peers.size());
    List<CompletableFuture<Void>> sent = new ArrayList<>();
    for (Peer peer : peers) {
      Optional<AccessKey> key = peer.keys.access();
      if (key.isPresent()) {
        known.add(peer);
        access.add(key.get());
      } else if (peer.keys.accessRefused()) {
        sent.add(onceAccessIsTold(peer, broadcast));
      } else {
        sent.add(byName(peer, broadcast));
      }
    }
    if (known.isEmpty() && peers.stream().allMatch(peer -> peer.keys.accessRefused())) {
      broadcast.question.end(); // All wait to be told an access key.
    }
    if (!known.isEmpty()) {
      sent.add(many(known, access, broadcast));
    }
    return SendQueue.all(sent);
  }

  private CompletableFuture<Void> onceAccessIsTold(Peer peer, Broadcast broadcast) {
    return broadcast.repairs == 0
        ? Outbox.failed(
            Cause.UNAUTHENTICATED, "message to " + peer + ": its access key is refused", null)
        : outbox
            .accessTold(peer)
            .thenComposeAsync(told -> seal(List.of(peer), broadcast.repaired()), pool);
  }

  /** To a peer that has told no access key yet, which is rarely there to read it. */
  private CompletableFuture<Void> byName(Peer peer, Broadcast broadcast) {
    CompletableFuture<Response> answer;
    try {
      SessionRecord session = session(peer);
      byte[] sealed = sealing.encrypt(peer.address, broadcast.content);
      answer =
          messaging.sendOne(
              broadcast.mode,
              peer.recipient,
              null,
              session.getRemoteRegistrationId(),
              sealed,
              broadcast.options,
              broadcast.question::answered);
    } catch (NoSessionException e) {
      return Outbox.failed(Cause.NOT_ESTABLISHED, "no session with " + peer, e);
    } catch (InvalidKeyException | UntrustedIdentityException e) {
      return Outbox.failed(Cause.UNTRUSTED, peer + ": not the pinned identity key", e);
    }
    return answer.thenCompose(
        response -> {
          CompletableFuture<Void> repaired = outbox.repair(peer, null, response, broadcast.repairs);
          return repaired == null
              ? CompletableFuture.completedFuture(null)
              : repaired.thenComposeAsync(done -> seal(List.of(peer), broadcast.repaired()), pool);
        });
  }

  private SessionRecord session(Peer peer) throws NoSessionException {
    SessionRecord session = store.loadSession(peer.address);
    if (session == null) {
      throw new NoSessionException(peer.address, "no session with " + peer);
    }
    return session;
  }

  private CompletableFuture<Void> many(
      List<Peer> peers, List<AccessKey> access, Broadcast broadcast) {
    byte[] sealed;
    try {
      List<SignalProtocolAddress> addresses = new ArrayList<>(peers.size());
      List<SessionRecord> sessions = new ArrayList<>(peers.size());
      for (Peer peer : peers) {
        addresses.add(peer.address);
        sessions.add(session(peer));
      }
      sealed = sealing.multiRecipientEncrypt(addresses, sessions, broadcast.content);
    } catch (NoSessionException e) {
      return Outbox.failed(Cause.NOT_ESTABLISHED, "no session with a recipient", e);
    } catch (InvalidRegistrationIdException | InvalidKeyException | UntrustedIdentityException e) {
      return Outbox.failed(Cause.UNTRUSTED, "keys of a recipient are not usable", e);
    }
    return messaging
        .sendMany(
            broadcast.mode,
            accounts(peers),
            access,
            sealed,
            broadcast.options,
            broadcast.question::answered)
        .thenCompose(
            response ->
                switch (response.status()) {
                  case 409, 410 -> reopened(peers, response, broadcast);
                  case 401, 403, 404 -> {
                    if (peers.size() > 1) {
                      yield apart(peers, broadcast);
                    }
                    Peer peer = peers.getFirst();
                    if (response.status() != 401) {
                      throw ChannelException.ofStatus(response.status(), "message to " + peer);
                    }
                    peer.keys.forgetAccess(access.getFirst());
                    yield onceAccessIsTold(peer, broadcast);
                  }
                  default -> {
                    Messaging.requireOk(response, "message to " + peers);
                    yield accepted(peers, response, broadcast);
                  }
                });
  }

  /** Opens fresh sessions with those whose devices have changed, and sends to all once more. */
  private CompletableFuture<Void> reopened(
      List<Peer> peers, Response response, Broadcast broadcast) {
    List<Peer> named;
    try {
      named = named(peers, response);
    } catch (ChannelException e) {
      if (peers.size() == 1) {
        throw e;
      }
      return apart(peers, broadcast);
    }
    if (broadcast.repairs == 0) {
      throw Outbox.stale(named);
    }
    return SendQueue.all(named.stream().map(outbox::open).toList())
        .thenComposeAsync(opened -> seal(peers, broadcast.repaired()), pool);
  }

  /**
   * Sends to each by itself what the service has refused for all. One account that is not what the
   * roster says, of a member that has enrolled anew or is corrupt, must not cut the others off.
   */
  private CompletableFuture<Void> apart(List<Peer> peers, Broadcast broadcast) {
    // Sealing takes time that the thread that reads answers does not have.
    return CompletableFuture.completedFuture(peers)
        .thenComposeAsync(
            each ->
                SendQueue.all(
                    each.stream()
                        .map(peer -> seal(List.of(peer), broadcast.withRepairs(1)))
                        .toList()),
            pool);
  }

  /** The service has taken the message, but maybe not for everybody. */
  private CompletableFuture<Void> accepted(
      List<Peer> peers, Response response, Broadcast broadcast) {
    Messaging.Undelivered undelivered = Messaging.undelivered(response);
    List<Peer> unknown = among(peers, undelivered.unknown());
    List<Peer> full = among(peers, undelivered.full());
    List<CompletableFuture<Void>> rest = new ArrayList<>();
    if (!full.isEmpty()) {
      rest.add(later(full, broadcast));
    }
    if (!unknown.isEmpty()) {
      String text = unknown + ": not registered at the messaging service";
      rest.add(Outbox.failed(Cause.NOT_ESTABLISHED, text, null));
    }
    return SendQueue.all(rest);
  }

  private static List<Peer> among(List<Peer> peers, List<UUID> accounts) {
    return peers.stream().filter(peer -> accounts.contains(peer.member.aci())).toList();
  }

  /** Sends again to those whose queues are full, and to nobody else. */
  private CompletableFuture<Void> later(List<Peer> full, Broadcast broadcast) {
    Duration pause = Messaging.pause(broadcast.pauses);
    if (System.nanoTime() + pause.toNanos() - broadcast.deadlineNanos > 0) {
      return Outbox.failed(Cause.RATE_LIMITED, full + ": too many messages wait for them", null);
    }
    return messaging
        .later(accounts(full), broadcast.bytes, pause, () -> seal(full, broadcast.paused()))
        .orElseGet(
            () ->
                Outbox.failed(
                    Cause.RATE_LIMITED, full + ": too much waits for full queues already", null));
  }

  private static List<UUID> accounts(List<Peer> peers) {
    return peers.stream().map(peer -> peer.member.aci()).toList();
  }

  /** The recipients of whose devices the service says that they are wrong. */
  private static List<Peer> named(List<Peer> peers, Response response) {
    List<Peer> named = new ArrayList<>();
    for (Messaging.DeviceProblem problem : Messaging.deviceProblems(response)) {
      for (Peer peer : peers) {
        if (peer.member.aci().equals(problem.account())) {
          Outbox.refuseUnpinnedDevices(peer, response.status(), problem);
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
}
