package io.coterie.messaging.limit;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SourceTest {
  private static Source at(String address) {
    return Source.of(null, address);
  }

  @Test
  void an_ipv4_address_and_an_ipv6_network_are_one_source() {
    assertThat(at("192.0.2.1")).isNotEqualTo(at("192.0.2.2")).isEqualTo(at("192.0.2.1"));
    assertThat(at("2001:db8:0:1::1")).isEqualTo(at("2001:db8:0:1:ffff::2"));
    assertThat(at("2001:db8:0:1::1")).isNotEqualTo(at("2001:db8:0:2::1"));
    assertThat(at("unix:")).isEqualTo(at("unix:"));
  }
}
