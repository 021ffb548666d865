package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.coterie.acceptance.cluster.Metrics;
import org.junit.jupiter.api.Test;

class MetricsTest {
  private static final String TEXT =
      """
      # HELP round_seconds x
      # TYPE round_seconds histogram
      round_seconds_bucket{party="a",le="0.01"} 50
      round_seconds_bucket{party="a",le="0.02"} 100
      round_seconds_bucket{party="a",le="+Inf"} 100
      round_seconds_count{party="a"} 100
      odd{text="a\\"b,c=\\"d"} 1.5e3
      plain 7
      """;

  @Test
  void readsValuesAndLabels() {
    Metrics metrics = Metrics.parse(TEXT);
    assertThat(metrics.sum("plain")).isEqualTo(7);
    assertThat(metrics.sum("odd", s -> s.label("text").equals("a\\\"b,c=\\\"d"))).isEqualTo(1500);
    assertThat(metrics.values("round_seconds_bucket", "le"))
        .containsExactly("+Inf", "0.01", "0.02");
  }

  @Test
  void interpolatesQuantilesInTheirBucket() {
    Metrics metrics = Metrics.parse(TEXT);
    assertThat(metrics.quantile(0.5, "round_seconds", s -> true).orElseThrow())
        .isCloseTo(0.01, within(1e-9));
    assertThat(metrics.quantile(0.75, "round_seconds", s -> true).orElseThrow())
        .isCloseTo(0.015, within(1e-9));
    assertThat(metrics.quantile(0.5, "round_seconds", s -> s.label("party").equals("b"))).isEmpty();
  }

  @Test
  void subtractsAnEarlierReading() {
    Metrics before = Metrics.parse("plain 3\n");
    assertThat(Metrics.parse(TEXT).since(before).sum("plain")).isEqualTo(4);
  }
}
