package io.coterie.signer.group;

import io.coterie.proto.core.v1.Done;

/** The work on the orders of one kind, in the lane of each. */
interface GroupWork {
  /**
   * Does the step of an order whose plan was checked, or begins to.
   *
   * @throws NotDoneException if this party does not do it
   */
  void begin(GroupRun run) throws NotDoneException;

  /** The session of the order has its result. */
  void done(GroupRun run, Done done);
}
