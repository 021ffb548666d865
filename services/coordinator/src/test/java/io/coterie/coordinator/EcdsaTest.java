package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.coordinator.custody.presignature.PresignatureStock;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.micrometer.core.instrument.MeterRegistry;
import java.math.BigInteger;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bouncycastle.asn1.ASN1Integer;
import org.bouncycastle.asn1.ASN1Sequence;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** ECDSA keys: creation, three rounds, derivation, and signing with presignatures. */
class EcdsaTest {
  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);

  @TempDir Path folder;
  private TestInstallation installation;
  private ManagedChannel client;
  private Key key;

  @BeforeEach
  void start() {
    installation = new TestInstallation(folder, 3).start();
    client = installation.backend();
    key = create("hot", 2, "p1", "p2", "p3");
  }

  @AfterEach
  void stop() {
    installation.close();
  }

  private Key create(String name, int threshold, String... parties) {
    return installation.createEcdsaKey(client, name, threshold, parties);
  }

  static SigningIntent.Builder intent(String key, int number, Integer... path) {
    return SigningIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey("keys/" + key)
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .addAllDerivationPath(List.of(path))
        .setDigest(DIGEST.substring(1).concat(ByteString.copyFrom(new byte[] {(byte) number})))
        .setNotAfter(inSeconds(120));
  }

  private SignedIntent signed(SigningIntent.Builder intent) {
    return installation.wallet.sign(intent.build());
  }

  private Signing signs(SigningIntent.Builder intent) {
    Signing signing = signing(client).sign(sign(signed(intent)));
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(
            TestEcdsa.verifies(signing.getPublicKey(), intent.getDigest(), signing.getSignature()))
        .isTrue();
    return signing;
  }

  private int orders(ProtocolId protocol) {
    return (int)
        installation.parties.orders.stream().filter(o -> o.getProtocol() == protocol).count();
  }

  private int ready() {
    return installation.bean(PresignatureStock.class).ready();
  }

  /** Signs once, and gives one of the parties that hold the presignatures made for the next. */
  private String aPartyOfFourPresignatures() {
    signs(intent("hot", 0));
    eventually(() -> ready() == 4);
    Order presign =
        installation.parties.orders.stream()
            .filter(o -> o.getProtocol() == ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN)
            .findFirst()
            .orElseThrow();
    return "p" + presign.getSigningSet(0);
  }

  private double count(String counter, String... tags) {
    var found = installation.bean(MeterRegistry.class).find(counter).tags(tags).counter();
    return found == null ? 0 : found.count();
  }

  @Test
  void a_key_shows_its_extended_public_key() {
    KeyPublic made = installation.parties.ecdsaKeys.get("keys/hot").get(1).keyPublic();
    assertThat(key.getPublicKey()).isEqualTo(made.getPublicKey());
    assertThat(key.getPublicKey().size()).isEqualTo(33);
    assertThat(key.getXpub())
        .isEqualTo(ExtendedPublicKey.of(made.getPublicKey(), made.getChainCode()).xpub())
        .startsWith("xpub");
    assertThat(key.getProofOfPossession()).isEqualTo(ByteString.EMPTY);
    assertThat(keys(client).getKey(GetKeyRequest.newBuilder().setName("keys/hot").build()))
        .isEqualTo(key);
    fails(ErrorReason.THRESHOLD_INVALID, () -> create("alone", 1, "p1", "p2"));
    installation.parties.behave("p2", new Behaviour.OtherKey());
    fails(ErrorReason.KEY_CREATION_FAILED, () -> create("different", 2, "p1", "p2"));
  }

  @Test
  void a_signature_has_all_that_a_chain_wants_and_a_repeat_is_the_same() {
    SigningIntent.Builder intent = intent("hot", 1, 44, 60, 0);
    Signing first = signs(intent);

    assertThat(first.getPresigned()).isFalse();
    assertThat(first.getDigest()).isEqualTo(intent.getDigest());
    assertThat(first.getDecoded().getKind()).isEqualTo("digest");
    assertThat(first.getDecoded().getFieldsCount()).isEqualTo(1);
    assertThat(first.hasRecoveryId()).isTrue();
    assertThat(first.getSignature().size()).isEqualTo(64);
    KeyPublic root = installation.parties.ecdsaKeys.get("keys/hot").get(1).keyPublic();
    assertThat(first.getPublicKey())
        .isEqualTo(
            ExtendedPublicKey.of(root.getPublicKey(), root.getChainCode())
                .derive(List.of(44, 60, 0))
                .publicKey());
    ASN1Sequence der = ASN1Sequence.getInstance(first.getDerSignature().toByteArray());
    for (int i = 0; i < 2; i++) {
      assertThat(ASN1Integer.getInstance(der.getObjectAt(i)).getPositiveValue())
          .isEqualTo(
              new BigInteger(
                  1, first.getSignature().substring(32 * i, 32 * (i + 1)).toByteArray()));
    }
    assertThat(orders(ProtocolId.PROTOCOL_ID_ECDSA_SIGN)).isEqualTo(2);

    assertThat(signing(client).sign(sign(signed(intent)))).isEqualTo(first);
    assertThat(
            signing(client)
                .getSigning(GetSigningRequest.newBuilder().setName(first.getName()).build()))
        .isEqualTo(first);
    assertThat(orders(ProtocolId.PROTOCOL_ID_ECDSA_SIGN)).isEqualTo(2);
    installation.stop();
    installation.start();
    assertThat(signing(client).sign(sign(signed(intent)))).isEqualTo(first);
  }

  @Test
  void a_wrong_recovery_id_is_never_answered() {
    installation.core.lying = true;
    SignedIntent intent = signed(intent("hot", 1));
    // On a slow machine the first sessions may be late, which is another reason.
    eventually(
        () -> {
          StatusRuntimeException failure =
              catchThrowableOfType(
                  StatusRuntimeException.class,
                  () -> signing(client).withDeadlineAfter(2, TimeUnit.SECONDS).sign(sign(intent)));
          return StatusErrors.info(failure)
              .filter(info -> info.getReason().equals(ErrorReason.SESSION_FAILED.name()))
              .isPresent();
        });
    assertThat(installation.query("select count(*) from signings where state = 2")).isEqualTo("0");
  }

  @Test
  void each_field_of_an_intent_is_checked_before_anything_is_stored() {
    String rows = installation.rows();
    for (SigningIntent.Builder bad :
        List.of(
            intent("hot", 1).clearDigest(),
            intent("hot", 1).setDigest(ByteString.EMPTY),
            intent("hot", 1).setDigest(DIGEST.substring(1)),
            intent("hot", 1).setDigest(DIGEST.concat(DIGEST.substring(31))),
            intent("hot", 1).setMessage(DIGEST),
            intent("hot", 1, Integer.MIN_VALUE),
            intent("hot", 1, -1),
            intent("hot", 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))) {
      fails(ErrorReason.INTENT_MALFORMED, () -> signing(client).sign(sign(signed(bad))));
    }
    for (SigningIntent.Builder bad :
        List.of(
            intent("hot", 1).setEthereumTransaction(DIGEST),
            intent("hot", 1).setEthereumTypedData("{"),
            intent("hot", 1)
                .setBitcoinInput(
                    io.coterie.proto.custody.v1.BitcoinInput.newBuilder().setPsbt(DIGEST)))) {
      assertThat(fails(ErrorReason.PAYLOAD_INVALID, () -> signing(client).sign(sign(signed(bad)))))
          .containsKey(StatusErrors.PROBLEM);
    }
    // A legacy transaction of chain 1 without recipient
    ByteString creation = ByteString.fromHex("cb010182cf08808080018080");
    assertThat(
            fails(
                ErrorReason.PAYLOAD_INVALID,
                () ->
                    signing(client)
                        .sign(sign(signed(intent("hot", 1).setEthereumTransaction(creation))))))
        .containsEntry(StatusErrors.PROBLEM, "PAYLOAD_NOT_READ")
        .containsEntry(StatusErrors.PART, "creation of a contract");
    fails(
        ErrorReason.UNSUPPORTED_SCHEME,
        () ->
            signing(client)
                .sign(
                    sign(
                        installation.wallet.sign(
                            TestInstallation.signingIntent("hot", "m").build()))));
    installation.createKey(client, "bls", 2, 3);
    fails(
        ErrorReason.UNSUPPORTED_SCHEME, () -> signing(client).sign(sign(signed(intent("bls", 1)))));
    assertThat(installation.query("select count(*) from signings")).isEqualTo("0");
    assertThat(rows).isEqualTo("1 keys, 0 signings");
    signs(intent("hot", 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, Integer.MAX_VALUE));
  }

  @Test
  void a_payload_that_signers_refuse_is_the_callers_error() {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(
          party, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_BAD_PAYLOAD));
    }
    fails(ErrorReason.PAYLOAD_INVALID, () -> signing(client).sign(sign(signed(intent("hot", 1)))));
  }

  /** Under load an order may reach a party after the session's deadline. */
  @Test
  void a_party_that_got_its_order_too_late_is_asked_again() throws Exception {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(
          party, new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED));
    }
    SigningIntent.Builder intent = intent("hot", 3);
    try (ExecutorService caller = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<Signing> answer = caller.submit(() -> signs(intent));
      eventually(() -> orders(ProtocolId.PROTOCOL_ID_ECDSA_SIGN) > 8);
      installation.parties.behave();
      assertThat(answer.get().getState()).isEqualTo(Signing.State.SIGNED);
    }
  }

  /** The failure of one session is no reason not to ask again: another one may sign. */
  @ParameterizedTest
  @CsvSource({
    "REFUSAL_REASON_INTENT_EXPIRED, PARTY_UNRESPONSIVE",
    "REFUSAL_REASON_INTERNAL, SESSION_FAILED"
  })
  void who_cannot_wait_any_longer_is_told_to_ask_again(RefusalReason refusal, ErrorReason told) {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Refuses(refusal));
    }
    SignedIntent intent = signed(intent("hot", 3));
    // Told while a session runs, it is that the parties have not answered yet.
    eventually(
        () -> {
          StatusRuntimeException thrown =
              catchThrowableOfType(
                  StatusRuntimeException.class,
                  () -> signing(client).withDeadlineAfter(1, TimeUnit.SECONDS).sign(sign(intent)));
          ErrorInfo info = StatusErrors.info(thrown).orElse(null);
          if (info == null) {
            return false; // the client's own deadline ended the call before the answer came
          }
          assertThat(info.getReason()).isIn(told.name(), ErrorReason.PARTY_UNRESPONSIVE.name());
          return info.getMetadataOrThrow(StatusErrors.CAUSE).equals(refusal.name());
        });
    installation.parties.behave();
    assertThat(signing(client).sign(sign(intent)).getState()).isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void the_second_signature_of_a_kind_uses_a_presignature_each_once() {
    assertThat(signs(intent("hot", 0, 7)).getPresigned()).isFalse();
    eventually(() -> ready() >= 4);
    assertThat(orders(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN)).as("two parties").isEqualTo(2);
    assertThat(count(CoordinatorMetrics.PRESIGNATURES_MISSED)).isEqualTo(1);
    installation.parties.orders.clear();
    for (int i = 1; i <= 20; i++) {
      eventually(() -> ready() > 0);
      assertThat(signs(intent("hot", i, 7)).getPresigned()).isTrue();
    }
    List<ByteString> used = new ArrayList<>();
    for (Order order : installation.parties.orders) {
      if (order.getProtocol() == ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED) {
        assertThat(order.getDerivationPathCount()).isZero();
        used.add(order.getPresignatureId());
      } else {
        assertThat(order.getProtocol()).isEqualTo(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN);
        assertThat(order.getDerivationPathList()).containsExactly(7);
        assertThat(order.hasSignedIntent()).isFalse();
        assertThat(order.getPresignatureCount()).isBetween(1, 4);
      }
    }
    assertThat(used).hasSize(40);
    assertThat(used.stream().distinct()).hasSize(20);
    assertThat(count(CoordinatorMetrics.PRESIGNATURES_USED)).isEqualTo(20);
    // 4, and one more for each use; fewer than a session makes may lack.
    eventually(() -> ready() > 20 && installation.bean(PresignatureStock.class).making() == 0);
    assertThat(count(CoordinatorMetrics.PRESIGNATURES_MADE)).isEqualTo(20 + ready());
    assertThat(count(CoordinatorMetrics.PRESIGNATURES_MISSED)).isEqualTo(1);
    // For another path there are none.
    assertThat(signs(intent("hot", 1, 8)).getPresigned()).isFalse();
  }

  @Test
  void without_its_presignature_a_party_signs_by_the_rounds_and_the_pool_is_made_anew() {
    String party = aPartyOfFourPresignatures();
    installation.parties.restart(party);

    Signing signing = signs(intent("hot", 1));
    assertThat(signing.getPresigned()).isFalse();
    assertThat(signing.getSessions()).isEqualTo(2);
    assertThat(count(CoordinatorMetrics.PRESIGNATURES_DROPPED, "reason", "unknown"))
        .isGreaterThanOrEqualTo(3);
    eventually(() -> ready() >= 8);
    assertThat(signs(intent("hot", 2)).getPresigned()).isTrue();
  }

  @Test
  void a_party_that_breaks_a_presigned_session_costs_another_session_only() {
    signs(intent("hot", 0));
    eventually(() -> ready() == 4);
    for (Behaviour behaviour :
        List.of(
            new Behaviour.Lies(),
            new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_OVERLOADED),
            new Behaviour.Aborts(
                io.coterie.proto.core.v1.AbortCause.ABORT_CAUSE_INTERNAL, List.of()))) {
      installation.parties.behave("p1", behaviour);
      signs(intent("hot", 1));
      installation.parties.behave();
    }
    assertThat(installation.query("select count(*) from signings where state = 2")).isEqualTo("4");
  }

  /** The nonces of the orders for one request: one for each session. */
  private Set<ByteString> sessions(SignedIntent intent) {
    return installation.parties.orders.stream()
        .filter(o -> o.getSignedIntent().equals(intent))
        .map(Order::getCoordinatorNonce)
        .collect(Collectors.toSet());
  }

  @Test
  void a_contribution_that_was_lost_is_asked_for_and_no_other_session_is_run() {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Loses());
    }
    SigningIntent.Builder byRounds = intent("hot", 1);
    SignedIntent intent = signed(byRounds);
    Signing signing = signing(client).sign(sign(intent));
    assertThat(
            TestEcdsa.verifies(
                signing.getPublicKey(), byRounds.getDigest(), signing.getSignature()))
        .isTrue();
    assertThat(signing.getSessions()).isEqualTo(1);
    assertThat(sessions(intent)).hasSize(1);
    assertThat(installation.parties.bound).hasValue(0);

    eventually(() -> ready() >= 4);
    SignedIntent presigned = signed(intent("hot", 2));
    assertThat(signing(client).sign(sign(presigned)).getPresigned()).isTrue();
    assertThat(sessions(presigned)).hasSize(1);
  }

  @Test
  void a_new_coordinator_finishes_the_session_that_the_parties_have_contributed_to() {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Loses());
    }
    SignedIntent intent = signed(intent("hot", 1));
    var call = SigningServiceGrpc.newFutureStub(client).sign(sign(intent));
    eventually(() -> orders(ProtocolId.PROTOCOL_ID_ECDSA_SIGN) >= 2);
    installation.kill();
    eventually(call::isDone);
    Order first =
        installation.parties.orders.stream()
            .filter(o -> o.getSignedIntent().equals(intent))
            .findFirst()
            .orElseThrow();
    installation.start();
    Signing signing = signing(client).sign(sign(intent));
    assertThat(signing.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(signing.getSigningSetList())
        .containsExactlyElementsOf(first.getSigningSetList().stream().map(p -> "p" + p).toList());
    assertThat(installation.parties.orders)
        .filteredOn(o -> o.equals(first))
        .as("the first order was given again")
        .hasSizeGreaterThanOrEqualTo(2 * first.getSigningSetCount());
  }

  @Test
  void while_a_session_may_become_the_signature_a_party_of_it_is_asked_first() {
    installation.parties.behave("p1", new Behaviour.Silent());
    SignedIntent intent = signed(intent("hot", 1));
    var call = SigningServiceGrpc.newFutureStub(client).sign(sign(intent));
    eventually(() -> installation.parties.bound.get() >= 2);
    List<Order> asked =
        installation.parties.orders.stream()
            .filter(o -> o.getSignedIntent().equals(intent))
            .toList();
    Order first = asked.getFirst();
    int witness = first.getSigningSetList().stream().filter(p -> p != 1).findFirst().orElseThrow();
    assertThat(first.getSigningSetList()).contains(1);
    assertThat(asked).allMatch(o -> o.getSigningSetList().contains(witness));
    // The time is over in which the silent party could contribute.
    installation.parties.lapse(intent);
    eventually(call::isDone);
    assertThat(signing(client).sign(sign(intent)).getSigningSetList()).containsExactly("p2", "p3");
  }

  /** An order that a party may claim to have contributed to, and its fault. */
  static Stream<Arguments> claims() {
    Order good =
        Order.newBuilder()
            .setCoordinatorNonce(DIGEST)
            .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN)
            .setKey("keys/hot")
            .setEpoch(1)
            .setThreshold(2)
            .addAllSigningSet(List.of(1, 2))
            .setDeadline(inSeconds(5))
            .build();
    return Stream.of(
        Arguments.of("garbage", ByteString.copyFromUtf8("no order")),
        Arguments.of("another key", good.toBuilder().setKey("keys/other").build().toByteString()),
        Arguments.of("another epoch", good.toBuilder().setEpoch(2).build().toByteString()),
        Arguments.of("another threshold", good.toBuilder().setThreshold(1).build().toByteString()),
        Arguments.of(
            "another protocol",
            good.toBuilder()
                .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
                .build()
                .toByteString()),
        Arguments.of(
            "a party twice",
            good.toBuilder()
                .clearSigningSet()
                .addAllSigningSet(List.of(1, 1))
                .build()
                .toByteString()),
        Arguments.of(
            "parties out of order",
            good.toBuilder()
                .clearSigningSet()
                .addAllSigningSet(List.of(2, 1))
                .build()
                .toByteString()),
        Arguments.of(
            "without itself",
            good.toBuilder()
                .clearSigningSet()
                .addAllSigningSet(List.of(2, 3))
                .build()
                .toByteString()),
        Arguments.of(
            "a stranger",
            good.toBuilder()
                .clearSigningSet()
                .addAllSigningSet(List.of(1, 4))
                .build()
                .toByteString()),
        Arguments.of(
            "something beside", good.toBuilder().addDerivationPath(7).build().toByteString()),
        // Nothing is wrong with this one, but that there is no such session.
        Arguments.of("a session of its own", good.toByteString()));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("claims")
  void a_party_that_claims_another_session_falsely_is_replaced(String what, ByteString order) {
    installation.parties.behave("p1", new Behaviour.Claims(order));
    SigningIntent.Builder intent = intent("hot", 1);
    Signing signing = signs(intent);
    assertThat(signing.getSigningSetList()).containsExactly("p2", "p3");
    assertThat(installation.parties.bound).as("p1 was asked").hasPositiveValue();
    assertThat(installation.query("select count(*) from key_exclusions")).isEqualTo("0");
  }

  @Test
  void presignatures_die_with_the_coordinator_and_with_the_reach_of_their_parties() {
    String party = aPartyOfFourPresignatures();
    installation.parties.disconnect(party);
    eventually(() -> ready() == 0);
    assertThat(count(CoordinatorMetrics.PRESIGNATURES_DROPPED, "reason", "unreachable"))
        .isEqualTo(4);
    installation.parties.connect(party);
    eventually(() -> ready() == 4);

    installation.stop();
    installation.start();
    assertThat(ready()).isZero();
    assertThat(signs(intent("hot", 1)).getPresigned()).isFalse();
    eventually(() -> ready() == 4);
    assertThat(signs(intent("hot", 2)).getPresigned()).isTrue();
  }
}
