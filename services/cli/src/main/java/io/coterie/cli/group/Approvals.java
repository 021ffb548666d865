package io.coterie.cli.group;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.cli.group.MemberFolder.Fact;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.mpc.GroupVerifier;
import io.coterie.mpc.MpcException;
import io.coterie.platform.intent.ApprovedRequest;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.ApprovalDecision;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.Approve;
import io.coterie.proto.core.v1.CountApprovals;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.Group;
import io.coterie.trust.Trust;
import java.util.List;

/** Approvals of signed intents by members of a group, and their count. */
final class Approvals {
  private Approvals() {}

  /** The subject of approvals: a request of one requester, and whether it may be done. */
  static ApprovalRequest request(VerifiedIntent.Signing intent, boolean rejected) {
    return ApprovalRequest.newBuilder()
        .setDigest(ApprovedRequest.digest(intent))
        .setDecision(
            rejected
                ? ApprovalDecision.APPROVAL_DECISION_REJECT
                : ApprovalDecision.APPROVAL_DECISION_APPROVE)
        .build();
  }

  /**
   * [S] the approval of a member. Nothing is sent: the installation need not know that it was made.
   *
   * @throws CliException if the folder has no key, its group is not believed any more, or the
   *     intent asks another one
   */
  static ByteString approve(
      MemberFolder folder, Trust trust, VerifiedIntent.Signing intent, boolean rejected) {
    if (!folder.has(Fact.MEMBERSHIP_SEALED)) {
      throw CliException.local("the member folder has no key yet: join first");
    }
    Group answer;
    try {
      answer = Group.parseFrom(folder.get(Fact.GROUP));
    } catch (InvalidProtocolBufferException e) {
      throw CliException.local("the group in the member folder does not decode");
    }
    AttestedGroups.Believed group =
        new AttestedGroups(trust).require(answer.getGroup(), answer.getEpoch(), answer);
    requireAsked(intent, group);
    Approve.Builder approve =
        Approve.newBuilder()
            .setGroup(group(group, answer))
            .setRequest(request(intent, rejected))
            .setSealedMember(folder.get(Fact.MEMBERSHIP_SEALED));
    try {
      GroupReply reply =
          folder
              .vault()
              .call(GroupCall.newBuilder().setApprove(approve).build(), folder.sealedIdentity());
      if (reply.hasGroupRefused()) {
        throw CliException.local(
            "the member's key is not one of the group: " + reply.getGroupRefused().getDetail());
      }
      return reply.getApproved().getApproval();
    } catch (MpcException e) {
      throw folder.broken(e);
    }
  }

  /**
   * [V], [C] counts the members that say so.
   *
   * @param needed as many are expected
   * @throws CliException with NO, naming the approval that does not hold, or how many there are
   */
  static int count(
      GroupVerifier core,
      AttestedGroups.Believed group,
      Group answer,
      ApprovalRequest request,
      List<ByteString> approvals,
      int needed) {
    CountApprovals.Builder count =
        CountApprovals.newBuilder()
            .setGroup(group(group, answer))
            .setRequest(request)
            .addAllApprovals(approvals)
            .setNeeded(needed);
    GroupReply reply = core.call(GroupCall.newBuilder().setCountApprovals(count).build());
    if (reply.hasGroupRefused()) {
      var refused = reply.getGroupRefused();
      throw new CliException(
          ExitCode.NO,
          (refused.hasPlace() ? "approval " + (refused.getPlace() + 1) + ": " : "")
              + refused.getDetail());
    }
    return reply.getApprovalsCounted().getTagsCount();
  }

  /**
   * No signer counts an approval by a member of another group than the one that the intent names.
   *
   * @throws CliException if the intent names another one; it may name none
   */
  static void requireAsked(VerifiedIntent.Signing intent, AttestedGroups.Believed group) {
    Approvers asked = intent.intent().getApprovers();
    boolean same =
        asked.getGroup().equals(group.trusted().group())
            && asked.getEpoch() == group.trusted().epoch()
            && asked.getDigest().equals(group.digest());
    if (intent.intent().hasApprovers() && !same) {
      throw CliException.local(
          "the intent is to be approved by members of %s, epoch %d, and this is %s, epoch %d"
              .formatted(
                  asked.getGroup(),
                  asked.getEpoch(),
                  group.trusted().group(),
                  group.trusted().epoch()));
    }
  }

  /** A group as the core takes it. */
  static io.coterie.proto.core.v1.Group group(AttestedGroups.Believed group, Group answer) {
    return io.coterie.proto.core.v1.Group.newBuilder()
        .setParties(group.trusted().members().parties())
        .setAttested(answer.getAttested())
        .build();
  }
}
