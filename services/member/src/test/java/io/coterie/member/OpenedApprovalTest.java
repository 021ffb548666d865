package io.coterie.member;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.platform.attestation.GroupMembers;
import io.coterie.platform.attestation.TrustedGroup;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.opening.ShareSeal;
import io.coterie.proto.core.v1.ApprovalRequest;
import io.coterie.proto.core.v1.Group;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupRefused;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.Opened;
import io.coterie.proto.core.v1.PartyBytes;
import io.coterie.proto.core.v1.RegistrationChecked;
import io.coterie.proto.custody.v1.GroupMember;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.ListMembersRequest;
import io.coterie.proto.custody.v1.ListMembersResponse;
import io.coterie.proto.custody.v1.OpenApprovalRequest;
import io.coterie.proto.custody.v1.OpenApprovalResponse;
import io.coterie.proto.custody.v1.OpenerShare;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.InsecureServerCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.SecureRandom;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The opening of an approval at a requester's, beside openers, issuers and a coordinator of which
 * some lie. The core is played: a share of "false" does not hold, and an acceptance of "signed"
 * does.
 */
class OpenedApprovalTest {
  private static final String GROUP = "groups/approvers";
  private static final ByteString POINT = ByteString.copyFromUtf8("a point");
  private static final ByteString SIGNED = ByteString.copyFromUtf8("signed");

  private final SecureRandom random = new SecureRandom();
  private final ShareSeal.Recipient recipient = new ShareSeal.Recipient(random);
  private KeyPair wallet;
  private KeyPair clerk;
  private SignedIntent intent;
  private Trust trust;
  private Server server;
  private ManagedChannel channel;

  /** As the coordinator shows them. */
  private final Map<Integer, ByteString> shares = new TreeMap<>();

  /** The answer of an issuer to one call. */
  private final Map<Integer, Function<ListMembersRequest, ListMembersResponse>> registries =
      new TreeMap<>();

  /** How often a registry was asked for. */
  private final AtomicInteger asked = new AtomicInteger();

  @BeforeEach
  void start() throws Exception {
    KeyPairGenerator keys = KeyPairGenerator.getInstance("Ed25519");
    wallet = keys.generateKeyPair();
    clerk = keys.generateKeyPair();
    trust =
        new Trust(
            new Roster("test", 1, TestMembers.parties()),
            List.of(
                requester("wallet", wallet, KeyRight.CREATE),
                requester("clerk", clerk, KeyRight.OPEN)));
    intent =
        new IntentSigner("clerk", clerk.getPrivate())
            .sign(OpeningIntent.newBuilder().setGroup(GROUP).build());
    server =
        Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
            .addService(new Coordinator())
            .build()
            .start();
    channel =
        Grpc.newChannelBuilder("localhost:" + server.getPort(), InsecureChannelCredentials.create())
            .build();
    for (int party = 1; party <= 3; party++) {
      share(party, "share");
      registry(party, entry(ticket(1)));
    }
  }

  @AfterEach
  void stop() {
    channel.shutdownNow();
    server.shutdownNow();
  }

  private static Trust.Requester requester(String name, KeyPair keys, KeyRight right) {
    return new Trust.Requester(
        name,
        List.of(keys.getPublic().getEncoded()),
        List.of(new Glob("groups/*")),
        Set.of(right),
        2,
        2);
  }

  private void share(int opener, String text) {
    shares.put(
        opener,
        ShareSeal.seal(
                recipient.publicKey(),
                opener,
                IntentVerifier.digest(intent.getPayload()),
                ByteString.copyFromUtf8(text),
                random)
            .orElseThrow());
  }

  private void registry(int issuer, GroupMember... members) {
    ListMembersResponse page =
        ListMembersResponse.newBuilder()
            .addAllMembers(
                List.of(members).stream()
                    .sorted(
                        Comparator.comparing(
                            OpenedApprovalTest::digest,
                            ByteString.unsignedLexicographicalComparator()))
                    .toList())
            .build();
    registries.put(issuer, _ -> page);
  }

  private static ByteString digest(GroupMember member) {
    return IntentVerifier.digest(member.getTicket().getPayload());
  }

  private static ByteString identity(int number) {
    byte[] key = new byte[32];
    key[0] = (byte) number;
    return ByteString.copyFrom(key);
  }

  private static TicketIntent.Builder ticket(int identity) {
    return TicketIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setGroup(GROUP)
        .setEpoch(4)
        .setIdentity(identity(identity))
        .setInstallation("test")
        .setPurpose("number " + identity)
        .setNotAfter(Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond() + 60));
  }

  private GroupMember entry(TicketIntent.Builder ticket) {
    return entry(new IntentSigner("wallet", wallet.getPrivate()).sign(ticket.build()));
  }

  private static GroupMember entry(SignedIntent ticket) {
    return GroupMember.newBuilder().setTicket(ticket).setPoint(POINT).setAcceptance(SIGNED).build();
  }

  private final class Coordinator extends GroupServiceGrpc.GroupServiceImplBase {
    @Override
    public void openApproval(
        OpenApprovalRequest request, StreamObserver<OpenApprovalResponse> answer) {
      OpenApprovalResponse.Builder response = OpenApprovalResponse.newBuilder();
      shares.forEach(
          (opener, share) ->
              response.addShares(OpenerShare.newBuilder().setOpener(opener).setSealedShare(share)));
      answer.onNext(response.build());
      answer.onCompleted();
    }

    @Override
    public void listMembers(
        ListMembersRequest request, StreamObserver<ListMembersResponse> answer) {
      asked.incrementAndGet();
      var registry = registries.get(request.getIssuer());
      if (registry == null) {
        answer.onError(Status.UNAVAILABLE.asRuntimeException());
      } else {
        answer.onNext(registry.apply(request));
        answer.onCompleted();
      }
    }
  }

  private static GroupReply core(GroupCall call) {
    GroupReply.Builder reply = GroupReply.newBuilder();
    if (call.hasCheckRegistration()) {
      return (call.getCheckRegistration().getAcceptance().equals(SIGNED)
              ? reply.setRegistrationChecked(RegistrationChecked.getDefaultInstance())
              : reply.setGroupRefused(GroupRefused.getDefaultInstance()))
          .build();
    }
    List<PartyBytes> given = call.getCombineOpening().getSharesList();
    for (PartyBytes share : given) {
      if (share.getValue().toStringUtf8().equals("false")) {
        return reply
            .setGroupRefused(
                GroupRefused.newBuilder().setParty(share.getParty()).setDetail("wrong"))
            .build();
      }
    }
    return (given.size() < 2
            ? reply.setGroupRefused(GroupRefused.newBuilder().setDetail("too few"))
            : reply.setOpened(Opened.newBuilder().setPoint(POINT)))
        .build();
  }

  private VerifiedIntent.Ticket open() {
    List<Member> parties = trust.roster().members();
    return new OpenedApproval(
            OpenedApprovalTest::core,
            new TrustedGroup(
                GROUP, 4, new GroupMembers("test", parties, 2, parties, 2), ByteString.EMPTY),
            Group.getDefaultInstance(),
            trust,
            () -> GroupServiceGrpc.newBlockingStub(channel))
        .open(intent, ApprovalRequest.getDefaultInstance(), ByteString.EMPTY, recipient);
  }

  private void fails(Class<? extends RuntimeException> how, String why) {
    assertThatThrownBy(this::open).isInstanceOf(how).hasMessageContaining(why);
  }

  @Test
  void one_opener_that_lies_keeps_nothing_closed() {
    share(1, "false");
    assertThat(open().identity()).isEqualTo(identity(1));
    shares.put(1, ByteString.copyFromUtf8("sealed for nobody"));
    assertThat(open().requester()).isEqualTo("wallet");
    share(3, "false");
    fails(MemberException.NotBelieved.class, "wrong");
  }

  @Test
  void an_entry_without_a_ticket_of_somebody_who_may_give_it_names_nobody() {
    IntentSigner stranger = new IntentSigner("wallet", clerk.getPrivate());
    IntentSigner withoutRight = new IntentSigner("clerk", clerk.getPrivate());
    for (GroupMember forged :
        List.of(
            entry(stranger.sign(ticket(2).build())),
            entry(withoutRight.sign(ticket(2).build())),
            entry(ticket(2).setEpoch(5)),
            entry(ticket(2).setGroup("groups/others")),
            entry(ticket(2).setInstallation("another")),
            entry(intent),
            entry(SignedIntent.getDefaultInstance()),
            entry(ticket(2)).toBuilder().setAcceptance(ByteString.EMPTY).build())) {
      registry(1, forged);
      assertThat(open().identity()).as("%s", forged).isEqualTo(identity(1));
      registry(2, forged);
      registry(3, forged);
      fails(MemberException.Unnamed.class, "no identity with a ticket");
      registry(2, entry(ticket(1)));
      registry(3, entry(ticket(1)));
    }
  }

  @Test
  void who_takes_the_blame_for_another_is_named_beside_him() {
    registry(1, entry(ticket(2)));
    fails(MemberException.Unnamed.class, "several identities");
    registry(1, entry(ticket(1)), entry(ticket(1)));
    assertThat(open().identity()).as("two tickets of one").isEqualTo(identity(1));
  }

  /** Two issuers of three have every member. */
  @Test
  void a_registry_that_is_not_in_order_counts_as_none_and_ends() {
    GroupMember other = entry(ticket(2)).toBuilder().setPoint(ByteString.EMPTY).build();
    ListMembersResponse again =
        ListMembersResponse.newBuilder().addMembers(other).setMore(true).build();
    ListMembersResponse empty = ListMembersResponse.newBuilder().setMore(true).build();
    for (ListMembersResponse page : List.of(again, empty)) {
      registries.put(1, _ -> page);
      registry(2, entry(ticket(1)));
      asked.set(0);
      assertThat(open().identity()).isEqualTo(identity(1));
      assertThat(asked).hasValueLessThanOrEqualTo(4);
      registries.put(2, _ -> page);
      fails(MemberException.NotBelieved.class, "too few registries");
    }
    registries.remove(1);
    registries.remove(2);
    fails(StatusRuntimeException.class, "UNAVAILABLE");
    registry(2, entry(ticket(1)));
    assertThat(open().identity()).isEqualTo(identity(1));
  }

  @Test
  void a_registry_is_read_to_its_end() {
    List<GroupMember> members = new ArrayList<>();
    for (int number = 2; number <= 9; number++) {
      members.add(entry(ticket(number)).toBuilder().setPoint(ByteString.EMPTY).build());
    }
    members.add(entry(ticket(1)));
    Comparator<ByteString> order = ByteString.unsignedLexicographicalComparator();
    members.sort(Comparator.comparing(OpenedApprovalTest::digest, order));
    for (int issuer = 1; issuer <= 3; issuer++) {
      registries.put(
          issuer,
          request -> {
            List<GroupMember> later =
                members.stream()
                    .filter(member -> order.compare(digest(member), request.getAfter()) > 0)
                    .toList();
            return ListMembersResponse.newBuilder()
                .addAllMembers(later.stream().limit(2).toList())
                .setMore(later.size() > 2)
                .build();
          });
    }
    assertThat(open().identity()).isEqualTo(identity(1));
  }
}
