package io.coterie.coordinator.custody.key;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.StoredRequest;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One attempt to create a key, and the key if it succeeded.
 *
 * @param id ascending in the order of attempts; 0 before it is stored
 * @param name resource name
 * @param parties in ascending order of party id
 * @param made set when ACTIVE
 * @param error set when FAILED
 */
public record KeyRecord(
    long id,
    RequestHeader header,
    String name,
    Scheme scheme,
    int threshold,
    List<Holder> parties,
    Key.State state,
    int sessions,
    @Nullable MadeKey made,
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
    if ((state == Key.State.ACTIVE) != (made != null)
        || (state == Key.State.FAILED) != (error != null)) {
      throw new IllegalArgumentException("a key has its result and nothing else");
    }
  }

  /** An attempt that begins, not stored yet. */
  public static KeyRecord creating(
      RequestHeader header, String name, Scheme scheme, int threshold, List<Holder> parties) {
    return new KeyRecord(
        0, header, name, scheme, threshold, parties, Key.State.CREATING, 0, null, null);
  }

  /** The key. */
  @Override
  public String resource() {
    return name;
  }

  /** The key; null unless ACTIVE. */
  public @Nullable KeyPublic keyPublic() {
    return made == null ? null : made.keyPublic();
  }

  /** Generation of the key's shares; 0 before there are any. */
  public int epoch() {
    return made == null ? 0 : made.keyPublic().getEpoch();
  }

  /**
   * Refuses an intent about another key of that name.
   *
   * @throws CustodyException saying so
   */
  public void requireFingerprint(ByteString fingerprint) {
    if (made == null || !fingerprint.equals(KeyFingerprint.of(made.keyPublic()))) {
      throw new IntentException(IntentProblem.KEY_FINGERPRINT_OTHER).toCustodyException();
    }
  }

  /**
   * Refuses an intent for the parties of another time.
   *
   * @param reshareEpoch as the intent names it
   */
  public void requireReshareEpoch(int reshareEpoch) {
    if (made == null || reshareEpoch != made.reshareEpoch()) {
      throw new IntentException(IntentProblem.RESHARE_EPOCH_OTHER).toCustodyException();
    }
  }

  /** The same attempt with its key. */
  public KeyRecord active(MadeKey result, int sessionsTried) {
    return with(Key.State.ACTIVE, sessionsTried, result, null);
  }

  /** The same attempt, ended without a key. */
  public KeyRecord failed(Status why, int sessionsTried) {
    return with(Key.State.FAILED, sessionsTried, null, why);
  }

  /** The same attempt as it is stored. */
  public KeyRecord withId(long storedId) {
    return new KeyRecord(
        storedId, header, name, scheme, threshold, parties, state, sessions, made, error);
  }

  private KeyRecord with(
      Key.State next, int tried, @Nullable MadeKey result, @Nullable Status why) {
    return new KeyRecord(id, header, name, scheme, threshold, parties, next, tried, result, why);
  }
}
