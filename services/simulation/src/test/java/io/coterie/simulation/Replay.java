package io.coterie.simulation;

/** Runs the schedule of a seed in a process of its own, and prints the number of its trace. */
final class Replay {
  private Replay() {}

  /** The seed is the argument. */
  public static void main(String[] args) {
    long seed = Long.parseLong(args[0]);
    System.out.println(Simulation.run(seed, Mutant.NONE, new Coverage(), null).trace());
  }
}
