package io.coterie.simulation;

/** One kind of trouble that a schedule has or has not. */
enum Plague {
  /** The coordinator lies. */
  LYING_COORDINATOR,
  /** Processes are killed. */
  KILLS,
  /** Commits fail for a while. */
  FULL_DISKS,
  /** Members are cut off from each other. */
  CUTS,
  /** Clocks differ, within what the parties allow for. */
  SKEWS,
  /** The clock of one sound party jumps far beyond that. */
  JUMPS,
  /** Operators hold keys. */
  HOLDS,
  /** The store of one honest party is put back, with and without {@code restore}. */
  PUT_BACK,
  /** That party runs a second time, from a copy of its store. */
  CLONES,
  /** Replicas that clients ask are killed. */
  REPLICA_KILLS,
  /** They do not reach their database. */
  DATABASE_AWAY,
  /** It ends for all of them, and the last commits that no disk had are lost. */
  DATABASE_CRASHES,
  /**
   * Processes start again and again, after a clean stop too, one party is away for a time, and
   * clocks are set back by minutes. Not in schedules that a seed decides: in a world of its own.
   */
  RESTARTS
}
