package io.coterie.coordinator.custody.key;

import com.google.rpc.Status;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.StoredRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One request to give a key new shares: a refresh or a reshare.
 *
 * @param id ascending in the order of requests; 0 before it is stored
 * @param key resource name
 * @param fromEpoch the epoch that it replaces
 * @param threshold of the key afterwards
 * @param parties that hold its shares afterwards, in ascending order of party id
 * @param cancelled whether a client asked that it fail, if it still can
 * @param reopened whether it failed before, as its requester was told: its parties are only asked
 *     which shares they hold, by whichever replica works on it
 * @param error set when FAILED
 */
public record Renewal(
    long id,
    RequestHeader header,
    String key,
    int fromEpoch,
    int threshold,
    List<KeyRecord.Holder> parties,
    boolean cancelled,
    boolean reopened,
    State state,
    int sessions,
    @Nullable Status error)
    implements StoredRequest {

  /** How far it is; the number is what is stored. */
  public enum State {
    RUNNING(1),
    /** The key has the new epoch. */
    DONE(2),
    /** The parties may hold its shares all the same: see {@link RenewalStore#reopen}. */
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

  public Renewal {
    parties = List.copyOf(parties);
    if ((state == State.FAILED) != (error != null)) {
      throw new IllegalArgumentException("a renewal has its result and nothing else");
    }
  }

  /** A renewal that begins, not stored yet. */
  public static Renewal running(
      RequestHeader header,
      String key,
      int fromEpoch,
      int threshold,
      List<KeyRecord.Holder> parties) {
    return new Renewal(
        0, header, key, fromEpoch, threshold, parties, false, false, State.RUNNING, 0, null);
  }

  /** The key. */
  @Override
  public String resource() {
    return key;
  }

  /** The same request as it is stored. */
  public Renewal withId(long storedId) {
    return new Renewal(
        storedId, header, key, fromEpoch, threshold, parties, cancelled, reopened, state, sessions,
        error);
  }
}
