package io.coterie.coordinator.session;

import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Chooses the parties of the next session: of all quorums the one that is likeliest to answer, or
 * all parties for a session that needs them.
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

  private final PartyHealth health;

  public QuorumChooser(PartyHealth health) {
    this.health = health;
  }

  /** Whether others should be asked first. */
  public boolean isSuspect(Member member) {
    return health.isSuspect(member.partyId());
  }

  /**
   * Chooses {@code wanted} of the candidates: first those that did not fail this request, then
   * those that are not suspects, then those that answered fastest lately.
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
        usable.subList(0, wanted).stream()
            .sorted(Comparator.comparingInt(Member::partyId))
            .toList();
    return new Choice.Chosen(
        chosen, chosen.stream().noneMatch(m -> failures.containsKey(m.partyId())));
  }
}
