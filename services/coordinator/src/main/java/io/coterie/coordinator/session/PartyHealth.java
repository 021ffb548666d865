package io.coterie.coordinator.session;

import java.time.Duration;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/**
 * How fast each party answered lately, and who did not. Lateness makes a suspect, never a culprit:
 * all that follows is that others are asked first for a while. Thread-safe.
 */
public final class PartyHealth {
  /** Weight of the newest sample: about the last eight count. */
  private static final double WEIGHT = 0.125;

  /** How long a first silence is held against a party; doubles with each in a row. */
  static final Duration FIRST_SUSPICION = Duration.ofSeconds(10);

  static final Duration LONGEST_SUSPICION = Duration.ofMinutes(5);

  /**
   * What is known of a party.
   *
   * @param latencyNanos moving average from order to first answer; 0 if none was seen, so that a
   *     party nobody has tried is tried
   * @param silences in a row
   * @param suspectUntilNanos by the injected clock; meaningless without silences
   */
  record State(long latencyNanos, int silences, long suspectUntilNanos) {
    private static final State UNKNOWN = new State(0, 0, 0);
  }

  private final ConcurrentHashMap<Integer, State> states = new ConcurrentHashMap<>();
  private final LongSupplier nanoTime;

  /**
   * An empty record.
   *
   * @param nanoTime monotonic clock, ns
   */
  public PartyHealth(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
  }

  /** A party is there: what was held against it is forgotten. */
  void heard(int party) {
    states.computeIfPresent(party, (id, old) -> new State(old.latencyNanos, 0, 0));
  }

  /** A party contributed to a session, {@code nanos} after its order was sent. */
  void answered(int party, long nanos) {
    long sample = Math.max(1, nanos);
    states.merge(
        party,
        new State(sample, 0, 0),
        (old, fresh) ->
            old.latencyNanos == 0
                ? fresh
                : new State(
                    Math.max(1, (long) (old.latencyNanos + WEIGHT * (sample - old.latencyNanos))),
                    0,
                    0));
  }

  /** A party was silent, would not start, or is accused. */
  void disappointed(int party) {
    long now = nanoTime.getAsLong();
    states.compute(
        party,
        (id, known) -> {
          State old = known == null ? State.UNKNOWN : known;
          if (old.silences > 0 && old.suspectUntilNanos - now > 0) {
            // Sessions that ran side by side all noticed the same silence: it counts once.
            return old;
          }
          int silences = Math.min(old.silences + 1, 30);
          long hold =
              Math.min(
                  LONGEST_SUSPICION.toNanos(),
                  FIRST_SUSPICION.toNanos() << Math.min(silences - 1, 6));
          return new State(old.latencyNanos, silences, now + hold);
        });
  }

  /** Whether others should be asked first. */
  boolean isSuspect(int party) {
    State state = states.get(party);
    return state != null
        && state.silences > 0
        && state.suspectUntilNanos - nanoTime.getAsLong() > 0;
  }

  /** Moving average from order to answer, ns; 0 if the party was never heard. */
  long latencyNanos(int party) {
    return states.getOrDefault(party, State.UNKNOWN).latencyNanos;
  }
}
