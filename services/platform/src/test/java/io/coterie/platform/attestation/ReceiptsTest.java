package io.coterie.platform.attestation;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Signature;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The one envelope of receipts, and everything that is none. */
class ReceiptsTest {
  private static final KeyPair NOW = pair();
  private static final KeyPair BEFORE = pair();
  private static final KeyPair LEFT = pair();
  private static final KeyPair OTHER = pair();

  static final Receipt NEVER =
      Receipt.newBuilder()
          .setKind(Receipt.Kind.NEVER)
          .setInstallation("test")
          .setKey("keys/hot-1")
          .setKeyFingerprint(ByteString.copyFrom(new byte[16]))
          .setReshareEpoch(4)
          .setRequester("wallet")
          .setRequestId("01a3185c-5000-7000-8000-000000000001")
          .setParty(2)
          .build();

  private static final Receipt REFUSED =
      NEVER.toBuilder()
          .setKind(Receipt.Kind.REFUSED)
          .setIntentDigest(ByteString.copyFrom(new byte[32]))
          .setReason(RefusalReason.REFUSAL_REASON_ON_HOLD.name())
          .setUnixMs(1_800_000_000_000L)
          .build();

  private static final Roster ROSTER =
      new Roster(
          "test",
          1,
          List.of(member("p1", 1, OTHER), member("p2", 2, NOW)),
          List.of(
              new FormerParty("p2", 2, raw(BEFORE), 4), new FormerParty("p4", 4, raw(LEFT), 4)));

  private static KeyPair pair() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static byte[] raw(KeyPair evidence) {
    byte[] spki = evidence.getPublic().getEncoded();
    return Arrays.copyOfRange(spki, spki.length - 32, spki.length);
  }

  private static Member member(String name, int id, KeyPair evidence) {
    return new Member(
        name, Member.Role.PARTY, id, "eu", new UUID(1, id), 1, new byte[33], raw(evidence));
  }

  /** As docs/protocols/session.md has it, by an implementation that is not the core's. */
  private static ByteString sign(KeyPair evidence, ByteString statement) {
    try {
      Signature signer = Signature.getInstance("Ed25519");
      signer.initSign(evidence.getPrivate());
      signer.update("coterie/statement-signature/1".getBytes(US_ASCII));
      signer.update(MessageDigest.getInstance("SHA-256").digest(statement.toByteArray()));
      return ByteString.copyFrom(signer.sign());
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static SignedReceipt signed(KeyPair evidence, Receipt receipt) {
    return Receipts.signed(receipt, sign(evidence, Receipts.statement(receipt)));
  }

  private static boolean isSigned(SignedReceipt envelope) {
    return Receipts.isSigned(envelope, Receipts.read(envelope).orElseThrow(), ROSTER);
  }

  @Test
  void a_receipt_is_signed_as_dsse_says() {
    SignedReceipt envelope = signed(NOW, NEVER);
    assertThat(Receipts.read(envelope)).contains(NEVER);
    assertThat(isSigned(envelope)).isTrue();
    assertThat(Receipts.statement(NEVER))
        .isEqualTo(
            ByteString.copyFromUtf8(
                    "DSSEv1 43 application/vnd.coterie.receipt.v1+protobuf "
                        + NEVER.getSerializedSize()
                        + " ")
                .concat(NEVER.toByteString()));
    assertThat(envelope.getSerializedSize()).isLessThan(Receipts.MAX_BYTES);
  }

  @Test
  void a_member_is_believed_by_its_present_evidence_key_alone() {
    for (int epoch : new int[] {0, 4, 5}) {
      Receipt receipt = NEVER.toBuilder().setReshareEpoch(epoch).build();
      assertThat(isSigned(signed(NOW, receipt))).isTrue();
      assertThat(isSigned(signed(BEFORE, receipt))).as("a key that it has lost").isFalse();
      assertThat(isSigned(signed(OTHER, receipt))).as("the key of another party").isFalse();
    }
    Receipt stranger = NEVER.toBuilder().setParty(3).build();
    assertThat(isSigned(signed(NOW, stranger))).isFalse();
  }

  @Test
  void a_party_that_has_left_is_believed_by_its_evidence_key_up_to_its_last_epoch() {
    for (int epoch : new int[] {0, 4}) {
      Receipt receipt = NEVER.toBuilder().setParty(4).setReshareEpoch(epoch).build();
      assertThat(isSigned(signed(LEFT, receipt))).isTrue();
      assertThat(isSigned(signed(OTHER, receipt))).isFalse();
    }
    assertThat(isSigned(signed(LEFT, NEVER.toBuilder().setParty(4).setReshareEpoch(5).build())))
        .isFalse();
  }

  @Test
  void a_refusal_is_the_word_of_a_member_on_that_moment() {
    SignedReceipt envelope = signed(NOW, REFUSED);
    assertThat(Receipts.read(envelope)).contains(REFUSED);
    assertThat(isSigned(envelope)).isTrue();
    assertThat(isSigned(signed(BEFORE, REFUSED))).as("a key that it has lost").isFalse();
    assertThat(isSigned(signed(LEFT, REFUSED.toBuilder().setParty(4).build())))
        .as("a party that has left gets no orders")
        .isFalse();
    assertThat(REFUSED)
        .isEqualTo(
            Receipts.refused(
                new Receipts.Refusable(
                    new Receipts.Subject(
                        "test",
                        NEVER.getKey(),
                        NEVER.getKeyFingerprint(),
                        4,
                        "wallet",
                        NEVER.getRequestId()),
                    REFUSED.getIntentDigest()),
                RefusalReason.REFUSAL_REASON_ON_HOLD,
                1_800_000_000_000L,
                2));
  }

  @Test
  void no_other_statement_of_a_party_is_a_receipt() {
    SignedReceipt envelope = signed(NOW, NEVER);
    for (ByteString statement :
        List.of(
            NEVER.toByteString(),
            ByteString.copyFromUtf8("coterie/completed/2").concat(NEVER.toByteString()),
            ByteString.copyFromUtf8("coterie/current/1").concat(NEVER.toByteString()))) {
      assertThat(isSigned(Receipts.signed(NEVER, sign(NOW, statement)))).isFalse();
    }
    SignedReceipt.Builder cut = envelope.toBuilder();
    cut.getSignaturesBuilder(0).setSig(envelope.getSignatures(0).getSig().substring(1));
    assertThat(isSigned(cut.build())).isFalse();
  }

  record Bad(String what, SignedReceipt envelope) {
    @Override
    public String toString() {
      return what;
    }
  }

  private static Bad content(String what, UnaryOperator<Receipt.Builder> change) {
    return new Bad(what, signed(NOW, change.apply(NEVER.toBuilder()).build()));
  }

  private static Bad refusal(String what, UnaryOperator<Receipt.Builder> change) {
    return new Bad(what, signed(NOW, change.apply(REFUSED.toBuilder()).build()));
  }

  private static Bad envelope(String what, UnaryOperator<SignedReceipt.Builder> change) {
    return new Bad(what, change.apply(signed(NOW, NEVER).toBuilder()).build());
  }

  private static final UnknownFieldSet UNKNOWN =
      UnknownFieldSet.newBuilder()
          .addField(31, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
          .build();

  static Stream<Bad> malformed() {
    ByteString digest = ByteString.copyFrom(new byte[32]);
    return Stream.of(
        content("no kind", r -> r.clearKind()),
        content("a kind of a later version", r -> r.setKindValue(4)),
        content("a digest in a NEVER", r -> r.setIntentDigest(digest)),
        content("SIGNED without a digest", r -> r.setKind(Receipt.Kind.SIGNED)),
        content("a reason in a NEVER", r -> r.setReason(REFUSED.getReason())),
        content("a time in a NEVER", r -> r.setUnixMs(1)),
        content(
            "a reason in a SIGNED",
            r ->
                r.setKind(Receipt.Kind.SIGNED)
                    .setIntentDigest(digest)
                    .setReason(REFUSED.getReason())),
        refusal("REFUSED with half a digest", r -> r.setIntentDigest(digest.substring(16))),
        refusal("REFUSED without a reason", Receipt.Builder::clearReason),
        refusal("no reason but a text", r -> r.setReason("NOT SIGNED: pay again")),
        refusal("a reason without a meaning", r -> r.setReason("REFUSAL_REASON_UNSPECIFIED")),
        refusal("a reason of no version", r -> r.setReason("UNRECOGNIZED")),
        refusal("REFUSED without a time", Receipt.Builder::clearUnixMs),
        refusal("a time before all clocks", r -> r.setUnixMs(-1)),
        refusal("a time after all clocks", r -> r.setUnixMs(253_402_300_800_000L)),
        content("a field of a later version", r -> r.setUnknownFields(UNKNOWN)),
        content("no installation", r -> r.clearInstallation()),
        content("a key that is none", r -> r.setKey("hot-1")),
        content("half a fingerprint", r -> r.setKeyFingerprint(digest.substring(24))),
        content("an epoch that no reshare makes", r -> r.setReshareEpoch(1)),
        content("no requester", r -> r.clearRequester()),
        content("no request id", r -> r.setRequestId("1")),
        content("no party", r -> r.clearParty()),
        content("a party that cannot be", r -> r.setParty(65_536)),
        envelope("another type", e -> e.setPayloadType("application/json")),
        envelope("no signature", e -> e.clearSignatures()),
        envelope("two signatures", e -> e.addSignatures(e.getSignatures(0))),
        envelope("bytes that are no receipt", e -> e.setPayload(digest)),
        envelope(
            "a field twice",
            e -> e.setPayload(e.getPayload().concat(ByteString.copyFrom(new byte[] {72, 2})))),
        envelope("too many bytes", e -> e.setPayload(ByteString.copyFrom(new byte[1025]))),
        envelope("a field of a later envelope", e -> e.setUnknownFields(UNKNOWN)),
        envelope(
            "the name of another party",
            e -> e.setSignatures(0, e.getSignatures(0).toBuilder().setKeyid("1"))));
  }

  @ParameterizedTest
  @MethodSource
  void malformed(Bad bad) {
    assertThat(Receipts.read(bad.envelope())).isEmpty();
  }
}
