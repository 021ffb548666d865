package io.coterie.signer.order;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * This party will not do what it was asked. The text is one line for people, without payload or
 * secret; it travels to the coordinator.
 */
public final class RefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  private final RefusalReason reason;
  private final transient ByteString boundOrder;
  private final transient @Nullable VerifiedIntent intent;
  private final boolean signed;

  public RefusedException(RefusalReason reason, String detail) {
    this(reason, detail, ByteString.EMPTY);
  }

  /**
   * @param boundOrder the order of the session that the request is bound to, without its intent;
   *     empty if that is not the reason, or the order is not known
   */
  public RefusedException(RefusalReason reason, String detail, ByteString boundOrder) {
    this(reason, detail, boundOrder, null, false);
  }

  private RefusedException(
      RefusalReason reason,
      String detail,
      ByteString boundOrder,
      @Nullable VerifiedIntent intent,
      boolean signed) {
    // A refusal is an answer, not a fault: no stack trace, so that a flood of them stays cheap.
    super(detail, null, false, false);
    this.reason = reason;
    this.boundOrder = boundOrder;
    this.intent = intent;
    this.signed = signed;
  }

  /** The refusal, by a rule of this party, of an intent whose requester's signature is good. */
  public static RefusedException forbidden(VerifiedIntent intent, String detail) {
    return new RefusedException(
        RefusalReason.REFUSAL_REASON_FORBIDDEN, detail, ByteString.EMPTY, intent, true);
  }

  /**
   * The refusal of an intent that is none.
   *
   * @param signed whether its requester's signature was found good before
   */
  public static RefusedException malformed(RefusalReason reason, String detail, boolean signed) {
    return new RefusedException(reason, detail, ByteString.EMPTY, null, signed);
  }

  /** The refusal of a session whose request is bound to another one; {@code order} as above. */
  public static RefusedException boundTo(ByteString order) {
    return new RefusedException(
        RefusalReason.REFUSAL_REASON_REQUEST_BOUND,
        "another session may still become the signature of the request",
        order);
  }

  /** Refuses what does not meet a condition. */
  public static void unless(boolean condition, RefusalReason reason, String detail)
      throws RefusedException {
    if (!condition) {
      throw new RefusedException(reason, detail);
    }
  }

  public RefusalReason reason() {
    return reason;
  }

  public ByteString boundOrder() {
    return boundOrder;
  }

  /** The intent that was refused, if its requester's signature was found good before. */
  public Optional<VerifiedIntent> intent() {
    return Optional.ofNullable(intent);
  }

  /** Whether a requester is known to have signed the intent. */
  public boolean isSigned() {
    return signed;
  }

  /** The line for people. */
  public String detail() {
    return String.valueOf(getMessage());
  }
}
