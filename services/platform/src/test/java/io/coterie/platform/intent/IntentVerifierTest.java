package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.BitcoinInput;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.IntentSignature;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TaprootOutput;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1Integer;
import org.bouncycastle.asn1.DERSequence;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class IntentVerifierTest {
  private static final KeyPair ED25519 = keyPair("Ed25519", null);
  private static final KeyPair P256 = keyPair("EC", "secp256r1");
  private static final KeyPair P384 = keyPair("EC", "secp384r1");
  private static final Instant NOT_AFTER = Instant.ofEpochSecond(2_000_000_000, 5);
  private static final RequesterDirectory REQUESTERS =
      new RequesterDirectory(
          List.of(
              new Requester("wallet-a", ED25519.getPublic()),
              new Requester("wallet-b", P256.getPublic())));

  private static KeyPair keyPair(String algorithm, String curve) {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
      if (curve != null) {
        generator.initialize(new ECGenParameterSpec(curve));
      }
      return generator.generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static final ByteString FINGERPRINT = ByteString.copyFrom(new byte[16]);

  private static SigningIntent.Builder signing() {
    return SigningIntent.newBuilder()
        .setRequestId("01d1a913-3180-7c3d-9a55-1f2e3d4c5b6a")
        .setKey("keys/treasury-1")
        .setScheme(Scheme.SCHEME_BLS12381)
        .setMessage(ByteString.copyFromUtf8("withdraw 5"))
        .setPurpose("withdrawal 4711 – Zürich")
        .setInstallation("production-eu")
        .setKeyFingerprint(FINGERPRINT)
        .setNotAfter(
            Timestamp.newBuilder()
                .setSeconds(NOT_AFTER.getEpochSecond())
                .setNanos(NOT_AFTER.getNano()));
  }

  private static KeyIntent.Builder keyCreation() {
    return KeyIntent.newBuilder()
        .setRequestId("01d1a913-3180-7c3d-8a55-1f2e3d4c5b6a")
        .setKey("keys/treasury-1")
        .setScheme(Scheme.SCHEME_BLS12381)
        .setThreshold(2)
        .addAllParties(List.of("alpha", "beta", "gamma"))
        .setInstallation("production-eu")
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOT_AFTER.getEpochSecond()));
  }

  private static final IntentSigner WALLET_A = new IntentSigner("wallet-a", ED25519.getPrivate());
  private static final IntentSigner WALLET_B = new IntentSigner("wallet-b", P256.getPrivate());

  @Test
  void accepts_signing_intent_of_either_key_type() throws Exception {
    for (IntentSigner signer : List.of(WALLET_A, WALLET_B)) {
      SignedIntent signed = signer.sign(signing().build());
      VerifiedIntent verified = IntentVerifier.verify(signed, REQUESTERS);
      assertThat(verified).isInstanceOf(VerifiedIntent.Signing.class);
      assertThat(verified.requester()).isEqualTo(signed.getSignatures(0).getKeyid());
      assertThat(verified.digest()).isEqualTo(IntentVerifier.digest(signed.getPayload()));
      assertThat(verified.envelope()).isSameAs(signed);
      assertThat(verified.notAfter()).isEqualTo(NOT_AFTER);
      assertThat(((VerifiedIntent.Signing) verified).payload().toStringUtf8())
          .isEqualTo("withdraw 5");
      assertThat(verified.toString()).doesNotContain("withdraw 5");
    }
  }

  @Test
  void accepts_key_intent() throws Exception {
    VerifiedIntent verified =
        IntentVerifier.verify(WALLET_A.sign(keyCreation().build()), REQUESTERS);
    assertThat(verified)
        .isInstanceOfSatisfying(
            VerifiedIntent.KeyCreation.class,
            key -> {
              assertThat(key.threshold()).isEqualTo(2);
              assertThat(key.parties()).containsExactly("alpha", "beta", "gamma");
            });
  }

  /** The example of the DSSE specification, protocol.md. */
  @Test
  void pre_authentication_encoding_is_the_one_of_the_specification() {
    assertThat(Dsse.pae("http://example.com/HelloWorld", ByteString.copyFromUtf8("hello world")))
        .asString()
        .isEqualTo("DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    assertThat(Dsse.pae("ü", ByteString.EMPTY))
        .isEqualTo("DSSEv1 2 ü 0 ".getBytes(StandardCharsets.UTF_8));
  }

  /** The signature of the DSSE specification's example, which has the form r || s there. */
  @Test
  void a_signature_of_the_specification_verifies() throws Exception {
    AlgorithmParameters curve = AlgorithmParameters.getInstance("EC");
    curve.init(new ECGenParameterSpec("secp256r1"));
    PublicKey key =
        KeyFactory.getInstance("EC")
            .generatePublic(
                new ECPublicKeySpec(
                    new ECPoint(
                        new BigInteger(
                            "46950820868899156662930047687818585632848591499744589407958293238635476079160"),
                        new BigInteger(
                            "5640078356564379163099075877009565129882514886557779369047442380624545832820")),
                    curve.getParameterSpec(ECParameterSpec.class)));
    byte[] rs =
        Base64.getDecoder()
            .decode(
                "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==");
    byte[] der =
        new DERSequence(
                new ASN1Encodable[] {
                  new ASN1Integer(new BigInteger(1, Arrays.copyOf(rs, 32))),
                  new ASN1Integer(new BigInteger(1, Arrays.copyOfRange(rs, 32, 64)))
                })
            .getEncoded();
    byte[] pae = Dsse.pae("http://example.com/HelloWorld", ByteString.copyFromUtf8("hello world"));
    assertThat(Dsse.verifies(key, pae, der)).isTrue();
    pae[0] ^= 1;
    assertThat(Dsse.verifies(key, pae, der)).isFalse();
  }

  @Test
  void expiry_is_checked_when_asked_for() throws Exception {
    VerifiedIntent verified = IntentVerifier.verify(WALLET_A.sign(signing().build()), REQUESTERS);
    verified.requireNotExpired(NOT_AFTER);
    assertThatThrownBy(() -> verified.requireNotExpired(NOT_AFTER.plusNanos(1)))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.reason()).isEqualTo(ErrorReason.INTENT_EXPIRED));
  }

  @Test
  void an_intent_is_good_for_a_day_after_its_request_id_at_most() throws Exception {
    Instant longest = NOT_AFTER.truncatedTo(ChronoUnit.MILLIS).minus(VerifiedIntent.MAX_LIFE);
    SigningIntent.Builder intent =
        signing()
            .setNotAfter(Timestamp.newBuilder().setSeconds(NOT_AFTER.getEpochSecond()))
            .setRequestId(RequestId.at(longest));
    IntentVerifier.verify(WALLET_A.sign(intent.build()), REQUESTERS);
    intent.setRequestId(RequestId.at(longest.minusMillis(1)));
    assertThatThrownBy(() -> IntentVerifier.verify(WALLET_A.sign(intent.build()), REQUESTERS))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.NOT_AFTER_TOO_FAR));
  }

  @Test
  void a_request_id_of_a_time_to_come_may_not_be_started() throws Exception {
    VerifiedIntent verified = IntentVerifier.verify(WALLET_A.sign(signing().build()), REQUESTERS);
    Instant earliest = RequestId.time(verified.requestId()).minus(VerifiedIntent.CLOCK_TOLERANCE);
    verified.requireNotExpired(earliest);
    assertThat(verified.isAhead(earliest, VerifiedIntent.CLOCK_TOLERANCE)).isFalse();
    assertThat(verified.isAhead(earliest.minusNanos(1), VerifiedIntent.CLOCK_TOLERANCE)).isTrue();
    assertThatThrownBy(() -> verified.requireNotExpired(earliest.minusNanos(1)))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> assertThat(e.problem()).isEqualTo(IntentProblem.REQUEST_ID_AHEAD));
  }

  @Test
  void refuses_every_flipped_bit_of_payload_and_signature() {
    SignedIntent good = WALLET_A.sign(signing().build());
    for (int i = 0; i < good.getPayload().size() * 8; i++) {
      assertRefused(
          good.toBuilder().setPayload(flip(good.getPayload(), i)).build(),
          IntentProblem.SIGNATURE_INVALID);
    }
    IntentSignature signature = good.getSignatures(0);
    for (int i = 0; i < signature.getSig().size() * 8; i++) {
      assertRefused(
          good.toBuilder()
              .setSignatures(0, signature.toBuilder().setSig(flip(signature.getSig(), i)))
              .build(),
          IntentProblem.SIGNATURE_INVALID);
    }
  }

  private static ByteString flip(ByteString bytes, int bit) {
    byte[] copy = bytes.toByteArray();
    copy[bit / 8] ^= (byte) (1 << (bit % 8));
    return ByteString.copyFrom(copy);
  }

  @Test
  void refuses_signature_of_other_length_form_or_requester() {
    SignedIntent good = WALLET_A.sign(signing().build());
    for (int length : new int[] {0, 1, 63, 65, 200}) {
      assertRefused(
          good.toBuilder()
              .setSignatures(
                  0,
                  good.getSignatures(0).toBuilder().setSig(ByteString.copyFrom(new byte[length])))
              .build(),
          IntentProblem.SIGNATURE_INVALID);
    }
    assertRefused(
        good.toBuilder()
            .setSignatures(0, good.getSignatures(0).toBuilder().setKeyid("wallet-b"))
            .build(),
        IntentProblem.SIGNATURE_INVALID);
  }

  @Test
  void refuses_payload_under_the_other_type() {
    SignedIntent good = WALLET_A.sign(signing().build());
    assertRefused(
        good.toBuilder().setPayloadType(Dsse.KEY_TYPE).build(), IntentProblem.SIGNATURE_INVALID);
    SignedIntent confused =
        new SignedBy(WALLET_A_RAW).sign(Dsse.KEY_TYPE, signing().build().toByteString());
    assertThatThrownBy(() -> IntentVerifier.verify(confused, REQUESTERS))
        .isInstanceOf(IntentException.class);
  }

  /** Payloads that an authorised but hostile requester can sign. */
  private record SignedBy(KeyPair key) {
    SignedIntent sign(String type, ByteString payload) {
      try {
        return SignedIntent.newBuilder()
            .setPayload(payload)
            .setPayloadType(type)
            .addSignatures(
                IntentSignature.newBuilder()
                    .setKeyid("wallet-a")
                    .setSig(
                        ByteString.copyFrom(Dsse.sign(key.getPrivate(), Dsse.pae(type, payload)))))
            .build();
      } catch (GeneralSecurityException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static final KeyPair WALLET_A_RAW = ED25519;

  static Stream<Arguments> malformedEnvelopes() {
    SignedIntent good = WALLET_A.sign(signing().build());
    IntentSignature sig = good.getSignatures(0);
    UnknownFieldSet unknown =
        UnknownFieldSet.newBuilder()
            .addField(9, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
            .build();
    return Stream.of(
        Arguments.of(SignedIntent.getDefaultInstance(), IntentProblem.PAYLOAD_MISSING),
        Arguments.of(
            good.toBuilder().setUnknownFields(unknown).build(),
            IntentProblem.ENVELOPE_UNKNOWN_FIELD),
        Arguments.of(
            good.toBuilder().setSignatures(0, sig.toBuilder().setUnknownFields(unknown)).build(),
            IntentProblem.ENVELOPE_UNKNOWN_FIELD),
        Arguments.of(
            good.toBuilder()
                .setPayload(ByteString.copyFrom(new byte[IntentVerifier.MAX_PAYLOAD + 1]))
                .build(),
            IntentProblem.PAYLOAD_TOO_LARGE),
        Arguments.of(
            good.toBuilder().setPayloadType("").build(), IntentProblem.PAYLOAD_TYPE_UNKNOWN),
        Arguments.of(
            good.toBuilder().setPayloadType(Dsse.SIGNING_TYPE + " ").build(),
            IntentProblem.PAYLOAD_TYPE_UNKNOWN),
        Arguments.of(good.toBuilder().clearSignatures().build(), IntentProblem.SIGNATURE_COUNT),
        Arguments.of(good.toBuilder().addSignatures(sig).build(), IntentProblem.SIGNATURE_COUNT),
        Arguments.of(
            good.toBuilder().setSignatures(0, sig.toBuilder().setKeyid("")).build(),
            IntentProblem.KEYID_MALFORMED),
        Arguments.of(
            good.toBuilder().setSignatures(0, sig.toBuilder().setKeyid("Wallet\n")).build(),
            IntentProblem.KEYID_MALFORMED),
        Arguments.of(
            good.toBuilder().setSignatures(0, sig.toBuilder().setKeyid("stranger")).build(),
            IntentProblem.REQUESTER_UNKNOWN));
  }

  @ParameterizedTest
  @MethodSource("malformedEnvelopes")
  void refuses_malformed_envelope(SignedIntent signed, IntentProblem problem) {
    assertRefused(signed, problem);
  }

  private static <B> B changed(B builder, Consumer<B> change) {
    change.accept(builder);
    return builder;
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource({
    "malformedSigningIntents",
    "malformedEcdsaIntents",
    "malformedSchnorrIntents",
    "malformedKeyIntents",
    "malformedImportIntents",
    "malformedRefreshIntents",
    "malformedReshareIntents"
  })
  void refuses_malformed_intent(String name, SignedIntent signed, IntentProblem problem) {
    assertRefused(signed, problem);
  }

  static Stream<Arguments> malformedSigningIntents() {
    return Stream.of(
        signing("request id missing", b -> b.clearRequestId(), IntentProblem.REQUEST_ID_MALFORMED),
        signing(
            "request id upper case",
            b -> b.setRequestId(b.getRequestId().toUpperCase(Locale.ROOT)),
            IntentProblem.REQUEST_ID_MALFORMED),
        signing(
            "request id nil",
            b -> b.setRequestId("00000000-0000-0000-0000-000000000000"),
            IntentProblem.REQUEST_ID_MALFORMED),
        signing(
            "request id of version 4",
            b -> b.setRequestId("f47ac10b-58cc-4372-a567-0e02b2c3d479"),
            IntentProblem.REQUEST_ID_MALFORMED),
        signing(
            "request id with line end",
            b -> b.setRequestId(b.getRequestId() + "\n"),
            IntentProblem.REQUEST_ID_MALFORMED),
        signing("key missing", b -> b.clearKey(), IntentProblem.KEY_NAME_MALFORMED),
        signing("key no prefix", b -> b.setKey("treasury"), IntentProblem.KEY_NAME_MALFORMED),
        signing("key digit first", b -> b.setKey("keys/1a"), IntentProblem.KEY_NAME_MALFORMED),
        signing(
            "key too long",
            b -> b.setKey("keys/" + "a".repeat(64)),
            IntentProblem.KEY_NAME_MALFORMED),
        signing(
            "key below another", b -> b.setKey("keys/a/keys/b"), IntentProblem.KEY_NAME_MALFORMED),
        signing("scheme missing", b -> b.clearScheme(), IntentProblem.SCHEME_UNSUPPORTED),
        signing("scheme unknown", b -> b.setSchemeValue(77), IntentProblem.SCHEME_UNSUPPORTED),
        signing("path", b -> b.addDerivationPath(1), IntentProblem.DERIVATION_PATH_NOT_ALLOWED),
        signing("no message", b -> b.clearMessage(), IntentProblem.MESSAGE_MISSING),
        signing(
            "empty message", b -> b.setMessage(ByteString.EMPTY), IntentProblem.MESSAGE_MISSING),
        signing(
            "large message",
            b -> b.setMessage(ByteString.copyFrom(new byte[IntentVerifier.MAX_MESSAGE + 1])),
            IntentProblem.MESSAGE_TOO_LARGE),
        signing(
            "no installation",
            SigningIntent.Builder::clearInstallation,
            IntentProblem.INSTALLATION_MALFORMED),
        signing(
            "an installation that is no name",
            b -> b.setInstallation("Production"),
            IntentProblem.INSTALLATION_MALFORMED),
        signing(
            "a long installation",
            b -> b.setInstallation("x".repeat(64)),
            IntentProblem.INSTALLATION_MALFORMED),
        signing(
            "no fingerprint",
            SigningIntent.Builder::clearKeyFingerprint,
            IntentProblem.KEY_FINGERPRINT_LENGTH),
        signing(
            "a long fingerprint",
            b -> b.setKeyFingerprint(ByteString.copyFrom(new byte[17])),
            IntentProblem.KEY_FINGERPRINT_LENGTH),
        signing("long purpose", b -> b.setPurpose("x".repeat(257)), IntentProblem.PURPOSE_TOO_LONG),
        signing("control", b -> b.setPurpose("a\u0000b"), IntentProblem.PURPOSE_MALFORMED),
        signing("two lines", b -> b.setPurpose("a\nb"), IntentProblem.PURPOSE_MALFORMED),
        signing("reversed", b -> b.setPurpose("a\u202eb"), IntentProblem.PURPOSE_MALFORMED),
        signing("no expiry", b -> b.clearNotAfter(), IntentProblem.NOT_AFTER_MISSING),
        signing(
            "expiry zero",
            b -> b.setNotAfter(Timestamp.getDefaultInstance()),
            IntentProblem.NOT_AFTER_MALFORMED),
        signing(
            "expiry too late",
            b -> b.getNotAfterBuilder().setSeconds(Long.MAX_VALUE),
            IntentProblem.NOT_AFTER_MALFORMED),
        signing(
            "negative nanos",
            b -> b.getNotAfterBuilder().setNanos(-1),
            IntentProblem.NOT_AFTER_MALFORMED),
        signing(
            "too many nanos",
            b -> b.getNotAfterBuilder().setNanos(1_000_000_000),
            IntentProblem.NOT_AFTER_MALFORMED));
  }

  private static SigningIntent.Builder ecdsa() {
    return signing()
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .setDigest(ByteString.copyFrom(new byte[32]));
  }

  /** Every kind of payload, with nothing in it that an intent cannot have. */
  static Stream<Arguments> ecdsaPayloads() {
    ByteString bytes = ByteString.copyFromUtf8("bytes");
    return Stream.of(
        Arguments.of(PayloadKind.DIGEST, ecdsa(), ByteString.copyFrom(new byte[32])),
        Arguments.of(
            PayloadKind.ETHEREUM_TRANSACTION, ecdsa().setEthereumTransaction(bytes), bytes),
        Arguments.of(PayloadKind.ETHEREUM_MESSAGE, ecdsa().setEthereumMessage(bytes), bytes),
        Arguments.of(PayloadKind.ETHEREUM_TYPED_DATA, ecdsa().setEthereumTypedData("bytes"), bytes),
        Arguments.of(
            PayloadKind.BITCOIN_INPUT,
            ecdsa().setBitcoinInput(BitcoinInput.newBuilder().setPsbt(bytes)),
            bytes));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("ecdsaPayloads")
  void accepts_every_payload_of_ecdsa(
      PayloadKind kind, SigningIntent.Builder intent, ByteString content) throws Exception {
    List<Integer> path = List.of(0, 44, Integer.MAX_VALUE);
    VerifiedIntent verified =
        IntentVerifier.verify(WALLET_A.sign(intent.addAllDerivationPath(path).build()), REQUESTERS);
    assertThat(verified)
        .isInstanceOfSatisfying(
            VerifiedIntent.Signing.class,
            signing -> {
              assertThat(signing.scheme()).isEqualTo(Scheme.SCHEME_ECDSA_SECP256K1);
              assertThat(signing.payloadKind()).isEqualTo(kind);
              assertThat(signing.payload()).isEqualTo(content);
              assertThat(signing.derivationPath()).isEqualTo(path);
            });
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("ecdsaPayloads")
  void bls_signs_messages_only(PayloadKind kind, SigningIntent.Builder intent, ByteString content) {
    assertRefused(
        WALLET_A.sign(intent.setScheme(Scheme.SCHEME_BLS12381).build()),
        IntentProblem.PAYLOAD_NOT_FOR_SCHEME);
  }

  static Stream<Arguments> malformedEcdsaIntents() {
    ByteString large = ByteString.copyFrom(new byte[IntentVerifier.MAX_MESSAGE + 1]);
    return Stream.of(
        ecdsa("no payload", b -> b.clearPayload(), IntentProblem.MESSAGE_MISSING),
        ecdsa(
            "message",
            b -> b.setMessage(ByteString.copyFromUtf8("x")),
            IntentProblem.PAYLOAD_NOT_FOR_SCHEME),
        ecdsa("no digest", b -> b.setDigest(ByteString.EMPTY), IntentProblem.MESSAGE_MISSING),
        ecdsa(
            "digest of 31 bytes",
            b -> b.setDigest(ByteString.copyFrom(new byte[31])),
            IntentProblem.DIGEST_LENGTH),
        ecdsa(
            "digest of 33 bytes",
            b -> b.setDigest(ByteString.copyFrom(new byte[33])),
            IntentProblem.DIGEST_LENGTH),
        ecdsa("large digest", b -> b.setDigest(large), IntentProblem.MESSAGE_TOO_LARGE),
        ecdsa(
            "no transaction",
            b -> b.setEthereumTransaction(ByteString.EMPTY),
            IntentProblem.MESSAGE_MISSING),
        ecdsa(
            "large transaction",
            b -> b.setEthereumTransaction(large),
            IntentProblem.MESSAGE_TOO_LARGE),
        ecdsa(
            "no ethereum message",
            b -> b.setEthereumMessage(ByteString.EMPTY),
            IntentProblem.MESSAGE_MISSING),
        ecdsa(
            "large ethereum message",
            b -> b.setEthereumMessage(large),
            IntentProblem.MESSAGE_TOO_LARGE),
        ecdsa("no typed data", b -> b.setEthereumTypedData(""), IntentProblem.MESSAGE_MISSING),
        ecdsa(
            "large typed data, counted in bytes",
            b -> b.setEthereumTypedData("ü".repeat(IntentVerifier.MAX_MESSAGE / 2) + "x"),
            IntentProblem.MESSAGE_TOO_LARGE),
        ecdsa(
            "no psbt",
            b -> b.setBitcoinInput(BitcoinInput.newBuilder().setInput(1)),
            IntentProblem.MESSAGE_MISSING),
        ecdsa(
            "large psbt",
            b -> b.setBitcoinInput(BitcoinInput.newBuilder().setPsbt(large)),
            IntentProblem.MESSAGE_TOO_LARGE),
        ecdsa(
            "unknown field of bitcoin input",
            b ->
                b.setBitcoinInput(
                    BitcoinInput.newBuilder()
                        .setPsbt(ByteString.copyFromUtf8("x"))
                        .setUnknownFields(unknownField())),
            IntentProblem.PAYLOAD_UNKNOWN_FIELD),
        ecdsa(
            "hardened path",
            b -> b.addDerivationPath(0).addDerivationPath(Integer.MIN_VALUE),
            IntentProblem.DERIVATION_PATH_HARDENED),
        ecdsa(
            "path of 2^32 - 1",
            b -> b.addDerivationPath(-1),
            IntentProblem.DERIVATION_PATH_HARDENED),
        ecdsa(
            "long path",
            b -> b.addAllDerivationPath(Collections.nCopies(11, 0)),
            IntentProblem.DERIVATION_PATH_TOO_LONG));
  }

  private static UnknownFieldSet unknownField() {
    return UnknownFieldSet.newBuilder()
        .addField(7, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
        .build();
  }

  private static Arguments ecdsa(
      String name, Consumer<SigningIntent.Builder> change, IntentProblem problem) {
    return Arguments.of(
        "ECDSA signing: " + name, WALLET_A.sign(changed(ecdsa(), change).build()), problem);
  }

  private static SigningIntent.Builder bip340() {
    return ecdsa().setScheme(Scheme.SCHEME_BIP340_SECP256K1);
  }

  private static TaprootOutput.Builder output(int rootBytes) {
    return TaprootOutput.newBuilder().setMerkleRoot(ByteString.copyFrom(new byte[rootBytes]));
  }

  /** Which key signs is in the intent, whole. */
  @Test
  void names_the_key_that_signs() throws Exception {
    List<Integer> path = List.of(86, 0);
    assertThat(target(bip340())).isEqualTo(KeyTarget.SELF);
    assertThat(target(bip340().addAllDerivationPath(path))).isEqualTo(KeyTarget.at(path));
    for (int bytes : new int[] {0, KeyTarget.MERKLE_ROOT_BYTES}) {
      assertThat(target(bip340().addAllDerivationPath(path).setTaproot(output(bytes))))
          .isEqualTo(new KeyTarget(path, Optional.of(ByteString.copyFrom(new byte[bytes]))));
    }
    assertThat(target(signing().setScheme(Scheme.SCHEME_ED25519))).isEqualTo(KeyTarget.SELF);
  }

  @Test
  void accepts_a_solana_transaction() throws Exception {
    ByteString message = ByteString.copyFromUtf8("bytes");
    assertThat(
            IntentVerifier.verify(
                WALLET_A.sign(
                    signing()
                        .setScheme(Scheme.SCHEME_ED25519)
                        .setSolanaTransaction(message)
                        .build()),
                REQUESTERS))
        .isInstanceOfSatisfying(
            VerifiedIntent.Signing.class,
            signing -> {
              assertThat(signing.payloadKind()).isEqualTo(PayloadKind.SOLANA_TRANSACTION);
              assertThat(signing.payload()).isEqualTo(message);
            });
  }

  private static KeyTarget target(SigningIntent.Builder intent) throws Exception {
    return ((VerifiedIntent.Signing)
            IntentVerifier.verify(WALLET_A.sign(intent.build()), REQUESTERS))
        .target();
  }

  static Stream<Arguments> malformedSchnorrIntents() {
    ByteString bytes = ByteString.copyFromUtf8("x");
    return Stream.of(
        bip340(
            "root of 31 bytes", b -> b.setTaproot(output(31)), IntentProblem.TAPROOT_ROOT_LENGTH),
        bip340(
            "root of 33 bytes", b -> b.setTaproot(output(33)), IntentProblem.TAPROOT_ROOT_LENGTH),
        bip340(
            "unknown field of output",
            b -> b.setTaproot(output(0).setUnknownFields(unknownField())),
            IntentProblem.PAYLOAD_UNKNOWN_FIELD),
        bip340("message", b -> b.setMessage(bytes), IntentProblem.PAYLOAD_NOT_FOR_SCHEME),
        bip340("digest of 1 byte", b -> b.setDigest(bytes), IntentProblem.DIGEST_LENGTH),
        bip340(
            "ethereum message",
            b -> b.setEthereumMessage(bytes),
            IntentProblem.PAYLOAD_NOT_FOR_SCHEME),
        ed25519("output", b -> b.setTaproot(output(0)), IntentProblem.TAPROOT_NOT_ALLOWED),
        ed25519("path", b -> b.addDerivationPath(0), IntentProblem.DERIVATION_PATH_NOT_ALLOWED),
        ed25519("digest of 1 byte", b -> b.setDigest(bytes), IntentProblem.DIGEST_LENGTH),
        ed25519(
            "ethereum message",
            b -> b.setEthereumMessage(bytes),
            IntentProblem.PAYLOAD_NOT_FOR_SCHEME),
        ed25519(
            "no solana transaction",
            b -> b.setSolanaTransaction(ByteString.EMPTY),
            IntentProblem.MESSAGE_MISSING),
        ecdsa(
            "solana transaction",
            b -> b.setSolanaTransaction(bytes),
            IntentProblem.PAYLOAD_NOT_FOR_SCHEME),
        ecdsa("output", b -> b.setTaproot(output(0)), IntentProblem.TAPROOT_NOT_ALLOWED));
  }

  private static Arguments bip340(
      String name, Consumer<SigningIntent.Builder> change, IntentProblem problem) {
    return Arguments.of(
        "BIP-340 signing: " + name, WALLET_A.sign(changed(bip340(), change).build()), problem);
  }

  private static Arguments ed25519(
      String name, Consumer<SigningIntent.Builder> change, IntentProblem problem) {
    SigningIntent.Builder ed25519 = signing().setScheme(Scheme.SCHEME_ED25519);
    return Arguments.of(
        "Ed25519 signing: " + name, WALLET_A.sign(changed(ed25519, change).build()), problem);
  }

  private static RefreshIntent.Builder refresh() {
    return RefreshIntent.newBuilder()
        .setRequestId("01d1a913-3180-7c3d-8a55-1f2e3d4c5b6a")
        .setKey("keys/treasury-1")
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .setEpoch(1)
        .setInstallation("production-eu")
        .setKeyFingerprint(FINGERPRINT)
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOT_AFTER.getEpochSecond()));
  }

  @Test
  void accepts_refresh_intent() throws Exception {
    SignedIntent signed = WALLET_A.sign(refresh().setPurpose("yearly").build());
    assertThat(signed.getPayloadType())
        .isEqualTo("application/vnd.coterie.refresh-intent.v1+protobuf");
    assertThat(IntentVerifier.verify(signed, REQUESTERS))
        .isInstanceOfSatisfying(
            VerifiedIntent.KeyRefresh.class,
            refresh -> {
              assertThat(refresh.epoch()).isEqualTo(1);
              assertThat(refresh.key()).isEqualTo("keys/treasury-1");
              assertThat(refresh.purpose()).isEqualTo("yearly");
              assertThat(refresh.requester()).isEqualTo("wallet-a");
              assertThat(refresh.digest()).isEqualTo(IntentVerifier.digest(signed.getPayload()));
            });
  }

  private static ReshareIntent.Builder reshare() {
    return ReshareIntent.newBuilder()
        .setRequestId("01d1a913-3180-7c3d-8a55-1f2e3d4c5b6a")
        .setKey("keys/treasury-1")
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .setEpoch(3)
        .setThreshold(2)
        .addAllParties(List.of("alpha", "delta", "echo"))
        .setPublicKey(ByteString.copyFrom(new byte[33]))
        .setInstallation("production-eu")
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOT_AFTER.getEpochSecond()));
  }

  @Test
  void accepts_reshare_intent() throws Exception {
    SignedIntent signed = WALLET_B.sign(reshare().build());
    assertThat(signed.getPayloadType())
        .isEqualTo("application/vnd.coterie.reshare-intent.v1+protobuf");
    assertThat(IntentVerifier.verify(signed, REQUESTERS))
        .isInstanceOfSatisfying(
            VerifiedIntent.KeyReshare.class,
            reshare -> {
              assertThat(reshare.epoch()).isEqualTo(3);
              assertThat(reshare.threshold()).isEqualTo(2);
              assertThat(reshare.parties()).containsExactly("alpha", "delta", "echo");
              assertThat(reshare.publicKey()).isEqualTo(ByteString.copyFrom(new byte[33]));
            });
  }

  static Stream<Arguments> malformedReshareIntents() {
    return Stream.of(
        reshare("epoch 0", b -> b.setEpoch(0), IntentProblem.EPOCH_OUT_OF_RANGE),
        reshare("no threshold", b -> b.clearThreshold(), IntentProblem.THRESHOLD_OUT_OF_RANGE),
        reshare("threshold 4", b -> b.setThreshold(4), IntentProblem.THRESHOLD_OUT_OF_RANGE),
        reshare("no parties", b -> b.clearParties(), IntentProblem.PARTY_COUNT),
        reshare("a party twice", b -> b.addParties("alpha"), IntentProblem.PARTY_DUPLICATE),
        reshare("bad party", b -> b.addParties("A"), IntentProblem.PARTY_NAME_MALFORMED),
        reshare("no public key", b -> b.clearPublicKey(), IntentProblem.PUBLIC_KEY_LENGTH),
        reshare(
            "long public key",
            b -> b.setPublicKey(ByteString.copyFrom(new byte[97])),
            IntentProblem.PUBLIC_KEY_LENGTH),
        reshare("no scheme", b -> b.clearScheme(), IntentProblem.SCHEME_UNSUPPORTED),
        reshare("no expiry", b -> b.clearNotAfter(), IntentProblem.NOT_AFTER_MISSING));
  }

  private static Arguments reshare(
      String name, Consumer<ReshareIntent.Builder> change, IntentProblem problem) {
    return Arguments.of(
        "reshare: " + name, WALLET_A.sign(changed(reshare(), change).build()), problem);
  }

  private static final List<ByteString> SHARES =
      List.of(ByteString.copyFromUtf8("of alpha"), ByteString.copyFromUtf8("of bravo"));

  private static ImportIntent.Builder imported() {
    return ImportIntent.newBuilder()
        .setRequestId("01d1a913-3180-7c3d-8a55-1f2e3d4c5b6a")
        .setKey("keys/treasury-1")
        .setScheme(Scheme.SCHEME_ED25519_EXACT)
        .setThreshold(2)
        .addAllParties(List.of("alpha", "bravo"))
        .setPublicKey(ByteString.copyFrom(new byte[32]))
        .addAllShareDigests(SHARES.stream().map(IntentVerifier::digest).toList())
        .setInstallation("production-eu")
        .setNotAfter(Timestamp.newBuilder().setSeconds(NOT_AFTER.getEpochSecond()));
  }

  @Test
  void accepts_import_intent_with_its_own_shares() throws Exception {
    SignedIntent signed = WALLET_A.sign(imported().build());
    assertThat(signed.getPayloadType())
        .isEqualTo("application/vnd.coterie.import-intent.v1+protobuf");
    VerifiedIntent.KeyImport intent =
        (VerifiedIntent.KeyImport) IntentVerifier.verify(signed, REQUESTERS);
    assertThat(intent.parties()).containsExactly("alpha", "bravo");
    assertThat(intent.shares()).isEmpty();
    assertThat(intent.with(SHARES).shares()).isEqualTo(SHARES);
    assertThat(intent.isShareOf("bravo", SHARES.get(1))).isTrue();
    assertThat(intent.isShareOf("alpha", SHARES.get(1))).isFalse();
    assertThat(intent.isShareOf("charlie", SHARES.get(1))).isFalse();
    for (List<ByteString> others : List.of(SHARES.reversed(), SHARES.subList(0, 1))) {
      assertThatThrownBy(() -> intent.with(others))
          .isInstanceOfSatisfying(
              IntentException.class,
              e -> assertThat(e.problem()).isEqualTo(IntentProblem.SHARES_OTHER));
    }
  }

  static Stream<Arguments> malformedImportIntents() {
    return Stream.of(
        imported(
            "frost", b -> b.setScheme(Scheme.SCHEME_ED25519), IntentProblem.IMPORT_NOT_FOR_SCHEME),
        imported("no scheme", b -> b.clearScheme(), IntentProblem.SCHEME_UNSUPPORTED),
        imported(
            "threshold 1", b -> b.setThreshold(1), IntentProblem.IMPORT_THRESHOLD_OUT_OF_RANGE),
        imported("one party", b -> b.clearParties(), IntentProblem.PARTY_COUNT),
        imported(
            "short public key",
            b -> b.setPublicKey(ByteString.copyFrom(new byte[31])),
            IntentProblem.PUBLIC_KEY_LENGTH),
        imported(
            "a party without share",
            b -> b.addParties("charlie"),
            IntentProblem.SHARE_DIGESTS_MALFORMED),
        imported(
            "a digest of no digest's length",
            b -> b.setShareDigests(1, ByteString.copyFrom(new byte[31])),
            IntentProblem.SHARE_DIGESTS_MALFORMED));
  }

  private static Arguments imported(
      String name, Consumer<ImportIntent.Builder> change, IntentProblem problem) {
    return Arguments.of(
        "import: " + name, WALLET_A.sign(changed(imported(), change).build()), problem);
  }

  @Test
  void exact_signatures_are_of_messages_of_eleven_blocks() throws Exception {
    for (int length : new int[] {IntentVerifier.MAX_EXACT_MESSAGE, 1}) {
      SigningIntent intent =
          signing()
              .setScheme(Scheme.SCHEME_ED25519_EXACT)
              .setMessage(ByteString.copyFrom(new byte[length]))
              .build();
      assertThat(IntentVerifier.verify(WALLET_A.sign(intent), REQUESTERS)).isNotNull();
    }
    assertRefused(
        WALLET_A.sign(
            signing()
                .setScheme(Scheme.SCHEME_ED25519_EXACT)
                .setMessage(ByteString.copyFrom(new byte[IntentVerifier.MAX_EXACT_MESSAGE + 1]))
                .build()),
        IntentProblem.MESSAGE_TOO_LARGE_FOR_SCHEME);
  }

  static Stream<Arguments> malformedRefreshIntents() {
    return Stream.of(
        refresh("epoch 0", b -> b.setEpoch(0), IntentProblem.EPOCH_OUT_OF_RANGE),
        refresh("epoch as negative", b -> b.setEpoch(-1), IntentProblem.EPOCH_OUT_OF_RANGE),
        refresh(
            "epoch without next",
            b -> b.setEpoch(Integer.MAX_VALUE),
            IntentProblem.EPOCH_OUT_OF_RANGE),
        refresh("no key", b -> b.clearKey(), IntentProblem.KEY_NAME_MALFORMED),
        refresh("no scheme", b -> b.clearScheme(), IntentProblem.SCHEME_UNSUPPORTED),
        refresh("no request id", b -> b.clearRequestId(), IntentProblem.REQUEST_ID_MALFORMED),
        refresh("no expiry", b -> b.clearNotAfter(), IntentProblem.NOT_AFTER_MISSING),
        refresh("two lines", b -> b.setPurpose("a\nb"), IntentProblem.PURPOSE_MALFORMED),
        refresh(
            "unknown field",
            b -> b.setUnknownFields(unknownField()),
            IntentProblem.PAYLOAD_UNKNOWN_FIELD));
  }

  private static Arguments refresh(
      String name, Consumer<RefreshIntent.Builder> change, IntentProblem problem) {
    return Arguments.of(
        "refresh: " + name, WALLET_A.sign(changed(refresh(), change).build()), problem);
  }

  /** No intent of one type passes as one of another, even if its requester says so. */
  @Test
  void refuses_every_payload_under_every_other_type() {
    SignedBy requester = new SignedBy(WALLET_A_RAW);
    List<ByteString> payloads =
        List.of(
            signing().build().toByteString(),
            ecdsa().build().toByteString(),
            keyCreation().build().toByteString(),
            refresh().build().toByteString(),
            reshare().build().toByteString());
    List<String> types =
        List.of(
            Dsse.SIGNING_TYPE,
            Dsse.SIGNING_TYPE,
            Dsse.KEY_TYPE,
            Dsse.REFRESH_TYPE,
            Dsse.RESHARE_TYPE);
    for (int i = 0; i < payloads.size(); i++) {
      for (String type : types) {
        SignedIntent signed = requester.sign(type, payloads.get(i));
        if (type.equals(types.get(i))) {
          assertThatCode(() -> IntentVerifier.verify(signed, REQUESTERS))
              .doesNotThrowAnyException();
        } else {
          assertThatThrownBy(() -> IntentVerifier.verify(signed, REQUESTERS))
              .isInstanceOf(IntentException.class);
        }
      }
    }
  }

  private static Arguments signing(
      String name, Consumer<SigningIntent.Builder> change, IntentProblem problem) {
    return Arguments.of(
        "signing: " + name, WALLET_A.sign(changed(signing(), change).build()), problem);
  }

  static Stream<Arguments> malformedKeyIntents() {
    return Stream.of(
        key("threshold 0", b -> b.setThreshold(0), IntentProblem.THRESHOLD_OUT_OF_RANGE),
        key("threshold above n", b -> b.setThreshold(4), IntentProblem.THRESHOLD_OUT_OF_RANGE),
        key("threshold as negative", b -> b.setThreshold(-1), IntentProblem.THRESHOLD_OUT_OF_RANGE),
        key("no parties", b -> b.clearParties(), IntentProblem.PARTY_COUNT),
        key(
            "21 parties",
            b -> {
              b.clearParties();
              for (int i = 0; i < 21; i++) {
                b.addParties("p" + i);
              }
            },
            IntentProblem.PARTY_COUNT),
        key("party empty", b -> b.addParties(""), IntentProblem.PARTY_NAME_MALFORMED),
        key("party odd", b -> b.addParties("Delta"), IntentProblem.PARTY_NAME_MALFORMED),
        key("party twice", b -> b.addParties("alpha"), IntentProblem.PARTY_DUPLICATE));
  }

  private static Arguments key(
      String name, Consumer<KeyIntent.Builder> change, IntentProblem problem) {
    return Arguments.of(
        "key: " + name, WALLET_A.sign(changed(keyCreation(), change).build()), problem);
  }

  @Test
  void refuses_fields_hidden_in_the_encoding() {
    SignedBy requester = new SignedBy(WALLET_A_RAW);
    ByteString good = signing().build().toByteString();
    ByteString secondKey =
        SigningIntent.newBuilder().setKey("keys/treasury-2").build().toByteString();
    assertRefused(
        requester.sign(Dsse.SIGNING_TYPE, good.concat(secondKey)),
        IntentProblem.PAYLOAD_NOT_MINIMAL);
    // As long as the canonical encoding, and not it.
    ByteString reordered =
        signing()
            .clearRequestId()
            .build()
            .toByteString()
            .concat(
                SigningIntent.newBuilder()
                    .setRequestId(signing().getRequestId())
                    .build()
                    .toByteString());
    assertThat(reordered.size()).isEqualTo(good.size());
    assertRefused(requester.sign(Dsse.SIGNING_TYPE, reordered), IntentProblem.PAYLOAD_NOT_MINIMAL);
    // A path of one number that is not packed saves a byte, which the scheme's number wastes.
    SigningIntent derived =
        signing().setScheme(Scheme.SCHEME_ECDSA_SECP256K1).addDerivationPath(1).build();
    ByteString slack =
        ByteString.copyFrom(
                new byte[] {
                  SigningIntent.SCHEME_FIELD_NUMBER << 3,
                  (byte) (0x80 | Scheme.SCHEME_ECDSA_SECP256K1_VALUE),
                  0,
                  SigningIntent.DERIVATION_PATH_FIELD_NUMBER << 3,
                  1
                })
            .concat(derived.toBuilder().clearScheme().clearDerivationPath().build().toByteString());
    assertThat(slack.size()).isEqualTo(derived.getSerializedSize());
    assertRefused(requester.sign(Dsse.SIGNING_TYPE, slack), IntentProblem.PAYLOAD_NOT_MINIMAL);
    // Field 18.
    ByteString unknown = ByteString.copyFrom(new byte[] {(byte) 0x90, 1, 1});
    assertRefused(
        requester.sign(Dsse.SIGNING_TYPE, good.concat(unknown)),
        IntentProblem.PAYLOAD_UNKNOWN_FIELD);
    SigningIntent nested =
        signing()
            .setNotAfter(
                signing().getNotAfter().toBuilder()
                    .setUnknownFields(
                        UnknownFieldSet.newBuilder()
                            .addField(7, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
                            .build()))
            .build();
    assertRefused(WALLET_A.sign(nested), IntentProblem.PAYLOAD_UNKNOWN_FIELD);
    assertRefused(
        requester.sign(Dsse.SIGNING_TYPE, good.substring(0, good.size() - 1)),
        IntentProblem.PAYLOAD_UNDECODABLE);
  }

  @Test
  void random_payloads_of_a_requester_are_refused_and_nothing_else_is_thrown() {
    Random random = new Random(20260101);
    SignedBy requester = new SignedBy(WALLET_A_RAW);
    for (int i = 0; i < 500; i++) {
      byte[] payload = new byte[1 + random.nextInt(300)];
      random.nextBytes(payload);
      SignedIntent signed =
          requester.sign(
              List.of(Dsse.SIGNING_TYPE, Dsse.KEY_TYPE, Dsse.REFRESH_TYPE, Dsse.RESHARE_TYPE)
                  .get(random.nextInt(4)),
              ByteString.copyFrom(payload));
      assertThatThrownBy(() -> IntentVerifier.verify(signed, REQUESTERS))
          .isInstanceOf(IntentException.class);
    }
  }

  @Test
  void directory_refuses_one_name_or_one_key_twice() {
    Requester a = new Requester("a", ED25519.getPublic());
    assertThatThrownBy(
            () -> new RequesterDirectory(List.of(a, new Requester("b", ED25519.getPublic()))))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(
            () -> new RequesterDirectory(List.of(a, new Requester("a", P256.getPublic()))))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void keys_are_read_from_pem_and_others_refused() {
    for (KeyPair pair : List.of(ED25519, P256)) {
      PublicKey read = RequesterKeys.publicKey(pem("PUBLIC KEY", pair.getPublic().getEncoded()));
      assertThat(read).isEqualTo(pair.getPublic());
      assertThat(
              RequesterKeys.privateKey(
                  pem("PRIVATE KEY", pair.getPrivate().getEncoded())
                      .getBytes(StandardCharsets.US_ASCII)))
          .isEqualTo(pair.getPrivate());
    }
    String good = pem("PUBLIC KEY", ED25519.getPublic().getEncoded());
    byte[] trailing =
        Arrays.copyOf(
            ED25519.getPublic().getEncoded(), ED25519.getPublic().getEncoded().length + 1);
    byte[] offCurve = P256.getPublic().getEncoded();
    offCurve[offCurve.length - 1] ^= 1;
    byte[] noPoint = ED25519.getPublic().getEncoded();
    // RFC 8032, 5.1.3: y = 2 has no x.
    Arrays.fill(noPoint, noPoint.length - 32, noPoint.length, (byte) 0);
    noPoint[noPoint.length - 32] = 2;
    byte[] identity = noPoint.clone();
    identity[identity.length - 32] = 1;
    for (String bad :
        List.of(
            "",
            pem("PUBLIC KEY", noPoint),
            pem("PUBLIC KEY", identity),
            good + good,
            "text\n" + good,
            good.replace("PUBLIC KEY", "PRIVATE KEY"),
            good.replace("-----END", "!-----END"),
            pem("PUBLIC KEY", trailing),
            pem("PUBLIC KEY", offCurve),
            pem("PUBLIC KEY", P384.getPublic().getEncoded()),
            pem("PUBLIC KEY", keyPair("X25519", null).getPublic().getEncoded()),
            pem("PUBLIC KEY", keyPair("Ed448", null).getPublic().getEncoded()),
            pem("PUBLIC KEY", new byte[5000]))) {
      assertThatThrownBy(() -> RequesterKeys.publicKey(bad))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> new IntentSigner("wallet-a", P384.getPrivate()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Requester("Wallet A", ED25519.getPublic()))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private static String pem(String label, byte[] der) {
    return "-----BEGIN "
        + label
        + "-----\n"
        + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der)
        + "\n-----END "
        + label
        + "-----\n";
  }

  private static void assertRefused(SignedIntent signed, IntentProblem problem) {
    assertThatThrownBy(() -> IntentVerifier.verify(signed, REQUESTERS))
        .isInstanceOfSatisfying(
            IntentException.class,
            e -> {
              assertThat(e.problem()).isEqualTo(problem);
              assertThat(e.toCustodyException().reason()).isEqualTo(problem.reason());
            });
  }

  @Test
  void unknown_directory_entry_is_not_an_exception() {
    assertThat(REQUESTERS.apply("nobody")).isEqualTo(Optional.empty());
  }
}
