package io.coterie.messaging.limit;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SourceTest {
  private static Source at(String address) {
    return Source.ofRemote(address);
  }

  @Test
  void an_ipv4_address_and_an_ipv6_network_are_one_source() {
    assertThat(at("192.0.2.1")).isNotEqualTo(at("192.0.2.2")).isEqualTo(at("192.0.2.1"));
    assertThat(at("2001:db8:0:1::1")).isEqualTo(at("2001:db8:0:1:ffff::2"));
    assertThat(at("2001:db8:0:1::1")).isNotEqualTo(at("2001:db8:0:2::1"));
    assertThat(at("unix:")).isEqualTo(at("unix:"));
  }

  @Test
  void an_ipv4_address_is_the_same_source_however_it_is_written() {
    assertThat(at("::ffff:192.0.2.1")).isEqualTo(at("192.0.2.1"));
    assertThat(Source.ofLiteral("192.0.2.1")).contains(at("192.0.2.1"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "-", "localhost", "192.0.2.1:80", "192.0.2.1, 192.0.2.2", "2001::x"})
  void a_text_that_is_no_address_is_no_literal(String text) {
    assertThat(Source.ofLiteral(text)).isEmpty();
  }
}
