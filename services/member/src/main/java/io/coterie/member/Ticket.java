package io.coterie.member;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;

/**
 * A ticket, with which the holder of an identity may become a member of an epoch of a group. Its
 * issuers check its signature.
 *
 * @param signed as its requester gave it
 * @param group resource name, {@code groups/{group}}
 * @param epoch of the group, positive
 * @param identity 32 bytes, as {@link MemberFolder#identity} gives them
 */
public record Ticket(SignedIntent signed, String group, int epoch, ByteString identity) {

  /**
   * The content of a ticket.
   *
   * @throws MemberException.Unfit if it is none
   */
  public static Ticket of(SignedIntent signed) {
    try {
      TicketIntent intent = TicketIntent.parseFrom(signed.getPayload());
      if (signed.getPayloadType().contains("ticket-intent")
          && IntentVerifier.isGroupName(intent.getGroup())
          && intent.getEpoch() > 0) {
        return new Ticket(signed, intent.getGroup(), intent.getEpoch(), intent.getIdentity());
      }
    } catch (InvalidProtocolBufferException e) {
      // Said below.
    }
    throw new MemberException.Unfit("this is no ticket");
  }

  /** Whether it is for the identity of a folder. */
  public boolean isFor(MemberFolder folder) {
    return identity.equals(folder.identity());
  }
}
