package io.coterie.signer.channel;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.channel.ChannelException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.group.GroupService;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.PeerClocks;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.session.SessionService;
import io.coterie.signer.session.SessionTelemetry;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The secure channel as the session service sees it: messages in both directions, typed; one that
 * the messaging service could not take is tried again for a while.
 */
public final class ChannelNetwork implements PartyNetwork {
  private static final Logger log = LoggerFactory.getLogger(ChannelNetwork.class);

  /** A body, with the largest envelope there is; the channel's own limit may be lower. */
  private static final int MAX_BODY_BYTES = SessionLimits.MAX_PAIR_ENVELOPE_BYTES + 4096;

  /**
   * After this long a message is not tried again; the channel itself has waited for keys and for
   * the connection before it failed.
   */
  private static final long RETRY_NANOS = 5_000_000_000L;

  private static final Duration RETRY_PAUSE = Duration.ofMillis(200);

  /** Messages that wait to be tried again; further ones are dropped at once. */
  private static final int MAX_RETRYING = 4096;

  private final SecureChannel channel;
  private final WorkPool pool;
  private final SessionTelemetry telemetry;
  private final boolean contributionsToAll;
  private final AtomicInteger retrying = new AtomicInteger();
  private volatile @Nullable PeerClocks clocks;
  private volatile @Nullable GroupService groups;

  /**
   * @param contributionsToAll whether contributions that the coordinator alone needs go to the
   *     other parties of their session as well, to compare
   */
  public ChannelNetwork(
      SecureChannel channel,
      WorkPool pool,
      SessionTelemetry telemetry,
      boolean contributionsToAll) {
    this.channel = channel;
    this.pool = pool;
    this.telemetry = telemetry;
    this.contributionsToAll = contributionsToAll;
  }

  /** Hands everything that comes to the service. Before {@link SecureChannel#start}, once. */
  public void deliverTo(SessionService service) {
    channel.onMessage(message -> deliver(service, message));
  }

  /** Hands over what peers say of the time, too. Before {@link #deliverTo}. */
  public void deliverTo(PeerClocks clocks) {
    this.clocks = clocks;
  }

  /** Hands over what concerns groups, too. Before {@link #deliverTo(SessionService)}. */
  public void deliverTo(GroupService groups) {
    this.groups = groups;
  }

  @Override
  public Roster roster() {
    return channel.roster();
  }

  @Override
  public Member self() {
    return channel.self();
  }

  @Override
  public Set<Member> reachable() {
    return channel.reachable();
  }

  @Override
  public void broadcast(
      Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
    List<Member> to = List.copyOf(recipients);
    if (to.isEmpty()) {
      return;
    }
    byte[] body = message.toByteArray();
    SendOptions options = SendOptions.online(traceparent);
    attempt(() -> channel.broadcast(to, body, options), body, pool.nanos());
  }

  @Override
  public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
    byte[] body = message.toByteArray();
    SendOptions options = SendOptions.online(traceparent);
    attempt(() -> channel.send(recipient, body, options), body, pool.nanos());
  }

  @Override
  public void contribute(
      Member coordinator,
      Collection<Member> others,
      PartyMessage message,
      @Nullable String traceparent) {
    if (!contributionsToAll) {
      send(coordinator, message, traceparent);
      return;
    }
    List<Member> all = new ArrayList<>(others);
    all.add(coordinator);
    broadcast(all, message, traceparent);
  }

  private void attempt(Supplier<CompletionStage<Void>> send, byte[] body, long firstNanos) {
    CompletionStage<Void> sent;
    try {
      sent = send.get();
    } catch (ChannelException e) {
      failed(send, body, firstNanos, e);
      return;
    }
    sent.whenComplete(
        (_, failure) -> {
          if (failure == null) {
            Arrays.fill(body, (byte) 0);
          } else {
            failed(send, body, firstNanos, failure);
          }
        });
  }

  private void failed(
      Supplier<CompletionStage<Void>> send, byte[] body, long firstNanos, Throwable failure) {
    Throwable cause =
        failure instanceof CompletionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    if (pool.nanos() - firstNanos < RETRY_NANOS && isPassing(cause)) {
      if (retrying.incrementAndGet() <= MAX_RETRYING) {
        pool.after(
            RETRY_PAUSE,
            () -> {
              retrying.decrementAndGet();
              attempt(send, body, firstNanos);
            });
        return;
      }
      retrying.decrementAndGet();
    }
    Arrays.fill(body, (byte) 0);
    log.warn("a message was not sent: {}", cause.toString());
  }

  private static boolean isPassing(Throwable cause) {
    return cause instanceof ChannelException e
        && switch (e.reason()) {
          case NOT_ESTABLISHED, UNAVAILABLE, RATE_LIMITED -> true;
          case TOO_LARGE, UNTRUSTED, UNAUTHENTICATED, CLOSED, INTERNAL -> false;
        };
  }

  private void deliver(SessionService service, InboundMessage message) {
    if (message.body().length > MAX_BODY_BYTES) {
      telemetry.dropped("too_large");
      return;
    }
    PartyMessage parsed;
    try {
      // Without a copy: the body is this method's own, and is zeroed where it is used up.
      CodedInputStream in = UnsafeByteOperations.unsafeWrap(message.body()).newCodedInput();
      in.enableAliasing(true);
      parsed = PartyMessage.parseFrom(in);
    } catch (IOException e) {
      telemetry.dropped("undecodable");
      return;
    }
    switch (parsed.getBodyCase()) {
      case ORDER -> service.onOrder(message.sender(), parsed.getOrder(), message.traceparent());
      case ENVELOPE -> {
        SessionEnvelope envelope = parsed.getEnvelope();
        byte[] bytes = envelope.getEnvelope().toByteArray();
        SessionId id = id(envelope.getSessionId());
        Arrays.fill(message.body(), (byte) 0);
        if (id != null) {
          service.onEnvelope(message.sender(), id, bytes, message.receivedNanos());
        }
      }
      case REPORT -> {
        SessionReport report = parsed.getReport();
        SessionId id = id(report.getSessionId());
        if (id != null) {
          service.onReport(message.sender(), id, report);
        }
      }
      case CANCEL -> {
        SessionId id = id(parsed.getCancel().getSessionId());
        if (id != null) {
          service.onCancel(message.sender(), id);
        }
      }
      case CLAIM_COUNT -> service.onClaimCount(message.sender(), parsed.getClaimCount());
      case CLAIM_MEMORY -> service.onClaimMemory(message.sender(), parsed.getClaimMemory());
      case EPOCH_QUESTION -> service.onEpochQuestion(message.sender(), parsed.getEpochQuestion());
      case CANCEL_QUESTION ->
          service.onCancelQuestion(message.sender(), parsed.getCancelQuestion());
      case CLOCK_QUESTION, CLOCK_ANSWER -> deliver(clocks, message.sender(), parsed);
      case GROUP_ORDER, GROUP_ENVELOPE -> deliver(groups, message, parsed);
      case EPOCH_ANSWER, CANCEL_ANSWER, GROUP_REPORT, BODY_NOT_SET ->
          telemetry.dropped("undecodable");
    }
  }

  private void deliver(@Nullable GroupService groups, InboundMessage message, PartyMessage parsed) {
    if (groups == null) {
      telemetry.dropped("undecodable");
    } else if (parsed.hasGroupOrder()) {
      // A copy: the order outlives the body.
      ByteString order = ByteString.copyFrom(parsed.getGroupOrder().toByteArray());
      groups.onOrder(message.sender(), order, message.traceparent());
    } else {
      SessionEnvelope envelope = parsed.getGroupEnvelope();
      byte[] bytes = envelope.getEnvelope().toByteArray();
      SessionId id = id(envelope.getSessionId());
      Arrays.fill(message.body(), (byte) 0);
      if (id != null) {
        groups.onEnvelope(message.sender(), id, bytes, message.receivedNanos());
      }
    }
  }

  private static void deliver(@Nullable PeerClocks clocks, Member sender, PartyMessage message) {
    if (clocks != null && message.hasClockQuestion()) {
      clocks.asked(sender, message.getClockQuestion());
    } else if (clocks != null) {
      clocks.answered(sender, message.getClockAnswer());
    }
  }

  private @Nullable SessionId id(ByteString bytes) {
    if (bytes.size() != SessionId.LENGTH) {
      telemetry.dropped("undecodable");
      return null;
    }
    // A copy: the id outlives the body.
    return new SessionId(ByteString.copyFrom(bytes.toByteArray()));
  }
}
