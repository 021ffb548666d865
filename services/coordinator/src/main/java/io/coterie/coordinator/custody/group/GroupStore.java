package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Where groups are kept. Everything is durable when a method returns. */
public interface GroupStore {

  /** The result of {@link #create}. */
  sealed interface Creation {
    /** The attempt is stored, CREATING. */
    record Stored(GroupRecord record) implements Creation {}

    /** The requester used this request id before. */
    record Known(GroupRecord record) implements Creation {}

    /** Another attempt at that epoch of the group was made. */
    record EpochTaken() implements Creation {}
  }

  /**
   * Stores an attempt as this replica's work, unless its request or its epoch is taken, which the
   * database decides. An epoch is taken also by an attempt that failed.
   *
   * @param attempt CREATING, with id 0
   */
  Creation create(GroupRecord attempt);

  /**
   * Ends an attempt that is CREATING.
   *
   * @param attested the group; empty if it failed
   * @param error why it failed, or null
   * @return false if it had ended before; nothing is changed then
   */
  boolean finish(long id, ByteString attested, @Nullable Status error);

  /** The attempt at that epoch of the group. */
  Optional<GroupRecord> find(String group, int epoch);

  /** The attempt of that request. */
  Optional<GroupRecord> findRequest(String requester, String requestId);

  /**
   * Attempts in the order of group and epoch.
   *
   * @param afterGroup with {@code afterEpoch} where the page before ended; empty for the first
   * @param globs names of groups wanted: {@code *} stands for any text; one match is enough
   */
  List<GroupRecord> list(String afterGroup, int afterEpoch, Set<String> globs, int limit);

  /**
   * Makes an attempt that is CREATING this replica's work, unless another replica that is there
   * works on it.
   *
   * @return as it is stored; empty if it has ended, or is another's work
   */
  Optional<GroupRecord> take(long id);

  /**
   * Makes every attempt that is CREATING this replica's work that no replica works on that is
   * there.
   *
   * @param own also what this replica works on: a process of the same name has left it
   */
  List<GroupRecord> takeAll(boolean own);
}
