package io.coterie.member;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupChecked;
import io.coterie.proto.core.v1.GroupRefused;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.custody.v1.GetGroupRequest;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
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
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * A coordinator's answer about a group, against what the trust file says and what the core says.
 */
class AttestedGroupsTest {
  private static final String GROUP = "groups/approvers";
  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);

  private static KeyPair wallet;
  private static KeyPair stranger;
  private static Trust trust;

  /** The calls that came to the core. */
  private final List<GroupCall> asked = new ArrayList<>();

  @BeforeAll
  static void trust() throws Exception {
    KeyPairGenerator keys = KeyPairGenerator.getInstance("Ed25519");
    wallet = keys.generateKeyPair();
    stranger = keys.generateKeyPair();
    trust = trust(Set.of(KeyRight.CREATE), 2);
  }

  private static Trust trust(Set<KeyRight> rights, int least) {
    return new Trust(
        new Roster("test", 1, TestMembers.parties()),
        List.of(
            new Trust.Requester(
                "wallet",
                List.of(wallet.getPublic().getEncoded()),
                List.of(new Glob("groups/app*")),
                rights,
                least,
                least)));
  }

  private static GroupIntent.Builder intent() {
    return GroupIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setGroup(GROUP)
        .setEpoch(4)
        .setIssuerThreshold(2)
        .addAllIssuers(List.of("party-3", "party-1"))
        .setOpenerThreshold(1)
        .addOpeners("party-2")
        .setInstallation("test")
        .setNotAfter(Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond() + 60));
  }

  private static Group answer(GroupIntent.Builder intent) {
    return answer(intent, wallet);
  }

  private static Group answer(GroupIntent.Builder intent, KeyPair by) {
    return Group.newBuilder()
        .setName(GROUP + "/epochs/4")
        .setGroup(GROUP)
        .setEpoch(4)
        .setState(Group.State.ACTIVE)
        .setAttested(ByteString.copyFromUtf8("attested"))
        .setSignedIntent(new IntentSigner("wallet", by.getPrivate()).sign(intent.build()))
        .build();
  }

  private AttestedGroups groups(Trust trusted, GroupReply reply) {
    return new AttestedGroups(
        trusted,
        call -> {
          asked.add(call);
          return reply;
        });
  }

  private static GroupReply checked(String name, int epoch) {
    return GroupReply.newBuilder()
        .setGroupChecked(GroupChecked.newBuilder().setName(name).setEpoch(epoch).setDigest(DIGEST))
        .build();
  }

  private void refused(String why, Trust trusted, GroupReply reply, Group answer) {
    assertThatThrownBy(() -> groups(trusted, reply).require(GROUP, 4, answer))
        .isInstanceOf(MemberException.NotBelieved.class)
        .hasMessageContaining(why)
        .hasMessageContaining("Do not use it");
  }

  private void refused(String why, UnaryOperator<Group.Builder> change) {
    Group answer = change.apply(answer(intent()).toBuilder()).build();
    refused(why, trust, checked(GROUP, 4), answer);
    assertThat(asked).as("the core is not asked").isEmpty();
  }

  private void refusedIntent(String why, UnaryOperator<GroupIntent.Builder> change) {
    refused(why, trust, checked(GROUP, 4), answer(change.apply(intent())));
    assertThat(asked).as("the core is not asked").isEmpty();
  }

  @Test
  void signatures_are_checked_for_the_parties_of_the_intent_with_keys_of_the_trust_file() {
    AttestedGroups.Believed believed =
        groups(trust, checked(GROUP, 4)).require(GROUP, 4, answer(intent()));
    assertThat(believed.digest()).isEqualTo(DIGEST);
    var group = asked.getFirst().getCheckGroup().getGroup();
    assertThat(group.getAttested()).isEqualTo(ByteString.copyFromUtf8("attested"));
    var parties = group.getParties();
    assertThat(parties.getInstallation()).isEqualTo("test");
    assertThat(parties.getIssuerThreshold()).isEqualTo(2);
    assertThat(parties.getIssuersList()).map(p -> p.getId()).containsExactly(1, 3);
    assertThat(parties.getIssuersList())
        .map(p -> p.getEvidenceKey())
        .containsExactly(
            ByteString.copyFrom(TestMembers.evidenceKey(1)),
            ByteString.copyFrom(TestMembers.evidenceKey(3)));
    assertThat(parties.getOpenersList()).map(p -> p.getId()).containsExactly(2);
  }

  @Test
  void the_coordinator_is_asked_for_the_epoch_and_not_believed_blindly() throws Exception {
    Server server =
        Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
            .addService(
                new GroupServiceGrpc.GroupServiceImplBase() {
                  @Override
                  public void getGroup(GetGroupRequest request, StreamObserver<Group> answer) {
                    if (request.getName().startsWith(GROUP + "/")) {
                      answer.onNext(answer(intent()));
                      answer.onCompleted();
                    } else {
                      answer.onError(Status.NOT_FOUND.asRuntimeException());
                    }
                  }
                })
            .build()
            .start();
    ManagedChannel channel =
        Grpc.newChannelBuilder("localhost:" + server.getPort(), InsecureChannelCredentials.create())
            .build();
    Duration patience = Duration.ofSeconds(20);
    try {
      AttestedGroups groups = groups(trust, checked(GROUP, 4));
      AttestedGroups.Believed believed = groups.fetch(channel, GROUP, 4, patience);
      assertThat(believed.answer().getName()).isEqualTo(GROUP + "/epochs/4");
      assertThat(believed.inCore()).isEqualTo(asked.getFirst().getCheckGroup().getGroup());
      assertThatThrownBy(() -> groups.fetch(channel, GROUP, 3, patience))
          .isInstanceOf(MemberException.NotBelieved.class)
          .hasMessageContaining("epoch 4 and not 3");
      assertThatThrownBy(() -> groups.fetch(channel, "groups/unknown", 4, patience))
          .isInstanceOfSatisfying(
              StatusRuntimeException.class,
              e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.NOT_FOUND));
    } finally {
      channel.shutdownNow();
      server.shutdownNow();
    }
  }

  @Test
  void answers_that_the_intent_does_not_bear_out_are_not_believed() {
    refused("CREATING", b -> b.setState(Group.State.CREATING).clearAttested());
    refused("another group", b -> b.setGroup("groups/approvers-2"));
    refused("of the form", b -> b.setGroup("approvers"));
    refused("another epoch", b -> b.setEpoch(3));
    refused("", b -> b.clearSignedIntent());
    refusedIntent("about another key", b -> b.setGroup("groups/apples"));
    refusedIntent("another epoch", b -> b.setEpoch(3));
    refusedIntent("another installation", b -> b.setInstallation("other"));
    refusedIntent("does not name party stranger", b -> b.addIssuers("stranger"));
  }

  @Test
  void requesters_that_may_not_ask_for_it_are_not_believed() {
    refused("no key of requester", trust, checked(GROUP, 4), answer(intent(), stranger));
    Group answer = answer(intent());
    refused("may not create", trust(Set.of(KeyRight.REFRESH), 2), checked(GROUP, 4), answer);
    refused("below the 3", trust(Set.of(KeyRight.CREATE), 3), checked(GROUP, 4), answer);
    assertThat(asked).isEmpty();
  }

  @Test
  void the_core_has_the_last_word() {
    GroupReply unsigned =
        GroupReply.newBuilder()
            .setGroupRefused(GroupRefused.newBuilder().setParty(3).setDetail("party 3 has not"))
            .build();
    refused("not signed by its parties: party 3", trust, unsigned, answer(intent()));
    refused("of another one", trust, checked(GROUP, 3), answer(intent()));
    refused("of another one", trust, checked("groups/apples", 4), answer(intent()));
  }
}
