package io.coterie.member;

import com.google.protobuf.ByteString;
import io.coterie.mpc.GroupVerifier;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.TrustedGroup;
import io.coterie.platform.attestation.TrustedTicket;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.opening.ShareSeal;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.CheckRegistration;
import io.coterie.proto.core.v1.CombineOpening;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.custody.v1.GroupMember;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.ListMembersRequest;
import io.coterie.proto.custody.v1.ListMembersResponse;
import io.coterie.proto.custody.v1.OpenApprovalRequest;
import io.coterie.proto.custody.v1.OpenerShare;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Member;
import io.coterie.trust.Trust;
import io.grpc.StatusRuntimeException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The opening of one approval at the requester's: the openers' shares are combined here, and the
 * member is looked up in the issuers' registries. The coordinator that shows them is not believed,
 * and neither is one issuer: an entry names somebody only with a ticket of a requester that may say
 * who the members are, and the signature of the ticket's identity.
 *
 * @param core checks the shares and the entries
 * @param trusted the group of the approval
 * @param group the same as the core takes it
 * @param trust says whose tickets count
 * @param stubs to the coordinator, one for each call
 */
public record OpenedApproval(
    GroupVerifier core,
    TrustedGroup trusted,
    Group group,
    Trust trust,
    Supplier<GroupServiceGrpc.GroupServiceBlockingStub> stubs) {

  /** Members of an epoch. An issuer that tells more could go on for ever. */
  public static final int MAX_MEMBERS = 1 << 14;

  /** Of all issuers, as far as they were read. */
  private static final class Registries {
    final Map<ByteString, VerifiedIntent.Ticket> named = new HashMap<>();
    int whole;
    @Nullable StatusRuntimeException failure;
  }

  /**
   * Has an approval opened.
   *
   * @param intent of a requester that may have approvals opened, with the recipient's key
   * @param request that the approval is for
   * @param approval 416 bytes
   * @param recipient opens the shares
   * @return the ticket of the member that made it
   * @throws MemberException.NotBelieved if too few shares or registries hold
   * @throws MemberException.Unnamed if the registries do not name one member
   * @throws StatusRuntimeException if openers or issuers cannot be asked
   */
  public VerifiedIntent.Ticket open(
      SignedIntent intent,
      ApprovalRequest request,
      ByteString approval,
      ShareSeal.Recipient recipient) {
    return named(intent, point(intent, request, approval, recipient));
  }

  private ByteString point(
      SignedIntent intent,
      ApprovalRequest request,
      ByteString approval,
      ShareSeal.Recipient recipient) {
    ByteString digest = IntentVerifier.digest(intent.getPayload());
    Contributions shares = new Contributions();
    for (OpenerShare share :
        stubs
            .get()
            .openApproval(OpenApprovalRequest.newBuilder().setSignedIntent(intent).build())
            .getSharesList()) {
      recipient
          .open(share.getOpener(), digest, share.getSealedShare())
          .ifPresent(plain -> shares.add(share.getOpener(), plain));
    }
    CombineOpening.Builder combine =
        CombineOpening.newBuilder().setGroup(group).setRequest(request).setApproval(approval);
    GroupReply opened =
        shares.use(
            left ->
                core.call(
                    GroupCall.newBuilder()
                        .setCombineOpening(combine.clearShares().addAllShares(left))
                        .build()));
    if (opened.hasGroupRefused()) {
      throw AttestedGroups.refused(
          trusted.group(),
          "is shown with shares that do not open the approval: "
              + opened.getGroupRefused().getDetail());
    }
    return opened.getOpened().getPoint();
  }

  /**
   * A member has joined with as many issuers as the threshold, so so many fewer than all of them
   * have every member, and one more.
   */
  private VerifiedIntent.Ticket named(SignedIntent intent, ByteString point) {
    Registries registries = new Registries();
    for (Member issuer : trusted.members().issuers()) {
      try {
        if (read(registries.named, intent, issuer.partyId(), point)) {
          registries.whole++;
        }
      } catch (StatusRuntimeException e) {
        registries.failure = e;
      }
    }
    int needed = trusted.members().issuers().size() - trusted.members().issuerThreshold() + 1;
    if (registries.whole < needed) {
      throw registries.failure == null
          ? AttestedGroups.refused(
              trusted.group(), "is shown with too few registries that are in order")
          : registries.failure;
    }
    if (registries.named.size() > 1) {
      throw new MemberException.Unnamed(
          trusted.group()
              + ": several identities have signed for the member that made the approval, so one of"
              + " them speaks for another: "
              + registries.named.values().stream()
                  .map(ticket -> HexFormat.of().formatHex(ticket.identity().toByteArray()))
                  .sorted()
                  .collect(Collectors.joining(", ")));
    }
    return registries.named.values().stream()
        .findFirst()
        .orElseThrow(
            () ->
                new MemberException.Unnamed(
                    trusted.group()
                        + ": no identity with a ticket has signed for the member that made the"
                        + " approval. Issuers that invent members, or a registry that was lost,"
                        + " look like this."));
  }

  /**
   * Reads the registry of an issuer.
   *
   * @param named gets the tickets of those that it names for the point, by identity
   * @return whether it is in order, and whole as far as it says
   */
  private boolean read(
      Map<ByteString, VerifiedIntent.Ticket> named,
      SignedIntent intent,
      int issuer,
      ByteString point) {
    ByteString after = ByteString.EMPTY;
    int seen = 0;
    ListMembersResponse page;
    do {
      page =
          stubs
              .get()
              .listMembers(
                  ListMembersRequest.newBuilder()
                      .setSignedIntent(intent)
                      .setIssuer(issuer)
                      .setAfter(after)
                      .build());
      for (GroupMember member : page.getMembersList()) {
        ByteString ticket = IntentVerifier.digest(member.getTicket().getPayload());
        if (ByteString.unsignedLexicographicalComparator().compare(ticket, after) <= 0) {
          return false;
        }
        after = ticket;
        if (member.getPoint().equals(point)) {
          enter(named, member);
        }
      }
      seen += page.getMembersCount();
      if (seen > MAX_MEMBERS || page.getMore() && page.getMembersCount() == 0) {
        return false;
      }
    } while (page.getMore());
    return true;
  }

  private void enter(Map<ByteString, VerifiedIntent.Ticket> named, GroupMember member) {
    VerifiedIntent.Ticket ticket;
    try {
      ticket = TrustedTicket.of(trusted.group(), trusted.epoch(), member.getTicket(), trust);
    } catch (AttestationException e) {
      return; // nobody's
    }
    CheckRegistration.Builder check =
        CheckRegistration.newBuilder()
            .setGroup(group)
            .setTicket(ticket.digest())
            .setIdentity(ticket.identity())
            .setPoint(member.getPoint())
            .setAcceptance(member.getAcceptance());
    if (core.call(GroupCall.newBuilder().setCheckRegistration(check).build())
        .hasRegistrationChecked()) {
      named.put(ticket.identity(), ticket);
    }
  }
}
