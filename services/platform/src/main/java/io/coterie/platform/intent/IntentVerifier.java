package io.coterie.platform.intent;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import com.google.protobuf.Timestamp;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.CancelIntent;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.ImportIntent;
import io.coterie.proto.custody.v1.IntentSignature;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import java.security.PublicKey;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * Turns what a requester sent into something that may be acted on, or says what is wrong with it.
 * The payload is decoded only after its signature has been verified, so the decoder never sees
 * bytes of a stranger.
 */
public final class IntentVerifier {
  /** Bytes of a payload. */
  public static final int MAX_PAYLOAD = 128 * 1024;

  /** Bytes of a message, transaction, typed data or PSBT to sign. */
  public static final int MAX_MESSAGE = 64 * 1024;

  /** Bytes of a message to sign exactly: eleven blocks of SHA-512, a full transaction of Solana. */
  public static final int MAX_EXACT_MESSAGE = 1359;

  /** Bytes of a digest to sign. */
  public static final int DIGEST_BYTES = 32;

  /** Numbers of a derivation path. */
  public static final int MAX_PATH = 10;

  /** Characters (code points) of a purpose. */
  public static final int MAX_PURPOSE = 256;

  /** Bytes of the fingerprint of a key. */
  public static final int FINGERPRINT_BYTES = 16;

  /** Parties of a key, and issuers or openers of a group. */
  public static final int MAX_PARTIES = 20;

  /** Issuers that it takes to admit a member, who is one more party of the session. */
  public static final int MAX_ISSUER_THRESHOLD = MAX_PARTIES - 1;

  /** Bytes of a public key of any scheme. */
  public static final int MAX_PUBLIC_KEY = 96;

  /** Bytes of the key that a member of a group signs with. */
  public static final int IDENTITY_BYTES = 32;

  /** Parties that sign with an imported key: the protocol is one of pairs. */
  public static final int IMPORT_THRESHOLD = 2;

  /** Bytes of an Ed25519 public key. */
  private static final int ED25519_KEY_BYTES = 32;

  /** Bytes of an approval. */
  public static final int APPROVAL_BYTES = 416;

  /** Approvals of one request. */
  public static final int MAX_APPROVALS = 32;

  /** 9999-12-31T23:59:59Z, the last second of a protobuf timestamp. */
  private static final long MAX_SECONDS = 253_402_300_799L;

  private static final Set<String> TYPES =
      Set.of(
          Dsse.SIGNING_TYPE,
          Dsse.KEY_TYPE,
          Dsse.IMPORT_TYPE,
          Dsse.REFRESH_TYPE,
          Dsse.RESHARE_TYPE,
          Dsse.CANCEL_TYPE,
          Dsse.GROUP_TYPE,
          Dsse.TICKET_TYPE,
          Dsse.OPENING_TYPE);

  private static final Pattern KEY_NAME = Pattern.compile("keys/[a-z][a-z0-9-]{0,62}");
  private static final Pattern GROUP_NAME = Pattern.compile("groups/[a-z][a-z0-9-]{0,62}");
  private static final Pattern INSTALLATION = Pattern.compile("[a-z0-9][a-z0-9-]{0,62}");
  private static final Pattern PARTY_NAME = Pattern.compile("[a-z0-9][a-z0-9-]{0,62}");

  private IntentVerifier() {}

  /** Whether a string is the resource name of a key, {@code keys/{key}}. */
  public static boolean isKeyName(String name) {
    return KEY_NAME.matcher(name).matches();
  }

  /** Whether a string is the resource name of a group, {@code groups/{group}}. */
  public static boolean isGroupName(String name) {
    return GROUP_NAME.matcher(name).matches();
  }

  /** Whether a list is short enough, and each of its elements as long as an approval. */
  public static boolean areApprovals(List<ByteString> list) {
    return list.size() <= MAX_APPROVALS
        && list.stream().allMatch(approval -> approval.size() == APPROVAL_BYTES);
  }

  /**
   * Verifies and decodes. Does not look at the clock: see {@link VerifiedIntent#requireNotExpired}.
   *
   * @param requesters the pinned public key of a requester, by name
   * @throws IntentException saying what is wrong; nothing was done
   */
  public static VerifiedIntent verify(
      SignedIntent signed, Function<String, Optional<PublicKey>> requesters)
      throws IntentException {
    require(signed.getUnknownFields().isEmpty(), IntentProblem.ENVELOPE_UNKNOWN_FIELD);
    ByteString payload = signed.getPayload();
    require(!payload.isEmpty(), IntentProblem.PAYLOAD_MISSING);
    require(payload.size() <= MAX_PAYLOAD, IntentProblem.PAYLOAD_TOO_LARGE);
    String type = signed.getPayloadType();
    require(TYPES.contains(type), IntentProblem.PAYLOAD_TYPE_UNKNOWN);
    require(signed.getSignaturesCount() == 1, IntentProblem.SIGNATURE_COUNT);
    IntentSignature signature = signed.getSignatures(0);
    require(signature.getUnknownFields().isEmpty(), IntentProblem.ENVELOPE_UNKNOWN_FIELD);
    String requester = signature.getKeyid();
    require(Requester.isName(requester), IntentProblem.KEYID_MALFORMED);
    PublicKey key =
        requesters
            .apply(requester)
            .orElseThrow(() -> new IntentException(IntentProblem.REQUESTER_UNKNOWN));
    require(
        Dsse.verifies(key, Dsse.pae(type, payload), signature.getSig().toByteArray()),
        IntentProblem.SIGNATURE_INVALID);
    try {
      return checked(type, requester, signed, payload);
    } catch (IntentException e) {
      throw e.ofSigned();
    }
  }

  private static VerifiedIntent checked(
      String type, String requester, SignedIntent signed, ByteString payload)
      throws IntentException {
    ByteString digest = digest(payload);
    return switch (type) {
      case Dsse.SIGNING_TYPE ->
          new VerifiedIntent.Signing(
              requester, digest, signed, check(decode(SigningIntent.parser(), payload)));
      case Dsse.KEY_TYPE ->
          new VerifiedIntent.KeyCreation(
              requester, digest, signed, check(decode(KeyIntent.parser(), payload)));
      case Dsse.IMPORT_TYPE ->
          new VerifiedIntent.KeyImport(
              requester, digest, signed, check(decode(ImportIntent.parser(), payload)), List.of());
      case Dsse.REFRESH_TYPE ->
          new VerifiedIntent.KeyRefresh(
              requester, digest, signed, check(decode(RefreshIntent.parser(), payload)));
      case Dsse.CANCEL_TYPE ->
          new VerifiedIntent.Cancellation(
              requester, digest, signed, check(decode(CancelIntent.parser(), payload)));
      case Dsse.GROUP_TYPE ->
          new VerifiedIntent.GroupCreation(
              requester, digest, signed, check(decode(GroupIntent.parser(), payload)));
      case Dsse.TICKET_TYPE ->
          new VerifiedIntent.Ticket(
              requester, digest, signed, check(decode(TicketIntent.parser(), payload)));
      case Dsse.OPENING_TYPE ->
          new VerifiedIntent.Opening(
              requester, digest, signed, check(decode(OpeningIntent.parser(), payload)));
      default ->
          new VerifiedIntent.KeyReshare(
              requester, digest, signed, check(decode(ReshareIntent.parser(), payload)));
    };
  }

  /** SHA-256 of an intent's payload bytes. */
  public static ByteString digest(ByteString payload) {
    return Dsse.sha256(payload);
  }

  private static <M extends Message> M decode(Parser<M> parser, ByteString payload)
      throws IntentException {
    M message;
    try {
      message = parser.parseFrom(payload);
    } catch (InvalidProtocolBufferException e) {
      throw new IntentException(IntentProblem.PAYLOAD_UNDECODABLE);
    }
    require(message.getUnknownFields().isEmpty(), IntentProblem.PAYLOAD_UNKNOWN_FIELD);
    // The decoder keeps the last of a repeated field, so the requester may have signed more than is
    // acted on. Only the canonical encoding is taken, so an intent also has one digest.
    require(message.toByteString().equals(payload), IntentProblem.PAYLOAD_NOT_MINIMAL);
    return message;
  }

  private static SigningIntent check(SigningIntent intent) throws IntentException {
    check(IntentTerms.of(intent));
    checkFingerprint(intent.getKeyFingerprint());
    checkReshareEpoch(intent.getReshareEpoch());
    require(
        derives(intent.getScheme()) || intent.getDerivationPathCount() == 0,
        IntentProblem.DERIVATION_PATH_NOT_ALLOWED);
    require(intent.getDerivationPathCount() <= MAX_PATH, IntentProblem.DERIVATION_PATH_TOO_LONG);
    for (int number : intent.getDerivationPathList()) {
      // The field is a uint32. In Java 2^31 and more are negative.
      require(number >= 0, IntentProblem.DERIVATION_PATH_HARDENED);
    }
    require(tweaks(intent.getScheme()) || !intent.hasTaproot(), IntentProblem.TAPROOT_NOT_ALLOWED);
    require(intent.getTaproot().getUnknownFields().isEmpty(), IntentProblem.PAYLOAD_UNKNOWN_FIELD);
    require(KeyTarget.of(intent).isWellFormed(), IntentProblem.TAPROOT_ROOT_LENGTH);
    PayloadKind kind =
        PayloadKind.of(intent)
            .orElseThrow(() -> new IntentException(IntentProblem.MESSAGE_MISSING));
    require(kind.fits(intent.getScheme()), IntentProblem.PAYLOAD_NOT_FOR_SCHEME);
    require(
        intent.getBitcoinInput().getUnknownFields().isEmpty(), IntentProblem.PAYLOAD_UNKNOWN_FIELD);
    ByteString content = kind.content(intent);
    require(!content.isEmpty(), IntentProblem.MESSAGE_MISSING);
    require(content.size() <= MAX_MESSAGE, IntentProblem.MESSAGE_TOO_LARGE);
    require(
        intent.getScheme() != Scheme.SCHEME_ED25519_EXACT || content.size() <= MAX_EXACT_MESSAGE,
        IntentProblem.MESSAGE_TOO_LARGE_FOR_SCHEME);
    require(
        kind != PayloadKind.DIGEST || content.size() == DIGEST_BYTES, IntentProblem.DIGEST_LENGTH);
    if (intent.hasApprovers()) {
      check(intent.getApprovers());
    }
    return intent;
  }

  private static void check(Approvers approvers) throws IntentException {
    require(approvers.getUnknownFields().isEmpty(), IntentProblem.PAYLOAD_UNKNOWN_FIELD);
    require(isGroupName(approvers.getGroup()), IntentProblem.GROUP_NAME_MALFORMED);
    checkEpoch(approvers.getEpoch());
    require(approvers.getDigest().size() == DIGEST_BYTES, IntentProblem.GROUP_DIGEST_LENGTH);
  }

  private static CancelIntent check(CancelIntent intent) throws IntentException {
    check(IntentTerms.of(intent));
    checkFingerprint(intent.getKeyFingerprint());
    checkReshareEpoch(intent.getReshareEpoch());
    return intent;
  }

  private static KeyIntent check(KeyIntent intent) throws IntentException {
    check(IntentTerms.of(intent));
    checkHolders(intent.getThreshold(), intent.getPartiesList());
    return intent;
  }

  private static ImportIntent check(ImportIntent intent) throws IntentException {
    check(IntentTerms.of(intent));
    require(intent.getScheme() == Scheme.SCHEME_ED25519_EXACT, IntentProblem.IMPORT_NOT_FOR_SCHEME);
    checkHolders(intent.getThreshold(), intent.getPartiesList());
    require(intent.getThreshold() == IMPORT_THRESHOLD, IntentProblem.IMPORT_THRESHOLD_OUT_OF_RANGE);
    require(intent.getPublicKey().size() == ED25519_KEY_BYTES, IntentProblem.PUBLIC_KEY_LENGTH);
    require(
        intent.getShareDigestsCount() == intent.getPartiesCount()
            && intent.getShareDigestsList().stream().allMatch(d -> d.size() == DIGEST_BYTES),
        IntentProblem.SHARE_DIGESTS_MALFORMED);
    return intent;
  }

  private static GroupIntent check(GroupIntent intent) throws IntentException {
    checkRequest(IntentTerms.of(intent));
    require(isGroupName(intent.getGroup()), IntentProblem.GROUP_NAME_MALFORMED);
    checkEpoch(intent.getEpoch());
    checkHolders(intent.getIssuerThreshold(), intent.getIssuersList());
    // One issuer could invent members, and a session has no room for more than these and one.
    require(
        intent.getIssuerThreshold() >= 2 && intent.getIssuerThreshold() <= MAX_ISSUER_THRESHOLD,
        IntentProblem.ISSUER_THRESHOLD_OUT_OF_RANGE);
    checkHolders(intent.getOpenerThreshold(), intent.getOpenersList());
    return intent;
  }

  private static TicketIntent check(TicketIntent intent) throws IntentException {
    checkRequest(IntentTerms.of(intent));
    require(isGroupName(intent.getGroup()), IntentProblem.GROUP_NAME_MALFORMED);
    checkEpoch(intent.getEpoch());
    require(intent.getIdentity().size() == IDENTITY_BYTES, IntentProblem.IDENTITY_LENGTH);
    return intent;
  }

  private static OpeningIntent check(OpeningIntent intent) throws IntentException {
    checkRequest(IntentTerms.of(intent));
    require(isGroupName(intent.getGroup()), IntentProblem.GROUP_NAME_MALFORMED);
    checkEpoch(intent.getEpoch());
    require(intent.getRequest().size() == DIGEST_BYTES, IntentProblem.REQUEST_DIGEST_LENGTH);
    require(intent.getApproval().size() == APPROVAL_BYTES, IntentProblem.APPROVAL_LENGTH);
    require(intent.getRecipient().size() == IDENTITY_BYTES, IntentProblem.RECIPIENT_LENGTH);
    return intent;
  }

  private static void checkHolders(int threshold, List<String> parties) throws IntentException {
    require(!parties.isEmpty() && parties.size() <= MAX_PARTIES, IntentProblem.PARTY_COUNT);
    require(threshold >= 1 && threshold <= parties.size(), IntentProblem.THRESHOLD_OUT_OF_RANGE);
    Set<String> seen = new HashSet<>();
    for (String party : parties) {
      require(PARTY_NAME.matcher(party).matches(), IntentProblem.PARTY_NAME_MALFORMED);
      require(seen.add(party), IntentProblem.PARTY_DUPLICATE);
    }
  }

  private static RefreshIntent check(RefreshIntent intent) throws IntentException {
    check(IntentTerms.of(intent));
    checkFingerprint(intent.getKeyFingerprint());
    checkEpoch(intent.getEpoch());
    return intent;
  }

  private static ReshareIntent check(ReshareIntent intent) throws IntentException {
    check(IntentTerms.of(intent));
    checkEpoch(intent.getEpoch());
    checkHolders(intent.getThreshold(), intent.getPartiesList());
    require(
        !intent.getPublicKey().isEmpty() && intent.getPublicKey().size() <= MAX_PUBLIC_KEY,
        IntentProblem.PUBLIC_KEY_LENGTH);
    return intent;
  }

  private static void checkFingerprint(ByteString fingerprint) throws IntentException {
    require(fingerprint.size() == FINGERPRINT_BYTES, IntentProblem.KEY_FINGERPRINT_LENGTH);
  }

  /** A reshare makes epoch 2 or a later one. */
  private static void checkReshareEpoch(int epoch) throws IntentException {
    require(epoch == 0 || epoch >= 2, IntentProblem.RESHARE_EPOCH_OUT_OF_RANGE);
  }

  private static void checkEpoch(int epoch) throws IntentException {
    require(epoch >= 1 && epoch < Integer.MAX_VALUE, IntentProblem.EPOCH_OUT_OF_RANGE);
  }

  /** Whether keys of a scheme have children. */
  private static boolean derives(Scheme scheme) {
    return switch (scheme) {
      case SCHEME_ECDSA_SECP256K1, SCHEME_BIP340_SECP256K1 -> true;
      case SCHEME_BLS12381,
          SCHEME_ED25519,
          SCHEME_ED25519_EXACT,
          SCHEME_UNSPECIFIED,
          UNRECOGNIZED ->
          false;
    };
  }

  /** Whether keys of a scheme have Taproot output keys. */
  private static boolean tweaks(Scheme scheme) {
    return scheme == Scheme.SCHEME_BIP340_SECP256K1;
  }

  private static void check(IntentTerms terms) throws IntentException {
    checkRequest(terms);
    require(isKeyName(terms.key()), IntentProblem.KEY_NAME_MALFORMED);
    require(
        terms.scheme() != Scheme.SCHEME_UNSPECIFIED && terms.scheme() != Scheme.UNRECOGNIZED,
        IntentProblem.SCHEME_UNSUPPORTED);
  }

  /** Checks the fields that an intent about anything has. */
  private static void checkRequest(IntentTerms terms) throws IntentException {
    require(RequestId.isOne(terms.requestId()), IntentProblem.REQUEST_ID_MALFORMED);
    require(
        INSTALLATION.matcher(terms.installation()).matches(), IntentProblem.INSTALLATION_MALFORMED);
    String purpose = terms.purpose();
    require(
        purpose.codePointCount(0, purpose.length()) <= MAX_PURPOSE, IntentProblem.PURPOSE_TOO_LONG);
    require(
        purpose.codePoints().noneMatch(IntentVerifier::misleading),
        IntentProblem.PURPOSE_MALFORMED);
    Timestamp end = terms.end();
    if (end == null) {
      throw new IntentException(IntentProblem.NOT_AFTER_MISSING);
    }
    require(end.getUnknownFields().isEmpty(), IntentProblem.PAYLOAD_UNKNOWN_FIELD);
    require(
        end.getSeconds() > 0
            && end.getSeconds() <= MAX_SECONDS
            && end.getNanos() >= 0
            && end.getNanos() <= 999_999_999,
        IntentProblem.NOT_AFTER_MALFORMED);
    require(
        !terms.notAfter().isAfter(RequestId.time(terms.requestId()).plus(VerifiedIntent.MAX_LIFE)),
        IntentProblem.NOT_AFTER_TOO_FAR);
  }

  /** Characters that make a line of text look like something else to the person who approves it. */
  private static boolean misleading(int codePoint) {
    return switch (Character.getType(codePoint)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR ->
          true;
      default -> false;
    };
  }

  private static void require(boolean condition, IntentProblem problem) throws IntentException {
    if (!condition) {
      throw new IntentException(problem);
    }
  }
}
