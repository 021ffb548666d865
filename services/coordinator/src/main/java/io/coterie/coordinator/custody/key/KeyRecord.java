package io.coterie.coordinator.custody.key;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.request.StoredRequest;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One attempt to create a key, and the key if it succeeded.
 *
 * @param id ascending in the order of attempts; 0 before it is stored
 * @param name resource name
 * @param parties in ascending order of party id
 * @param keyPublic set when ACTIVE
 * @param error set when FAILED
 */
public record KeyRecord(
    long id,
    String name,
    String requester,
    String requestId,
    ByteString intentDigest,
    SignedIntent intent,
    Scheme scheme,
    int threshold,
    List<Holder> parties,
    Key.State state,
    int sessions,
    Instant notAfter,
    Instant createdAt,
    @Nullable KeyPublic keyPublic,
    @Nullable Status error)
    implements StoredRequest {

  /**
   * A party that holds a share.
   *
   * @param name as it was in the roster when the key was created
   */
  public record Holder(int partyId, String name) {}

  public KeyRecord {
    parties = List.copyOf(parties);
    if ((state == Key.State.ACTIVE) != (keyPublic != null)
        || (state == Key.State.FAILED) != (error != null)) {
      throw new IllegalArgumentException("a key has its result and nothing else");
    }
  }

  /** The key. */
  @Override
  public String resource() {
    return name;
  }

  /** Generation of the key's shares; 0 before there are any. */
  public int epoch() {
    return keyPublic == null ? 0 : keyPublic.getEpoch();
  }

  /** The same attempt with its key. */
  public KeyRecord active(KeyPublic result, int sessionsTried) {
    return with(Key.State.ACTIVE, sessionsTried, result, null);
  }

  /** The same attempt, ended without a key. */
  public KeyRecord failed(Status why, int sessionsTried) {
    return with(Key.State.FAILED, sessionsTried, null, why);
  }

  /** The same attempt as it is stored. */
  public KeyRecord withId(long storedId) {
    return new KeyRecord(
        storedId,
        name,
        requester,
        requestId,
        intentDigest,
        intent,
        scheme,
        threshold,
        parties,
        state,
        sessions,
        notAfter,
        createdAt,
        keyPublic,
        error);
  }

  private KeyRecord with(
      Key.State next, int tried, @Nullable KeyPublic result, @Nullable Status why) {
    return new KeyRecord(
        id,
        name,
        requester,
        requestId,
        intentDigest,
        intent,
        scheme,
        threshold,
        parties,
        next,
        tried,
        notAfter,
        createdAt,
        result,
        why);
  }
}
