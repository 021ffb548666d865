package io.coterie.acceptance.lab;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.acceptance.cluster.Site;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleBiFunction;

/**
 * The network of the latency lab: a namespace for each service and the client, made by {@code
 * loadtest/lab/run}, and a process that carries the packets between them, each as late as the
 * distance says. Delays can be changed at any time.
 */
public final class LabNetwork implements AutoCloseable {
  private static final String PREFIX = "coterie-lab-";
  private static final String DEVICE = "wan";

  private final List<String> places;
  private final Process delayer;
  private final BufferedWriter orders;
  private final BufferedReader answers;

  private LabNetwork(List<String> places, Process delayer) {
    this.places = places;
    this.delayer = delayer;
    this.orders = delayer.outputWriter();
    this.answers = delayer.inputReader();
  }

  /**
   * Attaches to the namespaces of an installation; no delays yet.
   *
   * @param program the delayer
   */
  static LabNetwork open(Path program, int parties) {
    List<String> places =
        new ArrayList<>(List.of(Cluster.CLIENT, Cluster.MESSAGING_NAME, Settings.COORDINATOR));
    for (int party = 1; party <= parties; party++) {
      places.add(Cluster.partyName(party));
    }
    List<String> command = new ArrayList<>(List.of(program.toString(), DEVICE));
    places.forEach(place -> command.add(PREFIX + place));
    try {
      LabNetwork network =
          new LabNetwork(
              List.copyOf(places),
              new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start());
      network.expect("ready");
      return network;
    } catch (IOException e) {
      throw new UncheckedIOException("the delayer did not start", e);
    }
  }

  /** Where a service runs. The client is where this JVM is. */
  Site site(String place) {
    int number = places.indexOf(place) + 1;
    if (number == 0) {
      throw new IllegalArgumentException("no place for " + place);
    }
    return new Site(
        place.equals(Cluster.CLIENT) ? List.of() : List.of("ip", "netns", "exec", PREFIX + place),
        "10.77.0." + number,
        "10.78.0." + number);
  }

  /**
   * Changes the delays.
   *
   * @param oneWayMillis from one place to another
   */
  void delays(ToDoubleBiFunction<String, String> oneWayMillis) {
    try {
      for (int from = 1; from <= places.size(); from++) {
        for (int to = 1; to <= places.size(); to++) {
          double millis = oneWayMillis.applyAsDouble(places.get(from - 1), places.get(to - 1));
          orders.write("%d %d %d%n".formatted(from, to, Math.round(millis * 1000)));
        }
      }
      orders.flush();
      for (int i = 0; i < places.size() * places.size(); i++) {
        expect("ok");
      }
    } catch (IOException e) {
      throw new UncheckedIOException("the delayer has ended", e);
    }
  }

  private void expect(String expected) throws IOException {
    String answer = answers.readLine();
    if (!expected.equals(answer)) {
      throw new IOException("the delayer says " + answer + ", not " + expected);
    }
  }

  @Override
  public void close() {
    delayer.destroy();
  }
}
