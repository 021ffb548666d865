package io.coterie.coordinator.session;

import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Chooses the parties of the next session: of all quorums the one that is likeliest to answer, or
 * all parties for a session that needs them. It stays with a quorum while that does well, because
 * messages of sessions with the same parties leave together. Thread-safe.
 */
public final class QuorumChooser {

  /** The answer. */
  public sealed interface Choice {
    /**
     * Ask these.
     *
     * @param parties exactly as many as wanted, in ascending order of party id
     * @param fresh whether nobody among them has failed this request before
     */
    record Chosen(List<Member> parties, boolean fresh) implements Choice {}

    /** Enough parties would do, but these cannot be reached. */
    record OutOfReach(Set<Member> unreachable) implements Choice {}

    /** Fewer parties than wanted are left, whatever the network does. */
    record Exhausted() implements Choice {}
  }

  /** A party that takes so many times as long as the next slower one of its quorum is slow. */
  private static final int SLOW = 2;

  /** Differences below are noise, ns. */
  private static final long NOISE_NANOS = 2_000_000;

  /** After so long the fastest now are chosen: others recover, and take their part of the work. */
  static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** Quorums remembered: more than keys with different parties in use at a time. */
  private static final int MAX_REMEMBERED = 1024;

  private final PartyHealth health;

  /**
   * A choice.
   *
   * @param nanos when it was made
   */
  private record Last(Set<Integer> parties, long nanos) {}

  /** By wanted number and ids of the candidates. */
  private final Map<List<Integer>, Last> last = new ConcurrentHashMap<>();

  public QuorumChooser(PartyHealth health) {
    this.health = health;
  }

  /** Whether others should be asked first. */
  public boolean isSuspect(Member member) {
    return health.isSuspect(member.partyId());
  }

  /** Whether other pairs should be asked first, where the two of a pair talk alone. */
  public boolean isSuspectPair(Collection<Integer> partyIds) {
    return health.isSuspectPair(Set.copyOf(partyIds));
  }

  /**
   * Chooses {@code wanted} of the candidates: first those that did not fail this request, then
   * those that are not suspects, then those that answered fastest lately. A request that nobody has
   * failed yet keeps to the last choice while nobody in it is a suspect or has become slow beside
   * the others in it, and all others were tried. (Under load all in it take longer, and the others'
   * times are of before.)
   *
   * @param candidates the key's parties that are in the roster and neither excluded nor have
   *     refused
   * @param reachable members the channel can send to
   * @param failures how often each party id has failed this request
   */
  public Choice choose(
      int wanted,
      Collection<Member> candidates,
      Set<Member> reachable,
      Map<Integer, Integer> failures) {
    return choose(wanted, false, candidates, reachable, failures);
  }

  /**
   * The same, where the two of a pair may talk with each other alone. Then suspect pairs come last,
   * and of the others those first whose parties are in fewer suspect pairs: a party that is in
   * several is likelier to be the cause than each of its peers.
   *
   * @param alone whether they do; two are wanted
   */
  public Choice choose(
      int wanted,
      boolean alone,
      Collection<Member> candidates,
      Set<Member> reachable,
      Map<Integer, Integer> failures) {
    if (candidates.size() < wanted) {
      return new Choice.Exhausted();
    }
    List<Member> usable = new ArrayList<>(candidates);
    usable.removeIf(m -> !reachable.contains(m));
    if (usable.size() < wanted) {
      Set<Member> unreachable = new HashSet<>(candidates);
      unreachable.removeAll(reachable);
      return new Choice.OutOfReach(unreachable);
    }
    usable.sort(
        Comparator.<Member>comparingInt(m -> failures.getOrDefault(m.partyId(), 0))
            .thenComparing(m -> health.isSuspect(m.partyId()))
            .thenComparingLong(m -> health.latencyNanos(m.partyId()))
            .thenComparingInt(Member::partyId));
    List<Member> chosen =
        failures.isEmpty()
            ? kept(wanted, alone, candidates, usable)
            : best(wanted, alone, usable, failures);
    chosen = chosen.stream().sorted(Comparator.comparingInt(Member::partyId)).toList();
    return new Choice.Chosen(
        chosen, chosen.stream().noneMatch(m -> failures.containsKey(m.partyId())));
  }

  /** The last choice among these candidates, while it does well, or else the best now. */
  private List<Member> kept(
      int wanted, boolean alone, Collection<Member> candidates, List<Member> usable) {
    List<Integer> about = new ArrayList<>(candidates.size() + 1);
    about.add(alone ? -wanted : wanted);
    candidates.stream().map(Member::partyId).sorted().forEach(about::add);
    Last before = last.get(about);
    if (before != null && health.nanos() - before.nanos < KEPT_NANOS) {
      List<Member> kept =
          usable.stream().filter(m -> before.parties.contains(m.partyId())).toList();
      boolean suspect = alone && isSuspectPair(before.parties);
      if (kept.size() == wanted && !suspect && doesWell(kept, usable)) {
        return kept;
      }
    }
    List<Member> best = best(wanted, alone, usable, Map.of());
    if (last.size() >= MAX_REMEMBERED) {
      last.clear();
    }
    last.put(about, new Last(ids(best), health.nanos()));
    return best;
  }

  /**
   * The best of those that would do.
   *
   * @param usable the best first
   */
  private List<Member> best(
      int wanted, boolean alone, List<Member> usable, Map<Integer, Integer> failures) {
    if (!alone) {
      return usable.subList(0, wanted);
    }
    List<List<Member>> pairs = new ArrayList<>();
    Map<Integer, Integer> suspicions = new HashMap<>();
    for (int second = 1; second < usable.size(); second++) {
      for (Member first : usable.subList(0, second)) {
        List<Member> pair = List.of(first, usable.get(second));
        pairs.add(pair);
        if (isSuspectPair(ids(pair))) {
          pair.forEach(m -> suspicions.merge(m.partyId(), 1, Integer::sum));
        }
      }
    }
    return Collections.min(
        pairs,
        Comparator.comparingInt((List<Member> pair) -> sum(pair, failures))
            .thenComparingLong(pair -> pair.stream().filter(this::isSuspect).count())
            .thenComparing(pair -> isSuspectPair(ids(pair)))
            .thenComparingInt(pair -> sum(pair, suspicions)));
  }

  private static Set<Integer> ids(List<Member> members) {
    return members.stream().map(Member::partyId).collect(Collectors.toUnmodifiableSet());
  }

  private static int sum(List<Member> members, Map<Integer, Integer> counts) {
    return members.stream().mapToInt(m -> counts.getOrDefault(m.partyId(), 0)).sum();
  }

  private boolean doesWell(List<Member> quorum, List<Member> usable) {
    if (quorum.stream().anyMatch(this::isSuspect)) {
      return false;
    }
    long[] outside =
        latencies(usable.stream().filter(m -> !quorum.contains(m) && !isSuspect(m)).toList());
    if (outside.length == 0) {
      return true;
    }
    long[] inside = latencies(quorum);
    if (outside[0] == 0 && inside[0] > 0) {
      return false;
    }
    long slowest = inside[inside.length - 1];
    long next = inside.length > 1 ? inside[inside.length - 2] : outside[0];
    return slowest <= outside[0] || slowest <= SLOW * next + NOISE_NANOS;
  }

  /** The latencies of the members in ascending order. */
  private long[] latencies(List<Member> members) {
    return members.stream().mapToLong(m -> health.latencyNanos(m.partyId())).sorted().toArray();
  }
}
