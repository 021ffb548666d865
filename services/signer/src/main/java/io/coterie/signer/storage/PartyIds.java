package io.coterie.signer.storage;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** Party ids as one column keeps them: decimal, in order, separated by commas. */
final class PartyIds {
  private static final String SEPARATOR = ",";

  private PartyIds() {}

  static String text(List<Integer> parties) {
    return parties.stream().map(String::valueOf).collect(Collectors.joining(SEPARATOR));
  }

  static List<Integer> of(String text) {
    return Arrays.stream(text.split(SEPARATOR, -1)).map(Integer::valueOf).toList();
  }
}
