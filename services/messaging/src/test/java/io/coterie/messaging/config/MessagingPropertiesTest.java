package io.coterie.messaging.config;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.RateConverter;
import io.coterie.messaging.limit.RateLimit.Rate;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

class MessagingPropertiesTest {
  @EnableConfigurationProperties(MessagingProperties.class)
  static class Bound {}

  private final ApplicationContextRunner minimal =
      new ApplicationContextRunner()
          .withBean(RateConverter.class)
          .withUserConfiguration(Bound.class)
          .withPropertyValues(
              "coterie.messaging.tls.certificate=a",
              "coterie.messaging.tls.private-key=b",
              "coterie.messaging.certificates.trust-root=c",
              "coterie.messaging.certificates.server-certificate=d",
              "coterie.messaging.certificates.server-private-key=e");

  @Test
  void has_the_limits_of_the_public_server_and_rates_for_protocol_rounds() {
    minimal.run(
        context -> {
          MessagingProperties properties = context.getBean(MessagingProperties.class);
          assertThat(properties.limits().content().toBytes()).isEqualTo(96 * 1024);
          assertThat(properties.limits().body().toBytes()).isEqualTo(256 * 1024 + 32 + 5_000 * 100);
          assertThat(properties.limits().frame().toBytes()).isEqualTo(512 * 1024);
          assertThat(properties.limits().inFlight()).isEqualTo(256);
          assertThat(properties.limits().idle()).isEqualTo(Duration.ofSeconds(90));
          assertThat(properties.limits().onlineTimeToLive()).isEqualTo(Duration.ofSeconds(10));
          assertThat(properties.certificates().lifetime()).isEqualTo(Duration.ofHours(24));
          assertThat(properties.rates().messages()).isEqualTo(new Rate(5000, 2000));
        });
  }

  /** Others can use up each of them; the rest is for the service itself. */
  @Test
  void the_default_limits_fit_into_the_memory_of_the_image_together() throws Exception {
    Matcher heap =
        Pattern.compile("-Xmx(\\d+)m")
            .matcher(Files.readString(Path.of("../../deploy/images/config.json")));
    assertThat(heap.find()).isTrue();
    minimal.run(
        context -> {
          Limits limits = context.getBean(MessagingProperties.class).limits();
          long most =
              limits.connections() * 130_000L
                  + limits.buffers().toBytes()
                  + limits.pushed().toBytes()
                  + limits.loaded().toBytes()
                  + limits.onlineTotal().toBytes()
                  + 2 * limits.storedPending().toBytes()
                  // Three caches, of which two have nothing but identifiers.
                  + limits.cachedAccounts() * (1_000L + 3 * 150);
          assertThat(most).isLessThan(Long.parseLong(heap.group(1)) * 1_000_000 * 2 / 3);
        });
  }

  @Test
  void shows_no_token_hash() {
    minimal
        .withPropertyValues(
            "coterie.messaging.enrolments[0].number=+15550000000",
            "coterie.messaging.enrolments[0].token-sha256=" + "ab".repeat(32))
        .run(
            context ->
                assertThat(context.getBean(MessagingProperties.class).toString())
                    .contains("+15550000000")
                    .doesNotContain("abab"));
  }

  @ParameterizedTest
  @CsvSource({
    "limits.contents=1KB, limits.contents",
    "limits.in-flight=0, limits.in-flight",
    "limits.idle=0s, limits.idle",
    "limits.drain=-1s, limits.drain",
    "limits.body=0B, limits.body",
    "rates.messages=5, burst/perSecond",
    "rates.messages=0/1, burst",
    "rates.messages=1/0, burst",
    "rates.messages=1/Infinity, burst",
    "enrolments[0].number=+15550000000, token-sha256 is missing",
    "certificates.lifetime=0s, certificates.lifetime",
    "certificates.trust-root=, trust-root",
    "trusted-edge.names=dns:edge, trusted-edge.authority is missing",
    "trusted-edge.authority=f, trusted-edge.names is missing",
    "redis.timeout=1s, redis.uri is missing",
    "redis.uri=http://redis, rediss://",
    "redis.uri=redis://user:secret@redis, must not hold credentials"
  })
  void refuses_what_it_does_not_know_or_what_makes_no_sense(String setting, String message) {
    minimal
        .withPropertyValues("coterie.messaging." + setting)
        .run(
            context -> {
              assertThat(context).hasFailed();
              assertThat(context.getStartupFailure()).hasStackTraceContaining(message);
            });
  }

  @ParameterizedTest
  @CsvSource({
    "15550000000, 64, E.164",
    "+15550000000, 63, 64 hexadecimal digits",
    "+15550000000, 66, 64 hexadecimal digits"
  })
  void refuses_a_malformed_enrolment(String number, int digits, String message) {
    minimal
        .withPropertyValues(
            "coterie.messaging.enrolments[0].number=" + number,
            "coterie.messaging.enrolments[0].token-sha256=" + "a".repeat(digits))
        .run(context -> assertThat(context.getStartupFailure()).hasStackTraceContaining(message));
  }

  @Test
  void says_what_is_missing() {
    new ApplicationContextRunner()
        .withBean(RateConverter.class)
        .withUserConfiguration(Bound.class)
        .run(
            context ->
                assertThat(context.getStartupFailure())
                    .hasStackTraceContaining("coterie.messaging.tls is missing"));
  }
}
