package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.keyIntent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.PartyMessage;
import io.grpc.ManagedChannel;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A party whose store goes back, under a coordinator that is started anew in between. */
class LedgerWitnessTest {
  @TempDir Path folder;

  private static LedgerPosition start(LedgerPosition before, int random) {
    return before.next(ByteBuffer.allocate(LedgerPosition.HASH_BYTES).putInt(random).array());
  }

  private static ClaimCount signed(LedgerPosition position) {
    LedgerHead head = new LedgerHead("test", 1, position, 0);
    return head.count(TestEvidence.sign(1, head.statement()));
  }

  @Test
  void a_party_that_went_back_is_told_and_signs_again_with_new_shares() throws Exception {
    try (TestInstallation installation = new TestInstallation(folder, 2).start()) {
      ManagedChannel client = installation.backend();
      Key key =
          keys(client)
              .createKey(
                  createKey(
                      installation.wallet.sign(
                          keyIntent("hot", 2, "p1", "p2")
                              .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                              .build())));
      Queue<ByteString> answers = new ConcurrentLinkedQueue<>();
      installation.parties.disconnect("p1");
      SecureChannel party = installation.network.channel("p1");
      party.onMessage(m -> answers.add(ByteString.copyFrom(m.body())));
      party.start();
      LedgerPosition copy = start(LedgerPosition.NONE, 1);
      LedgerPosition latest = start(copy, 2);
      state(party, answers, signed(latest), signed(latest));
      installation.stop();
      installation.start();
      state(party, answers, signed(start(copy, 3)), signed(latest));
      party.close();
      installation.parties.connect("p1");

      assertThat(installation.query("select party_id || cause from key_exclusions"))
          .isEqualTo("1STORE_WENT_BACK");
      int orders = installation.parties.orders.size();
      Map<String, String> metadata =
          fails(
              ErrorReason.KEY_NEEDS_REFRESH,
              () ->
                  signing(client)
                      .sign(sign(installation.wallet.sign(EcdsaTest.intent("hot", 1).build()))));
      assertThat(metadata).containsEntry(StatusErrors.PARTY, "p1");
      assertThat(installation.parties.orders).as("nothing is ordered").hasSize(orders);

      Key refreshed =
          keys(client)
              .refreshKey(
                  RefreshKeyRequest.newBuilder()
                      .setSignedIntent(
                          installation.wallet.sign(
                              RefreshIntent.newBuilder()
                                  .setRequestId(RequestId.next())
                                  .setKey(key.getName())
                                  .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                                  .setEpoch(1)
                                  .setNotAfter(TestInstallation.inSeconds(120))
                                  .build()))
                      .build());
      assertThat(refreshed.getEpoch()).isEqualTo(2);
      Signing signing =
          signing(client).sign(sign(installation.wallet.sign(EcdsaTest.intent("hot", 2).build())));
      assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    }
  }

  /** States a position, and waits for the answer. */
  private static void state(
      SecureChannel party, Queue<ByteString> answers, ClaimCount count, ClaimCount expected)
      throws Exception {
    answers.clear();
    ScriptedParties.send(
        party,
        party.roster().byName("coordinator").orElseThrow(),
        PartyMessage.newBuilder().setClaimCount(count).build());
    eventually(() -> !answers.isEmpty());
    assertThat(
            PartyMessage.parseFrom(answers.remove()).getClaimMemory().getRememberedList().getLast())
        .isEqualTo(expected);
  }
}
