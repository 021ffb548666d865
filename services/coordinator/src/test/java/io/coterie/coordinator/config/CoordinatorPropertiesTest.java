package io.coterie.coordinator.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

class CoordinatorPropertiesTest {
  private static CoordinatorProperties with(String name, String value) {
    Map<String, String> settings =
        new HashMap<>(
            Map.of(
                "coterie.coordinator.data-folder", "data",
                "coterie.coordinator.tls.certificate", "tls.crt",
                "coterie.coordinator.channel.messaging", "https://messaging",
                "coterie.coordinator.unseal.passphrase-file", "passphrase"));
    settings.put("coterie.coordinator." + name, value);
    return new Binder(new MapConfigurationPropertySource(settings))
        .bind("coterie.coordinator", CoordinatorProperties.class)
        .get();
  }

  @Test
  void messages_go_by_name_in_measurements_only() {
    assertThatThrownBy(() -> with("channel.send-mode", "named-stored"))
        .rootCause()
        .hasMessageContaining("channel.measured");
    assertThat(with("channel.measured", "true").channel().measured()).isTrue();
  }

  @Test
  void no_order_can_be_configured_that_parties_refuse_for_its_deadline() {
    CoordinatorProperties most = with("keygen.max", "118s");
    assertThat(most.keygen().max().plus(most.limits().clockSkew()))
        .isEqualTo(Duration.ofMinutes(2));
    for (String name : List.of("signing.max", "keygen.max", "presignatures.session-time")) {
      assertThatThrownBy(() -> with(name, "119s"))
          .rootCause()
          .hasMessageContaining("which parties refuse");
    }
  }
}
