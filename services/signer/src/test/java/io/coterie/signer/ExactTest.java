package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Three signers with the native core take over the key of RFC 8032's TEST 2, and sign with it. */
@Timeout(300)
class ExactTest extends ExactFixture {
  @Test
  void every_pair_signs_as_rfc_8032_says_also_after_a_restart() {
    importKey();
    assertThat(sign(MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
    assertThat(sign(MESSAGE, 1, 3)).isEqualTo(SIGNATURE);
    i.restart("charlie");
    assertThat(sign(MESSAGE, 2, 3)).isEqualTo(SIGNATURE);
    byte[] other = new byte[Ed25519.SIGNATURE_SIZE];
    byte[] text = "transfer 12".repeat(20).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    Ed25519.sign(SEED, 0, text, 0, text.length, other, 0);
    assertThat(sign("transfer 12".repeat(20), 2, 3).toByteArray()).isEqualTo(other);
    ByteString point = SIGNATURE.substring(0, 32);
    // Each party has stored the nonce point of the signature, across all its peers.
    for (Installation.Party party : i.parties) {
      assertThat(
              party
                  .store
                  .exactNonces()
                  .settle(PUBLIC_KEY, sha512(MESSAGE), point, "wallet")
                  .toCompletableFuture()
                  .join())
          .isEqualTo(point);
    }
  }

  @Test
  void a_party_with_another_nonce_on_record_answers_nothing_and_leaves_the_peer_out() {
    importKey();
    ByteString foreign = hex("11".repeat(32));
    i.party("alpha")
        .store
        .exactNonces()
        .settle(PUBLIC_KEY, sha512(MESSAGE), foreign, "wallet")
        .toCompletableFuture()
        .join();
    SessionId session = i.coordinator.give(signOrder(MESSAGE, 1, 2).build());
    SessionReport report = i.coordinator.awaitFrom("alpha", session).report();
    assertThat(report.getAborted().getCause()).isEqualTo(AbortCause.ABORT_CAUSE_OTHER_NONCE);
    assertThat(i.coordinator.hasReport("bravo", session)).isFalse();
    SessionId again = i.coordinator.give(signOrder("another", 1, 2).build());
    assertThat(refusal("alpha", again).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
  }

  @Test
  void a_restored_party_signs_other_messages_and_the_same_nonce_for_the_same() {
    importKey();
    Path before = i.copy("alpha");
    assertThat(sign(MESSAGE, 1, 2)).isEqualTo(SIGNATURE);
    i.putBack("alpha", before);
    assertThat(sign(MESSAGE, 1, 3)).isEqualTo(SIGNATURE);
    byte[] other = new byte[Ed25519.SIGNATURE_SIZE];
    Ed25519.sign(SEED, 0, new byte[] {'s'}, 0, 1, other, 0);
    assertThat(sign("s", 1, 2).toByteArray()).isEqualTo(other);
  }

  @Test
  void shares_that_do_not_fit_are_refused() {
    List<ByteString> shares = split(SEED, KEY);
    // The coordinator gives parties the shares of others.
    List<ByteString> swapped = new ArrayList<>(shares);
    Collections.swap(swapped, 0, 1);
    SessionId mixed = i.coordinator.give(order(intent(KEY, shares), swapped).build());
    assertThat(refusal("alpha", mixed).getDetail()).contains("the requester has made for this");
    // The requester itself has them mixed up: they are sealed to other parties.
    SessionId misled = i.coordinator.give(order(intent(KEY, swapped), swapped).build());
    assertThat(refusal("bravo", misled).getDetail()).contains("not made for this party and key");
    // The shares of one key under the name of another.
    SessionId renamed = i.coordinator.give(order(intent(OTHER_KEY, shares), shares).build());
    assertThat(refusal("charlie", renamed).getDetail()).contains("not made for this party and key");
    // The shares of another key.
    byte[] seed = SEED.clone();
    seed[0]++;
    List<ByteString> foreign = split(seed, KEY);
    SessionId other = i.coordinator.give(order(intent(KEY, foreign), foreign).build());
    assertThat(refusal("alpha", other).getDetail()).contains("of another key");
    assertThat(i.parties).noneMatch(party -> party.hasActive(KEY));
  }

  @Test
  void parties_whose_shares_are_of_two_splits_keep_none() {
    List<ByteString> shares = new ArrayList<>(split(SEED, KEY));
    // The points of the shares differ, so the digest of a session does: no pair understands.
    shares.set(2, split(SEED, KEY).get(2));
    SessionId session =
        i.coordinator.give(
            order(intent(KEY, shares), shares)
                .setDeadline(Installation.in(Duration.ofSeconds(6)))
                .build());
    for (String party : List.of("alpha", "bravo", "charlie")) {
      SessionReport report = i.coordinator.awaitFrom(party, session).report();
      assertThat(report.hasCompleted()).as(report.toString()).isFalse();
    }
    assertThat(i.parties).noneMatch(party -> party.hasActive(KEY));
  }

  @Test
  void a_key_is_not_used_before_every_pair_has_made_the_test_signature() {
    AtomicBoolean apart = new AtomicBoolean(true);
    i.network.tap(
        (from, to, body) ->
            apart.get()
                    && from.partyId() == 3
                    && to.partyId() == 2
                    && Installation.parse(body).hasEnvelope()
                ? null
                : body);
    List<ByteString> shares = split(SEED, KEY);
    SessionId session =
        i.coordinator.give(
            order(intent(KEY, shares), shares)
                .setDeadline(Installation.in(Duration.ofSeconds(8)))
                .build());
    for (String party : List.of("bravo", "charlie")) {
      SessionReport report = i.coordinator.awaitFrom(party, session).report();
      assertThat(report.hasTimedOut()).as(report.toString()).isTrue();
    }
    assertThat(i.parties).noneMatch(party -> party.hasActive(KEY));
    apart.set(false);
    importKey();
    assertThat(sign(MESSAGE, 2, 3)).isEqualTo(SIGNATURE);
  }

  @Test
  void a_key_of_that_name_and_an_order_without_shares_are_refused() {
    importKey();
    List<ByteString> shares = split(SEED, KEY);
    SessionId again = i.coordinator.give(order(intent(KEY, shares), shares).build());
    assertThat(refusal("alpha", again).getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);
    List<ByteString> others = split(SEED, OTHER_KEY);
    SessionId empty =
        i.coordinator.give(order(intent(OTHER_KEY, others), others).clearImported().build());
    assertThat(refusal("alpha", empty).getDetail()).contains("has no shares");
    SessionId three = i.coordinator.give(signOrder(MESSAGE, 1, 2, 3).build());
    assertThat(refusal("alpha", three).getDetail()).contains("two parties sign");
  }
}
