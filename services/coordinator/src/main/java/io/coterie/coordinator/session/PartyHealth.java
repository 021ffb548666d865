package io.coterie.coordinator.session;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/**
 * How fast each party answered lately, who did not, and who runs sessions twice. That makes a
 * suspect, never a culprit: all that follows is that others are asked first for a while.
 * Thread-safe.
 *
 * <p>Of a session of two parties that talk with each other alone nobody else sees which one was
 * silent or wrong. A failure is held against the pair there, and against neither party: each of
 * them is asked with others as before.
 */
public final class PartyHealth {
  /** Weight of the newest sample: about the last eight count. */
  private static final double WEIGHT = 0.125;

  /** How long a first silence is held against a party; doubles with each in a row. */
  static final Duration FIRST_SUSPICION = Duration.ofSeconds(10);

  static final Duration LONGEST_SUSPICION = Duration.ofMinutes(5);

  /**
   * So many sessions run twice within {@link #RESTART_TIME} make a suspect, whatever the party does
   * besides. Fewer are what a repair or a restored store explains.
   */
  static final int MAX_RESTARTS = 3;

  static final Duration RESTART_TIME = Duration.ofHours(1);

  /**
   * The experience with one party.
   *
   * @param latencyNanos moving average from order to first answer; 0 if none was seen, so that an
   *     untried party is tried
   * @param silences in a row
   * @param suspectUntilNanos by the injected clock; meaningless without silences
   * @param restartsNanos when it was last shown to have run a session twice, oldest first; at most
   *     {@link #MAX_RESTARTS}
   */
  record State(long latencyNanos, int silences, long suspectUntilNanos, List<Long> restartsNanos) {
    private static final State UNKNOWN = new State(0, 0, 0, List.of());

    /** The party was there. */
    State heard(long latency) {
      return new State(latency, 0, 0, restartsNanos);
    }

    /** It was not. */
    State silent(long now) {
      if (isSilent(now)) {
        // Sessions that ran side by side all noticed the same silence: it counts once.
        return this;
      }
      int more = Math.min(silences + 1, 30);
      long hold =
          Math.min(LONGEST_SUSPICION.toNanos(), FIRST_SUSPICION.toNanos() << Math.min(more - 1, 6));
      return new State(latencyNanos, more, now + hold, restartsNanos);
    }

    /** Whether its last silence is still held against it. */
    boolean isSilent(long now) {
      return silences > 0 && suspectUntilNanos - now > 0;
    }
  }

  private final ConcurrentHashMap<Integer, State> states = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<Set<Integer>, State> pairs = new ConcurrentHashMap<>();
  private final LongSupplier nanoTime;

  /**
   * An empty record.
   *
   * @param nanoTime monotonic clock, ns
   */
  public PartyHealth(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
  }

  /** A party is there: its silences are forgotten, its restarts are not. */
  void heard(int party) {
    states.computeIfPresent(party, (id, old) -> old.heard(old.latencyNanos));
  }

  /** A party contributed to a session, {@code nanos} after its order was sent. */
  void answered(int party, long nanos) {
    long sample = Math.max(1, nanos);
    states.compute(
        party,
        (id, known) -> {
          State old = known == null ? State.UNKNOWN : known;
          return old.heard(
              old.latencyNanos == 0
                  ? sample
                  : Math.max(1, (long) (old.latencyNanos + WEIGHT * (sample - old.latencyNanos))));
        });
  }

  /** A party was shown to have run one session twice. */
  void restarted(int party) {
    long now = nanoTime.getAsLong();
    states.compute(
        party,
        (id, known) -> {
          State old = known == null ? State.UNKNOWN : known;
          List<Long> restarts = new ArrayList<>(old.restartsNanos);
          if (restarts.size() == MAX_RESTARTS) {
            restarts.removeFirst();
          }
          restarts.add(now);
          return new State(
              old.latencyNanos, old.silences, old.suspectUntilNanos, List.copyOf(restarts));
        });
  }

  /** A party was silent, would not start, or is accused. */
  void disappointed(int party) {
    long now = nanoTime.getAsLong();
    states.compute(party, (id, known) -> (known == null ? State.UNKNOWN : known).silent(now));
  }

  /** One of two parties was silent or wrong, and nobody but them knows which. */
  void pairFailed(Set<Integer> pair) {
    long now = nanoTime.getAsLong();
    pairs.compute(
        Set.copyOf(pair), (ids, known) -> (known == null ? State.UNKNOWN : known).silent(now));
  }

  /** Two parties have done together what they were asked for. */
  void pairSucceeded(Set<Integer> pair) {
    pairs.remove(pair);
  }

  /** The monotonic clock of this record, ns. */
  long nanos() {
    return nanoTime.getAsLong();
  }

  /** Whether others should be asked first. */
  boolean isSuspect(int party) {
    State state = states.getOrDefault(party, State.UNKNOWN);
    long now = nanoTime.getAsLong();
    return state.isSilent(now)
        || (state.restartsNanos.size() == MAX_RESTARTS
            && now - state.restartsNanos.getFirst() < RESTART_TIME.toNanos());
  }

  /** Whether other pairs should be asked first. */
  boolean isSuspectPair(Set<Integer> pair) {
    return pairs.getOrDefault(pair, State.UNKNOWN).isSilent(nanoTime.getAsLong());
  }

  /** Moving average from order to answer, ns; 0 if the party was never heard. */
  long latencyNanos(int party) {
    return states.getOrDefault(party, State.UNKNOWN).latencyNanos;
  }
}
