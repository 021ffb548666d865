package io.coterie.coordinator.custody.key;

import com.google.rpc.Status;
import java.util.List;
import java.util.Optional;

/** Where refreshes and reshares are kept. Everything is durable when a method returns. */
public interface RenewalStore {

  /** The result of {@link #start}. */
  sealed interface Start {
    /** The request is stored, RUNNING. */
    record Stored(Renewal record) implements Start {}

    /** The requester used this request id before. */
    record Known(Renewal record) implements Start {}

    /** Another one of the key is running, or the key is not at that epoch. */
    record Refused() implements Start {}
  }

  /**
   * Stores a request as this replica's work if its key is at the epoch that it replaces, unless
   * another one runs for the key or the request is known; the database decides.
   *
   * @param attempt RUNNING, with id 0
   */
  Start start(Renewal attempt);

  /** The one of that request. */
  Optional<Renewal> findRequest(String requester, String requestId);

  /** The last one of that key under that request id, of any requester. */
  Optional<Renewal> findOfKey(String key, String requestId);

  /** Notes that parties are about to be asked: from now on it fails only once they are heard. */
  void ordering(long id);

  /**
   * Notes that a RUNNING one is to fail, if it still can.
   *
   * @return false if it has ended
   */
  boolean cancel(long id);

  /** Whether one of the key is running. */
  boolean isRunning(String key);

  /**
   * Ends a RUNNING one that has succeeded, and in the same transaction gives the key its new epoch,
   * threshold and parties and lifts the exclusions from it, because all shares are new.
   *
   * @return false if it had ended before; nothing is changed then
   */
  boolean switchEpoch(long id, MadeKey renewed, int sessions);

  /**
   * Ends a RUNNING one without new shares.
   *
   * @return false if it had ended before; nothing is changed then
   */
  boolean fail(long id, Status error, int sessions);

  /**
   * Makes a FAILED one from that epoch RUNNING and reopened, as this replica's work, if none runs
   * and the key is still stored with that epoch: parties say that it has another one. Of several,
   * the one asked about least often.
   */
  Optional<Renewal> reopen(String key, int fromEpoch);

  /**
   * Makes one that is RUNNING this replica's work, unless another replica that is there works on
   * it.
   *
   * @return as it is stored; empty if it has ended, or is another's work
   */
  Optional<Renewal> take(long id);

  /**
   * Makes every one that is RUNNING this replica's work that no replica works on that is there.
   *
   * @param own also what this replica works on: a process of the same name has left it
   */
  List<Renewal> takeAll(boolean own);

  /** The cancelled ones that this replica works on. */
  List<Renewal> cancelled();
}
