package io.coterie.coordinator.custody.signing;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.StoredRequest;
import io.coterie.proto.custody.v1.DecodedPayload;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.List;
import java.util.OptionalInt;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * One signing request and its result.
 *
 * @param id last part of the resource name
 * @param key resource name of the key
 * @param sessions tried so far
 * @param signingSet names of the parties whose contributions made the signature
 * @param payloadDigest input of the scheme, 32 bytes, if that is a digest
 * @param decoded the content of the payload
 * @param approvals of the intent, as they were received; the signers check them
 * @param result set when SIGNED
 * @param error set when UNKNOWN
 * @param receipts of the parties; there are some when NOT_SIGNED
 */
public record SigningRecord(
    UUID id,
    RequestHeader header,
    String key,
    Scheme scheme,
    Signing.State state,
    int sessions,
    List<String> signingSet,
    @Nullable ByteString payloadDigest,
    DecodedPayload decoded,
    List<ByteString> approvals,
    @Nullable Instant completedAt,
    @Nullable Result result,
    @Nullable Status error,
    List<SignedReceipt> receipts)
    implements StoredRequest {
  private static final byte[] ID_TAG = "coterie/signing-id/1".getBytes(UTF_8);

  /**
   * A signature and how it can be verified.
   *
   * @param signature in the scheme's standard encoding
   * @param recoveryId ECDSA: 0 to 3
   * @param publicKey that verifies it: the key's own or its child's
   * @param presigned whether a presignature was used
   */
  public record Result(
      ByteString signature, OptionalInt recoveryId, ByteString publicKey, boolean presigned) {}

  public SigningRecord {
    signingSet = List.copyOf(signingSet);
    approvals = List.copyOf(approvals);
    receipts = List.copyOf(receipts);
    if ((state == Signing.State.SIGNED) != (result != null)
        || (state == Signing.State.UNKNOWN) != (error != null)
        || (state == Signing.State.NOT_SIGNED) == receipts.isEmpty()) {
      throw new IllegalArgumentException("a signing has its result and nothing else");
    }
  }

  /** A signing that begins. */
  public static SigningRecord pending(
      RequestHeader header,
      String key,
      Scheme scheme,
      @Nullable ByteString payloadDigest,
      DecodedPayload decoded) {
    return new SigningRecord(
        idOf(header.requester(), header.requestId()),
        header,
        key,
        scheme,
        Signing.State.PENDING,
        0,
        List.of(),
        payloadDigest,
        decoded,
        List.of(),
        null,
        null,
        null,
        List.of());
  }

  /** The same signing, which begins with these approvals. */
  public SigningRecord approved(List<ByteString> by) {
    return new SigningRecord(
        id,
        header,
        key,
        scheme,
        Signing.State.PENDING,
        0,
        List.of(),
        payloadDigest,
        decoded,
        by,
        null,
        null,
        null,
        List.of());
  }

  /** Resource name. */
  public String name() {
    return name(key, id);
  }

  /** Resource name of the signing of that key and id. */
  static String name(String key, UUID id) {
    return key + "/signings/" + id;
  }

  /** The signing. */
  @Override
  public String resource() {
    return name();
  }

  /** The same signing after another session was started. */
  public SigningRecord trying(int sessionsTried) {
    return with(Signing.State.PENDING, sessionsTried, signingSet, null, null, null, List.of());
  }

  /** The same signing with its result. */
  public SigningRecord signed(
      Result made, List<String> contributors, int sessionsTried, Instant now) {
    return with(Signing.State.SIGNED, sessionsTried, contributors, now, made, null, List.of());
  }

  /** The same signing, at whose end nobody knows here whether it was signed. */
  public SigningRecord unknown(Status why, int sessionsTried, Instant now) {
    return with(Signing.State.UNKNOWN, sessionsTried, signingSet, now, null, why, List.of());
  }

  /**
   * The same signing, which is never signed.
   *
   * @param words NEVER receipts, in ascending order of their parties
   */
  public SigningRecord notSigned(List<SignedReceipt> words, Instant now) {
    return with(Signing.State.NOT_SIGNED, sessions, List.of(), now, null, null, words);
  }

  private SigningRecord with(
      Signing.State next,
      int tried,
      List<String> contributors,
      @Nullable Instant completed,
      @Nullable Result made,
      @Nullable Status why,
      List<SignedReceipt> words) {
    return new SigningRecord(
        id,
        header,
        key,
        scheme,
        next,
        tried,
        contributors,
        payloadDigest,
        decoded,
        approvals,
        completed,
        made,
        why,
        words);
  }

  /**
   * The id of a requester's request: a hash, so that a name can be told from a request before it is
   * made, and never names two requests.
   */
  public static UUID idOf(String requester, String requestId) {
    try {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      for (byte[] part :
          new byte[][] {ID_TAG, requester.getBytes(UTF_8), requestId.getBytes(UTF_8)}) {
        sha256.update(ByteBuffer.allocate(Integer.BYTES).putInt(part.length).flip());
        sha256.update(part);
      }
      ByteBuffer hash = ByteBuffer.wrap(sha256.digest());
      // Version 8 and the variant of RFC 9562, so that tools accept it as a UUID.
      long high = (hash.getLong() & ~0xF000L) | 0x8000L;
      long low = (hash.getLong() & 0x3FFF_FFFF_FFFF_FFFFL) | 0x8000_0000_0000_0000L;
      return new UUID(high, low);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
