package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.keyIntent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Key creation: all parties or nobody; and reading keys. */
class KeysTest {
  @TempDir static Path folder;
  static TestInstallation installation;
  static ManagedChannel client;

  @BeforeAll
  static void start() {
    installation =
        new TestInstallation(
                folder,
                5,
                "--coterie.coordinator.keygen.min=300ms",
                "--coterie.coordinator.keygen.initial=500ms")
            .start();
    client = installation.backend();
  }

  @AfterAll
  static void stop() {
    installation.close();
  }

  @BeforeEach
  void honest() {
    installation.parties.behave();
    installation.parties.orders.clear();
  }

  private static Key create(SignedIntent intent) {
    return keys(client).createKey(createKey(intent));
  }

  private static Key get(String name) {
    return keys(client).getKey(GetKeyRequest.newBuilder().setName("keys/" + name).build());
  }

  @Test
  void parties_are_listed_by_their_ids_whatever_the_order_of_the_intent() {
    Key key = create(installation.wallet.sign(keyIntent("order", 2, "p4", "p2", "p5").build()));
    assertThat(key.getPartiesList()).containsExactly("p2", "p4", "p5");
    assertThat(key.getEpoch()).isEqualTo(1);
    assertThat(key.getProofOfPossession().size()).isEqualTo(96);
    assertThat(get("order")).isEqualTo(key);
  }

  @Test
  void every_threshold_up_to_all_of_them() {
    for (int t = 1; t <= 5; t++) {
      Key key = installation.createKey(client, "t" + t, t, 5);
      byte[] signature =
          signing(client)
              .sign(sign(installation.wallet.sign(signingIntent("t" + t, "m").build())))
              .getSignature()
              .toByteArray();
      assertThat(TestBls.verifies(key.getPublicKey(), "m".getBytes(), signature)).isTrue();
    }
  }

  @Test
  void concurrent_repeats_share_one_run() throws Exception {
    SignedIntent intent = installation.wallet.sign(keyIntent("shared", 2, "p1", "p2").build());
    List<Future<Key>> answers = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 12; i++) {
        answers.add(threads.submit(() -> create(intent)));
      }
    }
    for (Future<Key> answer : answers) {
      assertThat(answer.get()).isEqualTo(answers.getFirst().get());
    }
    assertThat(installation.parties.orders).hasSize(2);
    assertThat(create(intent)).isEqualTo(answers.getFirst().get());
  }

  @Test
  void a_name_and_a_request_id_are_given_once() {
    KeyIntent intent = keyIntent("once", 2, "p1", "p2").build();
    create(installation.wallet.sign(intent));
    fails(
        ErrorReason.KEY_EXISTS,
        () -> create(installation.wallet.sign(keyIntent("once", 2, "p1", "p2").build())));
    fails(
        ErrorReason.REQUEST_ID_REUSED,
        () -> create(installation.wallet.sign(intent.toBuilder().setThreshold(1).build())));
    fails(
        ErrorReason.REQUEST_ID_REUSED,
        () -> create(installation.wallet.sign(intent.toBuilder().setKey("keys/twice").build())));
  }

  @Test
  void one_refusal_ends_it_and_the_name_is_free_again() {
    installation.parties.behave(
        "p2",
        new Behaviour.Refuses(
            RefusalReason.REFUSAL_REASON_FORBIDDEN, "the requester may not create keys"));
    SignedIntent intent = installation.wallet.sign(keyIntent("refused", 2, "p1", "p2").build());
    Map<String, String> metadata = fails(ErrorReason.FORBIDDEN, () -> create(intent));
    assertThat(metadata).containsEntry(StatusErrors.PARTY, "p2");
    assertThat(get("refused").getState()).isEqualTo(Key.State.FAILED);
    assertThat(StatusErrors.reason(get("refused").getError())).contains(ErrorReason.FORBIDDEN);
    assertThat(StatusErrors.info(get("refused").getError()).orElseThrow().getMetadataMap())
        .containsEntry(StatusErrors.DETAIL, "the requester may not create keys");
    fails(
        ErrorReason.KEY_NOT_ACTIVE,
        () ->
            signing(client)
                .sign(sign(installation.wallet.sign(signingIntent("refused", "m").build()))));

    installation.parties.behave();
    assertThat(fails(ErrorReason.FORBIDDEN, () -> create(intent))).isEqualTo(metadata);
    create(installation.wallet.sign(keyIntent("refused", 2, "p1", "p2").build()));
    assertThat(get("refused").getState()).isEqualTo(Key.State.ACTIVE);
  }

  @Test
  void a_culprit_that_evidence_convicts_is_named_to_the_caller_and_the_evidence_is_kept() {
    for (String party : List.of("p1", "p2")) {
      installation.parties.behave(
          party, new Behaviour.Aborts(AbortCause.ABORT_CAUSE_WRONG_SHARE, List.of(3)));
    }
    installation.parties.behave("p3", new Behaviour.Silent());
    assertThat(
            fails(
                ErrorReason.PARTY_MISBEHAVED,
                () ->
                    create(
                        installation.wallet.sign(
                            keyIntent("culprit", 2, "p1", "p2", "p3").build()))))
        .containsEntry(StatusErrors.PARTY, "p3")
        .containsEntry(StatusErrors.ROUND, "2")
        .containsEntry(StatusErrors.CAUSE, "ABORT_CAUSE_WRONG_SHARE");
    eventually(
        () ->
            installation
                .query(
                    "select string_agg(concat_ws(' ', protocol, cause, accused, verdict), ', ')"
                        + " from abort_evidence where key_name = 'keys/culprit'")
                .equals("PROTOCOL_ID_BLS_KEYGEN ABORT_CAUSE_WRONG_SHARE 3 VERDICT_PROVEN"));
  }

  @Test
  void parties_that_report_different_keys_have_no_key() {
    installation.parties.behave("p2", new Behaviour.OtherKey());
    assertThat(
            fails(
                ErrorReason.KEY_CREATION_FAILED,
                () ->
                    create(
                        installation.wallet.sign(
                            keyIntent("different", 2, "p1", "p2", "p3").build()))))
        .containsEntry(StatusErrors.CAUSE, "ABORT_CAUSE_BROADCAST_MISMATCH");
    assertThat(get("different").getState()).isEqualTo(Key.State.FAILED);
  }

  @Test
  void a_silent_party_is_named_and_the_creation_goes_on_when_it_is_back() {
    installation.parties.behave("p2", new Behaviour.Silent());
    SignedIntent intent = installation.wallet.sign(keyIntent("late", 2, "p1", "p2").build());
    Map<String, String> metadata =
        fails(
            ErrorReason.PARTY_UNRESPONSIVE,
            () ->
                KeyServiceGrpc.newBlockingStub(client)
                    .withDeadlineAfter(400, TimeUnit.MILLISECONDS)
                    .createKey(createKey(intent)));
    assertThat(metadata).containsEntry(StatusErrors.PARTY, "p2");
    assertThat(get("late").getState()).isEqualTo(Key.State.CREATING);
    installation.parties.behave();
    assertThat(create(intent).getState()).isEqualTo(Key.State.ACTIVE);
  }

  @Test
  void pages_follow_each_other_and_hold_what_the_client_may_read() {
    for (String name : List.of("public-a", "public-b", "public-c", "private-a")) {
      create(installation.wallet.sign(keyIntent(name, 1, "p1").build()));
    }
    List<String> names = new ArrayList<>();
    String token = "";
    int pages = 0;
    do {
      ListKeysResponse page =
          keys(client)
              .listKeys(ListKeysRequest.newBuilder().setPageSize(2).setPageToken(token).build());
      assertThat(page.getKeysCount()).isBetween(1, 2);
      page.getKeysList().forEach(k -> names.add(k.getName()));
      token = page.getNextPageToken();
      pages++;
    } while (!token.isEmpty());
    assertThat(pages).isGreaterThan(1);
    assertThat(names).isSorted().doesNotHaveDuplicates();
    assertThat(names).contains("keys/public-a", "keys/public-c", "keys/private-a");

    ManagedChannel auditor = installation.client("auditor");
    assertThat(
            keys(auditor).listKeys(ListKeysRequest.getDefaultInstance()).getKeysList().stream()
                .map(Key::getName))
        .containsExactly("keys/public-a", "keys/public-b", "keys/public-c");
    assertThat(
            keys(auditor)
                .getKey(GetKeyRequest.newBuilder().setName("keys/public-a").build())
                .getState())
        .isEqualTo(Key.State.ACTIVE);
    for (String hidden : List.of("keys/private-a", "keys/not-there")) {
      fails(
          ErrorReason.CLIENT_NOT_ALLOWED,
          () -> keys(auditor).getKey(GetKeyRequest.newBuilder().setName(hidden).build()));
    }
    fails(
        ErrorReason.KEY_NOT_FOUND,
        () -> keys(client).getKey(GetKeyRequest.newBuilder().setName("keys/not-there").build()));
  }
}
