package io.coterie.signer.policy;

import io.coterie.platform.intent.Requester;
import io.coterie.platform.intent.RequesterDirectory;
import io.coterie.platform.intent.RequesterKeys;
import io.coterie.trust.Trust;
import java.security.PublicKey;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * The rights that this party's own configuration gives requesters, by name. The signed trust file
 * says who these are, so the rules become a policy with it alone.
 */
public final class LocalRules {
  private final Map<String, Local> byName;

  /**
   * One requester here.
   *
   * @param pinned the key that it must have in the trust file, too; whichever that file gives it if
   *     empty
   */
  public record Local(Optional<PublicKey> pinned, RequesterRule rule) {}

  /**
   * @param byName one for each requester, by name
   */
  public LocalRules(Map<String, Local> byName) {
    this.byName = new LinkedHashMap<>(byName);
  }

  /**
   * The policy of this party under a trust file. A requester counts with the present one of its
   * keys: clients believe earlier ones about keys of their time, and nobody may ask with them. An
   * intent does not say by whom it is, so a requester with any key that another one of the trust
   * file has or had could have that one's intents done again, as requests of its own: it is left
   * out. The floors of all requesters count, also of those that are left out.
   */
  public TrustedPolicy within(Trust trust) {
    Map<String, PublicKey> keys = new LinkedHashMap<>();
    Map<String, Trust.Requester> believed = new LinkedHashMap<>();
    List<String> leftOut = new ArrayList<>();
    byName.forEach(
        (name, local) -> {
          Trust.Requester entry = trust.requester(name).orElse(null);
          if (entry == null) {
            leftOut.add("the trust file does not name requester " + name);
            return;
          }
          PublicKey present;
          try {
            present = RequesterKeys.publicKey(entry.publicKeys().getFirst());
          } catch (IllegalArgumentException e) {
            leftOut.add(
                "the trust file has a public key of requester %s that is none: %s"
                    .formatted(name, e.getMessage()));
            return;
          }
          if (local.pinned().filter(pinned -> !pinned.equals(present)).isPresent()) {
            leftOut.add("the trust file has another public key of requester " + name);
            return;
          }
          keys.put(name, present);
          believed.put(name, entry);
        });
    List<Requester> requesters = new ArrayList<>();
    Map<String, RequesterRule> rules = new LinkedHashMap<>();
    keys.forEach(
        (name, key) -> {
          if (isOfAnother(trust, name, key)) {
            leftOut.add(
                "the trust file gives requester %s the public key of another one".formatted(name));
            believed.remove(name);
            return;
          }
          requesters.add(new Requester(name, key));
          rules.put(name, Objects.requireNonNull(byName.get(name)).rule());
        });
    Map<String, RequesterRule> floors = new LinkedHashMap<>();
    byName.forEach((name, local) -> floors.put(name, local.rule()));
    return new TrustedPolicy(
        new ConfiguredPolicy(new RequesterDirectory(requesters), rules, floors),
        believed,
        trust.requesters(),
        leftOut);
  }

  private static boolean isOfAnother(Trust trust, String name, PublicKey key) {
    return trust.requesters().stream()
        .filter(other -> !other.name().equals(name))
        .flatMap(other -> other.publicKeys().stream())
        .anyMatch(encoded -> isKey(encoded, key));
  }

  /** A key that is none is nobody's. */
  private static boolean isKey(byte[] encoded, PublicKey key) {
    try {
      return RequesterKeys.publicKey(encoded).equals(key);
    } catch (IllegalArgumentException e) {
      return false;
    }
  }
}
