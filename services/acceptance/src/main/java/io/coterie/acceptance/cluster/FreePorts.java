package io.coterie.acceptance.cluster;

import java.io.IOException;
import java.net.ServerSocket;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/** Ports for services that have not started yet. */
public final class FreePorts {
  private FreePorts() {}

  /**
   * Ports that nobody listens on. Below those that the system gives to connections, so that none of
   * these is taken by one before the service listens.
   */
  public static List<Integer> find(int count) {
    Set<Integer> ports = new LinkedHashSet<>();
    for (int tries = 0; ports.size() < count && tries < 1_000 * count; tries++) {
      int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
      try (ServerSocket free = new ServerSocket(port)) {
        ports.add(free.getLocalPort());
      } catch (IOException e) {
        // Somebody listens on it.
        continue;
      }
    }
    if (ports.size() < count) {
      throw new IllegalStateException("no free ports");
    }
    return List.copyOf(ports);
  }
}
