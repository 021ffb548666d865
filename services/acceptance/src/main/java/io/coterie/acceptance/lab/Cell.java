package io.coterie.acceptance.lab;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Settings;
import io.coterie.channel.SendMode;
import java.util.Locale;
import java.util.function.ToDoubleBiFunction;

/** The subject of a measurement: one line of the CSV for each of its metrics. */
record Cell(
    String scenario, String scheme, Shape shape, SendMode mode, String phase, Setting setting) {
  static final String BLS = "bls12-381";
  static final String ECDSA = "ecdsa-secp256k1";
  static final String ED25519 = "ed25519";

  /** Signing with contributions to all, as in the paper, and not to the coordinator alone. */
  static final String SIGN_TO_ALL = "sign_to_all";

  static final String FIRST = "first_contact";
  static final String SUBSEQUENT = "subsequent";
  static final String ROTATING = "rotating";

  /** Region of the coordinator and of the client. */
  private static final String HOME = "home";

  /** Parties needed of parties that hold a share. */
  record Shape(int threshold, int parties) {
    /** Most parties of the paper's cells; with more, a machine has little power for each. */
    static final int CROWD = 5;

    boolean crowded() {
      return parties > CROWD;
    }

    @Override
    public String toString() {
      return threshold + "-of-" + parties;
    }
  }

  /** Where messaging is. The client is always beside the coordinator, each party by itself. */
  enum Placement {
    /** In a region where nobody else is. */
    THIRD_REGION,
    /** Beside the first party. */
    BESIDE_PARTY,
    /** Beside the coordinator. */
    BESIDE_COORDINATOR;

    String region(String place) {
      return switch (place) {
        case Cluster.CLIENT, Settings.COORDINATOR -> HOME;
        case Cluster.MESSAGING_NAME ->
            switch (this) {
              case THIRD_REGION -> "third";
              case BESIDE_PARTY -> Cluster.partyName(1);
              case BESIDE_COORDINATOR -> HOME;
            };
        default -> place;
      };
    }

    String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /**
   * Distances between all places.
   *
   * @param delay for the CSV: milliseconds one way, or {@code regions}
   */
  record Setting(String delay, String placement, ToDoubleBiFunction<String, String> oneWayMillis) {
    static Setting uniform(int millis, Placement placement) {
      return new Setting(
          Integer.toString(millis),
          placement.label(),
          (from, to) -> placement.region(from).equals(placement.region(to)) ? 0 : millis);
    }

    @Override
    public String toString() {
      return delay + " ms " + placement;
    }
  }

  String csv() {
    return "%s,%s,%d,%d,%s,%s"
        .formatted(
            scenario,
            scheme,
            shape.threshold(),
            shape.parties(),
            mode.name().toLowerCase(Locale.ROOT),
            phase);
  }
}
