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
   * keys: clients believe earlier ones about keys of their time, and nobody may ask with them.
   *
   * @throws IllegalArgumentException if the trust file gives two requesters of this party one key
   */
  public TrustedPolicy within(Trust trust) {
    List<Requester> requesters = new ArrayList<>();
    Map<String, RequesterRule> rules = new LinkedHashMap<>();
    Map<String, Trust.Requester> believed = new LinkedHashMap<>();
    List<String> leftOut = new ArrayList<>();
    byName.forEach(
        (name, local) -> {
          Trust.Requester entry = trust.requester(name).orElse(null);
          if (entry == null) {
            leftOut.add("the trust file does not name requester " + name);
            return;
          }
          PublicKey present = RequesterKeys.publicKey(entry.publicKeys().getFirst());
          if (local.pinned().filter(pinned -> !pinned.equals(present)).isPresent()) {
            leftOut.add("the trust file has another public key of requester " + name);
            return;
          }
          requesters.add(new Requester(name, present));
          rules.put(name, local.rule());
          believed.put(name, entry);
        });
    return new TrustedPolicy(
        new ConfiguredPolicy(new RequesterDirectory(requesters), rules), believed, leftOut);
  }
}
