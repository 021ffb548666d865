package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.RefusalReason;

/** The means of the work on an order. All but {@link #execute} are used in the order's lane. */
interface RunControl {
  /** Goes on in the lane of the order; a task that fails ends the order. */
  void execute(GroupRun run, Runnable task);

  /**
   * Takes what the order needs here: a place of its requester, and its deadline is watched.
   *
   * @throws NotDoneException if this party has no time, room or leave for it now
   */
  void requireFree(GroupRun run) throws NotDoneException;

  /** Starts the session of an order; {@link GroupWork#done} hears of its result. */
  void start(GroupRun run, SessionConfig config, ByteString sealedShare);

  /** Reports that the step is done, with what is on the disk. */
  void done(GroupRun run, GroupReport.Builder report);

  /** Reports that it is not done. */
  void refuse(GroupRun run, NotDoneException why);

  /** The same. */
  default void refuse(GroupRun run, RefusalReason reason, String detail) {
    refuse(run, new NotDoneException(reason, detail));
  }
}
