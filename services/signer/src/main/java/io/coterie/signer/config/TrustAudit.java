package io.coterie.signer.config;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.Trust;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;

/** The audit events of the trust file: which version this party accepted, and its changes. */
final class TrustAudit {
  private TrustAudit() {}

  /**
   * A version of the trust file was accepted for the first time.
   *
   * @param held the one before it, if there was one
   */
  static AuditEvent accepted(Optional<SignedTrust> held, SignedTrust now) {
    Map<String, String> fields = new TreeMap<>();
    fields.put("installation", now.installation());
    fields.put("version", Long.toString(now.version()));
    fields.put("digest", HexFormat.of().formatHex(now.digest()));
    fields.put("roots", now.roots().fingerprint());
    fields.put("corrupt", Integer.toString(now.trust().corrupt()));
    held.ifPresent(
        before -> {
          fields.put("version_before", Long.toString(before.version()));
          fields.put("roots_before", before.roots().fingerprint());
          fields.put("corrupt_before", Integer.toString(before.trust().corrupt()));
        });
    Optional<Roster> old = held.map(before -> before.trust().roster());
    Roster roster = now.trust().roster();
    compare(
        fields,
        "members",
        old.map(Roster::members).orElse(List.of()),
        roster.members(),
        Member::name);
    compare(
        fields,
        "former",
        old.map(Roster::former).orElse(List.of()),
        roster.former(),
        FormerParty::name);
    compare(
        fields,
        "requesters",
        held.map(before -> before.trust().requesters()).orElse(List.of()),
        now.trust().requesters(),
        Trust.Requester::name);
    return AuditEvent.of("operator", "trust.accept", "accepted", fields);
  }

  /** Names of what came, went, and stayed with another content. */
  private static <T> void compare(
      Map<String, String> fields,
      String what,
      List<T> before,
      List<T> now,
      Function<T, String> name) {
    Map<String, List<T>> old = byName(before, name);
    Map<String, List<T>> fresh = byName(now, name);
    put(fields, what + "_added", fresh.keySet().stream().filter(n -> !old.containsKey(n)).toList());
    put(
        fields,
        what + "_removed",
        old.keySet().stream().filter(n -> !fresh.containsKey(n)).toList());
    put(
        fields,
        what + "_changed",
        fresh.keySet().stream()
            .filter(n -> old.containsKey(n) && !old.get(n).equals(fresh.get(n)))
            .toList());
  }

  private static <T> Map<String, List<T>> byName(List<T> all, Function<T, String> name) {
    Map<String, List<T>> named = new LinkedHashMap<>();
    all.forEach(each -> named.computeIfAbsent(name.apply(each), _ -> new ArrayList<>()).add(each));
    return named;
  }

  /** Their number, where the names are more than a field takes; the digest has them all. */
  private static void put(Map<String, String> fields, String name, List<String> names) {
    if (!names.isEmpty()) {
      String all = String.join(",", names);
      fields.put(name, all.length() <= AuditEvent.MAX_TEXT ? all : Integer.toString(names.size()));
    }
  }
}
