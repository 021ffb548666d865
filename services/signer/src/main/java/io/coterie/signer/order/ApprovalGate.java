package io.coterie.signer.order;

import com.google.protobuf.ByteString;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.List;

/** This party's own judgement of the approvals of a request; nobody else's counts. */
@FunctionalInterface
public interface ApprovalGate {
  /** The gate of a party that keeps no group: it approves nothing. */
  ApprovalGate WITHOUT_GROUPS =
      (needed, _, _) -> {
        throw new RefusedException(
            RefusalReason.REFUSAL_REASON_APPROVALS_MISSING,
            "this party keeps no group; needed are %d of %s"
                .formatted(needed.needed(), needed.group()));
      };

  /**
   * Counts approvals of a request whose requester has signed it. The first is looked at once
   * everything is known that costs less.
   *
   * @param coordinator that has sent them
   * @throws RefusedException with APPROVALS_MISSING, saying which of them does not count and why,
   *     or how many there are
   */
  Counted count(NeededApprovals needed, SessionPlan.Request request, String coordinator)
      throws RefusedException;

  /**
   * Approvals that count.
   *
   * @param group resource name
   * @param tags one of each approval, in their order: each is another member's
   */
  record Counted(String group, int epoch, List<ByteString> tags) {
    public Counted {
      tags = List.copyOf(tags);
    }
  }
}
