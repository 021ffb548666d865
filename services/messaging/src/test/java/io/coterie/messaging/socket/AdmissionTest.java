package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.messaging.limit.RateLimit.Rate;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
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

  private static final Source EDGE = new Source.OfNetwork("192.0.2.9");
  private static final int EDGE_PLACES = 4;

  private final AtomicLong nanos = new AtomicLong();
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

  private Admission<String> admission(Rate rate, int places) {
    return new Admission<>(rate, places, EDGE_PLACES, nanos::get, new MessagingMetrics(registry));
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
    admission.release("1");
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

  /** An admission that knows the address of the edge, by a connection that has ended. */
  private Admission<String> knowingTheEdge(Rate rate, int places) {
    Admission<String> admission = admission(rate, places);
    assertThat(admission.admit(EDGE, "known")).isEqualTo(admitted(null));
    assertThat(admission.identified(EDGE, "known", true)).isEqualTo(admitted(null));
    admission.release("known");
    return admission;
  }

  private static Places.Outcome<String> admitted(String displaced) {
    return new Places.Outcome.Admitted<>(Optional.ofNullable(displaced));
  }

  @Test
  void the_edge_has_places_of_its_own_and_no_rate() {
    Admission<String> admission = knowingTheEdge(new Rate(1, 0.001), 1);
    assertThat(admission.admit(GREEDY, "1")).isEqualTo(admitted(null));
    for (int i = 0; i < EDGE_PLACES; i++) {
      assertThat(admission.admit(EDGE, "edge" + i)).isEqualTo(admitted(null));
      assertThat(admission.identified(EDGE, "edge" + i, true)).isEqualTo(admitted(null));
    }
    assertThat(admission.admit(EDGE, "edge")).isInstanceOf(Places.Outcome.Refused.class);
    assertThat(admission.admit(MODEST, "2"))
        .as("others take places from others")
        .isEqualTo(admitted("1"));
  }

  @Test
  void a_client_of_the_edge_that_holds_most_places_gives_way_to_the_others() {
    Admission<String> admission = knowingTheEdge(new Rate(100, 1), 1);
    for (int i = 0; i < EDGE_PLACES; i++) {
      admission.admit(EDGE, "greedy" + i);
      admission.identified(EDGE, "greedy" + i, true);
      admission.serves("greedy" + i, GREEDY);
    }
    assertThat(admission.admit(EDGE, "modest")).isEqualTo(admitted("greedy3"));
    admission.serves("modest", MODEST);
    // It is too late for this one, which has lost its place.
    admission.serves("greedy3", MODEST);
    admission.rests("greedy3");
    assertThat(admission.admit(EDGE, "next")).isEqualTo(admitted("greedy2"));
    assertThat(refused("displaced")).isEqualTo(2);
  }

  @Test
  void a_connection_of_the_edge_that_carries_nothing_gives_way_first_and_the_oldest_of_them() {
    Admission<String> admission = knowingTheEdge(new Rate(100, 1), 1);
    for (String connection : new String[] {"1", "2", "3", "4"}) {
      admission.admit(EDGE, connection);
      admission.serves(connection, GREEDY);
    }
    admission.rests("2");
    admission.rests("1");
    assertThat(admission.admit(EDGE, "5")).isEqualTo(admitted("2"));
    admission.serves("5", new Source.OfNetwork("192.0.2.3"));
    admission.serves("1", MODEST);
    assertThat(admission.admit(EDGE, "6"))
        .as("it carries a request again")
        .isEqualTo(admitted("4"));
  }

  @Test
  void a_client_of_the_edge_has_a_rate_of_new_sockets() {
    Admission<String> admission = knowingTheEdge(new Rate(2, 1), 1);
    admission.admitSocket(GREEDY);
    admission.admitSocket(GREEDY);
    assertThatThrownBy(() -> admission.admitSocket(GREEDY))
        .isInstanceOf(RateLimitedException.class);
    assertThat(refused("rate")).isEqualTo(1);
    admission.admitSocket(MODEST);
  }

  @Test
  void an_address_is_the_edges_for_some_time_after_it_has_proved_so() {
    Admission<String> admission = knowingTheEdge(new Rate(1, 1), 1);
    nanos.addAndGet(Duration.ofMinutes(9).toNanos());
    assertThat(admission.admit(EDGE, "1")).isEqualTo(admitted(null));
    assertThat(admission.admit(EDGE, "2")).isEqualTo(admitted(null));
    nanos.addAndGet(Duration.ofMinutes(2).toNanos());
    assertThat(admission.admit(EDGE, "3")).isEqualTo(admitted(null));
    assertThat(admission.admit(EDGE, "4")).isInstanceOf(Places.Outcome.Refused.class);
  }

  @Test
  void a_connection_from_the_edges_address_that_proves_nothing_is_one_of_the_others() {
    Admission<String> admission = knowingTheEdge(new Rate(2, 0.001), 5);
    assertThat(admission.admit(EDGE, "1")).isEqualTo(admitted(null));
    assertThat(admission.identified(EDGE, "1", false)).isEqualTo(admitted(null));
    assertThat(admission.admit(EDGE, "2")).isEqualTo(admitted(null));
    assertThat(admission.identified(EDGE, "2", false))
        .as("the first and the one before have used up the rate of the address")
        .isInstanceOf(Places.Outcome.Refused.class);
    for (int i = 0; i < EDGE_PLACES; i++) {
      assertThat(admission.admit(EDGE, "edge" + i))
          .as("neither holds a place of the edge any more")
          .isEqualTo(admitted(null));
    }
  }
}
