package io.coterie.platform.error;

import io.coterie.proto.party.v1.RefusalReason;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;

/** Translates the reports of parties about a session into the reason that a caller sees. */
public final class SessionFailures {
  private static final Set<RefusalReason> KNOWN =
      EnumSet.complementOf(
          EnumSet.of(RefusalReason.REFUSAL_REASON_UNSPECIFIED, RefusalReason.UNRECOGNIZED));

  private SessionFailures() {}

  /**
   * The refusal of that name.
   *
   * @return empty for everything that is no reason, or none that this version knows
   */
  public static Optional<RefusalReason> refusal(String name) {
    return KNOWN.stream().filter(reason -> reason.name().equals(name)).findFirst();
  }

  /**
   * The reason for a caller when so many parties refused that no quorum was left. One party's
   * refusal alone proves nothing: another quorum may sign.
   */
  public static ErrorReason reason(RefusalReason refusal) {
    return switch (refusal) {
      case REFUSAL_REASON_UNKNOWN_REQUESTER -> ErrorReason.UNKNOWN_REQUESTER;
      case REFUSAL_REASON_BAD_INTENT_SIGNATURE -> ErrorReason.INTENT_SIGNATURE_INVALID;
      case REFUSAL_REASON_INTENT_EXPIRED -> ErrorReason.INTENT_EXPIRED;
      case REFUSAL_REASON_FORBIDDEN -> ErrorReason.FORBIDDEN;
      case REFUSAL_REASON_REQUEST_ID_REUSED -> ErrorReason.REQUEST_ID_REUSED;
      case REFUSAL_REASON_UNKNOWN_KEY -> ErrorReason.KEY_NOT_FOUND;
      case REFUSAL_REASON_KEY_EXISTS -> ErrorReason.KEY_EXISTS;
      case REFUSAL_REASON_GROUP_EXISTS -> ErrorReason.GROUP_EXISTS;
      case REFUSAL_REASON_GROUP_STEP -> ErrorReason.GROUP_CREATION_FAILED;
      case REFUSAL_REASON_GROUP_INVALID -> ErrorReason.SESSION_FAILED;
      case REFUSAL_REASON_TICKET_BOUND -> ErrorReason.TICKET_BOUND;
      case REFUSAL_REASON_TICKET_SPENT -> ErrorReason.TICKET_SPENT;
      case REFUSAL_REASON_APPLICANT_INVALID -> ErrorReason.APPLICANT_INVALID;
      case REFUSAL_REASON_APPROVAL_INVALID -> ErrorReason.APPROVAL_INVALID;
      case REFUSAL_REASON_APPROVALS_MISSING -> ErrorReason.APPROVALS_MISSING;
      case REFUSAL_REASON_UNKNOWN_PARTY -> ErrorReason.PARTY_UNKNOWN;
      case REFUSAL_REASON_PARTY_EXCLUDED -> ErrorReason.PARTY_MISBEHAVED;
      case REFUSAL_REASON_KEY_FROZEN -> ErrorReason.KEY_FROZEN;
      case REFUSAL_REASON_ON_HOLD -> ErrorReason.ON_HOLD;
      case REFUSAL_REASON_NEEDS_REFRESH -> ErrorReason.KEY_NEEDS_REFRESH;
      case REFUSAL_REASON_FENCED -> ErrorReason.REQUEST_FENCED;
      case REFUSAL_REASON_REQUEST_CANCELLED -> ErrorReason.REQUEST_CANCELLED;
      case REFUSAL_REASON_RESHARED -> ErrorReason.KEY_RESHARED;
      case REFUSAL_REASON_BAD_PAYLOAD -> ErrorReason.PAYLOAD_INVALID;
      case REFUSAL_REASON_OVERLOADED, REFUSAL_REASON_POOL_FULL -> ErrorReason.OVERLOADED;
      case REFUSAL_REASON_REQUESTER_OVERLOADED -> ErrorReason.REQUESTER_OVERLOADED;
      case REFUSAL_REASON_NOT_READY -> ErrorReason.QUORUM_UNAVAILABLE;
      case REFUSAL_REASON_SESSION_REPLAYED,
          REFUSAL_REASON_WRONG_EPOCH,
          REFUSAL_REASON_REQUEST_BOUND,
          REFUSAL_REASON_PRESIGNATURE_UNKNOWN ->
          ErrorReason.SESSION_FAILED;
      // The coordinator's own order was wrong, or the signer sent a number that is no reason.
      case REFUSAL_REASON_DEADLINE_TOO_FAR,
          REFUSAL_REASON_MALFORMED_ORDER,
          REFUSAL_REASON_ORDER_MISMATCH,
          REFUSAL_REASON_INTERNAL,
          REFUSAL_REASON_UNSPECIFIED,
          UNRECOGNIZED ->
          ErrorReason.INTERNAL;
    };
  }
}
