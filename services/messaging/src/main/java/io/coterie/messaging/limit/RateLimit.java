package io.coterie.messaging.limit;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import com.github.benmanes.caffeine.cache.Ticker;
import java.time.Duration;

/**
 * One token bucket for each key. A bucket that nobody used long enough to be full again is
 * forgotten, so memory is bounded by {@value #MAX_KEYS} keys in use.
 *
 * @param <K> the callers whose calls are counted
 */
public final class RateLimit<K> {
  private static final int MAX_KEYS = 20_000;
  private static final int MAX_DEBT = 4;

  private final Rate rate;
  private final Ticker ticker;
  private final Cache<K, Bucket> buckets;

  /**
   * @param burst tokens in a full bucket, at least 1
   * @param perSecond tokens that come back in a second, more than 0
   */
  public record Rate(int burst, double perSecond) {
    public Rate {
      if (burst < 1 || !(perSecond > 0) || Double.isInfinite(perSecond)) {
        throw new IllegalArgumentException(
            "a rate needs a burst of at least 1 and more than 0 per second");
      }
    }
  }

  private record Bucket(double tokens, long atNanos) {}

  /**
   * @param ticker monotonic nanoseconds
   */
  public RateLimit(Rate rate, Ticker ticker) {
    this.rate = rate;
    this.ticker = ticker;
    this.buckets =
        Caffeine.newBuilder()
            .ticker(ticker)
            .executor(Runnable::run)
            .expireAfter(Expiry.<K, Bucket>writing((key, bucket) -> untilFull(bucket)))
            .maximumSize(MAX_KEYS)
            .build();
  }

  private Duration untilFull(Bucket bucket) {
    return Duration.ofMillis(
        (long) (1000 * (rate.burst() - bucket.tokens()) / rate.perSecond()) + 1);
  }

  /**
   * Takes a token.
   *
   * @throws RateLimitedException if there is none
   */
  public void take(K key) {
    long now = ticker.read();
    Duration[] wait = new Duration[1];
    buckets
        .asMap()
        .compute(
            key,
            (k, bucket) -> {
              double tokens = bucket == null ? rate.burst() : refilled(bucket, now);
              if (tokens < 1) {
                wait[0] =
                    Duration.ofMillis((long) Math.ceil(1000 * (1 - tokens) / rate.perSecond()));
                return new Bucket(tokens, now);
              }
              return new Bucket(tokens - 1, now);
            });
    if (wait[0] != null) {
      throw new RateLimitedException(wait[0]);
    }
  }

  /**
   * Takes so many tokens, those too that will come only later, but at most those of {@value
   * #MAX_DEBT} bursts more: a wait is never longer than a bucket takes to fill as often.
   *
   * @return when there are tokens again; zero if there are some left
   */
  public Duration pay(K key, long tokens) {
    long now = ticker.read();
    Bucket after =
        buckets
            .asMap()
            .compute(
                key,
                (k, bucket) ->
                    new Bucket(
                        Math.max(
                            -(double) MAX_DEBT * rate.burst(),
                            (bucket == null ? rate.burst() : refilled(bucket, now)) - tokens),
                        now));
    return after.tokens() >= 0
        ? Duration.ZERO
        : Duration.ofNanos((long) Math.ceil(-after.tokens() / rate.perSecond() * 1e9));
  }

  private double refilled(Bucket bucket, long now) {
    return Math.min(
        rate.burst(), bucket.tokens() + rate.perSecond() * (now - bucket.atNanos()) / 1e9);
  }

  /** There is no token now. */
  public static final class RateLimitedException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final Duration retryAfter;

    public RateLimitedException(Duration retryAfter) {
      super("rate limited", null, false, false);
      this.retryAfter = retryAfter;
    }

    /** When the next token is there. */
    public Duration retryAfter() {
      return retryAfter;
    }
  }
}
