package io.coterie.cli.group;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.mpc.GroupVerifier;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.opening.ShareSeal;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.CheckRegistration;
import io.coterie.proto.core.v1.CombineOpening;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.GroupMember;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.ListMembersRequest;
import io.coterie.proto.custody.v1.ListMembersResponse;
import io.coterie.proto.custody.v1.OpenApprovalRequest;
import io.coterie.proto.custody.v1.OpenerShare;
import io.coterie.proto.custody.v1.SignedIntent;
import java.util.Optional;

/**
 * The opening of one approval at the requester's: the openers' shares are combined here, and the
 * member is looked up in the registry, whose entry names somebody only with that identity's
 * signature.
 *
 * @param core checks the shares and the entry
 * @param group of the approval
 * @param stub to the coordinator, which is not believed
 */
record OpenedApproval(
    GroupVerifier core, Group group, GroupServiceGrpc.GroupServiceBlockingStub stub) {

  /** A coordinator that lies could go on for ever. */
  private static final int MAX_MEMBERS = 1 << 16;

  /**
   * Has an approval opened.
   *
   * @param name of the group
   * @param request that the approval is for
   * @return the member that made it
   * @throws CliException if a share does not hold, or the registry does not name its member
   */
  GroupMember open(
      String name,
      SignedIntent intent,
      ApprovalRequest request,
      ByteString approval,
      ShareSeal.Recipient recipient) {
    ByteString digest = IntentVerifier.digest(intent.getPayload());
    CombineOpening.Builder combine =
        CombineOpening.newBuilder().setGroup(group).setRequest(request).setApproval(approval);
    for (OpenerShare share :
        stub.openApproval(OpenApprovalRequest.newBuilder().setSignedIntent(intent).build())
            .getSharesList()) {
      ByteString plain =
          recipient
              .open(share.getOpener(), digest, share.getSealedShare())
              .orElseThrow(
                  () ->
                      AttestedGroups.refused(
                          name, "is shown with a share that is not sealed for this request"));
      combine.addShares(PartyBytes.newBuilder().setParty(share.getOpener()).setValue(plain));
    }
    GroupReply opened = core.call(GroupCall.newBuilder().setCombineOpening(combine).build());
    if (opened.hasGroupRefused()) {
      throw AttestedGroups.refused(
          name,
          "is shown with shares that do not open the approval: "
              + opened.getGroupRefused().getDetail());
    }
    return named(name, intent, opened.getOpened().getPoint());
  }

  private GroupMember named(String name, SignedIntent intent, ByteString point) {
    ByteString after = ByteString.EMPTY;
    int seen = 0;
    do {
      ListMembersResponse page =
          stub.listMembers(
              ListMembersRequest.newBuilder().setSignedIntent(intent).setAfter(after).build());
      Optional<GroupMember> found =
          page.getMembersList().stream()
              .filter(member -> member.getPoint().equals(point))
              .filter(this::isRegistered)
              .findFirst();
      if (found.isPresent()) {
        return found.get();
      }
      seen += page.getMembersCount();
      after = page.getNext();
    } while (!after.isEmpty() && seen < MAX_MEMBERS);
    throw new CliException(
        ExitCode.NO,
        name
            + ": no identity has signed for the member that made the approval. Issuers that invent"
            + " members, or a registry that was lost, look like this.");
  }

  private boolean isRegistered(GroupMember member) {
    CheckRegistration.Builder check =
        CheckRegistration.newBuilder()
            .setGroup(group)
            .setTicket(member.getTicket())
            .setIdentity(member.getIdentity())
            .setPoint(member.getPoint())
            .setAcceptance(member.getAcceptance());
    return core.call(GroupCall.newBuilder().setCheckRegistration(check).build())
        .hasRegistrationChecked();
  }
}
