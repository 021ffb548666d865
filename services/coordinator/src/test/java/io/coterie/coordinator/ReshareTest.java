package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.facts;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.CancelKeyOperationRequest;
import io.coterie.proto.custody.v1.CancelSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Shares for other parties, and what becomes of a renewal that nobody wants any more. */
class ReshareTest extends RenewalTest {
  ReshareTest() {
    super(5, ProtocolId.PROTOCOL_ID_ECDSA_RESHARE);
  }

  private ReshareIntent.Builder to(int epoch, int threshold, String... parties) {
    return ReshareIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey(KEY)
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .setEpoch(epoch)
        .setThreshold(threshold)
        .addAllParties(List.of(parties))
        .setPublicKey(key.getPublicKey())
        .setNotAfter(inSeconds(120));
  }

  private Key reshare(ReshareIntent.Builder intent) {
    return reshare(intent, ONE_SESSION);
  }

  private Key reshare(ReshareIntent.Builder intent, int milliseconds) {
    return patient(milliseconds)
        .reshareKey(
            ReshareKeyRequest.newBuilder()
                .setSignedIntent(installation.wallet.sign(intent.build()))
                .build());
  }

  private Signing cancelSigning(SigningIntent.Builder asked, int reshareEpoch) {
    return signing(client)
        .cancelSigning(
            CancelSigningRequest.newBuilder()
                .setSignedIntent(
                    installation.wallet.sign(
                        CancelIntent.newBuilder()
                            .setRequestId(asked.getRequestId())
                            .setKey(KEY)
                            .setScheme(asked.getScheme())
                            .setReshareEpoch(reshareEpoch)
                            .setNotAfter(inSeconds(120))
                            .build()))
                .build());
  }

  @Test
  void a_request_is_cancelled_at_the_parties_of_its_own_time_alone() {
    SigningIntent.Builder asked = EcdsaTest.intent("hot", 7);
    Signing signed = signing(client).sign(sign(installation.wallet.sign(asked.build())));
    assertThat(reshare(to(1, 2, "p1", "p4", "p5")).getReshareEpoch()).isEqualTo(2);
    fails(ErrorReason.KEY_RESHARED, () -> cancelSigning(asked, 2));
    assertThat(installation.parties.cancellations).isEmpty();
    assertThat(cancelSigning(asked, 0)).isEqualTo(signed);
  }

  private Key cancel(ReshareIntent.Builder intent) {
    return patient(ONE_SESSION)
        .cancelKeyOperation(
            CancelKeyOperationRequest.newBuilder()
                .setName(KEY)
                .setRequestId(intent.getRequestId())
                .build());
  }

  @Test
  void the_key_goes_to_other_parties_and_stays_the_same() {
    signs(0);
    ReshareIntent.Builder grow = to(1, 3, "p5", "p4", "p3", "p2", "p1");
    Key grown = reshare(grow);
    assertThat(facts(grown))
        .isEqualTo(
            facts(key).toBuilder()
                .setEpoch(2)
                .setReshareEpoch(2)
                .setThreshold(3)
                .clearParties()
                .addAllParties(List.of("p1", "p2", "p3", "p4", "p5"))
                .build());
    assertThat(orders().getFirst().getDealersList()).containsExactly(1, 2, 3);
    signs(1);
    Key moved = reshare(to(2, 2, "p1", "p4", "p5"));
    assertThat(moved.getPartiesList()).containsExactly("p1", "p4", "p5");
    assertThat(moved.getThreshold()).isEqualTo(2);
    assertThat(moved.getReshareEpoch()).isEqualTo(3);
    assertThat(moved.getPublicKey()).isEqualTo(key.getPublicKey());
    signs(2);
    installation.parties.disconnect("p2");
    installation.parties.disconnect("p3");
    signs(3);
    // A repeat gives the key as it is now, also after a restart.
    installation.stop();
    installation.start();
    assertThat(reshare(grow)).isEqualTo(moved);
    signs(4);
  }

  @Test
  void requests_that_do_not_fit_change_nothing() {
    fails(ErrorReason.EPOCH_MISMATCH, () -> reshare(to(2, 2, "p1", "p4", "p5")));
    fails(ErrorReason.THRESHOLD_INVALID, () -> reshare(to(1, 1, "p1", "p4")));
    fails(ErrorReason.THRESHOLD_INVALID, () -> reshare(to(1, 3, "p1", "p4")));
    fails(ErrorReason.PARTY_UNKNOWN, () -> reshare(to(1, 2, "p1", "p9")));
    assertThat(
            fails(
                ErrorReason.INTENT_MALFORMED,
                () ->
                    reshare(to(1, 2, "p1", "p4").setPublicKey(ByteString.copyFrom(new byte[33])))))
        .containsEntry(StatusErrors.PROBLEM, "PUBLIC_KEY_OTHER");
    fails(ErrorReason.KEY_NOT_FOUND, () -> reshare(to(1, 2, "p1", "p4").setKey("keys/none")));
    assertThat(installation.query("select count(*) from key_renewals")).isEqualTo("0");
    assertThat(orders()).isEmpty();
  }

  /** Share repair: a party that has no share to deal with only receives one. */
  @Test
  void dealer_without_a_share_is_left_out_as_a_dealer() {
    installation.parties.epochs.remove("p2 " + KEY);
    assertThat(reshare(to(1, 2, "p1", "p2", "p3")).getEpoch()).isEqualTo(2);
    assertThat(orders().getLast().getDealersList()).containsExactly(1, 3);
    signs(0);
  }

  @Test
  void too_few_dealers_end_it() {
    installation.parties.epochs.remove("p1 " + KEY);
    installation.parties.epochs.remove("p2 " + KEY);
    fails(ErrorReason.EPOCH_MISMATCH, () -> reshare(to(1, 2, "p1", "p2", "p3")));
    assertThat(get()).isEqualTo(key);
  }

  @Test
  void leaving_party_that_is_gone_is_not_needed() {
    installation.parties.disconnect("p3");
    assertThat(reshare(to(1, 2, "p1", "p2", "p4")).getEpoch()).isEqualTo(2);
    assertThat(orders().getLast().getDealersList()).containsExactly(1, 2);
    signs(0);
  }

  /** Old shares that nobody destroys must be too few to sign. */
  @Test
  void fewer_than_the_old_threshold_are_left_behind() {
    Key wide = installation.createEcdsaKey(client, "wide", 2, "p1", "p2", "p3", "p4", "p5");
    installation.parties.disconnect("p4");
    installation.parties.disconnect("p5");
    ReshareIntent.Builder intent =
        to(1, 2, "p1", "p2", "p3").setKey(wide.getName()).setPublicKey(wide.getPublicKey());
    assertThat(fails(ErrorReason.QUORUM_UNAVAILABLE, () -> reshare(intent, 1_500)))
        .containsEntry(StatusErrors.PARTY, "p4,p5");
    assertThat(orders()).isEmpty();
    installation.parties.connect("p5");
    assertThat(reshare(intent).getEpoch()).isEqualTo(2);
    assertThat(orders().getLast().getDealersList()).containsExactly(1, 2, 3, 5);
  }

  /** A receiver is killed when the others have stored their ends of it, and it has not. */
  @Test
  void new_shares_that_were_abandoned_are_made_once_more() {
    installation.parties.behave("p4", new Behaviour.Killed(new AtomicInteger(1)));
    ReshareIntent.Builder intent = to(1, 2, "p1", "p4", "p5");
    Key moved = reshare(intent, PATIENCE);
    assertThat(moved.getEpoch()).isEqualTo(2);
    assertThat(orders()).as("killed, abandoned, made").hasSizeGreaterThanOrEqualTo(3 * 5);
    assertThat(reshare(intent)).isEqualTo(moved);
    signs(0);
  }

  /**
   * A dealer that leaves is killed before it has stored that it does. The shares of the others
   * count for nothing without it, also in a session that it is no party of.
   */
  @Test
  void new_shares_that_a_leaving_dealer_has_not_confirmed_are_not_taken_for_used()
      throws Exception {
    installation.parties.behave("p3", new Behaviour.Silent());
    ReshareIntent.Builder intent = to(1, 2, "p1", "p2", "p4");
    SignedIntent signed = installation.wallet.sign(intent.build());
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<Key> answer = threads.submit(() -> reshare(intent, PATIENCE));
      eventually(
          () ->
              Stream.of("p1", "p2", "p4")
                  .allMatch(party -> installation.parties.holdsNewShares(party, signed)));
      installation.parties.disconnect("p3");
      // They are asked again and again, since they hold too few shares.
      eventually(
          () -> orders().stream().filter(o -> !o.getDealersList().contains(3)).count() > 2 * 3);
      assertThat(get()).isEqualTo(key);
      installation.parties.behave("p3", new Behaviour.Killed(new AtomicInteger()));
      installation.parties.connect("p3");
      assertThat(answer.get().getEpoch()).isEqualTo(2);
    }
    signs(0);
  }

  @Test
  void cancelled_before_anybody_was_asked() throws Exception {
    installation.parties.disconnect("p5");
    ReshareIntent.Builder intent = to(1, 2, "p1", "p4", "p5");
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<?> waiting =
          threads.submit(() -> fails(ErrorReason.OPERATION_CANCELLED, () -> reshare(intent)));
      eventually(
          () ->
              installation.query("select count(*) from key_renewals where state = 1").equals("1"));
      assertThat(cancel(intent)).isEqualTo(key);
      waiting.get();
    }
    assertThat(orders()).isEmpty();
    assertThat(cancel(intent)).as("again").isEqualTo(key);
    fails(ErrorReason.OPERATION_CANCELLED, () -> reshare(intent));
    signs(0);
    // The key is free for another one.
    assertThat(reshare(to(1, 2, "p1", "p2", "p4")).getEpoch()).isEqualTo(2);
  }

  @Test
  void cancelled_while_a_party_has_no_share_of_it() {
    CountDownLatch never = new CountDownLatch(1);
    installation.parties.behave("p4", new Behaviour.Waits(never));
    ReshareIntent.Builder intent = to(1, 2, "p1", "p4", "p5");
    fails(ErrorReason.PARTY_UNRESPONSIVE, () -> reshare(intent, 3_000));
    // Asked whether it has a share, in a session without time, it says no.
    installation.parties.behave(
        "p4", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED));
    assertThat(cancel(intent)).isEqualTo(key);
    fails(ErrorReason.OPERATION_CANCELLED, () -> reshare(intent));
    assertThat(installation.parties.cancelled).isNotEmpty();
    signs(0);
  }

  @Test
  void not_cancelled_any_more_when_all_have_their_shares() {
    installation.parties.deaf = true;
    ReshareIntent.Builder intent = to(1, 2, "p1", "p4", "p5");
    fails(ErrorReason.PARTY_UNRESPONSIVE, () -> reshare(intent, 3_000));
    installation.parties.deaf = false;
    fails(ErrorReason.OPERATION_DECIDED, () -> cancel(intent));
    assertThat(get().getEpoch()).isEqualTo(2);
    fails(ErrorReason.OPERATION_DECIDED, () -> cancel(intent));
    signs(0);
  }

  @Test
  void only_what_runs_and_is_ones_own_can_be_cancelled() {
    fails(ErrorReason.OPERATION_NOT_RUNNING, () -> cancel(to(1, 2, "p1", "p2")));
    fails(ErrorReason.OPERATION_NOT_RUNNING, () -> cancel(to(1, 2, "p1").setRequestId("x")));
    installation.parties.behave(
        "p2", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    ReshareIntent.Builder intent = to(1, 2, "p1", "p4", "p5");
    fails(ErrorReason.FORBIDDEN, () -> reshare(intent));
    fails(ErrorReason.OPERATION_NOT_RUNNING, () -> cancel(intent));
  }

  /** The coordinator dies with the wish to cancel on record. */
  @Test
  void a_cancellation_survives_the_coordinator() {
    ReshareIntent.Builder intent = to(1, 2, "p1", "p4", "p5");
    installation.parties.behave("p4", new Behaviour.Silent());
    fails(ErrorReason.PARTY_UNRESPONSIVE, () -> reshare(intent, 3_000));
    installation.query("update key_renewals set cancelled = true returning 1");
    installation.kill();
    installation.parties.behave(
        "p4", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED));
    installation.start();
    eventually(
        () -> installation.query("select count(*) from key_renewals where state = 3").equals("1"));
    fails(ErrorReason.OPERATION_CANCELLED, () -> reshare(intent));
    assertThat(get()).isEqualTo(key);
  }
}
