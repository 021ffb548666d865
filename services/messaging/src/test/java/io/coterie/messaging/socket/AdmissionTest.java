package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.limit.RateLimit.Rate;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class AdmissionTest {
  private static final Source GREEDY = new Source.OfNetwork("192.0.2.1");
  private static final Source MODEST = new Source.OfNetwork("192.0.2.2");

  private final AtomicLong nanos = new AtomicLong();
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

  private Admission<String> admission(Rate rate, int places) {
    return new Admission<>(rate, places, nanos::get, new MessagingMetrics(registry));
  }

  private double refused(String reason) {
    return registry.counter("coterie.messaging.refused", "reason", reason).count();
  }

  @Test
  void each_network_has_a_rate_of_new_connections() {
    Admission<String> admission = admission(new Rate(2, 1), 10);
    assertThat(admission.admit(GREEDY, "1")).isInstanceOf(Places.Outcome.Admitted.class);
    assertThat(admission.admit(GREEDY, "2")).isInstanceOf(Places.Outcome.Admitted.class);
    assertThat(admission.admit(GREEDY, "3")).isInstanceOf(Places.Outcome.Refused.class);
    assertThat(admission.admit(MODEST, "4")).isInstanceOf(Places.Outcome.Admitted.class);
    assertThat(refused("rate")).isEqualTo(1);
    nanos.addAndGet(Duration.ofSeconds(1).toNanos());
    assertThat(admission.admit(GREEDY, "5")).isInstanceOf(Places.Outcome.Admitted.class);
  }

  @Test
  void who_holds_most_places_gives_way_to_others_and_to_nobody_of_its_own() {
    Admission<String> admission = admission(new Rate(100, 1), 3);
    for (String connection : new String[] {"1", "2", "3"}) {
      admission.admit(GREEDY, connection);
    }
    assertThat(admission.admit(GREEDY, "4")).isInstanceOf(Places.Outcome.Refused.class);
    assertThat(refused("places")).isEqualTo(1);
    assertThat(admission.admit(MODEST, "5"))
        .isEqualTo(new Places.Outcome.Admitted<>(Optional.of("3")));
    assertThat(refused("displaced")).isEqualTo(1);
    admission.release(GREEDY, "1");
    assertThat(admission.admit(GREEDY, "6"))
        .isEqualTo(new Places.Outcome.Admitted<>(Optional.empty()));
  }

  @Test
  void a_newcomer_gets_the_place_of_the_oldest_when_all_have_one() {
    Admission<String> admission = admission(new Rate(100, 1), 2);
    admission.admit(GREEDY, "1");
    admission.admit(MODEST, "2");
    Source newcomer = new Source.OfNetwork("192.0.2.3");
    assertThat(admission.admit(newcomer, "3"))
        .isEqualTo(new Places.Outcome.Admitted<>(Optional.of("1")));
    assertThat(admission.admit(newcomer, "4")).isInstanceOf(Places.Outcome.Refused.class);
    assertThat(admission.admit(GREEDY, "5"))
        .isEqualTo(new Places.Outcome.Admitted<>(Optional.of("2")));
  }
}
