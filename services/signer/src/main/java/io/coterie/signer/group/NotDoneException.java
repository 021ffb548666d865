package io.coterie.signer.group;

import io.coterie.proto.core.v1.GroupRefused;
import io.coterie.proto.party.v1.GroupStepRefused;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.order.RefusedException;
import java.util.Locale;

/** This party does not do a step. The text is one line for people; it goes to the coordinator. */
final class NotDoneException extends Exception {
  private static final long serialVersionUID = 1L;

  private final RefusalReason reason;
  private final int party;

  NotDoneException(RefusalReason reason, String detail) {
    this(reason, detail, 0);
  }

  private NotDoneException(RefusalReason reason, String detail, int party) {
    // An answer, not a fault: no stack trace.
    super(detail, null, false, false);
    this.reason = reason;
    this.party = party;
  }

  static NotDoneException of(RefusedException refusal) {
    return new NotDoneException(refusal.reason(), refusal.detail());
  }

  /** The core's refusal of what others have made. */
  static NotDoneException of(GroupRefused refused) {
    return new NotDoneException(
        RefusalReason.REFUSAL_REASON_GROUP_INVALID,
        refused.getReason().name().toLowerCase(Locale.ROOT) + ": " + refused.getDetail(),
        refused.getParty());
  }

  /** The same in the admission of a member, whose own bytes are among them. */
  static NotDoneException ofAdmission(GroupRefused refused) {
    if (refused.getParty() != 0) {
      return of(refused);
    }
    RefusalReason reason =
        switch (refused.getReason()) {
          case GROUP_REFUSAL_TICKET_BOUND,
              GROUP_REFUSAL_IDENTITY_TAKEN,
              GROUP_REFUSAL_POINT_TAKEN ->
              RefusalReason.REFUSAL_REASON_TICKET_BOUND;
          case GROUP_REFUSAL_ATTEMPTS_SPENT, GROUP_REFUSAL_GROUP_FULL ->
              RefusalReason.REFUSAL_REASON_TICKET_SPENT;
          case GROUP_REFUSAL_RUNS_FULL -> RefusalReason.REFUSAL_REASON_OVERLOADED;
          case GROUP_REFUSAL_WRONG_RECORD -> RefusalReason.REFUSAL_REASON_INTERNAL;
          // Everything else in such an order is the applicant's.
          default -> RefusalReason.REFUSAL_REASON_APPLICANT_INVALID;
        };
    return new NotDoneException(
        reason, refused.getReason().name().toLowerCase(Locale.ROOT) + ": " + refused.getDetail());
  }

  /** The same of an approval that is to be opened. */
  static NotDoneException ofOpening(GroupRefused refused) {
    return new NotDoneException(
        RefusalReason.REFUSAL_REASON_APPROVAL_INVALID,
        refused.getReason().name().toLowerCase(Locale.ROOT) + ": " + refused.getDetail());
  }

  /** The refusal of an order that the ledger does not let run. */
  static NotDoneException of(ClaimLedger.Outcome outcome) {
    return switch (outcome) {
      case CLAIMED -> throw new IllegalStateException("the order is claimed");
      case SESSION_REPLAYED ->
          new NotDoneException(
              RefusalReason.REFUSAL_REASON_SESSION_REPLAYED, "the order was given before");
      case NEVER ->
          new NotDoneException(
              RefusalReason.REFUSAL_REASON_REQUEST_CANCELLED, "the request was cancelled");
      case FENCED ->
          new NotDoneException(
              RefusalReason.REFUSAL_REASON_FENCED,
              "the request id was drawn before this party's store went back to an earlier state");
      case REQUEST_ID_REUSED, REQUEST_BOUND ->
          new NotDoneException(
              RefusalReason.REFUSAL_REASON_REQUEST_ID_REUSED,
              "the request id was used with another intent");
      case ORDERED_TOO_OFTEN ->
          new NotDoneException(
              RefusalReason.REFUSAL_REASON_OVERLOADED,
              "this coordinator has taken its share of the party's disk");
    };
  }

  /** Refuses what does not meet a condition. */
  static void unless(boolean condition, RefusalReason reason, String detail)
      throws NotDoneException {
    if (!condition) {
      throw new NotDoneException(reason, detail);
    }
  }

  RefusalReason reason() {
    return reason;
  }

  String detail() {
    return String.valueOf(getMessage());
  }

  GroupStepRefused message() {
    return GroupStepRefused.newBuilder()
        .setReason(reason)
        .setDetail(detail())
        .setParty(party)
        .build();
  }
}
