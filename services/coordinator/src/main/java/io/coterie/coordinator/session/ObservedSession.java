package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;

/**
 * One session as the coordinator follows it, from the order to the outcome. It ends exactly once;
 * everything that comes later is dropped.
 */
public abstract sealed class ObservedSession permits SigningSession, KeygenSession, PresignSession {
  final SessionId id;
  private final ByteString order;
  final SessionPlan plan;
  final Protocol protocol;
  final Sessions sessions;
  final long startedNanos;
  private final Map<Integer, Member> members = new HashMap<>();
  private final SecureChannel channel;
  private final CompletableFuture<SessionOutcome> outcome = new CompletableFuture<>();

  ObservedSession(
      ByteString order,
      SessionPlan plan,
      Protocol protocol,
      Sessions sessions,
      SecureChannel channel) {
    this.id = SessionId.ofOrder(order);
    this.order = order;
    this.plan = plan;
    this.protocol = protocol;
    this.sessions = sessions;
    this.channel = channel;
    this.startedNanos = sessions.timer().nanos();
    plan.parties().forEach(m -> members.put(m.partyId(), m));
  }

  public SessionId id() {
    return id;
  }

  /** Names of the parties, in ascending order of party id. */
  public List<String> partyNames() {
    return plan.parties().stream().map(Member::name).toList();
  }

  /** Names of those parties of this session. */
  public List<String> names(Collection<Integer> partyIds) {
    return plan.parties().stream()
        .filter(m -> partyIds.contains(m.partyId()))
        .map(Member::name)
        .toList();
  }

  /** The outcome if the time of the session were up now: it names the awaited parties. */
  public SessionOutcome waitingFor() {
    return timedOut();
  }

  /** The order that the session id is the hash of. */
  public ByteString order() {
    return order;
  }

  /** Sends the order to all parties as one message. */
  void sendOrder() {
    channel
        .broadcast(
            plan.parties(),
            PartyMessage.newBuilder().setOrder(order).build().toByteArray(),
            SendOptions.online(plan.trace().traceparent()))
        .whenComplete(
            (accepted, failure) -> {
              if (failure != null) {
                end(new SessionOutcome.Unsent(causeOf(failure)));
              }
            });
  }

  private static ChannelException.Cause causeOf(Throwable failure) {
    Throwable cause =
        failure instanceof CompletionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    return cause instanceof ChannelException c ? c.reason() : ChannelException.Cause.INTERNAL;
  }

  /** The party of this session that the channel proved as the sender, if it is one. */
  boolean isParty(Member sender) {
    Member pinned = members.get(sender.partyId());
    return pinned != null && pinned.equals(sender);
  }

  /** An envelope of a party of this session. Does not block. */
  abstract void onEnvelope(Member sender, SessionEnvelope envelope, long receivedNanos);

  /** A report of a party of this session. Does not block. */
  abstract void onReport(Member sender, SessionReport report);

  /** The outcome when the time of the session is up: it names the awaited parties. */
  abstract SessionOutcome timedOut();

  /** Frees what the session holds. Called once, after its end. */
  abstract void release();

  /**
   * Waits for the end; when {@code timeout} has passed the parties are told to stop, have {@link
   * #hearing} to say what they were waiting for, and the session ends with that.
   */
  public SessionOutcome await(Duration timeout) throws InterruptedException {
    if (!endsWithin(timeout)) {
      if (timeIsUp() && !endsWithin(hearing())) {
        end(timedOut());
      }
    }
    return outcome.join();
  }

  /** The same for a caller that has no thread to wait with. */
  public CompletionStage<SessionOutcome> endWithin(Duration timeout) {
    sessions
        .timer()
        .after(
            timeout,
            () -> {
              if (!hasEnded() && timeIsUp()) {
                sessions.timer().after(hearing(), () -> end(timedOut()));
              }
            });
    return outcome;
  }

  /**
   * The time is up: the session ends, or the parties are told to stop.
   *
   * @return whether they are heard first
   */
  private boolean timeIsUp() {
    if (hearing().isZero()) {
      end(timedOut());
      return false;
    }
    cancel();
    return true;
  }

  /**
   * Whether a party that is late or busy here is asked later than others elsewhere. Not for work
   * that the parties do when they have nothing better to do.
   */
  boolean latenessCounts() {
    return true;
  }

  /** How long to wait for the parties' own view after the deadline; zero if it adds nothing. */
  Duration hearing() {
    return Duration.ZERO;
  }

  private boolean endsWithin(Duration time) throws InterruptedException {
    return sessions.timer().await(outcome, time.toNanos());
  }

  /** Ends the session, unless it has ended. */
  final void end(SessionOutcome result) {
    if (!outcome.complete(result)) {
      return;
    }
    sessions.ended(this);
    boolean withResult =
        switch (result) {
          case SessionOutcome.Signed s -> true;
          case SessionOutcome.Created c -> true;
          case SessionOutcome.Presigned p -> true;
          case SessionOutcome.Refused r -> {
            r.by()
                .forEach(
                    (party, reason) -> {
                      count("refused", label(reason));
                      if (latenessCounts() && RefusalScope.isOfParty(reason)) {
                        boolean ofPair =
                            isOfPair() && reason == RefusalReason.REFUSAL_REASON_OVERLOADED;
                        disappointed(ofPair ? members.keySet() : Set.of(party));
                      }
                    });
            yield false;
          }
          case SessionOutcome.Bound b -> {
            count("refused", label(RefusalReason.REFUSAL_REASON_REQUEST_BOUND));
            yield false;
          }
          case SessionOutcome.Aborted a -> {
            a.culprits().forEach(sessions.health()::disappointed);
            disappointed(a.suspects());
            if (isOfPair() && a.blamed().isEmpty() && latenessCounts()) {
              disappointed(members.keySet());
            }
            count("aborted", label(a.cause()));
            yield false;
          }
          case SessionOutcome.Undecided u -> {
            count("undecided", "shares");
            yield false;
          }
          case SessionOutcome.TimedOut t -> {
            if (latenessCounts()) {
              disappointed(t.missing());
            }
            count("timed_out", "deadline");
            yield false;
          }
          case SessionOutcome.Unsent u -> {
            count("unsent", label(u.cause()));
            yield false;
          }
          case SessionOutcome.Stopped s -> {
            count("stopped", "draining");
            yield false;
          }
        };
    if (withResult) {
      if (isOfPair()) {
        sessions.health().pairSucceeded(Set.copyOf(members.keySet()));
      }
      count("completed", "none");
    } else if (!(result instanceof SessionOutcome.Unsent)) {
      cancel();
    }
    release();
  }

  /**
   * Whether two parties talk with each other alone, so that nobody else can tell which of them was
   * silent or wrong.
   */
  private boolean isOfPair() {
    return protocol.isOfPairs() && !protocol.operation().makesShare();
  }

  /** These are asked later for a while; the two of a pair, later together. */
  private void disappointed(Set<Integer> parties) {
    if (isOfPair() && parties.equals(members.keySet())) {
      sessions.health().pairFailed(parties);
    } else {
      parties.forEach(sessions.health()::disappointed);
    }
  }

  private void count(String outcomeLabel, String cause) {
    sessions.metrics().sessionEnded(protocol.label(), outcomeLabel, cause);
  }

  /** The stable name of a wire constant without its type's prefix, in lower case. */
  static String label(Enum<?> constant) {
    return constant
        .name()
        .replaceFirst("^(ABORT_CAUSE|REFUSAL_REASON|REJECT_REASON)_", "")
        .toLowerCase(Locale.ROOT);
  }

  /**
   * Tells the parties that nobody waits for this session any more. They also notice by themselves.
   */
  public void cancel() {
    sessions.cancel(channel, id, plan.parties(), plan.trace().traceparent());
  }

  final boolean hasEnded() {
    return outcome.isDone();
  }

  /**
   * The suspects of an abort without evidence: the parties that it names and its sender, since one
   * word stands against another. The number of such aborts does not matter.
   *
   * <p>Of a pair it is both, but for an error that its sender reports of itself. It is nobody if
   * the sender says that another session of the pair got in the way of this one.
   */
  final Set<Integer> suspects(Member reporter, Abort abort) {
    if (isOfPair() && abort.getCause() != AbortCause.ABORT_CAUSE_INTERNAL) {
      boolean collided =
          abort.getCause() == AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH
              && abort.getCulpritsCount() + abort.getSuspectsCount() == 0;
      return collided ? Set.of() : Set.copyOf(members.keySet());
    }
    Set<Integer> suspects = new HashSet<>(abort.getCulpritsList());
    suspects.add(reporter.partyId());
    suspects.retainAll(members.keySet());
    return suspects;
  }

  /** Members other than those ids, by id. */
  final Set<Integer> partiesWithout(Set<Integer> ids) {
    Set<Integer> rest = new HashSet<>(members.keySet());
    rest.removeAll(ids);
    return rest;
  }

  /** Bounds a wire value to the enum this version knows. */
  static AbortCause known(AbortCause cause) {
    return cause == AbortCause.UNRECOGNIZED ? AbortCause.ABORT_CAUSE_UNSPECIFIED : cause;
  }
}
