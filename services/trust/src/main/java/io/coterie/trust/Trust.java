package io.coterie.trust;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The beliefs of the clients of one installation: that a key exists for it which certain parties
 * hold. Members of the installation use its roster.
 *
 * @param requesters whose keys are believed, of different names
 * @param corrupt how many parties of a key may lie in their receipts at once, for a client to be
 *     right all the same that nothing was signed; at most {@value #MAX_CORRUPT}
 */
public record Trust(Roster roster, List<Requester> requesters, int corrupt) {
  private static final int MAX_REQUESTERS = 1000;

  /** A key has at most twenty parties, and as many as sign may never be corrupt. */
  public static final int MAX_CORRUPT = 19;

  /** One party that lies, and the coordinator with it, pass nothing off as not signed. */
  public static final int DEFAULT_CORRUPT = 1;

  /**
   * A requester whose word makes a key one of this installation.
   *
   * @param publicKeys X.509 forms (SPKI): the present one, and those that signed the intents of
   *     keys that still exist
   * @param keys names of the keys and groups that it may ask for, {@code keys/...} and {@code
   *     groups/...}; {@code *} stands for any text
   * @param rights the changes of such keys that it may ask for
   * @param minThreshold a key that fewer parties can use is not believed; at least 1
   * @param minParties a key that fewer parties hold is not believed; at least 1
   */
  public record Requester(
      String name,
      List<byte[]> publicKeys,
      List<Glob> keys,
      Set<KeyRight> rights,
      int minThreshold,
      int minParties) {
    private static final Pattern NAME = Pattern.compile("[a-z0-9][a-z0-9._-]{0,62}");

    public Requester {
      publicKeys = List.copyOf(publicKeys);
      keys = List.copyOf(keys);
      rights = Set.copyOf(rights);
      if (!NAME.matcher(name).matches()) {
        throw new IllegalArgumentException(
            "requester name '%s' is not 1 to 63 of [a-z0-9._-]: it is a name and no pattern"
                .formatted(name));
      }
      for (Glob glob : keys) {
        if (!glob.isOfKeys()) {
          throw new IllegalArgumentException(
              ("requester %s: '%s' is no name or pattern of keys or groups, keys/... or groups/...,"
                      + " with * for any text")
                  .formatted(name, glob.pattern()));
        }
      }
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
      return keys.stream().anyMatch(glob -> glob.matches(key));
    }

    /**
     * Whether a reshare of a key of that name keeps to the floors of this requester, whoever asks
     * for it: it may itself create, import or reshare that key.
     */
    public boolean bounds(String key) {
      return mayAskFor(key)
          && (rights.contains(KeyRight.CREATE)
              || rights.contains(KeyRight.IMPORT)
              || rights.contains(KeyRight.RESHARE));
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Requester r
          && name.equals(r.name)
          && Arrays.deepEquals(publicKeys.toArray(), r.publicKeys.toArray())
          && keys.equals(r.keys)
          && rights.equals(r.rights)
          && minThreshold == r.minThreshold
          && minParties == r.minParties;
    }

    @Override
    public int hashCode() {
      return name.hashCode();
    }
  }

  public Trust {
    requesters = List.copyOf(requesters);
    if (corrupt < 0 || corrupt > MAX_CORRUPT) {
      throw new IllegalArgumentException("corrupt " + corrupt + " is not 0 to " + MAX_CORRUPT);
    }
    if (requesters.size() > MAX_REQUESTERS) {
      throw new IllegalArgumentException("more than " + MAX_REQUESTERS + " requesters");
    }
    Set<String> names = new HashSet<>();
    for (Requester requester : requesters) {
      if (!names.add(requester.name())) {
        throw new IllegalArgumentException("requester " + requester.name() + " occurs twice");
      }
    }
  }

  /** Has the number of corrupt parties with which an installation begins. */
  public Trust(Roster roster, List<Requester> requesters) {
    this(roster, requesters, DEFAULT_CORRUPT);
  }

  /**
   * How many parties must say that they never sign for a request, so that nobody ever does: with
   * fewer, those that have not said so could sign together with those that lie.
   *
   * @param holders parties of the key, n
   * @param threshold parties that sign, t
   * @return above {@code holders} if no number is enough
   */
  public int receiptsNeeded(int holders, int threshold) {
    return holders - threshold + 1 + corrupt;
  }

  /** The requester of that name. */
  public Optional<Requester> requester(String name) {
    return requesters.stream().filter(r -> r.name().equals(name)).findFirst();
  }
}
