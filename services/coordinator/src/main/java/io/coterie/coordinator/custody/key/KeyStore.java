package io.coterie.coordinator.custody.key;

import com.google.rpc.Status;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Where keys are kept. Everything is durable when a method returns. */
public interface KeyStore {

  /** The result of {@link #create}. */
  sealed interface Creation {
    /** The attempt is stored, CREATING. */
    record Stored(KeyRecord record) implements Creation {}

    /** The requester used this request id before. */
    record Known(KeyRecord record) implements Creation {}

    /** Another attempt of that name is running or has succeeded. */
    record NameTaken() implements Creation {}
  }

  /**
   * Stores an attempt as this replica's work, unless its request or its name is taken, which the
   * database decides.
   *
   * @param attempt CREATING, with id 0
   */
  Creation create(KeyRecord attempt);

  /**
   * Ends an attempt that is CREATING.
   *
   * @param made the key, or null if it failed
   * @param error why it failed, or null
   * @return false if it had ended before; nothing is changed then
   */
  boolean finish(long id, @Nullable MadeKey made, @Nullable Status error, int sessions);

  /**
   * Stores keys that an earlier database had: those whose requests and names are free, and later
   * epochs of those that are here. All of them together, or none.
   *
   * @param keys ACTIVE, with id 0
   * @return the outcome of each, in their order
   */
  List<RestoredKey> restore(List<KeyRecord> keys);

  /** The running or successful attempt of that name, or else its last failed one. */
  Optional<KeyRecord> find(String name);

  /** The attempt of that request. */
  Optional<KeyRecord> findRequest(String requester, String requestId);

  /**
   * Keys in the order of their names, each as {@link #find} would give it.
   *
   * @param afterName where the page before ended; empty for the first
   * @param globs names wanted: {@code *} stands for any text; one match is enough
   */
  List<KeyRecord> list(String afterName, Set<String> globs, int limit);

  /**
   * The quorums of a key: any {@code threshold} of these parties.
   *
   * @param parties ids of those that hold a share and are not excluded
   */
  record Quorums(int threshold, Set<Integer> parties) {
    public Quorums {
      parties = Set.copyOf(parties);
    }
  }

  /** The quorums of the ACTIVE keys, equal ones once. */
  List<Quorums> quorums();

  /**
   * Makes an attempt that is CREATING this replica's work, unless another replica that is there
   * works on it.
   *
   * @return as it is stored; empty if it has ended, or is another's work
   */
  Optional<KeyRecord> take(long id);

  /**
   * Makes every attempt that is CREATING this replica's work that no replica works on that is
   * there.
   *
   * @param own also what this replica works on: a process of the same name has left it
   */
  List<KeyRecord> takeAll(boolean own);

  /** Leaves a party out of every later session of a key. */
  void exclude(String key, int partyId, String cause, byte[] sessionId, Instant now);

  /**
   * Leaves a party whose store went back to an earlier state out of every later session of every
   * ACTIVE ECDSA key that it holds a share of.
   *
   * @return names of the keys from which it was not left out before
   */
  Set<String> excludeWentBack(int partyId, Instant now);

  /** Party ids that {@link #excludeWentBack} has left out for a key. */
  Set<Integer> wentBack(String key);

  /** Party ids left out for a key. */
  Set<Integer> excluded(String key);
}
