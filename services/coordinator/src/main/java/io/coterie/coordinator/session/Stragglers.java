package io.coterie.coordinator.session;

import io.coterie.proto.party.v1.TimedOut;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The parties that kept a session waiting, from the reports of those that waited.
 *
 * <p>Each report is an edge from a party to each one whose message of its round it misses. A party
 * in an earlier round has not sent that message, and need not have: it waits itself, and its own
 * report says for whom. A party in the same round or a later one says that it has sent it, so one
 * of the two ends is wrong, and nothing here shows which. Without this a party that withholds one
 * private message would make its recipient the one whom all others wait for.
 */
final class Stragglers {
  private Stragglers() {}

  /**
   * Names suspects.
   *
   * @param waited each party's report, with the round it is in and those it misses
   * @param reached the round in which each other party that was heard of was last; {@link
   *     Integer#MAX_VALUE} if it was done
   * @param parties ids of all parties of the session
   * @param oneIsHonest among so many parties one is honest
   * @return those not heard of at all; else those whom so many of the others miss for no reason
   *     that one of these is honest; else both ends of every edge without a reason, or of every
   *     edge if all have one; nobody if nobody is missed
   */
  static Set<Integer> of(
      Map<Integer, TimedOut> waited,
      Map<Integer, Integer> reached,
      Set<Integer> parties,
      int oneIsHonest) {
    Set<Integer> unheard = new HashSet<>(parties);
    unheard.removeAll(waited.keySet());
    unheard.removeAll(reached.keySet());
    if (!unheard.isEmpty()) {
      return unheard;
    }
    Set<Integer> missedByMany = new HashSet<>();
    Set<Integer> ends = new HashSet<>();
    for (int missed : parties) {
      Set<Integer> accusers = new HashSet<>();
      waited.forEach(
          (party, report) -> {
            if (party != missed
                && report.getMissingList().contains(missed)
                && round(missed, waited, reached) >= report.getRound()) {
              accusers.add(party);
            }
          });
      if (accusers.size() >= oneIsHonest) {
        missedByMany.add(missed);
      }
      if (!accusers.isEmpty()) {
        ends.add(missed);
        ends.addAll(accusers);
      }
    }
    if (!missedByMany.isEmpty()) {
      return missedByMany;
    }
    if (ends.isEmpty()) {
      // Everybody who is missed has a reason, as where all wait in a circle: one of them lies.
      waited.forEach(
          (party, report) -> {
            if (report.getMissingCount() > 0) {
              ends.add(party);
              ends.addAll(report.getMissingList());
            }
          });
      ends.retainAll(parties);
    }
    return ends;
  }

  private static int round(
      int party, Map<Integer, TimedOut> waited, Map<Integer, Integer> reached) {
    TimedOut report = waited.get(party);
    return report != null ? report.getRound() : reached.getOrDefault(party, 0);
  }
}
