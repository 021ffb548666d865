package io.coterie.platform.intent;

import java.security.PublicKey;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/** The requesters of one service's configuration. */
public final class RequesterDirectory implements Function<String, Optional<PublicKey>> {
  private final Map<String, Requester> byName = new LinkedHashMap<>();

  /**
   * A directory.
   *
   * @throws IllegalArgumentException if a name or a key occurs twice: one key under two names would
   *     give one requester two sets of request ids
   */
  public RequesterDirectory(Collection<Requester> requesters) {
    for (Requester requester : requesters) {
      for (Requester other : byName.values()) {
        if (other.name().equals(requester.name())
            || other.publicKey().equals(requester.publicKey())) {
          throw new IllegalArgumentException(
              "requesters "
                  + other.name()
                  + " and "
                  + requester.name()
                  + " have the same name or the same public key");
        }
      }
      byName.put(requester.name(), requester);
    }
  }

  /** The pinned key of a requester. */
  @Override
  public Optional<PublicKey> apply(String name) {
    return Optional.ofNullable(byName.get(name)).map(Requester::publicKey);
  }

  /** All names. */
  public Set<String> names() {
    return Set.copyOf(byName.keySet());
  }
}
