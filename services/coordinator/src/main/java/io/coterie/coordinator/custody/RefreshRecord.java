package io.coterie.coordinator.custody;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.proto.custody.v1.SignedIntent;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * One request to give a key new shares.
 *
 * @param id ascending in the order of requests; 0 before it is stored
 * @param key resource name
 * @param fromEpoch the epoch that it replaces
 * @param error set when FAILED
 */
public record RefreshRecord(
    long id,
    String key,
    String requester,
    String requestId,
    ByteString intentDigest,
    SignedIntent intent,
    int fromEpoch,
    State state,
    int sessions,
    Instant notAfter,
    Instant createdAt,
    @Nullable Status error) {

  /** How far it is; the number is what is stored. */
  public enum State {
    RUNNING(1),
    /** The key has the new epoch. */
    DONE(2),
    /** The parties may hold its shares all the same: see {@link RefreshStore#reopen}. */
    FAILED(3);

    private final int number;

    State(int number) {
      this.number = number;
    }

    public int number() {
      return number;
    }

    /** The state of that number. */
    public static State of(int number) {
      for (State state : values()) {
        if (state.number == number) {
          return state;
        }
      }
      throw new IllegalArgumentException("there is no such state");
    }
  }

  public RefreshRecord {
    if ((state == State.FAILED) != (error != null)) {
      throw new IllegalArgumentException("a refresh has its result and nothing else");
    }
  }

  /** The same request as it is stored. */
  public RefreshRecord withId(long storedId) {
    return new RefreshRecord(
        storedId,
        key,
        requester,
        requestId,
        intentDigest,
        intent,
        fromEpoch,
        state,
        sessions,
        notAfter,
        createdAt,
        error);
  }
}
