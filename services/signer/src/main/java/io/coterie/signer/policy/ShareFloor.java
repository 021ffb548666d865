package io.coterie.signer.policy;

import io.coterie.trust.Member;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * How widely the shares of a key must be spread. A key that one party can sign with is a key in one
 * place.
 *
 * @param minThreshold the fewest parties that may be able to sign, at least 1
 * @param minParties the fewest parties that may hold a share, at least 1
 * @param allowedParties names of the parties that may hold a share; empty for every party of the
 *     roster
 */
public record ShareFloor(int minThreshold, int minParties, Set<String> allowedParties) {

  /**
   * @throws IllegalArgumentException if no key could be spread so
   */
  public ShareFloor {
    allowedParties = Set.copyOf(allowedParties);
    for (String party : allowedParties) {
      if (!Member.isName(party)) {
        throw new IllegalArgumentException(
            "allowed-parties: '%s' is no name of a party; leave them out for every party"
                .formatted(party));
      }
    }
    if (minThreshold < 1 || minParties < 1) {
      throw new IllegalArgumentException("min-threshold and min-parties are at least 1");
    }
    int fewest = Math.max(minThreshold, minParties);
    if (!allowedParties.isEmpty() && allowedParties.size() < fewest) {
      throw new IllegalArgumentException(
          "allowed-parties names %d parties, but a key needs %d"
              .formatted(allowedParties.size(), fewest));
    }
  }

  /** Why shares may not be spread so, for people; empty if they may. */
  Optional<String> denial(int threshold, List<String> parties) {
    if (threshold < minThreshold) {
      return Optional.of(
          "a key of this name needs at least %d parties to sign, not %d"
              .formatted(minThreshold, threshold));
    }
    if (parties.size() < minParties) {
      return Optional.of(
          "at least %d parties hold shares of a key of this name, not %d"
              .formatted(minParties, parties.size()));
    }
    if (allowedParties.isEmpty()) {
      return Optional.empty();
    }
    return parties.stream()
        .filter(party -> !allowedParties.contains(party))
        .findFirst()
        .map(party -> "party " + party + " may not hold a share of a key of this name");
  }
}
