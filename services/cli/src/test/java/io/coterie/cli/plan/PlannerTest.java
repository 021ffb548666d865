package io.coterie.cli.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.coterie.cli.Run;
import io.coterie.cli.plan.Planner.Plan;
import java.io.StringReader;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PlannerTest {
  private static final Regions LINE =
      Regions.parse(
          new StringReader(
              """
              # west - middle - east
              region,west,middle,east
              west,0,20,60
              middle,20,0,40
              east,60,40,0
              """));

  @Test
  void thePublishedMatrixIsComplete() {
    Regions published = Regions.published();
    assertThat(published.names()).hasSize(10).contains("us-east", "eu-de", "jp-tok");
    for (String from : published.names()) {
      for (String to : published.names()) {
        double there = published.oneWayMillis(from, to);
        assertThat(there).isEqualTo(published.oneWayMillis(to, from));
        assertThat(there).isBetween(from.equals(to) ? 0 : 4.0, from.equals(to) ? 0 : 170.0);
      }
    }
    // Washington and London: 75 ms there and back.
    assertThat(published.oneWayMillis("us-east", "eu-gb")).isEqualTo(37.5);
  }

  @Test
  void everythingInTheMiddleIsBestForAllThree() {
    Plan best =
        new Planner(LINE).plans(List.of("west", "middle", "east"), 3, "", LINE.names()).getFirst();
    assertThat(best.messaging()).isEqualTo("middle");
    assertThat(best.coordinator()).isEqualTo("middle");
    // Order to the east and its contribution back. Rounds are heard 30 later between east and west,
    // by turns.
    assertThat(best.sign()).isEqualTo(40);
    assertThat(best.keygen()).isEqualTo(20 + 4 * 30 + 20);
  }

  @Test
  void aFarPartyIsNotNeededForTwoOfThree() {
    Plan best =
        new Planner(LINE).plans(List.of("west", "middle", "east"), 2, "", LINE.names()).getFirst();
    assertThat(best.messaging()).isEqualTo("middle");
    assertThat(best.signers()).containsExactly("middle", "west");
    assertThat(best.sign()).isEqualTo(20);
  }

  @Test
  void theClientsPlaceCounts() {
    List<Plan> plans =
        new Planner(LINE).plans(List.of("west", "west", "west"), 2, "east", LINE.names());
    assertThat(plans).hasSize(9).isSortedAccordingTo((a, b) -> Double.compare(a.sign(), b.sign()));
    assertThat(plans.getFirst().sign()).isEqualTo(60);
    assertThat(plans.getLast().sign()).isGreaterThan(60);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "region,a,b\na,0,1\n",
        "region,a,b\nb,0,1\na,1,0\n",
        "region,a,a\na,0,1\na,1,0\n",
        "region,a,b\na,0\nb,1,0\n",
        "region,a,b\na,0,-1\nb,1,0\n",
        "region,a,b\na,0,NaN\nb,1,0\n",
        "region,a,b\na,0,far\nb,1,0\n"
      })
  void aMatrixThatIsNoneIsRefused(String text) {
    assertThatIllegalArgumentException().isThrownBy(() -> Regions.parse(new StringReader(text)));
  }

  private static String plan(int exitCode, String... more) {
    String[] arguments = new String[more.length + 1];
    arguments[0] = "plan";
    System.arraycopy(more, 0, arguments, 1, more.length);
    Run run = Run.of(arguments);
    assertThat(run.exitCode()).isEqualTo(exitCode);
    return run.out() + run.err();
  }

  @Test
  void theCommandSaysWhereToPutThings() {
    // Washington, London, Frankfurt, Tokyo: the two near ones sign; all four are nearest to London.
    assertThat(plan(0, "--regions", "us-east,eu-gb,eu-de,jp-tok", "--threshold", "2"))
        .contains(
            "messaging   eu-gb",
            "coordinator eu-gb",
            "signing     13.0 ms",
            "eu-gb, eu-de (2 of 4)");
    assertThat(plan(0, "--regions", "eu-gb,eu-de,eu-es", "--client", "us-east"))
        .contains("client      us-east", "(2 of 3)");
  }

  @Test
  void theCommandRefusesWhatCannotBe() {
    assertThat(plan(2, "--regions", "atlantis")).contains("no region atlantis; there are us-south");
    assertThat(plan(2, "--regions", "eu-de", "--threshold", "2"))
        .contains("2 of 1 parties cannot sign");
    assertThat(plan(2)).contains("--regions");
  }
}
