package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationException.require;

import io.coterie.trust.Trust;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/** Matches the names of parties, which people give, with the ids that the shares of a key have. */
final class Holders {
  private Holders() {}

  /**
   * The names by their ids. A name may have stood for several ids in the course of time; exactly
   * one way to give every name an id of its own must remain; if an id occurs twice, there is none.
   *
   * @param names distinct
   * @param ids of the shares
   */
  static SortedMap<Integer, String> of(
      String place, Collection<String> names, List<Integer> ids, Trust trust)
      throws AttestationException {
    require(names.size() == ids.size(), AttestationProblem.PARTIES_OTHER, place);
    Map<String, Set<Integer>> open = new TreeMap<>();
    for (String name : names) {
      Set<Integer> candidates = new HashSet<>(trust.roster().partyIds(name));
      candidates.retainAll(ids);
      open.put(name, candidates);
    }
    SortedMap<Integer, String> holders = new TreeMap<>();
    // If there is exactly one way, then some name always has one id left: a bipartite graph with a
    // single perfect matching has vertices of degree one on both sides.
    while (!open.isEmpty()) {
      require(
          open.values().stream().noneMatch(Set::isEmpty), AttestationProblem.PARTIES_OTHER, place);
      Optional<Map.Entry<String, Set<Integer>>> settled =
          open.entrySet().stream().filter(entry -> entry.getValue().size() == 1).findFirst();
      require(settled.isPresent(), AttestationProblem.PARTIES_AMBIGUOUS, place);
      String name = settled.get().getKey();
      Integer id = settled.get().getValue().iterator().next();
      open.remove(name);
      open.values().forEach(candidates -> candidates.remove(id));
      holders.put(id, name);
    }
    return holders;
  }
}
