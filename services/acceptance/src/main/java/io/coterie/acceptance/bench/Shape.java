package io.coterie.acceptance.bench;

import com.google.common.base.Splitter;
import java.util.List;

/** A key's shape: parties needed of parties that hold a share. */
record Shape(int threshold, int parties) {
  static final List<Shape> ALL =
      List.of(
          new Shape(3, 3),
          new Shape(4, 4),
          new Shape(5, 5),
          new Shape(2, 3),
          new Shape(3, 5),
          new Shape(7, 10));

  /**
   * Those of all shapes that are wanted.
   *
   * @param wanted for example {@code 2/3 3/5}; empty for all
   */
  static List<Shape> chosen(String wanted) {
    List<String> names = Splitter.on(' ').omitEmptyStrings().splitToList(wanted);
    return ALL.stream()
        .filter(s -> names.isEmpty() || names.contains(s.threshold + "/" + s.parties))
        .toList();
  }

  @Override
  public String toString() {
    return threshold + "-of-" + parties;
  }
}
