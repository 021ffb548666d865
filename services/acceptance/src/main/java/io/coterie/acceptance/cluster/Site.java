package io.coterie.acceptance.cluster;

import java.util.List;

/**
 * Where a service runs, and how it is reached there.
 *
 * @param launcher command before the service's own that takes it there, for example {@code ip netns
 *     exec} and a namespace; empty for here
 * @param address where other services and clients reach it
 * @param direct where whoever starts and watches it reaches it
 */
public record Site(List<String> launcher, String address, String direct) {
  /** This machine, without further ado. */
  public static final Site HERE = new Site(List.of(), "localhost", "localhost");

  public Site {
    launcher = List.copyOf(launcher);
  }
}
