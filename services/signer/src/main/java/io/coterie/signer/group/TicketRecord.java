package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import org.jspecify.annotations.Nullable;

/**
 * A ticket that this issuer has bound. Nothing in it changes but the member, which is made once,
 * and its count of runs, which only grows.
 *
 * @param group resource name, {@code groups/{group}}
 * @param ticket SHA-256 of the payload of its intent
 * @param identity the Ed25519 key that it is for
 * @param intent the ticket as its requester has signed it
 * @param reservation the core's record of the application that it is bound to
 * @param member that came of it; null before
 */
public record TicketRecord(
    String group,
    int epoch,
    ByteString ticket,
    ByteString identity,
    ByteString intent,
    ByteString reservation,
    @Nullable Member member) {

  /**
   * A registered member.
   *
   * @param bytes the core's record, with the count of runs
   * @param part the issuers' part of the member's secret, which is not secret
   * @param runs the highest number of a run that was counted here; 0 if none was
   * @param point Y_i
   * @param acceptance the identity's signature of the point
   */
  public record Member(
      ByteString bytes, ByteString part, int runs, ByteString point, ByteString acceptance) {

    /** The same with a run that was counted. */
    public Member counted(ByteString record, int number) {
      return new Member(record, part, number, point, acceptance);
    }
  }

  /** A ticket that is bound to an application. */
  static TicketRecord bound(GroupPlan plan, ByteString identity, ByteString reservation) {
    return new TicketRecord(
        plan.group(),
        plan.epoch(),
        plan.intent().digest(),
        identity,
        plan.intent().envelope().toByteString(),
        reservation,
        null);
  }
}
