package io.coterie.platform.intent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Instant;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class RequestIdTest {
  /** The example of RFC 9562, appendix A.6, of 2022-02-22 14:22:22.000 GMT-5. */
  private static final String EXAMPLE = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";

  @Test
  void the_example_of_the_rfc_says_its_time() {
    assertThat(RequestId.isOne(EXAMPLE)).isTrue();
    assertThat(RequestId.time(EXAMPLE)).isEqualTo(Instant.parse("2022-02-22T19:22:22Z"));
  }

  @Test
  void a_new_one_is_of_version_7_and_of_its_time() {
    Instant time = Instant.parse("2026-11-26T08:00:00.123Z");
    Set<String> all = new HashSet<>();
    for (int i = 0; i < 1000; i++) {
      String id = RequestId.at(time);
      assertThat(RequestId.isOne(id)).as(id).isTrue();
      assertThat(UUID.fromString(id).version()).isEqualTo(7);
      assertThat(UUID.fromString(id).variant()).isEqualTo(2);
      assertThat(RequestId.time(id)).isEqualTo(time);
      all.add(id);
    }
    assertThat(all).hasSize(1000);
  }

  @Test
  void the_order_of_text_is_that_of_time() {
    Instant time = Instant.parse("2026-11-26T08:00:00.123Z");
    assertThat(RequestId.first(time)).isLessThanOrEqualTo(RequestId.at(time));
    assertThat(RequestId.at(time)).isLessThan(RequestId.first(time.plusMillis(1)));
    assertThat(RequestId.first(Instant.EPOCH)).isLessThan(EXAMPLE);
  }

  @Test
  void other_uuids_and_other_texts_are_none() {
    for (String other :
        new String[] {
          "",
          "f47ac10b-58cc-4372-a567-0e02b2c3d479",
          EXAMPLE.toUpperCase(java.util.Locale.ROOT),
          EXAMPLE + "\n",
          EXAMPLE.replace("-98c4", "-18c4")
        }) {
      assertThat(RequestId.isOne(other)).as(other).isFalse();
    }
    assertThatThrownBy(() -> RequestId.at(Instant.EPOCH.minusMillis(1)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
