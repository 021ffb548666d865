package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Approvals go with their request to the signers, whatever is repeated or killed. */
class ApprovedSigningTest {
  private static final List<String> ALL = List.of("p1", "p2", "p3");
  private static final List<ByteString> TWO = List.of(approval(1), approval(2));
  private static final List<ByteString> OTHERS = List.of(approval(3), approval(2));

  @TempDir Path folder;
  private TestInstallation installation;
  private ManagedChannel client;

  @BeforeEach
  void start() {
    installation = new TestInstallation(folder, 3).start();
    client = installation.backend();
    installation.createEcdsaKey(client, "cold", 2, "p1", "p2", "p3");
    installation.parties.orders.clear();
  }

  @AfterEach
  void stop() {
    installation.close();
  }

  private static ByteString approval(int first) {
    byte[] bytes = new byte[IntentVerifier.APPROVAL_BYTES];
    bytes[0] = (byte) first;
    return ByteString.copyFrom(bytes);
  }

  private SignedIntent intent() {
    return installation.wallet.sign(
        EcdsaTest.intent("cold", 1)
            .setApprovers(
                Approvers.newBuilder()
                    .setGroup("groups/treasury")
                    .setEpoch(1)
                    .setDigest(ByteString.copyFrom(new byte[32])))
            .build());
  }

  private static SignRequest request(SignedIntent intent, List<ByteString> approvals) {
    return sign(intent).toBuilder().addAllApprovals(approvals).build();
  }

  private void refuse() {
    for (String party : ALL) {
      installation.parties.behave(
          party,
          new Behaviour.Refuses(
              RefusalReason.REFUSAL_REASON_APPROVALS_MISSING, "approval 2 of 2 does not count"));
    }
  }

  @Test
  void every_signer_gets_the_approvals_as_they_came() {
    Signing signed = signing(client).sign(request(intent(), TWO));
    assertThat(signed.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(installation.parties.orders)
        .filteredOn(Order::hasSignedIntent)
        .isNotEmpty()
        .allMatch(order -> order.getApprovalsList().equals(TWO));
  }

  @Test
  void lists_that_no_signer_takes_are_refused_with_nothing_stored() {
    SignedIntent intent = intent();
    assertThat(
            fails(
                ErrorReason.APPROVAL_INVALID,
                () -> signing(client).sign(request(intent, Collections.nCopies(33, approval(1))))))
        .containsEntry(
            StatusErrors.DETAIL,
            "there are more than 32 approvals, or one does not have 416 bytes");
    fails(
        ErrorReason.APPROVAL_INVALID,
        () -> signing(client).sign(request(intent, List.of(approval(1).substring(1)))));
    SignedIntent none = installation.wallet.sign(EcdsaTest.intent("cold", 1).build());
    assertThat(fails(ErrorReason.APPROVAL_INVALID, () -> signing(client).sign(request(none, TWO))))
        .containsEntry(
            StatusErrors.DETAIL, "there are approvals, and the intent names no approvers");
    assertThat(installation.parties.orders).noneMatch(Order::hasSignedIntent);
    assertThat(installation.query("select count(*) from signings")).isEqualTo("0");
  }

  @Test
  void a_request_that_lacks_approvals_is_told_so_and_served_once_it_comes_with_others() {
    refuse();
    SignedIntent intent = intent();
    SignRequest lacking = request(intent, TWO);
    assertThat(fails(ErrorReason.APPROVALS_MISSING, () -> signing(client).sign(lacking)))
        .containsEntry(StatusErrors.DETAIL, "approval 2 of 2 does not count");
    int before = installation.parties.orders.size();
    fails(ErrorReason.APPROVALS_MISSING, () -> signing(client).sign(lacking));
    assertThat(installation.parties.orders).as("the same ones are not tried again").hasSize(before);
    installation.parties.behave();
    Signing signed = signing(client).sign(request(intent, OTHERS));
    assertThat(signed.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(installation.parties.orders)
        .filteredOn(Order::hasSignedIntent)
        .last()
        .matches(order -> order.getApprovalsList().equals(OTHERS));
    assertThat(signing(client).sign(lacking)).as("one request, one signature").isEqualTo(signed);
  }

  @Test
  void a_process_that_starts_again_has_the_approvals_of_the_work_it_takes_up() {
    ALL.forEach(party -> installation.parties.behave(party, new Behaviour.Silent()));
    SignedIntent intent = intent();
    try (ExecutorService caller = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<Signing> lost = caller.submit(() -> signing(client).sign(request(intent, TWO)));
      eventually(() -> installation.parties.orders.stream().anyMatch(Order::hasSignedIntent));
      installation.kill();
      eventually(lost::isDone);
    }
    installation.parties.behave();
    installation.parties.orders.clear();
    installation.start();
    eventually(() -> installation.query("select state::text from signings").equals("2"));
    assertThat(installation.parties.orders)
        .filteredOn(Order::hasSignedIntent)
        .isNotEmpty()
        .allMatch(order -> order.getApprovalsList().equals(TWO));
  }

  @Test
  void a_session_that_another_coordinator_ordered_is_given_again_with_its_own_approvals() {
    SignedIntent intent = intent();
    Order other =
        Order.newBuilder()
            .setCoordinatorNonce(ByteString.copyFrom(new byte[32]))
            .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN)
            .setKey("keys/cold")
            .setEpoch(1)
            .setThreshold(2)
            .addAllSigningSet(List.of(1, 2))
            .setDeadline(inSeconds(20))
            .addAllApprovals(OTHERS)
            .build();
    Behaviour claims = new Behaviour.Claims(other.toByteString());
    ALL.forEach(party -> installation.parties.behave(party, new Behaviour.Once(claims)));
    Signing signed = signing(client).sign(request(intent, TWO));
    assertThat(signed.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(installation.parties.orders)
        .contains(other.toBuilder().setSignedIntent(intent).build());
  }
}
