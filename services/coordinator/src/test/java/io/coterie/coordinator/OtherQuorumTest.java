package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A party that fails is worked around inside the caller's deadline, or named. */
class OtherQuorumTest {
  @TempDir Path folder;
  private TestInstallation installation;
  private ManagedChannel client;
  private Key key;

  @BeforeEach
  void start() {
    installation =
        new TestInstallation(
                folder,
                3,
                "--coterie.coordinator.signing.min=200ms",
                "--coterie.coordinator.signing.initial=400ms")
            .start();
    client = installation.backend();
    key = installation.createKey(client, "hot", 2, 3);
  }

  @AfterEach
  void stop() {
    installation.close();
  }

  private SignedIntent intent(String message) {
    return installation.wallet.sign(signingIntent("hot", message).build());
  }

  private Signing signed(String message) {
    Signing signing = signing(client).sign(sign(intent(message)));
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(
            TestBls.verifies(
                key.getPublicKey(),
                message.getBytes(java.nio.charset.StandardCharsets.UTF_8),
                signing.getSignature().toByteArray()))
        .isTrue();
    return signing;
  }

  /** The party that a fresh coordinator asks first. */
  private static final String FIRST = "p1";

  @Test
  void a_silent_party_is_replaced_and_not_asked_again_for_a_while() {
    installation.parties.behave(FIRST, new Behaviour.Silent());
    Signing first = signed("one");
    assertThat(first.getSessions()).isEqualTo(2);
    assertThat(first.getSigningSetList()).containsExactly("p2", "p3");
    assertThat(installation.parties.cancelled).hasSize(1);
    assertThat(signed("two").getSessions()).isEqualTo(1);
  }

  /** TEST 2 of RFC 8032: a key that its owner has imported. */
  private void storeImportedKey() {
    ByteString publicKey =
        ByteString.fromHex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    KeyStore keys = installation.bean(KeyStore.class);
    RequestHeader header =
        new RequestHeader(
            "wallet",
            RequestId.next(),
            ByteString.copyFrom(new byte[32]),
            SignedIntent.getDefaultInstance(),
            Instant.now(),
            Instant.now());
    List<KeyRecord.Holder> holders =
        IntStream.rangeClosed(1, 3).mapToObj(id -> new KeyRecord.Holder(id, "p" + id)).toList();
    KeyRecord attempt =
        KeyRecord.creating(header, "keys/exact", Scheme.SCHEME_ED25519_EXACT, 2, holders);
    KeyStore.Creation.Stored stored = (KeyStore.Creation.Stored) keys.create(attempt);
    KeyPublic made =
        KeyPublic.newBuilder()
            .setPublicKey(publicKey)
            .setKeyId("keys/exact")
            .setThreshold(2)
            .setEpoch(1)
            .build();
    keys.finish(stored.record().id(), TestEvidence.unattested(made), null, 1);
  }

  private Signing signedByPair() {
    SignedIntent intent =
        installation.wallet.sign(
            signingIntent("exact", "r").setScheme(Scheme.SCHEME_ED25519_EXACT).build());
    Signing signing = signing(client).sign(sign(intent));
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    return signing;
  }

  /** Nobody but the two knows which of them was wrong. The third one has the signature already. */
  @Test
  void a_pair_that_failed_is_asked_last_and_each_of_its_parties_as_before() {
    storeImportedKey();
    ByteString signature =
        ByteString.fromHex(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
    installation.parties.refusing =
        (_, refused, _) -> refused.toBuilder().setSignature(signature).build();
    installation.parties.behave(FIRST, new Behaviour.Silent());
    installation.parties.behave(
        "p2", new Behaviour.Aborts(AbortCause.ABORT_CAUSE_WRONG_TABLE, List.of(1)));
    installation.parties.behave(
        "p3", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED));
    assertThat(signedByPair().getSessions()).isEqualTo(2);
    Signing next = signedByPair();
    assertThat(next.getSessions()).isEqualTo(1);
    assertThat(next.getSigningSetList()).containsExactly("p1", "p3");
    for (String party : List.of(FIRST, "p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Honest());
    }
    assertThat(signed("with another key").getSigningSetList()).containsExactly("p1", "p2");
  }

  @Test
  void a_second_chance_fits_into_a_short_deadline() {
    installation.parties.behave(FIRST, new Behaviour.Silent());
    Signing signing =
        SigningServiceGrpc.newBlockingStub(client)
            .withDeadlineAfter(750, TimeUnit.MILLISECONDS)
            .sign(sign(intent("hurry")));
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(signing.getSessions()).isEqualTo(2);
  }

  @Test
  void a_refusing_party_is_not_asked_again_for_the_same_request() {
    installation.parties.behave(
        FIRST, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    assertThat(signed("one").getSigningSetList()).containsExactly("p2", "p3");
  }

  /** A BLS signature is the same in every session: a request is bound to none. */
  @Test
  void a_party_that_claims_to_be_bound_to_a_session_is_replaced() {
    Order order =
        Order.newBuilder()
            .setCoordinatorNonce(ByteString.copyFrom(new byte[32]))
            .setProtocol(ProtocolId.PROTOCOL_ID_BLS_SIGN)
            .setKey("keys/hot")
            .setEpoch(1)
            .setThreshold(2)
            .addAllSigningSet(List.of(1, 2))
            .setPresignatureId(ByteString.copyFrom(new byte[32]))
            .build();
    installation.parties.behave(FIRST, new Behaviour.Claims(order.toByteString()));
    assertThat(signed("one").getSigningSetList()).containsExactly("p2", "p3");
    assertThat(installation.parties.bound).hasPositiveValue();
  }

  @Test
  void a_party_that_will_not_sign_with_another_one_signs_with_a_third() {
    installation.parties.behave(
        FIRST, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED));
    SignedIntent intent = intent("not with p2");
    var call = SigningServiceGrpc.newFutureStub(client).sign(sign(intent));
    eventually(() -> installation.parties.orders.size() >= 3 + 4);
    assertThat(
            installation.parties.orders.stream()
                .skip(3)
                .map(io.coterie.proto.party.v1.Order::getSigningSetList))
        .contains(List.of(1, 2), List.of(1, 3));
    installation.parties.behave();
    eventually(call::isDone);
    assertThat(call.state()).isEqualTo(java.util.concurrent.Future.State.SUCCESS);
  }

  @Test
  void an_overloaded_party_may_be_asked_again() {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(
          party, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_OVERLOADED));
    }
    SignedIntent intent = intent("busy");
    var call = SigningServiceGrpc.newFutureStub(client).sign(sign(intent));
    eventually(() -> installation.parties.orders.size() >= 6);
    installation.parties.behave();
    eventually(call::isDone);
    assertThat(signing(client).sign(sign(intent)).getState()).isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void when_more_parties_refuse_than_can_be_spared_the_signing_has_failed_for_ever() {
    for (String party : List.of("p1", "p2")) {
      installation.parties.behave(
          party, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    }
    SignedIntent intent = intent("no");
    Map<String, String> metadata =
        fails(ErrorReason.FORBIDDEN, () -> signing(client).sign(sign(intent)));
    assertThat(metadata)
        .containsEntry(StatusErrors.PARTY, "p1,p2")
        .containsEntry(StatusErrors.CAUSE, "REFUSAL_REASON_FORBIDDEN");
    int orders = installation.parties.orders.size();
    installation.parties.behave();
    assertThat(fails(ErrorReason.FORBIDDEN, () -> signing(client).sign(sign(intent))))
        .isEqualTo(metadata);
    assertThat(installation.parties.orders).hasSize(orders);
    Signing stored =
        signing(client)
            .getSigning(
                GetSigningRequest.newBuilder()
                    .setName(metadata.get(StatusErrors.RESOURCE))
                    .build());
    assertThat(stored.getState()).isEqualTo(Signing.State.UNKNOWN);
    assertThat(StatusErrors.reason(stored.getError())).contains(ErrorReason.FORBIDDEN);
  }

  @Test
  void the_callers_error_names_the_rule_by_which_a_party_refuses() {
    String hostile = "the purpose is not one of this requester's\u001b[2J\r\n" + "x".repeat(5000);
    for (String party : List.of("p1", "p2")) {
      installation.parties.behave(
          party, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN, hostile));
    }
    Map<String, String> metadata =
        fails(ErrorReason.FORBIDDEN, () -> signing(client).sign(sign(intent("no"))));
    assertThat(metadata.get(StatusErrors.DETAIL))
        .startsWith("the purpose is not one of this requester's?[2J??xxx")
        .hasSize(StatusErrors.MAX_DETAIL);
  }

  @Test
  void a_party_that_the_service_refuses_is_replaced() {
    installation.network.changed.add(FIRST);
    assertThat(signed("one").getSigningSetList()).containsExactly("p2", "p3");
    installation.network.changed.clear();
    signed("two");
  }

  @Test
  void an_aborting_party_is_replaced() {
    installation.parties.behave(
        FIRST, new Behaviour.Aborts(AbortCause.ABORT_CAUSE_INTERNAL, List.of()));
    assertThat(signed("one").getSigningSetList()).containsExactly("p2", "p3");
  }

  @Test
  void a_lying_party_is_excluded_from_the_key_durably() {
    installation.parties.behave(FIRST, new Behaviour.Lies());
    assertThat(signed("one").getSigningSetList()).containsExactly("p2", "p3");
    installation.parties.behave();
    assertThat(signed("two").getSigningSetList()).containsExactly("p2", "p3");
    assertThat(installation.query("select party_id || cause from key_exclusions"))
        .isEqualTo("1ABORT_CAUSE_WRONG_PARTIAL_SIGNATURE");
    installation.stop();
    installation.start();
    assertThat(signed("three").getSigningSetList()).containsExactly("p2", "p3");

    installation.parties.behave("p2", new Behaviour.Lies());
    Map<String, String> metadata =
        fails(ErrorReason.PARTY_MISBEHAVED, () -> signing(client).sign(sign(intent("four"))));
    assertThat(metadata).containsEntry(StatusErrors.PARTY, "p1,p2");
  }

  @Test
  void without_that_advice_a_lying_party_is_only_left_out_of_the_request() {
    installation.core.advice = Advice.ADVICE_RETRY;
    installation.parties.behave(FIRST, new Behaviour.Lies());
    assertThat(signed("one").getSigningSetList()).containsExactly("p2", "p3");
    assertThat(installation.query("select count(*) from key_exclusions")).isEqualTo("0");
  }

  @Test
  void accusations_of_fewer_than_threshold_parties_make_nobody_a_culprit() {
    installation.parties.behave(
        FIRST, new Behaviour.Aborts(AbortCause.ABORT_CAUSE_WRONG_PARTIAL_SIGNATURE, List.of(2)));
    Map<String, String> metadata = firstTrouble("framed");
    assertThat(metadata).doesNotContainKey("culprit");
    installation.parties.behave();
    signed("after");
    assertThat(installation.query("select count(*) from key_exclusions")).isEqualTo("0");
  }

  private Map<String, String> firstTrouble(String message) {
    for (String party : List.of("p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Silent());
    }
    // The time is up while a session waits for a party, or between two of them.
    return fails(
        List.of(ErrorReason.PARTY_UNRESPONSIVE, ErrorReason.SESSION_FAILED),
        () ->
            SigningServiceGrpc.newBlockingStub(client)
                .withDeadlineAfter(2, TimeUnit.SECONDS)
                .sign(sign(intent(message))));
  }

  @Test
  void a_result_that_does_not_verify_is_never_returned_nor_stored() {
    installation.core.lying = true;
    SignedIntent intent = intent("forged");
    assertThat(
            fails(
                ErrorReason.SESSION_FAILED,
                () ->
                    SigningServiceGrpc.newBlockingStub(client)
                        .withDeadlineAfter(1500, TimeUnit.MILLISECONDS)
                        .sign(sign(intent))))
        .containsEntry(StatusErrors.CAUSE, "ABORT_CAUSE_INTERNAL");
    assertThat(installation.query("select count(*) from signings where signature is not null"))
        .isEqualTo("0");
    installation.core.lying = false;
    assertThat(signing(client).sign(sign(intent)).getState()).isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void parties_out_of_reach_are_waited_for() {
    installation.parties.disconnect("p1");
    installation.parties.disconnect("p2");
    SignedIntent intent = intent("alone");
    Map<String, String> metadata =
        fails(
            ErrorReason.QUORUM_UNAVAILABLE,
            () ->
                SigningServiceGrpc.newBlockingStub(client)
                    .withDeadlineAfter(600, TimeUnit.MILLISECONDS)
                    .sign(sign(intent)));
    assertThat(metadata).containsEntry(StatusErrors.PARTY, "p1,p2");
    assertThat(installation.parties.orders).hasSize(3); // those of the key generation
    var call = SigningServiceGrpc.newFutureStub(client).sign(sign(intent));
    installation.parties.connect("p2");
    eventually(call::isDone);
    assertThat(signing(client).sign(sign(intent)).getSigningSetList()).containsExactly("p2", "p3");
  }

  @Test
  void a_messaging_service_that_is_down_is_waited_for() {
    installation.network.down = true;
    SignedIntent intent = intent("later");
    assertThat(
            fails(
                ErrorReason.QUORUM_UNAVAILABLE,
                () ->
                    SigningServiceGrpc.newBlockingStub(client)
                        .withDeadlineAfter(600, TimeUnit.MILLISECONDS)
                        .sign(sign(intent))))
        .containsEntry(StatusErrors.CAUSE, "channel_unavailable");
    installation.network.down = false;
    assertThat(signing(client).sign(sign(intent)).getSessions()).isEqualTo(1);
  }

  @Test
  void sessions_of_the_core_are_closed_whatever_happened() {
    installation.parties.behave(FIRST, new Behaviour.Silent());
    signed("one");
    installation.parties.behave("p2", new Behaviour.Lies());
    fails(
        ErrorReason.PARTY_UNRESPONSIVE,
        () ->
            SigningServiceGrpc.newBlockingStub(client)
                .withDeadlineAfter(1500, TimeUnit.MILLISECONDS)
                .sign(sign(intent("two"))));
    installation.parties.behave();
    eventually(() -> installation.core.open.get() == 0);
  }

  @Test
  void a_signing_that_expires_while_nobody_answers_has_failed() {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Silent());
    }
    SignedIntent intent =
        installation.wallet.sign(
            signingIntent("hot", "short").setNotAfter(TestInstallation.inSeconds(1.2)).build());
    assertThat(fails(ErrorReason.INTENT_EXPIRED, () -> signing(client).sign(sign(intent))))
        .containsEntry(StatusErrors.CAUSE, "timed_out");
    assertThat(installation.query("select state || '' from signings")).isEqualTo("3");
  }

  /** An attempt that ended there would forget who lied, and begin again with the same parties. */
  @Test
  void a_lying_party_is_excluded_as_soon_as_the_database_stores_it() {
    installation.parties.behave(FIRST, new Behaviour.Lies());
    installation.execute(
        "create function fail() returns trigger language plpgsql as $$ begin perform"
            + " nextval('tried'); raise exception 'as told'; end $$; create sequence tried; create"
            + " trigger away before insert on key_exclusions for each row execute function fail()");
    var call = SigningServiceGrpc.newFutureStub(client).sign(sign(intent("one")));
    eventually(() -> !installation.query("select 1 from tried where is_called").isEmpty());
    installation.execute("drop trigger away on key_exclusions");
    eventually(call::isDone);
    assertThat(call.resultNow().getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(call.resultNow().getSessions()).isEqualTo(2);
    assertThat(installation.query("select party_id from key_exclusions")).isEqualTo("1");
  }
}
