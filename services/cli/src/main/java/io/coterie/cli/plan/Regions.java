package io.coterie.cli.plan;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Published round-trip times between regions, {@code regions.csv} beside this class: comments with
 * their source, a line {@code region,NAME...}, and for each region a line {@code NAME,MILLIS...}.
 */
public final class Regions {
  private final List<String> names;

  /** Round trip from row to column as measured from the row's side. */
  private final double[][] millis;

  private Regions(List<String> names, double[][] millis) {
    this.names = names;
    this.millis = millis;
  }

  /** The matrix that comes with this program. */
  public static Regions published() {
    try (Reader text =
        new InputStreamReader(
            Objects.requireNonNull(Regions.class.getResourceAsStream("regions.csv")),
            StandardCharsets.UTF_8)) {
      return parse(text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * The matrix of a file.
   *
   * @throws IllegalArgumentException as {@link #parse}
   */
  static Regions read(Path file) throws IOException {
    try (Reader text = Files.newBufferedReader(file)) {
      return parse(text);
    }
  }

  /**
   * Reads a matrix.
   *
   * @throws IllegalArgumentException if it is not square, has unknown or repeated names, or a time
   *     that is none
   */
  static Regions parse(Reader text) {
    List<String[]> lines =
        new BufferedReader(text)
            .lines()
            .filter(line -> !line.isBlank() && !line.startsWith("#"))
            .map(line -> line.split(",", -1))
            .toList();
    List<String> names =
        lines.isEmpty() ? List.of() : List.of(lines.getFirst()).subList(1, lines.getFirst().length);
    if (names.isEmpty()
        || names.stream().distinct().count() != names.size()
        || lines.size() != names.size() + 1) {
      throw new IllegalArgumentException("not a square matrix of regions");
    }
    double[][] millis = new double[names.size()][];
    for (int row = 0; row < names.size(); row++) {
      String[] line = lines.get(row + 1);
      if (line.length != names.size() + 1 || !line[0].equals(names.get(row))) {
        throw new IllegalArgumentException("the line of " + names.get(row) + " is " + line[0]);
      }
      millis[row] = Arrays.stream(line).skip(1).mapToDouble(Double::parseDouble).toArray();
      for (double time : millis[row]) {
        if (!(time >= 0 && time < 60_000)) {
          throw new IllegalArgumentException("a round trip of " + time + " ms");
        }
      }
    }
    return new Regions(names, millis);
  }

  /** All regions, in the order of the matrix. */
  public List<String> names() {
    return names;
  }

  /**
   * Half the round trip, of which each direction has its own measurement.
   *
   * @throws IllegalArgumentException for a region that is not in the matrix
   */
  public double oneWayMillis(String from, String to) {
    int row = index(from);
    int column = index(to);
    return row == column ? 0 : (millis[row][column] + millis[column][row]) / 4;
  }

  /**
   * Checks a name.
   *
   * @throws IllegalArgumentException for a region that is not in the matrix
   */
  void require(String region) {
    var unused = index(region);
  }

  private int index(String region) {
    int index = names.indexOf(region);
    if (index < 0) {
      throw new IllegalArgumentException(
          "no region " + region + "; there are " + String.join(", ", names));
    }
    return index;
  }
}
