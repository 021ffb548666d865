package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.limit.Source;
import io.coterie.messaging.socket.Places.Outcome;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class PlacesTest {
  private static final Source GREEDY = new Source.OfNetwork("192.0.2.1");
  private static final Source FIRST = new Source.OfNetwork("192.0.2.2");
  private static final Source SECOND = new Source.OfNetwork("192.0.2.3");

  private final Places<String> places = new Places<>(4);

  private static Outcome<String> admitted(String displaced) {
    return new Outcome.Admitted<>(Optional.ofNullable(displaced));
  }

  @Test
  void a_source_that_takes_all_places_gives_others_their_share() {
    for (int i = 0; i < 4; i++) {
      assertThat(places.take(GREEDY, "greedy" + i)).isEqualTo(admitted(null));
    }
    assertThat(places.take(GREEDY, "greedy4")).isEqualTo(new Outcome.Refused<>());
    assertThat(places.take(FIRST, "first0")).isEqualTo(admitted("greedy3"));
    assertThat(places.take(SECOND, "second0")).isEqualTo(admitted("greedy2"));
    assertThat(places.take(FIRST, "first1")).isEqualTo(new Outcome.Refused<>());
    assertThat(places.take(GREEDY, "greedy5")).isEqualTo(new Outcome.Refused<>());
  }

  @Test
  void a_connection_that_ends_frees_its_place_once() {
    for (int i = 0; i < 4; i++) {
      places.take(GREEDY, "greedy" + i);
    }
    places.release("greedy0");
    places.release("greedy0");
    assertThat(places.take(GREEDY, "greedy4")).isEqualTo(admitted(null));
    assertThat(places.take(GREEDY, "greedy5")).isEqualTo(new Outcome.Refused<>());
  }
}
