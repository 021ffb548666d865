package io.coterie.coordinator.custody.signing;

import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.SessionFailures;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * The parties that may still take part in the signature of one request, and in which order they are
 * asked. Does no I/O and reads no clock; confined to one thread.
 */
final class Candidates {
  /** Rank of a witness: before all parties that have not failed. */
  private static final int FIRST = -1;

  private final Map<Integer, Integer> failures = new HashMap<>();
  private final Map<Integer, RefusalReason> refusals = new HashMap<>();
  private final Map<Integer, String> details = new HashMap<>();
  private final Set<Integer> excluded = new HashSet<>();

  /** Parties that said in the last session that their shares are of another epoch. */
  private final Set<Integer> otherEpoch = new HashSet<>();

  /**
   * Parties that contributed to a session which may still become a signature. They alone know when
   * it may not any more: one of them takes part in each next session, until they must know.
   */
  private Set<Integer> witnesses = Set.of();

  private Instant witnessesUntil = Instant.MIN;

  Candidates(Collection<Integer> excluded) {
    this.excluded.addAll(excluded);
  }

  /** The parties of the key that may be asked and are in the roster. */
  List<Member> among(KeyRecord key, Roster roster) {
    List<Member> candidates = new ArrayList<>();
    for (KeyRecord.Holder holder : key.parties()) {
      if (mayBeAsked(holder)) {
        roster.byPartyId(holder.partyId()).ifPresent(candidates::add);
      }
    }
    return candidates;
  }

  /** How many parties of the key may be asked, if all are in the roster. */
  int left(KeyRecord key) {
    return (int) key.parties().stream().filter(this::mayBeAsked).count();
  }

  private boolean mayBeAsked(KeyRecord.Holder holder) {
    return !excluded.contains(holder.partyId()) && !refusals.containsKey(holder.partyId());
  }

  /** Rank by party id: how often the party failed the request; witnesses come first. */
  Map<Integer, Integer> ranks(Instant now) {
    if (now.isAfter(witnessesUntil)) {
      return failures;
    }
    Map<Integer, Integer> ranks = new HashMap<>(failures);
    witnesses.forEach(party -> ranks.put(party, FIRST));
    return ranks;
  }

  /** A party failed the request; the others are asked first. */
  void failed(int party) {
    failures.merge(party, 1, Integer::sum);
  }

  /**
   * Parties failed the request.
   *
   * @param parties if none is known, all that were asked have failed
   */
  void failed(Collection<Integer> parties, List<Member> asked) {
    if (parties.isEmpty()) {
      asked.forEach(m -> failed(m.partyId()));
    } else {
      parties.forEach(this::failed);
    }
  }

  /**
   * A party refuses this request for ever.
   *
   * @param detail its words, one line
   */
  void refused(int party, RefusalReason reason, String detail) {
    refusals.put(party, reason);
    details.put(party, detail);
  }

  /** These parties may not take part in any session of the key. */
  void exclude(Collection<Integer> parties) {
    excluded.addAll(parties);
  }

  /** A party says that its shares are of another epoch. */
  void atOtherEpoch(int party) {
    otherEpoch.add(party);
  }

  /** Whether a party said so in the last session. */
  boolean someAtOtherEpoch() {
    return !otherEpoch.isEmpty();
  }

  /**
   * The key was read again after {@link #atOtherEpoch}.
   *
   * @param newer whether the key has another epoch now; else the parties that said so may be at an
   *     epoch of their own, and the others are asked first
   * @param excludedNow parties that may not take part in any session of the key now
   */
  void learned(boolean newer, Collection<Integer> excludedNow) {
    if (!newer) {
      otherEpoch.forEach(this::failed);
    }
    otherEpoch.clear();
    excluded.clear();
    excluded.addAll(excludedNow);
  }

  /** See {@link #witnesses}. */
  void witnesses(Collection<Integer> parties, Instant until) {
    witnesses = Set.copyOf(parties);
    witnessesUntil = until;
  }

  /** Whether that party is one at that time. */
  boolean isWitness(int party, Instant now) {
    return witnesses.contains(party) && now.isBefore(witnessesUntil);
  }

  /**
   * Why fewer parties than the threshold are left.
   *
   * @param wentBack excluded because their stores went back to an earlier state
   */
  Failure exhausted(String resource, KeyRecord key, Set<Integer> wentBack) {
    Map<Integer, String> names = new HashMap<>();
    key.parties().forEach(h -> names.put(h.partyId(), h.name()));
    if (!refusals.isEmpty()) {
      int first =
          refusals.keySet().stream()
              .min(
                  // Only one of them asks the caller to find out whether it was signed already.
                  Comparator.comparing(
                          (Integer party) ->
                              refusals.get(party) != RefusalReason.REFUSAL_REASON_FENCED)
                      .thenComparing(refusals::get)
                      .thenComparing(p -> p))
              .orElseThrow();
      RefusalReason reason = Objects.requireNonNull(refusals.get(first));
      return Failure.parties(
              SessionFailures.reason(reason),
              resource,
              named(refusals.keySet(), names),
              0,
              reason.name())
          .detailed(details.getOrDefault(first, ""));
    }
    Set<Integer> behind = new HashSet<>(excluded);
    behind.retainAll(wentBack);
    if (!behind.isEmpty()) {
      return Failure.parties(
          ErrorReason.KEY_NEEDS_REFRESH, resource, named(behind, names), 0, "store_went_back");
    }
    return excluded.isEmpty()
        ? Failure.parties(ErrorReason.PARTY_UNKNOWN, resource, names.values(), 0, "not_in_roster")
        : Failure.parties(
            ErrorReason.PARTY_MISBEHAVED, resource, named(excluded, names), 0, "excluded");
  }

  private static List<String> named(Collection<Integer> parties, Map<Integer, String> names) {
    return parties.stream().map(names::get).filter(Objects::nonNull).toList();
  }
}
