package io.coterie.member;

import com.google.protobuf.ByteString;
import io.coterie.member.MemberFolder.Fact;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.intent.ApprovedRequest;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.Approve;
import io.coterie.proto.core.v1.CountApprovals;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Trust;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/** Approvals of signed intents by members of a group, and their count. */
public final class Approvals {
  private Approvals() {}

  /** The two things that a member can say about a request. */
  public enum Decision {
    APPROVE,
    /** It must not be done. */
    REJECT
  }

  /**
   * Verifies that a requester of the trust file has signed an intent; it may have several keys.
   *
   * @return the content, to be shown before somebody approves it; only a {@link
   *     VerifiedIntent.Signing} can be approved
   * @throws IntentException saying why it is none
   */
  public static VerifiedIntent verified(Trust trust, SignedIntent signed) throws IntentException {
    String name = signed.getSignaturesCount() == 1 ? signed.getSignatures(0).getKeyid() : "";
    List<byte[]> keys = trust.requester(name).map(Trust.Requester::publicKeys).orElse(List.of());
    IntentException failure = new IntentException(IntentProblem.REQUESTER_UNKNOWN);
    for (byte[] key : keys) {
      try {
        return IntentVerifier.verify(signed, _ -> Optional.of(RequesterKeys.publicKey(key)));
      } catch (IntentException e) {
        failure = e;
      }
    }
    throw failure;
  }

  /** The subject of approvals: a signed intent, and whether it may be done. */
  public static ApprovalRequest request(VerifiedIntent.Signing intent, Decision decision) {
    return ApprovalRequest.newBuilder()
        .setDigest(ApprovedRequest.digest(intent))
        .setDecision(
            switch (decision) {
              case APPROVE -> ApprovalDecision.APPROVAL_DECISION_APPROVE;
              case REJECT -> ApprovalDecision.APPROVAL_DECISION_REJECT;
            })
        .build();
  }

  /**
   * [S] the approval of a member. Nothing is sent: the installation need not know that it was made.
   *
   * @param folder of a member that has joined
   * @param trust says whom to believe about its group
   * @param intent as {@link #verified} gives it
   * @return 416 bytes, for the requester
   * @throws MemberException.Folder if the folder has no key, or it is damaged
   * @throws MemberException.NotBelieved if its group is not believed any more
   * @throws MemberException.Unfit if the intent asks another group
   */
  public static ByteString approve(
      MemberFolder folder, Trust trust, VerifiedIntent.Signing intent, Decision decision) {
    if (!folder.has(Fact.MEMBERSHIP_SEALED)) {
      throw new MemberException.Folder("the member folder has no key yet: join first");
    }
    Group answer = folder.group();
    AttestedGroups.Believed group =
        new AttestedGroups(trust).require(answer.getGroup(), answer.getEpoch(), answer);
    requireAsked(intent, group);
    Approve.Builder approve =
        Approve.newBuilder()
            .setGroup(group.inCore())
            .setRequest(request(intent, decision))
            .setSealedMember(folder.get(Fact.MEMBERSHIP_SEALED));
    try {
      GroupReply reply =
          folder
              .vault()
              .call(GroupCall.newBuilder().setApprove(approve).build(), folder.sealedIdentity());
      if (reply.hasGroupRefused()) {
        throw new MemberException.Folder(
            "the member's key is not one of the group: " + reply.getGroupRefused().getDetail());
      }
      return reply.getApproved().getApproval();
    } catch (MpcException e) {
      throw folder.broken(e);
    }
  }

  /**
   * [V], [C] counts the members that say so. All approvals have to hold.
   *
   * @param group as {@link AttestedGroups} believes it
   * @param approvals 416 bytes each
   * @param needed as many are expected
   * @return how many there are, at least as many as needed
   * @throws MemberException.NotApproved naming the approval that does not hold, or how many there
   *     are
   * @throws MemberException.Unfit if the intent asks another group
   */
  public static int count(
      AttestedGroups.Believed group,
      VerifiedIntent.Signing intent,
      Decision decision,
      List<ByteString> approvals,
      int needed) {
    requireAsked(intent, group);
    CountApprovals.Builder count =
        CountApprovals.newBuilder()
            .setGroup(group.inCore())
            .setRequest(request(intent, decision))
            .addAllApprovals(approvals)
            .setNeeded(needed);
    GroupReply reply =
        NativeMpcCore.load().call(GroupCall.newBuilder().setCountApprovals(count).build());
    if (reply.hasGroupRefused()) {
      var refused = reply.getGroupRefused();
      throw new MemberException.NotApproved(
          refused.hasPlace() ? OptionalInt.of(refused.getPlace()) : OptionalInt.empty(),
          (refused.hasPlace() ? "approval " + (refused.getPlace() + 1) + ": " : "")
              + refused.getDetail());
    }
    return reply.getApprovalsCounted().getTagsCount();
  }

  /**
   * No signer counts an approval by a member of another group than the one that the intent names.
   *
   * @throws MemberException.Unfit if the intent names another one; it may name none
   */
  public static void requireAsked(VerifiedIntent.Signing intent, AttestedGroups.Believed group) {
    Approvers asked = intent.intent().getApprovers();
    boolean same =
        asked.getGroup().equals(group.trusted().group())
            && asked.getEpoch() == group.trusted().epoch()
            && asked.getDigest().equals(group.digest());
    if (intent.intent().hasApprovers() && !same) {
      throw new MemberException.Unfit(
          "the intent is to be approved by members of %s, epoch %d, and this is %s, epoch %d"
              .formatted(
                  asked.getGroup(),
                  asked.getEpoch(),
                  group.trusted().group(),
                  group.trusted().epoch()));
    }
  }
}
