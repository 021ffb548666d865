package io.coterie.trust;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The beliefs of the clients of one installation: that a key exists for it which certain parties
 * hold. Members of the installation use its roster.
 *
 * @param former parties that left, and evidence keys that a party has no more
 * @param requesters whose keys are believed, ordered by name
 */
public record Trust(Roster roster, List<FormerParty> former, List<Requester> requesters) {
  private static final int EVIDENCE_KEY_BYTES = 32;
  private static final int MAX_ENTRIES = 1000;

  /**
   * A party as it was. Its signatures of that time are part of the certificates of keys that still
   * exist.
   *
   * @param name as intents of that time name it
   * @param evidenceKey 32 bytes
   * @param lastEpoch it is believed about no later epoch of a key; at least 1
   */
  public record FormerParty(String name, int partyId, byte[] evidenceKey, int lastEpoch) {
    public FormerParty {
      if (!Roster.isName(name)) {
        throw new IllegalArgumentException("name '" + name + "' is not 1 to 63 of [a-z0-9-]");
      }
      if (partyId < 1 || partyId > 65_535) {
        throw new IllegalArgumentException(name + ": partyId " + partyId + " is not 1 to 65535");
      }
      if (evidenceKey.length != EVIDENCE_KEY_BYTES) {
        throw new IllegalArgumentException(
            name + ": evidenceKey has " + evidenceKey.length + " bytes, not 32");
      }
      if (lastEpoch < 1) {
        throw new IllegalArgumentException(name + ": lastEpoch is below 1");
      }
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof FormerParty f
          && name.equals(f.name)
          && partyId == f.partyId
          && Arrays.equals(evidenceKey, f.evidenceKey)
          && lastEpoch == f.lastEpoch;
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(evidenceKey);
    }
  }

  /**
   * A requester whose word makes a key one of this installation.
   *
   * @param publicKeys X.509 forms (SPKI): the present one, and those that signed the intents of
   *     keys that still exist
   * @param keys names of the keys that it may ask for, {@code keys/...}; {@code *} stands for any
   *     text
   * @param minThreshold a key that fewer parties can use is not believed; at least 1
   * @param minParties a key that fewer parties hold is not believed; at least 1
   */
  public record Requester(
      String name, List<byte[]> publicKeys, List<String> keys, int minThreshold, int minParties) {
    public Requester {
      publicKeys = List.copyOf(publicKeys);
      keys = List.copyOf(keys);
      if (publicKeys.isEmpty()) {
        throw new IllegalArgumentException("requester " + name + " has no public key");
      }
      if (minThreshold < 1 || minParties < minThreshold) {
        throw new IllegalArgumentException(
            "requester " + name + ": minThreshold is not 1 to minParties");
      }
    }

    /** Whether it may ask for a key of that name. */
    public boolean mayAskFor(String key) {
      return keys.stream().anyMatch(glob -> matches(glob, key));
    }

    /** The parts between stars may each take the first place they find. */
    private static boolean matches(String glob, String text) {
      String[] parts = glob.split("\\*", -1);
      String first = parts[0];
      String last = parts[parts.length - 1];
      if (parts.length == 1) {
        return text.equals(glob);
      }
      int from = first.length();
      int to = text.length() - last.length();
      if (from > to || !text.startsWith(first) || !text.endsWith(last)) {
        return false;
      }
      for (String part : List.of(parts).subList(1, parts.length - 1)) {
        int found = text.indexOf(part, from);
        if (found < 0 || found + part.length() > to) {
          return false;
        }
        from = found + part.length();
      }
      return true;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Requester r
          && name.equals(r.name)
          && Arrays.deepEquals(publicKeys.toArray(), r.publicKeys.toArray())
          && keys.equals(r.keys)
          && minThreshold == r.minThreshold
          && minParties == r.minParties;
    }

    @Override
    public int hashCode() {
      return name.hashCode();
    }
  }

  public Trust {
    former = List.copyOf(former);
    requesters = List.copyOf(requesters);
    if (former.size() > MAX_ENTRIES || requesters.size() > MAX_ENTRIES) {
      throw new IllegalArgumentException(
          "more than " + MAX_ENTRIES + " former parties or requesters");
    }
    Set<String> names = new HashSet<>();
    for (Requester requester : requesters) {
      if (!names.add(requester.name())) {
        throw new IllegalArgumentException("requester " + requester.name() + " occurs twice");
      }
    }
  }

  /** The requester of that name. */
  public Optional<Requester> requester(String name) {
    return requesters.stream().filter(r -> r.name().equals(name)).findFirst();
  }

  /** Ids that a name of a party stands for, or has stood for. */
  public Set<Integer> partyIds(String name) {
    Set<Integer> ids = new HashSet<>();
    roster
        .byName(name)
        .filter(m -> m.role() == Member.Role.PARTY)
        .ifPresent(m -> ids.add(m.partyId()));
    former.stream().filter(f -> f.name().equals(name)).forEach(f -> ids.add(f.partyId()));
    return ids;
  }

  /** The evidence keys that a party may have signed with about an epoch of a key. */
  public List<byte[]> evidenceKeys(int partyId, int epoch) {
    List<byte[]> keys = new ArrayList<>();
    roster.byPartyId(partyId).ifPresent(m -> keys.add(m.evidenceKey()));
    former.stream()
        .filter(f -> f.partyId() == partyId && epoch <= f.lastEpoch())
        .forEach(f -> keys.add(f.evidenceKey()));
    return keys;
  }
}
