package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.order.SessionPlan;
import java.util.List;

/**
 * This party's result of the first rounds of a signature that nobody has asked for yet. Good for
 * one signature of exactly these parties, with exactly this key.
 *
 * @param id 32 bytes, the same at all its parties
 * @param session the session that made it
 * @param share the session that made the share it was made from
 * @param epoch of that share
 * @param parties ids, ascending; all of them have to sign
 * @param target which key it signs with
 * @param messageBlocks of the only messages that it is for; 0 if it is for any
 * @param coordinator roster name of the one that ordered it, and may order its use
 * @param coordinatorIncarnation the process of it that did so
 * @param sealed opens only in the vault that made it, once
 * @param madeNanos when it was made, by a clock that only goes forward
 */
public record Presignature(
    ByteString id,
    SessionId session,
    String key,
    SessionId share,
    int epoch,
    List<Integer> parties,
    KeyTarget target,
    int messageBlocks,
    String coordinator,
    ByteString coordinatorIncarnation,
    ByteString sealed,
    long madeNanos) {

  /**
   * Whether it is what the plan of a signing needs.
   *
   * @param blocks of the message; 0 if the protocol does not ask
   * @param held the session that made the share of the key which this party holds: by name and
   *     epoch alone, that of a key which its operator had it forget would be the same
   */
  boolean fits(SessionPlan plan, int blocks, SessionId held, String orderedBy) {
    return key.equals(plan.key())
        && share.equals(held)
        && epoch == plan.epoch()
        && parties.equals(plan.partyIds())
        && target.equals(plan.target())
        && messageBlocks == blocks
        && coordinator.equals(orderedBy);
  }

  @Override
  public String toString() {
    return "Presignature[of " + session + " for " + key + " epoch " + epoch + "]";
  }
}
