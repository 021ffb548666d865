package io.coterie.coordinator.api;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.group.ApprovalOpenings;
import io.coterie.coordinator.custody.group.GroupCreations;
import io.coterie.coordinator.custody.group.GroupRecord;
import io.coterie.coordinator.custody.group.MemberAdmissions;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.custody.v1.ApplyForMembershipRequest;
import io.coterie.proto.custody.v1.ApplyForMembershipResponse;
import io.coterie.proto.custody.v1.CreateGroupRequest;
import io.coterie.proto.custody.v1.GetGroupRequest;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.IssuerShare;
import io.coterie.proto.custody.v1.JoinGroupRequest;
import io.coterie.proto.custody.v1.JoinGroupResponse;
import io.coterie.proto.custody.v1.ListGroupsRequest;
import io.coterie.proto.custody.v1.ListGroupsResponse;
import io.coterie.proto.custody.v1.ListMembersRequest;
import io.coterie.proto.custody.v1.ListMembersResponse;
import io.coterie.proto.custody.v1.OpenApprovalRequest;
import io.coterie.proto.custody.v1.OpenApprovalResponse;
import io.coterie.proto.custody.v1.OpenerShare;
import io.coterie.proto.custody.v1.RegisterMemberRequest;
import io.coterie.proto.custody.v1.RegisterMemberResponse;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.JoinGroup;
import io.coterie.proto.party.v1.MembersListed;
import io.coterie.proto.party.v1.RegisterMember;
import io.grpc.BindableService;
import io.grpc.Context;
import io.grpc.ServerInterceptors;
import io.grpc.ServerServiceDefinition;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.Map;

/** The {@code GroupService} of the API. */
public final class GroupApi implements GroupServiceGrpc.AsyncService, BindableService {
  private static final int MAX_PAGE = 1000;

  private final GroupCreations groups;
  private final MemberAdmissions admissions;
  private final ApprovalOpenings openings;
  private final IntentCheck intents;

  public GroupApi(
      GroupCreations groups,
      MemberAdmissions admissions,
      ApprovalOpenings openings,
      IntentCheck intents) {
    this.groups = groups;
    this.admissions = admissions;
    this.openings = openings;
    this.intents = intents;
  }

  /** Requests are decoded inside the interceptors, so that bad bytes end like any bad request. */
  @Override
  public ServerServiceDefinition bindService() {
    return ServerInterceptors.useInputStreamMessages(GroupServiceGrpc.bindService(this));
  }

  @Override
  public void createGroup(CreateGroupRequest request, StreamObserver<Group> answer) {
    Call call = Call.current();
    VerifiedIntent.GroupCreation intent =
        call.accept(intents, request.getSignedIntent(), VerifiedIntent.GroupCreation.class);
    GroupRecord record = call.await(caller -> groups.create(intent, caller));
    Call.requireSuccess(record.error());
    answer.onNext(GroupResources.group(record));
    answer.onCompleted();
  }

  @Override
  public void getGroup(GetGroupRequest request, StreamObserver<Group> answer) {
    GroupResources.Name name = GroupResources.Name.parse(request.getName());
    Call.current().client().requireMayRead(name.group());
    GroupRecord record =
        groups
            .store()
            .find(name.group(), name.epoch())
            .orElseThrow(
                () ->
                    new CustodyException(
                        ErrorReason.GROUP_NOT_FOUND,
                        Map.of(StatusErrors.RESOURCE, request.getName())));
    answer.onNext(GroupResources.group(record));
    answer.onCompleted();
  }

  @Override
  public void listGroups(ListGroupsRequest request, StreamObserver<ListGroupsResponse> answer) {
    String after = PageToken.parse(request.getPageToken(), GroupResources::isName);
    int size = Page.size(request.getPageSize(), MAX_PAGE);
    GroupResources.Name last =
        after.isEmpty() ? new GroupResources.Name("", 0) : GroupResources.Name.parse(after);
    List<GroupRecord> found =
        groups
            .store()
            .list(last.group(), last.epoch(), Call.current().client().readKeys(), size + 1);
    Page<Group> page = Page.of(found, size, GroupResources::group);
    answer.onNext(
        ListGroupsResponse.newBuilder()
            .addAllGroups(page.items())
            .setNextPageToken(page.next(Group::getName))
            .build());
    answer.onCompleted();
  }

  @Override
  public void applyForMembership(
      ApplyForMembershipRequest request, StreamObserver<ApplyForMembershipResponse> answer) {
    Call call = Call.current();
    VerifiedIntent.Ticket ticket = ticket(call, request.getTicket());
    Map<Integer, ByteString> shares =
        call.await(caller -> admissions.apply(ticket, request.getApplication(), caller));
    ApplyForMembershipResponse.Builder response = ApplyForMembershipResponse.newBuilder();
    shares.forEach(
        (issuer, share) ->
            response.addShares(IssuerShare.newBuilder().setIssuer(issuer).setShare(share)));
    answer.onNext(response.build());
    answer.onCompleted();
  }

  @Override
  public void registerMember(
      RegisterMemberRequest request, StreamObserver<RegisterMemberResponse> answer) {
    Call call = Call.current();
    VerifiedIntent.Ticket ticket = ticket(call, request.getTicket());
    RegisterMember.Builder member =
        RegisterMember.newBuilder().setAcceptance(request.getAcceptance());
    for (IssuerShare share : request.getSharesList()) {
      member.addShares(
          PartyBytes.newBuilder().setParty(share.getIssuer()).setValue(share.getShare()));
    }
    List<Integer> issuers =
        call.await(caller -> admissions.register(ticket, member.build(), caller));
    answer.onNext(RegisterMemberResponse.newBuilder().addAllIssuers(issuers).build());
    answer.onCompleted();
  }

  @Override
  public StreamObserver<JoinGroupRequest> joinGroup(StreamObserver<JoinGroupResponse> answer) {
    Call call = Call.current();
    return new JoinCall(
        (ServerCallStreamObserver<JoinGroupResponse>) answer,
        (start, joiner) ->
            admissions.join(
                ticket(call, start.getTicket()),
                JoinGroup.newBuilder()
                    .setRunOrder(start.getRunOrder())
                    .setRunSessionId(start.getSessionId())
                    .addAllIssuers(start.getIssuersList())
                    .build(),
                call.caller(Context.current()),
                joiner));
  }

  private VerifiedIntent.Ticket ticket(Call call, SignedIntent signed) {
    return call.accept(intents, signed, VerifiedIntent.Ticket.class);
  }

  @Override
  public void openApproval(
      OpenApprovalRequest request, StreamObserver<OpenApprovalResponse> answer) {
    Call call = Call.current();
    VerifiedIntent.Opening opening =
        call.accept(intents, request.getSignedIntent(), VerifiedIntent.Opening.class);
    OpenApprovalResponse.Builder response = OpenApprovalResponse.newBuilder();
    call.await(caller -> openings.open(opening, caller))
        .forEach(
            (opener, share) ->
                response.addShares(
                    OpenerShare.newBuilder().setOpener(opener).setSealedShare(share)));
    answer.onNext(response.build());
    answer.onCompleted();
  }

  @Override
  public void listMembers(ListMembersRequest request, StreamObserver<ListMembersResponse> answer) {
    Call call = Call.current();
    VerifiedIntent.Opening opening =
        call.accept(intents, request.getSignedIntent(), VerifiedIntent.Opening.class);
    MembersListed page =
        call.await(
            caller -> openings.members(opening, request.getIssuer(), request.getAfter(), caller));
    answer.onNext(
        ListMembersResponse.newBuilder()
            .addAllMembers(page.getMembersList())
            .setMore(page.getMore())
            .build());
    answer.onCompleted();
  }
}
