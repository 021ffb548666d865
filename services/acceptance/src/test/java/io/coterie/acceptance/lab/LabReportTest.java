package io.coterie.acceptance.lab;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.lab.Cell.Placement;
import io.coterie.acceptance.lab.Cell.Setting;
import io.coterie.acceptance.lab.Cell.Shape;
import io.coterie.channel.SendMode;
import io.coterie.cli.plan.Floor;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class LabReportTest {
  private static final Setting FAR = Setting.uniform(75, Placement.THIRD_REGION);
  private static final Shape ALL_OF_THREE = new Shape(3, 3);

  private static Result result(String scenario, SendMode mode, String phase, double... latencies) {
    return result(ALL_OF_THREE, scenario, mode, phase, latencies);
  }

  private static Result result(
      Shape shape, String scenario, SendMode mode, String phase, double... latencies) {
    Cell cell = new Cell(scenario, Cell.BLS, shape, mode, phase, FAR);
    List<String> parties =
        IntStream.rangeClosed(1, shape.threshold()).mapToObj(Cluster::partyName).toList();
    Floor.Operation operation =
        switch (scenario) {
          case "sign" -> Floor.Operation.SIGN;
          case Cell.SIGN_TO_ALL -> Floor.Operation.SIGN_PRESIGNED;
          default -> Floor.Operation.KEYGEN_BLS;
        };
    return new Result(cell, latencies, Measurement.floor(cell, operation, parties));
  }

  @Test
  void floorsFollowFromThePlacement() {
    assertThat(result("sign", SendMode.GROUP, Cell.SUBSEQUENT, 1).floor()).isEqualTo(4 * 75);
    assertThat(result("sign", SendMode.PAIRWISE_SEQUENTIAL, Cell.SUBSEQUENT, 1).floor())
        .isEqualTo(8 * 75);
    assertThat(result("sign", SendMode.NAMED_STORED, Cell.SUBSEQUENT, 1).floor()).isEqualTo(8 * 75);
    // Contributions to all, as in the paper, cost one who sends one after another a way and back
    // for each peer.
    for (SendMode mode : List.of(SendMode.PAIRWISE_SEQUENTIAL, SendMode.NAMED_STORED)) {
      assertThat(result(Cell.SIGN_TO_ALL, mode, Cell.SUBSEQUENT, 1).floor()).isEqualTo(12 * 75);
    }
    assertThat(result(Cell.SIGN_TO_ALL, SendMode.GROUP, Cell.SUBSEQUENT, 1).floor())
        .isEqualTo(4 * 75);
    assertThat(result("keygen", SendMode.GROUP, Cell.SUBSEQUENT, 1).floor()).isEqualTo(12 * 75);
  }

  @Test
  void theMiddleAndTheTailOfTheSamples() {
    Result result = result("sign", SendMode.GROUP, Cell.SUBSEQUENT, 5, 1, 3, 2, 4);
    assertThat(result.median()).isEqualTo(3);
    assertThat(result.quantile(0.95)).isEqualTo(5);
    assertThat(result.mean()).isEqualTo(3);
    assertThat(result.csv())
        .containsExactly(
            "sign,bls12-381,3,3,group,subsequent,latency,ms,3.000,5.000,5,75,third_region",
            "sign,bls12-381,3,3,group,subsequent,floor,ms,300.000,300.000,0,75,third_region");
  }

  @Test
  void theRoundsOfAllPartiesTogether() {
    Result once = result("keygen", SendMode.GROUP, Cell.SUBSEQUENT, 1);
    Result result =
        new Result(
            once.cell(),
            once.sorted(),
            once.floor(),
            0,
            0,
            0,
            Metrics.union(
                    List.of(
                        passes("party-1", "0.125", 3, "0.15", 4, "+Inf", 4),
                        passes("party-2", "0.125", 0, "0.15", 5, "+Inf", 6),
                        passes("coordinator", "0.125", 0, "0.15", 2, "+Inf", 2)))
                .samples());
    String cell = "keygen,bls12-381,3,3,group,subsequent,75,third_region,bls_keygen,1,";
    assertThat(result.roundsCsv())
        .containsExactly(
            cell + "coordinator,150.000,2",
            cell + "parties,125.000,3",
            cell + "parties,150.000,9",
            cell + "parties,Infinity,10");
  }

  private static Metrics passes(String service, Object... buckets) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < buckets.length; i += 2) {
      text.append(
          "coterie_protocol_round_seconds_bucket{protocol=\"bls_keygen\",round=\"1\",le=\"%s\"} %s%n"
              .formatted(buckets[i], buckets[i + 1]));
    }
    return Metrics.parse(text.toString()).labelled("service", service);
  }

  @Test
  void aBarThatIsMissedIsNamed() {
    String report =
        LabReport.of(
            List.of(
                result("sign", SendMode.GROUP, Cell.SUBSEQUENT, 310),
                result(new Shape(7, 10), "sign", SendMode.GROUP, Cell.SUBSEQUENT, 390),
                result("sign", SendMode.PAIRWISE_SEQUENTIAL, Cell.SUBSEQUENT, 620),
                result("sign", SendMode.NAMED_STORED, Cell.SUBSEQUENT, 630),
                result(Cell.SIGN_TO_ALL, SendMode.GROUP, Cell.SUBSEQUENT, 310),
                result(Cell.SIGN_TO_ALL, SendMode.PAIRWISE_SEQUENTIAL, Cell.SUBSEQUENT, 930),
                result(Cell.SIGN_TO_ALL, SendMode.NAMED_STORED, Cell.SUBSEQUENT, 1000),
                result("keygen", SendMode.GROUP, Cell.SUBSEQUENT, 1200),
                result("sign", SendMode.GROUP, Cell.FIRST, 320),
                result("sign", SendMode.PAIRWISE_SEQUENTIAL, Cell.FIRST, 900)),
            20);
    assertThat(report)
        .contains("| sign, group, 75 and 150 ms: times floor | at most 1.15 | 1.033 (3-of-3")
        .contains("| keygen, group, 75 and 150 ms: times floor | at most 1.25 | 1.333 (3-of-3")
        .contains(
            "| sign, group, 75 and 150 ms, more than 5 parties: times floor | at most 1.15 | 1.300 (7-of-10")
        .contains("one after another | at least 68.83 % | 66.67 % | **no** |")
        .contains("named, stored, by REST | at least 68.83 % | 69.00 % | yes |")
        .doesNotContain("| sign, 3-of-3, 75 ms: group faster than")
        .contains("| 75 | third region | 3-of-3 | 310 (1.03) | not measured | 620 (1.03) | 630")
        .contains("| 75 | third region | 3-of-3 | 310 (1.03) | not measured | 930 (1.03) | 1000")
        .contains("| sign_to_all | 3 | 66.67 % | not measured | 69.00 % | 66.67 % |")
        .contains("| sign | 3 | 50.00 % | not measured | 50.79 % | 50.00 % |")
        .contains(
            "| sign, first contact: group against one after another | at most 1 | 0.36 | yes |");
  }
}
