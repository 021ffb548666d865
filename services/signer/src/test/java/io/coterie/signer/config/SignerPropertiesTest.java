package io.coterie.signer.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Settings that would break a promise of the party are refused. */
class SignerPropertiesTest {
  private static SignerProperties.Sessions sessions(Duration clockSkew) {
    return new SignerProperties.Sessions(
        256, 256, Duration.ofMinutes(2), clockSkew, Duration.ofMillis(30), 0);
  }

  /** Ids are taken that are so far ahead: after a start the fence must lie behind all of them. */
  @Test
  void request_ids_are_not_taken_from_further_ahead_than_a_start_takes() {
    assertThat(sessions(Duration.ofSeconds(1)).clockSkew()).isEqualTo(Duration.ofSeconds(1));
    assertThatThrownBy(() -> sessions(Duration.ofMillis(1001)))
        .hasMessageContaining("sessions.clock-skew");
  }
}
