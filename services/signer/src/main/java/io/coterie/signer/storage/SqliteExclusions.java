package io.coterie.signer.storage;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.order.Hold;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyShareStore.Exclusion;
import io.coterie.signer.share.KeyTrouble;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The parties with which this party runs no session of a key. An exclusion is in memory at once and
 * on disk as soon as possible. If it cannot be written, the next start would forget it, so the key
 * is frozen then.
 */
final class SqliteExclusions {
  private static final Logger log = LoggerFactory.getLogger(SqliteExclusions.class);
  private static final int FROZEN = KeyShareStore.EVERY_PARTY;

  private final PartyFile file;
  private final GroupCommit writer;
  private final SqliteLedger ledger;
  private final SqliteAudit.Chain audit;
  private final Clock clock;
  private final NotedCounter counter;

  /** Guards every change of the memory and of {@link #queued}; readers take no lock. */
  private final Object changing = new Object();

  private volatile ExclusionMemory memory = ExclusionMemory.empty();

  /** Exclusions on their way to the disk: a reading of the disk does not show them yet. */
  private final List<Exclusion> queued = new ArrayList<>();

  /** Exclusions that are not in the party's file although they were to be, by key. */
  private final Map<String, Set<Integer>> unwritten = new ConcurrentHashMap<>();

  /** The same in notes beside the party's file, as far as the disk takes them. */
  private final UnwrittenExclusions notes;

  /**
   * Parties whose stores went back, of which the disk does not know yet: until then no key that may
   * multiply is used with them.
   */
  private final Map<Integer, Optional<LedgerHead>> wentBack = new ConcurrentHashMap<>();

  /** Keys of which the disk may hold more than the memory: it could not be read. */
  private final Set<String> unread = ConcurrentHashMap.newKeySet();

  /** When this process took the file; it knows of all its claims since. */
  private volatile Instant opened = Instant.EPOCH;

  /** Keys of {@link #unwritten} that are being written; no further write joins them. */
  private final Set<String> writing = ConcurrentHashMap.newKeySet();

  /** How many writes each party of {@link #wentBack} has on their way; a retry joins none. */
  private final Map<Integer, Integer> marking = new ConcurrentHashMap<>();

  /**
   * @param counter says at the start whether claims are missing here
   */
  SqliteExclusions(
      PartyFile file,
      UnwrittenExclusions notes,
      SqliteLedger ledger,
      SqliteAudit.Chain audit,
      Clock clock,
      NotedCounter counter) {
    this.file = file;
    this.writer = file.writer();
    this.notes = notes;
    this.ledger = ledger;
    this.audit = audit;
    this.clock = clock;
    this.counter = counter;
  }

  /**
   * Counts the end of the incarnation before this one, distrusts what a backup has brought, or a
   * store that has fewer claims than the counter outside it, and fills the memory.
   */
  void start() {
    opened = clock.instant();
    long outside = counter.read();
    Started started =
        writer
            .submit(
                db -> {
                  for (SqliteUncleanEnds.Pair pair : SqliteUncleanEnds.count(db, clock.millis())) {
                    audit.append(
                        db,
                        AuditEvent.of(
                            "signer",
                            "party.exclude",
                            "unclean_ends",
                            Map.of(
                                "key", pair.key(),
                                "party", Integer.toString(pair.party()),
                                "ends", Integer.toString(pair.ends()))));
                  }
                  db.update(
                      "INSERT INTO ledger_time (id, reached_ms, ran_ms) VALUES (1, ?, 0)"
                          + " ON CONFLICT DO NOTHING",
                      clock.millis());
                  LedgerPosition position;
                  boolean restored =
                      db.update("UPDATE ledger SET restored = 0 WHERE restored = 1") == 1;
                  if (restored || outside > SqliteLedger.current(db).claims()) {
                    mark(db, KeyShareStore.ITSELF);
                    position = ledger.beginAnew(db, outside);
                    SqliteLedger.fence(db, opened);
                  } else {
                    position = ledger.begin(db);
                  }
                  return new Started(ExclusionMemory.read(db), position);
                })
            .toCompletableFuture()
            .join();
    started.memory().rememberAll(notes.read());
    unwritten.putAll(notes.read());
    memory = started.memory();
    ledger.committed(started.position());
  }

  private record Started(ExclusionMemory memory, LedgerPosition position) {}

  /**
   * @param multiplies asked only if it matters; false if the key is known to be of a scheme in
   *     which a store that went back costs nothing
   */
  Set<Integer> of(String key, BooleanSupplier multiplies) {
    // In the order in which it moves from one to the next, so that it is seen in one of them.
    Set<Integer> marking =
        wentBack.isEmpty() || !multiplies.getAsBoolean() ? Set.of() : Set.copyOf(wentBack.keySet());
    Set<Integer> unknown = unread.contains(key) ? Set.of(KeyShareStore.ITSELF) : Set.of();
    Set<Integer> known = memory.of(key);
    return marking.isEmpty() && unknown.isEmpty()
        ? known
        : PartyIds.union(PartyIds.union(marking, unknown), known);
  }

  /** See {@link KeyShareStore#exclude}. */
  CompletionStage<Boolean> exclude(Exclusion exclusion) {
    // Counts at once; on disk a moment later.
    synchronized (changing) {
      queued.add(exclusion);
      memory.remember(exclusion.key(), exclusion.parties());
      if (exclusion.parties().contains(FROZEN)) {
        frozen(exclusion.key(), "the core advised to use it no more");
      }
    }
    return writer
        .submitErasing(
            db -> {
              if (!exclusion.parties().contains(FROZEN) && hasLater(db, exclusion)) {
                // The secrets that the two had in common are gone with the old shares.
                return false;
              }
              insert(
                  db,
                  exclusion.key(),
                  exclusion.parties(),
                  exclusion.session().bytes().toByteArray());
              if (!exclusion.sealed().isEmpty()) {
                // A run that began with a share that was active before changes no other one.
                db.update(
                    "UPDATE key_share SET sealed = ? WHERE session_id = ? AND epoch = ? AND state ="
                        + " 'ACTIVE'",
                    exclusion.sealed().toByteArray(),
                    exclusion.share().bytes().toByteArray(),
                    exclusion.epoch());
              }
              return true;
            })
        .whenComplete(
            (written, failure) -> {
              synchronized (changing) {
                if (failure != null) {
                  freeze(exclusion);
                }
                queued.remove(exclusion);
                if (Boolean.FALSE.equals(written)) {
                  readAgain(exclusion.key());
                }
              }
            });
  }

  private static boolean hasLater(Database db, Exclusion exclusion) throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT 1 FROM key_share WHERE key = ? AND state = 'ACTIVE' AND epoch > ?",
                exclusion.key(),
                exclusion.epoch())
            .executeQuery()) {
      return row.next();
    }
  }

  private int insert(Database db, String key, Set<Integer> parties, byte[] session)
      throws SQLException {
    int inserted = 0;
    for (int party : parties) {
      inserted +=
          party == FROZEN
              ? SqliteHolds.freeze(db, memory.freeze(key), clock.millis())
              : db.update(
                  "INSERT INTO exclusion (key, party, session_id, excluded_at_ms)"
                      + " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                  key,
                  party,
                  session,
                  clock.millis());
    }
    return inserted;
  }

  private void frozen(String key, String reason) {
    Instant now = clock.instant().truncatedTo(ChronoUnit.MILLIS);
    memory.frozen().putIfAbsent(key, new Hold(new Hold.Scope(key), Hold.Cause.FREEZE, reason, now));
  }

  private void freeze(Exclusion exclusion) {
    log.error("{} is frozen: an exclusion from it could not be written", exclusion.key());
    Set<Integer> all = PartyIds.union(exclusion.parties(), Set.of(FROZEN));
    memory.remember(exclusion.key(), all);
    frozen(exclusion.key(), ExclusionMemory.UNWRITTEN);
    unwritten.merge(exclusion.key(), all, PartyIds::union);
    note(exclusion.key());
  }

  private void note(String key) {
    synchronized (changing) {
      notes.set(key, unwritten.getOrDefault(key, Set.of()));
    }
  }

  /** Tries again to write what could not be written, and to read what could not be read. */
  void retry() {
    unread.forEach(this::readAgain);
    // For each by itself: a peer that is shown to have gone back without end delays no freeze.
    unwritten.keySet().stream()
        .filter(writing::add)
        .forEach(key -> writeAgain(key).whenComplete((_, _) -> writing.remove(key)));
    wentBack.forEach(
        (party, told) -> {
          if (!marking.containsKey(party)) {
            wentBack(party, told.orElse(null));
          }
        });
  }

  private CompletionStage<Set<Integer>> writeAgain(String key) {
    return writer
        .submitVital(
            db -> {
              // Read here: the operator may have lifted it since.
              Set<Integer> parties = unwritten.getOrDefault(key, Set.of());
              if (insert(db, key, parties, new byte[0]) > 0) {
                audit.append(
                    db,
                    AuditEvent.of(
                        "signer", "key.freeze", "exclusion_unwritten", Map.of("key", key)));
              }
              return parties;
            })
        .whenComplete(
            (parties, failure) -> {
              if (failure == null) {
                unwritten.remove(key, parties);
                note(key);
              }
            });
  }

  /** See {@link KeyShareStore#unfreeze}. */
  CompletionStage<Boolean> unfreeze(String key) {
    // Before the write: no retry that follows it freezes the key again.
    Set<Integer> before = unwritten.getOrDefault(key, Set.of());
    forget(unwritten, key, Set.of(FROZEN));
    return writer
        .submitVital(
            db -> {
              boolean frozen = SqliteHolds.unfreeze(db, key) || before.contains(FROZEN);
              if (frozen) {
                audit.append(
                    db, AuditEvent.of("operator", "key.unfreeze", "ok", Map.of("key", key)));
              }
              return frozen;
            })
        .whenComplete(
            (_, failure) -> {
              if (failure == null) {
                memory.frozen().remove(key);
                readAgain(key);
                note(key);
              } else if (before.contains(FROZEN)) {
                unwritten.merge(key, before, PartyIds::union);
              }
            });
  }

  private static void forget(Map<String, Set<Integer>> from, String key, Set<Integer> parties) {
    from.computeIfPresent(
        key,
        (_, known) -> {
          Set<Integer> left = new HashSet<>(known);
          left.removeAll(parties);
          return left.isEmpty() ? null : Set.copyOf(left);
        });
  }

  /**
   * See {@link io.coterie.signer.claim.ShownClaims#wentBack}.
   *
   * @param told where this party's own ledger has been, which it does not know; null of a peer
   */
  CompletionStage<List<String>> wentBack(int party, @Nullable LedgerHead told) {
    // Until it is on disk, for every key that may multiply, because no key is known to be safe.
    wentBack.put(party, Optional.ofNullable(told));
    marking.merge(party, 1, Integer::sum);
    return writer
        .submitVital(
            db -> {
              if (told == null) {
                return new Marked(mark(db, party), LedgerPosition.NONE);
              }
              if (SqliteLedger.knows(db, told.position())) {
                return new Marked(List.of(), SqliteLedger.current(db));
              }
              // It had a clock of its own then: if this one was set back since, ids of requests
              // that it has forgotten lie after this start.
              SqliteLedger.fence(db, opened.isAfter(told.time()) ? opened : told.time());
              return new Marked(mark(db, party), ledger.learn(db, told.position()));
            })
        .whenComplete(
            (marked, failure) -> {
              marking.computeIfPresent(party, (_, writes) -> writes == 1 ? null : writes - 1);
              if (failure == null) {
                marked.keys().forEach(this::readAgain);
                ledger.committed(marked.position());
                wentBack.remove(party, Optional.ofNullable(told));
              }
            })
        .thenApply(Marked::keys);
  }

  private record Marked(List<String> keys, LedgerPosition position) {}

  /**
   * For every share that is here now and multiplies with the party, also if it becomes active only
   * later.
   *
   * @return keys whose active share it is
   */
  private List<String> mark(Database db, int party) throws SQLException {
    List<String> keys = new ArrayList<>();
    List<byte[]> later = new ArrayList<>();
    try (ResultSet rows =
        db.statement(
                "SELECT key, parties, state, session_id FROM key_share WHERE scheme = ?",
                Scheme.SCHEME_ECDSA_SECP256K1.getNumber())
            .executeQuery()) {
      while (rows.next()) {
        if (party != KeyShareStore.ITSELF && !PartyIds.of(rows.getString(2)).contains(party)) {
          continue;
        }
        if (KeyShare.State.ACTIVE.name().equals(rows.getString(3))) {
          keys.add(rows.getString(1));
        } else {
          later.add(rows.getBytes(4));
        }
      }
    }
    int marked = 0;
    for (String key : keys) {
      marked += insert(db, key, Set.of(party), new byte[0]);
    }
    for (byte[] session : later) {
      marked +=
          db.update(
              "INSERT INTO forgetful_share (session_id, party) VALUES (?, ?) ON CONFLICT DO"
                  + " NOTHING",
              session,
              party);
    }
    // Once for each share: a peer that shows the same again and again fills no disk.
    if (marked > 0 || party == KeyShareStore.ITSELF) {
      audit.append(
          db,
          AuditEvent.of(
              "signer",
              "party.went_back",
              party == KeyShareStore.ITSELF ? "itself" : "peer",
              Map.of("party", Integer.toString(party), "keys", Integer.toString(keys.size()))));
    }
    return keys;
  }

  /** Belongs to the transaction in which a share becomes the active one of its key. */
  void forget(Database db, KeyShare share) throws SQLException {
    db.update("DELETE FROM exclusion WHERE key = ?", share.key());
    SqliteUncleanEnds.forget(db, share.key());
    byte[] session = share.session().bytes().toByteArray();
    Set<Integer> wentBackBefore = new HashSet<>();
    try (ResultSet rows =
        db.statement("SELECT party FROM forgetful_share WHERE session_id = ?", session)
            .executeQuery()) {
      while (rows.next()) {
        wentBackBefore.add(rows.getInt(1));
      }
    }
    insert(db, share.key(), wentBackBefore, new byte[0]);
    db.update(
        "DELETE FROM forgetful_share WHERE session_id = ? OR session_id NOT IN (SELECT session_id"
            + " FROM key_share)",
        session);
  }

  /** Is called after that transaction. */
  void forgotten(String key) {
    readAgain(key);
    memory.ends().remove(key);
  }

  /**
   * Makes the memory of a key what is on disk, on its way there, or could not be written. Until the
   * disk can be read, nothing multiplies by the key.
   */
  private void readAgain(String key) {
    synchronized (changing) {
      Set<Integer> all;
      try {
        all = PartyIds.union(file.read(db -> of(db, key)), unwritten.getOrDefault(key, Set.of()));
      } catch (StoreException e) {
        log.error("this party cannot read its exclusions from {}; it tries again", key, e);
        unread.add(key);
        return;
      }
      for (Exclusion exclusion : queued) {
        if (exclusion.key().equals(key)) {
          all = PartyIds.union(all, exclusion.parties());
        }
      }
      if (all.isEmpty()) {
        memory.excluded().remove(key);
      } else {
        memory.excluded().put(key, all);
      }
      unread.remove(key);
    }
  }

  /** The parties that the disk has as excluded from the key. */
  static Set<Integer> of(Database db, String key) throws SQLException {
    Set<Integer> parties = new HashSet<>();
    try (ResultSet rows =
        db.statement("SELECT party FROM exclusion WHERE key = ?", key).executeQuery()) {
      while (rows.next()) {
        parties.add(rows.getInt(1));
      }
    }
    if (db.count("SELECT count(*) FROM hold WHERE scope = ? AND cause = 'FREEZE'", key) > 0) {
      parties.add(FROZEN);
    }
    return Set.copyOf(parties);
  }

  /** See {@link KeyShareStore#troubles}. */
  List<KeyTrouble> troubles() {
    return memory.troubles();
  }

  /** The frozen keys. */
  List<Hold> freezes() {
    return memory.freezes();
  }
}
