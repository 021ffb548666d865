package io.coterie.platform.attestation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.error.SessionFailures;
import io.coterie.platform.intent.Dsse;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.Requester;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.ReceiptSignature;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.List;
import java.util.Optional;

/**
 * Makes and reads the DSSE envelopes of receipts. A party signs the statement {@code
 * PAE(payloadType, payload)} with its evidence key. It begins with "DSSEv1" and so is none of the
 * party's other statements, which begin with "coterie/".
 */
public final class Receipts {
  /** DSSE payload type of a receipt. */
  public static final String PAYLOAD_TYPE = "application/vnd.coterie.receipt.v1+protobuf";

  /** Bytes of a payload: its texts take less than half. */
  public static final int MAX_PAYLOAD = 1024;

  /** Bytes of an envelope. */
  public static final int MAX_BYTES = MAX_PAYLOAD + 256;

  private static final int DIGEST_BYTES = 32;

  /** A reshare makes epoch 2 or a later one. */
  private static final int FIRST_RESHARED = 2;

  /** 9999-12-31T23:59:59.999Z, the last instant that every form of a time has. */
  private static final long MAX_UNIX_MS = 253_402_300_799_999L;

  /** The request that a receipt is about; each field as in {@link Receipt}. */
  record Subject(
      String installation,
      String key,
      ByteString keyFingerprint,
      int reshareEpoch,
      String requester,
      String requestId) {}

  /**
   * A request to sign that a party may refuse.
   *
   * @param intentDigest SHA-256 of the payload of its signed intent
   */
  public record Refusable(Subject subject, ByteString intentDigest) {

    /**
     * The request of an intent.
     *
     * @param installation of the party: the intent may name another one
     */
    public static Refusable of(VerifiedIntent.Signing intent, String installation) {
      return new Refusable(
          new Subject(
              installation,
              intent.key(),
              intent.keyFingerprint(),
              intent.reshareEpoch(),
              intent.requester(),
              intent.requestId()),
          intent.digest());
    }

    public String requester() {
      return subject.requester();
    }
  }

  private Receipts() {}

  /**
   * A receipt of a party about the request that an intent cancels.
   *
   * @param party its id
   */
  public static Receipt.Builder about(
      Receipt.Kind kind, VerifiedIntent.Cancellation request, int party) {
    return about(
        kind,
        new Subject(
            request.installation(),
            request.key(),
            request.keyFingerprint(),
            request.reshareEpoch(),
            request.requester(),
            request.requestId()),
        party);
  }

  /**
   * The receipt of a party that has refused a request.
   *
   * @param unixMs when, in ms since 1970
   */
  public static Receipt refused(Refusable request, RefusalReason reason, long unixMs, int party) {
    return about(Receipt.Kind.REFUSED, request.subject(), party)
        .setIntentDigest(request.intentDigest())
        .setReason(reason.name())
        .setUnixMs(unixMs)
        .build();
  }

  static Receipt.Builder about(Receipt.Kind kind, Subject request, int party) {
    return Receipt.newBuilder()
        .setKind(kind)
        .setInstallation(request.installation())
        .setKey(request.key())
        .setKeyFingerprint(request.keyFingerprint())
        .setReshareEpoch(request.reshareEpoch())
        .setRequester(request.requester())
        .setRequestId(request.requestId())
        .setParty(party);
  }

  /** The statement that a party signs. */
  public static ByteString statement(Receipt receipt) {
    return statement(receipt.toByteString());
  }

  private static ByteString statement(ByteString payload) {
    return ByteString.copyFrom(Dsse.pae(PAYLOAD_TYPE, payload));
  }

  /** The envelope of a receipt with its party's signature. */
  public static SignedReceipt signed(Receipt receipt, ByteString signature) {
    return SignedReceipt.newBuilder()
        .setPayload(receipt.toByteString())
        .setPayloadType(PAYLOAD_TYPE)
        .addSignatures(
            ReceiptSignature.newBuilder()
                .setSig(signature)
                .setKeyid(Integer.toUnsignedString(receipt.getParty())))
        .build();
  }

  /**
   * The content of an envelope, if every field of it is well-formed. Its signature is not looked
   * at: see {@link #isSigned}.
   *
   * @return empty for everything else, also for a kind of receipt that this version does not know
   */
  public static Optional<Receipt> read(SignedReceipt envelope) {
    ByteString payload = envelope.getPayload();
    if (!envelope.getUnknownFields().isEmpty()
        || payload.size() > MAX_PAYLOAD
        || !envelope.getPayloadType().equals(PAYLOAD_TYPE)
        || envelope.getSignaturesCount() != 1
        || !envelope.getSignatures(0).getUnknownFields().isEmpty()) {
      return Optional.empty();
    }
    Receipt receipt;
    try {
      receipt = Receipt.parseFrom(payload);
    } catch (InvalidProtocolBufferException e) {
      return Optional.empty();
    }
    boolean canonical =
        receipt.getUnknownFields().isEmpty() && receipt.toByteString().equals(payload);
    String keyid = Integer.toUnsignedString(receipt.getParty());
    return canonical && isWellFormed(receipt) && envelope.getSignatures(0).getKeyid().equals(keyid)
        ? Optional.of(receipt)
        : Optional.empty();
  }

  private static boolean isWellFormed(Receipt receipt) {
    return isContentOfKind(receipt)
        && Member.isName(receipt.getInstallation())
        && IntentVerifier.isKeyName(receipt.getKey())
        && receipt.getKeyFingerprint().size() == IntentVerifier.FINGERPRINT_BYTES
        && (receipt.getReshareEpoch() == 0 || receipt.getReshareEpoch() >= FIRST_RESHARED)
        && Requester.isName(receipt.getRequester())
        && RequestId.isOne(receipt.getRequestId())
        && receipt.getParty() >= 1
        && receipt.getParty() <= Member.MAX_PARTY_ID;
  }

  private static boolean isContentOfKind(Receipt receipt) {
    boolean refuses = !receipt.getReason().isEmpty() || receipt.getUnixMs() != 0;
    return switch (receipt.getKind()) {
      case SIGNED -> receipt.getIntentDigest().size() == DIGEST_BYTES && !refuses;
      case NEVER -> receipt.getIntentDigest().isEmpty() && !refuses;
      case REFUSED ->
          receipt.getIntentDigest().size() == DIGEST_BYTES
              && SessionFailures.refusal(receipt.getReason()).isPresent()
              && receipt.getUnixMs() > 0
              && receipt.getUnixMs() <= MAX_UNIX_MS;
      case KIND_UNSPECIFIED, UNRECOGNIZED -> false;
    };
  }

  /**
   * Whether the party that a receipt names has signed it: a member with its present evidence key,
   * because a key that it has lost would speak about requests of today, and a party that has left
   * with one that the roster has for the epoch from which on it held the key. REFUSED is the word
   * of members alone: nobody gives an order to a party that has left.
   */
  public static boolean isSigned(SignedReceipt envelope, Receipt receipt, Roster roster) {
    ByteString statement = statement(envelope.getPayload());
    ByteString signature = envelope.getSignatures(0).getSig();
    int epoch = Math.max(1, receipt.getReshareEpoch());
    List<byte[]> keys =
        roster
            .byPartyId(receipt.getParty())
            .map(member -> List.of(member.evidenceKey()))
            .orElseGet(
                () ->
                    receipt.getKind() == Receipt.Kind.REFUSED
                        ? List.of()
                        : roster.evidenceKeys(receipt.getParty(), epoch));
    return keys.stream().anyMatch(key -> StatementSignature.verifies(key, statement, signature));
  }
}
