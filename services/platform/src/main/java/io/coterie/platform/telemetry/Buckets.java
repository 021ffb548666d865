package io.coterie.platform.telemetry;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** One set of latency buckets for every timer, so that histograms of all services can be added. */
public final class Buckets {
  /**
   * Upper bounds, ascending: 1 ms to 10 s, dense where objectives lie and where sessions between
   * regions end (100 ms to 2 s), so that a quantile of a dashboard is within a third of the truth
   * there.
   */
  public static final List<Duration> LATENCY =
      Stream.of(
              1, 2, 3, 5, 7, 10, 15, 20, 25, 35, 50, 75, 100, 125, 150, 200, 250, 300, 350, 400,
              500, 600, 750, 1000, 1250, 1500, 2000, 2500, 3500, 5000, 7500, 10000)
          .map(Duration::ofMillis)
          .toList();

  private static final String PREFIX = "coterie.";

  private Buckets() {}

  /**
   * Gives every timer of this system the buckets; to be set on the registry before the first one.
   */
  public static MeterFilter filter() {
    double[] nanos = LATENCY.stream().mapToDouble(Duration::toNanos).toArray();
    return new MeterFilter() {
      @Override
      public DistributionStatisticConfig configure(
          Meter.Id id, DistributionStatisticConfig config) {
        if (id.getType() != Meter.Type.TIMER || !id.getName().startsWith(PREFIX)) {
          return config;
        }
        return DistributionStatisticConfig.builder()
            .percentilesHistogram(false)
            .serviceLevelObjectives(Arrays.copyOf(nanos, nanos.length))
            .build()
            .merge(config);
      }
    };
  }
}
