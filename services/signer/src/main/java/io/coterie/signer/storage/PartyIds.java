package io.coterie.signer.storage;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** Sets of party ids, and how one column keeps them: decimal, in order, separated by commas. */
final class PartyIds {
  private static final String SEPARATOR = ",";

  private PartyIds() {}

  /** The parties of both sets. */
  static Set<Integer> union(Set<Integer> some, Set<Integer> more) {
    Set<Integer> all = new HashSet<>(some);
    all.addAll(more);
    return Set.copyOf(all);
  }

  static String text(List<Integer> parties) {
    return parties.stream().map(String::valueOf).collect(Collectors.joining(SEPARATOR));
  }

  static List<Integer> of(String text) {
    return Arrays.stream(text.split(SEPARATOR, -1)).map(Integer::valueOf).toList();
  }
}
