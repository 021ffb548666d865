package io.coterie.simulation;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Everything that a schedule may do to the parties: each fault, each lie and each deed of the
 * coordinator has a name of its own, so that a schedule can be run again with some of them alone.
 * The seed has decided all else by then: one that does not happen moves no other.
 */
final class Faults {
  private final @Nullable Set<String> only;
  private final Map<String, Integer> numbers = new HashMap<>();
  private final Set<String> happened = new LinkedHashSet<>();

  private Faults(@Nullable Set<String> only) {
    this.only = only;
  }

  /** All that the seed decides. */
  static Faults all() {
    return new Faults(null);
  }

  /** Faults of which only the named ones happen. */
  static Faults only(Set<String> names) {
    return new Faults(Set.copyOf(names));
  }

  /**
   * Whether the next one of a kind happens.
   *
   * @param kind of the fault, and where it strikes
   */
  boolean strikes(String kind) {
    String name = kind + " #" + numbers.merge(kind, 1, Integer::sum);
    if (only != null && !only.contains(name)) {
      return false;
    }
    happened.add(name);
    return true;
  }

  /** Those that have happened, in order. */
  List<String> happened() {
    return List.copyOf(happened);
  }
}
