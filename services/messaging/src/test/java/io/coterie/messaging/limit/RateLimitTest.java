package io.coterie.messaging.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.coterie.messaging.limit.RateLimit.Rate;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RateLimitTest {
  private final AtomicLong nanos = new AtomicLong();
  private final RateLimit<String> limit = new RateLimit<>(new Rate(3, 2), nanos::get);

  private void advance(Duration by) {
    nanos.addAndGet(by.toNanos());
  }

  private void empty(String key) {
    for (int i = 0; i < 3; i++) {
      limit.take(key);
    }
  }

  @Test
  void lets_a_burst_through_and_says_when_to_come_back() {
    empty("a");
    RateLimitedException e =
        catchThrowableOfType(RateLimitedException.class, () -> limit.take("a"));
    assertThat(e.retryAfter()).isEqualTo(Duration.ofMillis(500));
    limit.take("b");
    advance(e.retryAfter());
    limit.take("a");
    assertThatThrownBy(() -> limit.take("a")).isInstanceOf(RateLimitedException.class);
  }

  @Test
  void does_not_punish_attempts_and_never_saves_more_than_a_burst() {
    empty("a");
    for (int i = 0; i < 100; i++) {
      assertThatThrownBy(() -> limit.take("a")).isInstanceOf(RateLimitedException.class);
    }
    advance(Duration.ofHours(1));
    empty("a");
    assertThatThrownBy(() -> limit.take("a")).isInstanceOf(RateLimitedException.class);
  }

  @Test
  void tokens_that_were_paid_before_they_were_there_come_back_later() {
    assertThat(limit.pay("a", 3)).isZero();
    assertThat(limit.pay("a", 1)).isEqualTo(Duration.ofMillis(500));
    assertThat(limit.pay("a", 10)).isEqualTo(Duration.ofMillis(5_500));
    assertThat(limit.pay("a", 400)).as("four bursts at most").isEqualTo(Duration.ofSeconds(6));
    assertThat(limit.pay("b", 1)).isZero();
    assertThatThrownBy(() -> limit.take("a")).isInstanceOf(RateLimitedException.class);
    advance(Duration.ofSeconds(6));
    assertThat(limit.pay("a", 1)).isEqualTo(Duration.ofMillis(500));
    advance(Duration.ofHours(1));
    empty("a");
    assertThatThrownBy(() -> limit.take("a")).isInstanceOf(RateLimitedException.class);
  }

  @Test
  void gives_each_token_once_whatever_runs_at_once() {
    RateLimit<String> large = new RateLimit<>(new Rate(1_000, 1), nanos::get);
    AtomicInteger taken = new AtomicInteger();
    IntStream.range(0, 4_000)
        .parallel()
        .forEach(
            i -> {
              try {
                large.take("a");
                taken.incrementAndGet();
              } catch (RateLimitedException e) {
                // Counted by its absence.
              }
            });
    assertThat(taken).hasValue(1_000);
  }
}
