package io.coterie.signer.storage;

import io.coterie.signer.order.Hold;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The parties that keys are not used with, and the unclean ends that count against them.
 * Thread-safe.
 *
 * @param excluded parties by key
 * @param ends pairs by key
 * @param frozen since when and why, by key, as far as that is known of those that are frozen
 */
record ExclusionMemory(
    Map<String, Set<Integer>> excluded,
    Map<String, List<SqliteUncleanEnds.Pair>> ends,
    Map<String, Hold> frozen) {
  /** Why a key is frozen whose freeze the disk did not take. */
  static final String UNWRITTEN = "an exclusion from it could not be stored";

  /** A memory without entries. */
  static ExclusionMemory empty() {
    return new ExclusionMemory(
        new ConcurrentHashMap<>(), new ConcurrentHashMap<>(), new ConcurrentHashMap<>());
  }

  /** All that the disk holds. */
  static ExclusionMemory read(Database db) throws SQLException {
    ExclusionMemory memory = empty();
    try (ResultSet rows = db.statement("SELECT key, party FROM exclusion").executeQuery()) {
      while (rows.next()) {
        memory.remember(rows.getString(1), Set.of(rows.getInt(2)));
      }
    }
    for (Hold freeze : SqliteHolds.read(db, Hold.Cause.FREEZE)) {
      memory.remember(freeze.scope().text(), Set.of(KeyShareStore.EVERY_PARTY));
      memory.frozen.put(freeze.scope().text(), freeze);
    }
    for (SqliteUncleanEnds.Pair pair : SqliteUncleanEnds.pairs(db)) {
      memory.ends.computeIfAbsent(pair.key(), _ -> new CopyOnWriteArrayList<>()).add(pair);
    }
    return memory;
  }

  Set<Integer> of(String key) {
    return excluded.getOrDefault(key, Set.of());
  }

  void remember(String key, Set<Integer> parties) {
    excluded.merge(key, Set.copyOf(parties), PartyIds::union);
  }

  /** The frozen keys as holds, in the order of their names. */
  List<Hold> freezes() {
    List<Hold> freezes = new ArrayList<>();
    excluded.forEach(
        (key, parties) -> {
          if (parties.contains(KeyShareStore.EVERY_PARTY)) {
            freezes.add(freeze(key));
          }
        });
    freezes.sort(Comparator.comparing(freeze -> freeze.scope().text()));
    return freezes;
  }

  /** The hold that the freeze of a key is. */
  Hold freeze(String key) {
    Hold known = frozen.get(key);
    return known != null
        ? known
        : new Hold(new Hold.Scope(key), Hold.Cause.FREEZE, UNWRITTEN, null);
  }

  void rememberAll(Map<String, Set<Integer>> notes) {
    notes.forEach(this::remember);
  }

  /** See {@link KeyShareStore#troubles}. */
  List<KeyTrouble> troubles() {
    List<KeyTrouble> troubles = new ArrayList<>();
    excluded.forEach(
        (key, parties) ->
            parties.forEach(
                party -> troubles.add(new KeyTrouble(key, party, kind(party), ends(key, party)))));
    ends.forEach(
        (key, pairs) ->
            pairs.stream()
                .filter(p -> p.ends() >= KeyTrouble.WARN_AT && !of(key).contains(p.party()))
                .map(
                    p ->
                        new KeyTrouble(
                            key,
                            p.party(),
                            p.ends() < KeyTrouble.REFRESH_AT
                                ? KeyTrouble.Kind.ENDED_UNCLEANLY
                                : KeyTrouble.Kind.REFRESH_ADVISED,
                            p.ends()))
                .forEach(troubles::add));
    troubles.sort(Comparator.comparing(KeyTrouble::key).thenComparing(KeyTrouble::party));
    return troubles;
  }

  private static KeyTrouble.Kind kind(int party) {
    return switch (party) {
      case KeyShareStore.EVERY_PARTY -> KeyTrouble.Kind.FROZEN;
      case KeyShareStore.ITSELF -> KeyTrouble.Kind.WENT_BACK;
      default -> KeyTrouble.Kind.EXCLUDED;
    };
  }

  private int ends(String key, int party) {
    return ends.getOrDefault(key, List.of()).stream()
        .filter(p -> p.party() == party)
        .mapToInt(SqliteUncleanEnds.Pair::ends)
        .findFirst()
        .orElse(0);
  }
}
