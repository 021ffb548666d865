package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.request.StoredRequest;
import io.coterie.proto.custody.v1.Group;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One attempt to make an epoch of a group, and the group if it succeeded.
 *
 * @param id ascending in the order of attempts; 0 before it is stored
 * @param group resource name, {@code groups/{group}}
 * @param issuers names, as the intent has them
 * @param openers the same
 * @param attested the group with the signatures of all issuers; empty unless ACTIVE
 * @param error set when FAILED
 */
public record GroupRecord(
    long id,
    RequestHeader header,
    String group,
    int epoch,
    int issuerThreshold,
    List<String> issuers,
    int openerThreshold,
    List<String> openers,
    Group.State state,
    ByteString attested,
    @Nullable Status error)
    implements StoredRequest {

  public GroupRecord {
    issuers = List.copyOf(issuers);
    openers = List.copyOf(openers);
    if ((state == Group.State.ACTIVE) == attested.isEmpty()
        || (state == Group.State.FAILED) != (error != null)) {
      throw new IllegalArgumentException("a group has its result and nothing else");
    }
  }

  /** The resource name of the epoch. */
  public String name() {
    return name(group, epoch);
  }

  /** The resource name of an epoch of a group. */
  public static String name(String group, int epoch) {
    return group + "/epochs/" + epoch;
  }

  @Override
  public String resource() {
    return name();
  }

  /** The same attempt with its group. */
  public GroupRecord active(ByteString result) {
    return with(id, Group.State.ACTIVE, result, null);
  }

  /** The same attempt, ended without a group. */
  public GroupRecord failed(Status why) {
    return with(id, Group.State.FAILED, ByteString.EMPTY, why);
  }

  /** The same attempt as it is stored. */
  public GroupRecord withId(long storedId) {
    return with(storedId, state, attested, error);
  }

  private GroupRecord with(long number, Group.State next, ByteString result, @Nullable Status why) {
    return new GroupRecord(
        number,
        header,
        group,
        epoch,
        issuerThreshold,
        issuers,
        openerThreshold,
        openers,
        next,
        result,
        why);
  }
}
