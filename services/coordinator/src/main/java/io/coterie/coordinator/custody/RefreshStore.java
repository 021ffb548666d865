package io.coterie.coordinator.custody;

import com.google.rpc.Status;
import io.coterie.proto.core.v1.KeyPublic;
import java.util.List;
import java.util.Optional;

/** Where refreshes are kept. Everything is durable when a method returns. */
public interface RefreshStore {

  /** What {@link #start} did. */
  sealed interface Start {
    /** The request is stored, RUNNING. */
    record Stored(RefreshRecord record) implements Start {}

    /** The requester used this request id before. */
    record Known(RefreshRecord record) implements Start {}

    /** Another refresh of the key is running, or the key is not at that epoch. */
    record Refused() implements Start {}
  }

  /**
   * Stores a request if its key is at the epoch that it replaces, unless another one runs for the
   * key or the request is known; the database decides.
   *
   * @param attempt RUNNING, with id 0
   */
  Start start(RefreshRecord attempt);

  /** The refresh of that request. */
  Optional<RefreshRecord> findRequest(String requester, String requestId);

  /** Whether a refresh of the key is running. */
  boolean isRunning(String key);

  /**
   * Ends a RUNNING refresh that has succeeded, and in the same transaction gives the key its new
   * epoch and lifts the exclusions of its parties, whose shares are new.
   *
   * @return false if it had ended before; nothing is changed then
   */
  boolean switchEpoch(long id, KeyPublic keyPublic, int sessions);

  /**
   * Ends a RUNNING refresh without new shares.
   *
   * @return false if it had ended before; nothing is changed then
   */
  boolean fail(long id, Status error, int sessions);

  /**
   * Makes a FAILED refresh from that epoch RUNNING again, if none is: parties say that the key is
   * not at that epoch any more. Of several, the one asked about least often.
   */
  Optional<RefreshRecord> reopen(String key, int fromEpoch);

  /** Refreshes that are RUNNING, oldest first. */
  List<RefreshRecord> running();
}
