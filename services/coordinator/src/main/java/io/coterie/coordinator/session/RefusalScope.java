package io.coterie.coordinator.session;

import io.coterie.proto.party.v1.RefusalReason;

/** The scope of a party's refusal: it decides which parties are asked next. */
public enum RefusalScope {
  /** The party would refuse the same request again: it is not asked again for it. */
  REQUEST,
  /** The party cannot now; it may at another time. */
  PARTY,
  /** The party would sign, but not together with these. */
  SIGNING_SET,
  /** The party has shares of another epoch than this coordinator knows of, or will have. */
  EPOCH,
  /** The party does not hold its share of the presignature; it would sign without. */
  PRESIGNATURE;

  /**
   * Whether a refusal says something about the party. One of a faulty request, or for a requester
   * that has too many under way, does not.
   */
  public static boolean isOfParty(RefusalReason reason) {
    return of(reason) == PARTY && reason != RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED;
  }

  /**
   * Whether a refusal to make shares shows that the party holds none of the request: one that does
   * would have said so instead. A party whose store went back may hold some and have forgotten it.
   */
  public static boolean showsMissingShare(RefusalReason reason) {
    return reason != RefusalReason.REFUSAL_REASON_FENCED;
  }

  /** The scope of a reason. */
  public static RefusalScope of(RefusalReason reason) {
    return switch (reason) {
      case REFUSAL_REASON_MALFORMED_ORDER,
          REFUSAL_REASON_ORDER_MISMATCH,
          REFUSAL_REASON_UNKNOWN_REQUESTER,
          REFUSAL_REASON_BAD_INTENT_SIGNATURE,
          REFUSAL_REASON_INTENT_EXPIRED,
          REFUSAL_REASON_FORBIDDEN,
          REFUSAL_REASON_REQUEST_ID_REUSED,
          REFUSAL_REASON_UNKNOWN_KEY,
          REFUSAL_REASON_KEY_EXISTS,
          REFUSAL_REASON_UNKNOWN_PARTY,
          REFUSAL_REASON_BAD_PAYLOAD,
          REFUSAL_REASON_KEY_FROZEN,
          REFUSAL_REASON_ON_HOLD,
          REFUSAL_REASON_NEEDS_REFRESH,
          REFUSAL_REASON_FENCED,
          REFUSAL_REASON_REQUEST_CANCELLED,
          REFUSAL_REASON_RESHARED,
          REFUSAL_REASON_GROUP_EXISTS,
          REFUSAL_REASON_GROUP_STEP,
          REFUSAL_REASON_GROUP_INVALID,
          REFUSAL_REASON_TICKET_BOUND,
          REFUSAL_REASON_TICKET_SPENT,
          REFUSAL_REASON_APPLICANT_INVALID,
          REFUSAL_REASON_APPROVAL_INVALID,
          REFUSAL_REASON_APPROVALS_MISSING ->
          REQUEST;
      case REFUSAL_REASON_SESSION_REPLAYED,
          REFUSAL_REASON_REQUEST_BOUND,
          REFUSAL_REASON_DEADLINE_TOO_FAR,
          REFUSAL_REASON_OVERLOADED,
          REFUSAL_REASON_REQUESTER_OVERLOADED,
          REFUSAL_REASON_POOL_FULL,
          REFUSAL_REASON_NOT_READY,
          REFUSAL_REASON_INTERNAL,
          REFUSAL_REASON_UNSPECIFIED,
          UNRECOGNIZED ->
          PARTY;
      case REFUSAL_REASON_PARTY_EXCLUDED -> SIGNING_SET;
      case REFUSAL_REASON_WRONG_EPOCH -> EPOCH;
      case REFUSAL_REASON_PRESIGNATURE_UNKNOWN -> PRESIGNATURE;
    };
  }
}
