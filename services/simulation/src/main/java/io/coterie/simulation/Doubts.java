package io.coterie.simulation;

import com.google.protobuf.ByteString;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The session of one request that a process of a replica has given again last: while it may still
 * become the signature, each further order has a party that has contributed to it (docs/adr/0017).
 */
final class Doubts {
  private final Timeline timeline;
  private final Coverage coverage;
  private final Duration lapse;
  private final Reach reach;
  private final Map<ByteString, Hearing> hearings = new HashMap<>();

  /** Sessions that each party has refused, or left. */
  private final Map<Integer, Set<ByteString>> left = new HashMap<>();

  /** The session that was given again last; null if none was. */
  private @Nullable Doubt latest;

  /** A session that was given again at that time. */
  private record Doubt(Ordered order, long nanos) {}

  /** The parties that a process of a replica could ask. */
  static final class Reach {
    private final Map<Integer, Long> awayNanos = new HashMap<>();
    private final Set<Integer> excluded;

    /**
     * @param excluded parties that are excluded from a key, as it becomes known
     */
    Reach(Set<Integer> excluded) {
      this.excluded = excluded;
    }

    /** The channel says that a party cannot be reached. */
    void away(int party, long nanos) {
      awayNanos.put(party, nanos);
    }

    private boolean hasReached(int party, long sinceNanos) {
      return awayNanos.getOrDefault(party, Long.MIN_VALUE) < sinceNanos
          && !excluded.contains(party);
    }
  }

  /**
   * @param lapse for which a party that has contributed to a session waits after its deadline
   */
  Doubts(Timeline timeline, Coverage coverage, Duration lapse, Reach reach) {
    this.timeline = timeline;
    this.coverage = coverage;
    this.lapse = lapse;
    this.reach = reach;
  }

  /** The core begins to hear a session. */
  Hearing hears(ByteString session, Set<Integer> parties) {
    Hearing hearing = new Hearing(parties);
    hearings.put(session, hearing);
    return hearing;
  }

  /** A party says that it does not go on with a session. */
  void leaves(int party, ByteString session) {
    Hearing hearing = hearings.get(session);
    if (hearing != null) {
      hearing.leaves(party);
    }
    left.computeIfAbsent(party, _ -> new HashSet<>()).add(session);
  }

  /** An order is given again. */
  void again(Ordered order) {
    latest = new Doubt(order, timeline.nanos());
  }

  /** Messaging did not take an order: nobody was asked again. */
  void untaken(ByteString session) {
    Doubt some = latest;
    if (some != null && some.order().session().equals(session)) {
      latest = null;
    }
  }

  /**
   * The order of another session is given.
   *
   * @return the session in doubt of which it has no party; null if there is none
   */
  @Nullable Ordered without(Ordered next) {
    Doubt doubt = latest;
    if (doubt == null || !doubt.order().protocol().signsAtRandom() || !lasts(doubt, next)) {
      return null;
    }
    Set<Integer> witnesses = witnesses(doubt);
    if (witnesses.isEmpty()) {
      return null;
    }
    coverage.count("witnesses wanted");
    return next.parties().stream().noneMatch(witnesses::contains) ? doubt.order() : null;
  }

  private boolean lasts(Doubt doubt, Ordered next) {
    Instant deadline =
        Instant.ofEpochSecond(
            doubt.order().order().getDeadline().getSeconds(),
            doubt.order().order().getDeadline().getNanos());
    Instant given = at(doubt.nanos());
    Instant until = (deadline.isBefore(given) ? deadline : given).plus(lapse);
    return at(timeline.nanos()).isBefore(until)
        && doubt.order().order().getEpoch() == next.order().getEpoch();
  }

  private static Instant at(long nanos) {
    return Instant.ofEpochSecond(Timeline.START_SECONDS, nanos);
  }

  /** Those that have contributed to it and can be asked. */
  private Set<Integer> witnesses(Doubt doubt) {
    ByteString session = doubt.order().session();
    Hearing hearing = hearings.get(session);
    if (hearing == null || !hearing.isInDoubt()) {
      return Set.of();
    }
    Set<Integer> witnesses = hearing.contributors();
    witnesses.removeIf(
        party ->
            !reach.hasReached(party, doubt.nanos())
                || left.getOrDefault(party, Set.of()).stream().anyMatch(s -> !s.equals(session)));
    return witnesses;
  }
}
