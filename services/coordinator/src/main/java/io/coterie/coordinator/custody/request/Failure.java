package io.coterie.coordinator.custody.request;

import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.coterie.coordinator.session.ObservedSession;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.SessionFailures;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * Why a request has no result: the answer to a caller who cannot wait any longer, and the error of
 * a request that ends without one.
 *
 * @param metadata keys of {@link StatusErrors}
 */
public record Failure(ErrorReason reason, Map<String, String> metadata) {

  public Failure {
    metadata = Map.copyOf(metadata);
  }

  /** As an error of the API. */
  public CustodyException toException() {
    return new CustodyException(reason, metadata);
  }

  /** The form in which the failure is stored. */
  public Status toStatus() {
    return StatusErrors.status(reason, metadata);
  }

  /** The same under another reason, when a failure of a session becomes that of the request. */
  public Failure as(ErrorReason other) {
    return new Failure(other, metadata);
  }

  /** The same with the words of a party; they may be empty. */
  public Failure detailed(String detail) {
    if (detail.isEmpty()) {
      return this;
    }
    Map<String, String> more = new TreeMap<>(metadata);
    more.put(StatusErrors.DETAIL, detail);
    return new Failure(reason, more);
  }

  /**
   * The same, for the caller. Parties report an expired intent also when an order reached them
   * after the session's deadline; then the parties are late, not the request.
   *
   * @param expired whether the intent has expired
   */
  public Failure asOf(boolean expired) {
    return reason == ErrorReason.INTENT_EXPIRED && !expired
        ? as(ErrorReason.PARTY_UNRESPONSIVE)
        : this;
  }

  /** A failure that only the resource is known of. */
  public static Failure of(ErrorReason reason, String resource) {
    return new Failure(reason, Map.of(StatusErrors.RESOURCE, resource));
  }

  /** The failure of an error of the API. */
  public static Failure of(CustodyException error) {
    return new Failure(error.reason(), error.metadata());
  }

  /** The failure that {@link #toStatus} made a status of. */
  public static Failure of(Status stored) {
    return new Failure(
        StatusErrors.reason(stored).orElse(ErrorReason.INTERNAL),
        StatusErrors.info(stored).map(ErrorInfo::getMetadataMap).orElse(Map.of()));
  }

  /** Too few of these parties can be reached. */
  public static Failure outOfReach(String resource, Collection<String> parties) {
    return parties(ErrorReason.QUORUM_UNAVAILABLE, resource, parties, 0, "unreachable");
  }

  /**
   * A failure of parties.
   *
   * @param parties their names; empty if no party is to be named
   * @param round of the protocol; 0 if it is not known
   */
  public static Failure parties(
      ErrorReason reason, String resource, Collection<String> parties, int round, String cause) {
    Map<String, String> metadata = new TreeMap<>();
    metadata.put(StatusErrors.RESOURCE, resource);
    if (!parties.isEmpty()) {
      metadata.put(StatusErrors.PARTY, String.join(",", parties.stream().sorted().toList()));
    }
    if (round > 0) {
      metadata.put(StatusErrors.ROUND, Integer.toString(round));
    }
    metadata.put(StatusErrors.CAUSE, cause);
    return new Failure(reason, metadata);
  }

  /** Why a session ended without a result: party, round and cause. */
  public static Failure of(String resource, ObservedSession session, SessionOutcome outcome) {
    return switch (outcome) {
      case SessionOutcome.Refused r -> {
        Map.Entry<Integer, RefusalReason> first = r.by().entrySet().iterator().next();
        yield parties(
                SessionFailures.reason(first.getValue()),
                resource,
                session.names(r.by().keySet()),
                0,
                first.getValue().name())
            .detailed(r.detail(first.getKey()));
      }
      case SessionOutcome.Bound b ->
          parties(
              SessionFailures.reason(RefusalReason.REFUSAL_REASON_REQUEST_BOUND),
              resource,
              session.names(Set.of(b.party())),
              0,
              RefusalReason.REFUSAL_REASON_REQUEST_BOUND.name());
      case SessionOutcome.Aborted a ->
          a.culprits().isEmpty()
              ? parties(
                  ErrorReason.SESSION_FAILED,
                  resource,
                  session.names(a.suspects()),
                  a.round(),
                  a.cause().name())
              : parties(
                  ErrorReason.PARTY_MISBEHAVED,
                  resource,
                  session.names(a.culprits()),
                  a.round(),
                  a.cause().name());
      case SessionOutcome.Undecided u ->
          parties(
              ErrorReason.SESSION_FAILED,
              resource,
              session.names(u.without()),
              0,
              "shares_undecided");
      case SessionOutcome.TimedOut t ->
          parties(
              ErrorReason.PARTY_UNRESPONSIVE,
              resource,
              session.names(t.missing()),
              t.round(),
              "timed_out");
      case SessionOutcome.Unsent u ->
          parties(
              ErrorReason.QUORUM_UNAVAILABLE,
              resource,
              List.of(),
              0,
              "channel_" + u.cause().name().toLowerCase(Locale.ROOT));
      case SessionOutcome.Stopped s -> of(ErrorReason.DRAINING, resource);
      case SessionOutcome.Signed s -> throw new IllegalArgumentException("a result is no failure");
      case SessionOutcome.Created c -> throw new IllegalArgumentException("a result is no failure");
      case SessionOutcome.Presigned p ->
          throw new IllegalArgumentException("a result is no failure");
    };
  }

  /** The names of members, for a message. */
  public static Collection<String> names(Collection<Member> members) {
    return members.stream().map(Member::name).collect(Collectors.toSet());
  }
}
