package io.coterie.signer.policy;

import java.util.ArrayList;
import java.util.List;

/**
 * The beginning of a derivation path.
 *
 * @param numbers non-hardened; none for any path
 */
public record PathPrefix(List<Integer> numbers) {

  public PathPrefix {
    numbers = List.copyOf(numbers);
  }

  /**
   * Reads {@code m}, {@code m/44/60}.
   *
   * @throws IllegalArgumentException if it is not one of these, or has a hardened number
   */
  public static PathPrefix parse(String text) {
    String[] parts = text.split("/", -1);
    if (!parts[0].equals("m")) {
      throw new IllegalArgumentException("a derivation path starts with m: " + text);
    }
    List<Integer> numbers = new ArrayList<>();
    for (int i = 1; i < parts.length; i++) {
      if (!parts[i].matches("[0-9]{1,10}") || Long.parseLong(parts[i]) > Integer.MAX_VALUE) {
        throw new IllegalArgumentException(
            "a derivation path has numbers below 2^31 between strokes: " + text);
      }
      numbers.add(Integer.valueOf(parts[i]));
    }
    return new PathPrefix(numbers);
  }

  /** Whether a path begins so. */
  public boolean matches(List<Integer> path) {
    return path.size() >= numbers.size() && path.subList(0, numbers.size()).equals(numbers);
  }
}
