package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.EcdsaTest.intent;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.facts;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.keys;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.coordinator.custody.presignature.PresignatureStock;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** New shares: one request gives one epoch, and at each moment one epoch can sign. */
class RefreshTest extends RenewalTest {
  private static final List<String> ALL = List.of("p1", "p2", "p3");

  RefreshTest() {
    super(3, ProtocolId.PROTOCOL_ID_ECDSA_REFRESH);
  }

  private static RefreshIntent.Builder refreshIntent(int epoch) {
    return TestInstallation.refreshIntent("hot", Scheme.SCHEME_ECDSA_SECP256K1, epoch);
  }

  private Key refresh(SignedIntent intent) {
    return refresh(intent, ONE_SESSION);
  }

  private Key refresh(SignedIntent intent, int patienceMs) {
    return patient(patienceMs)
        .refreshKey(RefreshKeyRequest.newBuilder().setSignedIntent(intent).build());
  }

  private void all(Behaviour behaviour) {
    ALL.forEach(p -> installation.parties.behave(p, behaviour));
  }

  @Test
  void the_key_stays_its_epoch_grows_and_a_repeat_changes_nothing() {
    signs(0);
    eventually(() -> installation.bean(PresignatureStock.class).ready() == 4);
    SignedIntent intent = installation.wallet.sign(refreshIntent(1).build());

    Key refreshed = refresh(intent);

    assertThat(facts(refreshed)).isEqualTo(facts(key).toBuilder().setEpoch(2).build());
    assertThat(get()).isEqualTo(refreshed);
    assertThat(keys(client).listKeys(ListKeysRequest.getDefaultInstance()).getKeysList())
        .containsExactly(refreshed);
    assertThat(signs(1).getPresigned()).isFalse();
    eventually(() -> installation.bean(PresignatureStock.class).ready() > 0);
    assertThat(signs(2).getPresigned()).isTrue();

    assertThat(refresh(intent)).isEqualTo(refreshed);
    assertThat(orders()).hasSize(3);
    installation.stop();
    installation.start();
    assertThat(refresh(intent)).isEqualTo(refreshed);
    assertThat(orders()).hasSize(3);

    assertThat(refresh(installation.wallet.sign(refreshIntent(2).build())).getEpoch()).isEqualTo(3);
    // The same request again: the key as it is now.
    assertThat(refresh(intent).getEpoch()).isEqualTo(3);
    signs(3);
  }

  @Test
  void requests_that_do_not_fit_change_nothing() {
    installation.createKey(client, "bls", 2, 3);
    installation.createKey(client, "whole", 1, 3);
    for (RefreshIntent.Builder bad :
        List.of(refreshIntent(2), refreshIntent(Integer.MAX_VALUE - 1))) {
      fails(ErrorReason.EPOCH_MISMATCH, () -> refresh(installation.wallet.sign(bad.build())));
    }
    for (RefreshIntent.Builder bad :
        List.of(refreshIntent(0), refreshIntent(-1), refreshIntent(1).setRequestId("x"))) {
      fails(ErrorReason.INTENT_MALFORMED, () -> refresh(installation.wallet.sign(bad.build())));
    }
    fails(
        ErrorReason.INTENT_EXPIRED,
        () ->
            refresh(installation.wallet.sign(refreshIntent(1).setNotAfter(inSeconds(-1)).build())));
    fails(
        ErrorReason.KEY_NOT_FOUND,
        () -> refresh(installation.wallet.sign(refreshIntent(1).setKey("keys/none").build())));
    for (RefreshIntent.Builder bad :
        List.of(
            refreshIntent(1).setScheme(Scheme.SCHEME_BLS12381),
            refreshIntent(1).setKey("keys/bls"))) {
      fails(ErrorReason.UNSUPPORTED_SCHEME, () -> refresh(installation.wallet.sign(bad.build())));
    }
    RefreshIntent.Builder whole =
        refreshIntent(1).setKey("keys/whole").setScheme(Scheme.SCHEME_BLS12381);
    fails(ErrorReason.THRESHOLD_INVALID, () -> refresh(installation.wallet.sign(whole.build())));
    fails(
        ErrorReason.CLIENT_NOT_ALLOWED,
        () -> refresh(installation.treasury.sign(refreshIntent(1).build())));
    fails(
        ErrorReason.INTENT_MALFORMED,
        () -> refresh(installation.wallet.sign(intent("hot", 1).build())));
    fails(
        ErrorReason.INTENT_MALFORMED,
        () ->
            keys(client).createKey(createKey(installation.wallet.sign(refreshIntent(1).build()))));
    assertThat(installation.query("select count(*) from key_renewals")).isEqualTo("0");
    assertThat(orders()).isEmpty();

    RefreshIntent used = refreshIntent(1).build();
    refresh(installation.wallet.sign(used));
    fails(
        ErrorReason.REQUEST_ID_REUSED,
        () -> refresh(installation.wallet.sign(used.toBuilder().setEpoch(2).build())));
  }

  @Test
  void concurrent_repeats_share_one_run_and_another_request_waits_its_turn() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    installation.parties.behave("p1", new Behaviour.Waits(release));
    SignedIntent intent = installation.wallet.sign(refreshIntent(1).build());
    List<Future<Key>> answers = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 8; i++) {
        answers.add(threads.submit(() -> refresh(intent)));
      }
      eventually(() -> orders().size() >= 3);
      fails(
          ErrorReason.REFRESH_RUNNING,
          () -> refresh(installation.wallet.sign(refreshIntent(1).build())));
      // Meanwhile the old epoch signs, without the party that is busy.
      installation.parties.behave(
          "p1", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_OVERLOADED));
      signs(0);
      installation.parties.behave();
      release.countDown();
      for (Future<Key> answer : answers) {
        assertThat(answer.get().getEpoch()).isEqualTo(2);
      }
    }
    assertThat(installation.query("select count(*) from key_renewals where state = 2"))
        .isEqualTo("1");
    signs(1);
  }

  @Test
  void a_signing_that_meets_the_switch_is_signed_with_the_new_epoch() throws Exception {
    // The parties have switched, and the coordinator does not hear of it.
    installation.parties.switching = true;
    SignedIntent intent = installation.wallet.sign(refreshIntent(1).build());
    CountDownLatch release = new CountDownLatch(1);
    installation.parties.behave("p3", new Behaviour.Waits(release));
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<Key> refreshing = threads.submit(() -> refresh(intent));
      eventually(
          () ->
              installation.parties.holdsNewShares("p1", intent)
                  && installation.parties.holdsNewShares("p2", intent));
      installation.parties.switchEpoch("keys/hot", 2, List.of(1, 2));
      Future<Signing> signing = threads.submit(() -> signs(1));
      eventually(
          () ->
              installation.parties.orders.stream()
                  .anyMatch(o -> o.getProtocol() == ProtocolId.PROTOCOL_ID_ECDSA_SIGN));
      installation.parties.behave();
      release.countDown();
      assertThat(refreshing.get().getEpoch()).isEqualTo(2);
      assertThat(signing.get().getSessions()).isGreaterThan(1);
    }
    assertThat(get().getEpoch()).isEqualTo(2);
  }

  @Test
  void exclusions_end_with_the_shares_they_were_for() {
    installation.query(
        "insert into key_exclusions values ('keys/hot', 1, 'X', '\\x00', now()),"
            + " ('keys/other', 1, 'X', '\\x00', now()) returning 1");
    refresh(installation.wallet.sign(refreshIntent(1).build()));
    assertThat(installation.query("select string_agg(key_name, ',') from key_exclusions"))
        .isEqualTo("keys/other");
  }

  @Test
  void a_refresh_that_a_party_breaks_leaves_the_key_as_it_was() {
    for (Behaviour behaviour :
        List.of(
            new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN),
            new Behaviour.OtherKey())) {
      installation.parties.switching = false;
      installation.parties.behave("p2", behaviour);
      SignedIntent intent =
          installation.wallet.sign(refreshIntent(1).setNotAfter(inSeconds(2)).build());
      ErrorReason reason =
          behaviour instanceof Behaviour.OtherKey
              ? ErrorReason.PARTY_UNRESPONSIVE
              : ErrorReason.FORBIDDEN;
      fails(reason, () -> refresh(intent, 1_500));
      assertThat(get().getEpoch()).isEqualTo(1);
      installation.parties.behave();
      if (reason == ErrorReason.FORBIDDEN) {
        fails(reason, () -> refresh(intent));
        assertThat(installation.query("select count(*) from key_renewals where state = 3"))
            .isEqualTo("1");
      }
      signs(1);
    }
  }

  @Test
  void a_culprit_is_named() {
    for (String party : List.of("p1", "p2")) {
      installation.parties.behave(
          party, new Behaviour.Aborts(AbortCause.ABORT_CAUSE_WRONG_SHARE, List.of(3)));
    }
    installation.parties.behave("p3", new Behaviour.Silent());
    assertThat(
            fails(
                ErrorReason.PARTY_MISBEHAVED,
                () -> refresh(installation.wallet.sign(refreshIntent(1).build()))))
        .containsEntry(StatusErrors.PARTY, "p3");
    assertThat(orders()).as("it was blamed twice").hasSize(2 * 3);
    installation.parties.behave();
    // The name is free for another request.
    assertThat(refresh(installation.wallet.sign(refreshIntent(1).build())).getEpoch()).isEqualTo(2);
  }

  @Test
  void a_party_that_is_blamed_once_is_tried_again() {
    for (String party : List.of("p1", "p2")) {
      installation.parties.behave(
          party,
          new Behaviour.Once(new Behaviour.Aborts(AbortCause.ABORT_CAUSE_WRONG_SHARE, List.of(3))));
    }
    installation.parties.behave("p3", new Behaviour.Once(new Behaviour.Silent()));
    assertThat(refresh(installation.wallet.sign(refreshIntent(1).build())).getEpoch()).isEqualTo(2);
    assertThat(orders()).hasSize(2 * 3);
    signs(1);
  }

  /** A party is killed when the others have stored their new shares, and it has not. */
  @Test
  void new_shares_that_were_abandoned_are_made_once_more() {
    installation.parties.behave("p3", new Behaviour.Killed(new AtomicInteger(1)));
    SignedIntent intent = installation.wallet.sign(refreshIntent(1).build());
    Key refreshed = refresh(intent, PATIENCE);
    assertThat(facts(refreshed)).isEqualTo(facts(key).toBuilder().setEpoch(2).build());
    assertThat(orders()).as("killed, abandoned, made").hasSizeGreaterThanOrEqualTo(3 * 3);
    assertThat(refresh(intent)).isEqualTo(refreshed);
    assertThat(installation.query("select count(*) from key_renewals")).isEqualTo("1");
    signs(1);
  }

  @Test
  void new_shares_that_are_always_abandoned_are_made_until_the_intent_expires() {
    installation.parties.behave("p3", new Behaviour.Killed(new AtomicInteger(Integer.MAX_VALUE)));
    SignedIntent intent =
        installation.wallet.sign(refreshIntent(1).setNotAfter(inSeconds(4)).build());
    fails(ErrorReason.INTENT_EXPIRED, () -> refresh(intent, PATIENCE));
    assertThat(orders()).as("it was tried again").hasSizeGreaterThanOrEqualTo(3 * 3);
    installation.parties.behave();
    fails(ErrorReason.INTENT_EXPIRED, () -> refresh(intent));
    assertThat(get()).isEqualTo(key);
    signs(1);
    assertThat(refresh(installation.wallet.sign(refreshIntent(1).build())).getEpoch()).isEqualTo(2);
  }

  @Test
  void a_coordinator_that_dies_goes_on_where_the_parties_are() throws Exception {
    // Before any party has it.
    all(new Behaviour.Silent());
    SignedIntent intent = installation.wallet.sign(refreshIntent(1).build());
    fails(ErrorReason.PARTY_UNRESPONSIVE, () -> refresh(intent, 2_000));
    installation.kill();
    installation.parties.behave();
    installation.start();
    eventually(() -> get().getEpoch() == 2);
    assertThat(refresh(intent).getEpoch()).isEqualTo(2);

    // When all have it and have switched, and the intent has expired since.
    installation.parties.deaf = true;
    SignedIntent next =
        installation.wallet.sign(refreshIntent(2).setNotAfter(inSeconds(4)).build());
    fails(ErrorReason.PARTY_UNRESPONSIVE, () -> refresh(next, 2_000));
    installation.kill();
    eventually(
        () ->
            installation
                .query(
                    "select not_after + interval '2 seconds' < now() from key_renewals"
                        + " where from_epoch = 2")
                .equals("t"));
    installation.parties.deaf = false;
    installation.parties.orders.clear();
    installation.start();
    eventually(() -> get().getEpoch() == 3);
    assertThat(refresh(next).getEpoch()).isEqualTo(3);
    signs(1);
  }

  @Test
  void a_refresh_of_an_epoch_that_is_over_ends_when_it_is_taken_up() {
    SignedIntent intent = installation.wallet.sign(refreshIntent(1).build());
    assertThat(refresh(intent).getEpoch()).isEqualTo(2);
    installation.kill();
    // As if the replica had been suspended while another one made that epoch.
    installation.query("update key_renewals set state = 1 returning id");
    installation.parties.orders.clear();
    installation.start();
    fails(ErrorReason.EPOCH_MISMATCH, () -> refresh(intent));
    assertThat(installation.query("select state from key_renewals")).isEqualTo("3");
    assertThat(orders()).isEmpty();
    assertThat(get().getEpoch()).isEqualTo(2);
    signs(1);
  }

  @Test
  void a_refresh_that_was_abandoned_is_found_again_when_the_parties_have_switched() {
    installation.parties.behave(
        "p2", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    SignedIntent intent = installation.wallet.sign(refreshIntent(1).build());
    installation.parties.deaf = true;
    fails(ErrorReason.FORBIDDEN, () -> refresh(intent));
    assertThat(get().getEpoch()).isEqualTo(1);
    // It had its share all the same, and told the others.
    installation.parties.behave();
    installation.parties.completeRefresh(intent, "keys/hot", 1);
    installation.parties.deaf = false;

    signs(1);

    assertThat(get().getEpoch()).isEqualTo(2);
    assertThat(refresh(intent).getEpoch()).isEqualTo(2);
    assertThat(installation.query("select count(*) from key_renewals")).isEqualTo("1");
  }
}
