package io.coterie.simulation;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** How often each fault struck and each lie was told, and which ends sessions came to. */
final class Coverage {
  private final Map<String, Long> counts = new TreeMap<>();

  void count(String what) {
    counts.merge(what, 1L, Long::sum);
  }

  void add(Coverage other) {
    other.counts.forEach((what, count) -> counts.merge(what, count, Long::sum));
  }

  long of(String what) {
    return counts.getOrDefault(what, 0L);
  }

  /** Those that never happened. */
  List<String> missing(Collection<String> wanted) {
    return wanted.stream().filter(what -> of(what) == 0).sorted().toList();
  }

  /** One line for each, by name. */
  String table() {
    StringBuilder table = new StringBuilder();
    counts.forEach((what, count) -> table.append("  %-44s %,12d%n".formatted(what, count)));
    return table.toString();
  }
}
