package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The sealed shares of the party. Indexes of the database keep a key at one active share and one
 * provisional share.
 */
final class SqliteShares implements KeyShareStore {
  private static final Logger log = LoggerFactory.getLogger(SqliteShares.class);

  /** Active shares kept in memory, sealed as they are. */
  private static final int MAX_CACHED_SHARES = 1024;

  /** Stands in place of the decliner of a share that no party has declined. */
  private static final int NO_DECLINER = 0;

  private static final String SHARE_COLUMNS =
      "session_id, key, epoch, reshare_epoch, scheme, state, parties, members, key_public, sealed,"
          + " coordinator, requester, request_id, intent_digest";

  private static final String SELECT_SHARE =
      "SELECT " + SHARE_COLUMNS + ", certificate FROM key_share";

  private static final String SELECT_LASTING =
      SELECT_SHARE
          + " WHERE key = ? AND (state = 'ACTIVE' OR epoch > 1 AND state IN ('PROVISIONAL',"
          + " 'ABANDONED'))";

  private static final String COUNT_OTHERS =
      "SELECT count(*) FROM key_share"
          + " WHERE key = ? AND session_id <> ? AND state <> 'SUPERSEDED'";

  /**
   * Sessions of one key and epoch that one party is told this one stores no share of. A party can
   * ask about sessions that never were, and keeps nobody else from an answer by that.
   */
  private static final int MAX_DECLINED = 1000;

  /** The same for all keys: it may ask about keys that this one has never heard of. */
  static final int MAX_DECLINED_IN_ALL = 10_000;

  /**
   * Abandoned shares of one key. With more, this party takes part in no session with a party that
   * has declined one of them.
   */
  static final int MAX_ABANDONED = 8;

  /** The same with any party: each above {@link #MAX_ABANDONED} takes another party that lies. */
  private static final int MAX_ABANDONED_IN_ALL = MAX_ABANDONED + SessionLimits.MAX_PARTIES;

  private final PartyFile file;
  private final SqliteExclusions exclusions;
  private final Runnable operator;
  private final SqliteAudit.Chain audit;
  private final Clock clock;

  /**
   * Active shares, kept until they change; nothing else is. Guarded by itself, with {@link
   * #changes}.
   */
  private final Map<String, KeyShare> activeShares =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, KeyShare> eldest) {
          return size() > MAX_CACHED_SHARES;
        }
      };

  /** Counts changes of active shares: a share that was read before one is not kept after it. */
  private long changes;

  private volatile Consumer<String> forgetting = _ -> {};

  /**
   * @param operator does what the operator has asked for
   */
  SqliteShares(
      PartyFile file,
      SqliteExclusions exclusions,
      Runnable operator,
      SqliteAudit.Chain audit,
      Clock clock) {
    this.file = file;
    this.exclusions = exclusions;
    this.operator = operator;
    this.audit = audit;
    this.clock = clock;
  }

  @Override
  public Optional<KeyShare> find(String key) {
    long before;
    synchronized (activeShares) {
      KeyShare cached = activeShares.get(key);
      if (cached != null) {
        return Optional.of(cached);
      }
      before = changes;
    }
    Optional<KeyShare> found =
        file
            .read(
                db ->
                    shares(
                        db,
                        SELECT_SHARE
                            + " WHERE key = ? AND state IN ('ACTIVE', 'PROVISIONAL')"
                            + " ORDER BY state = 'ACTIVE' DESC LIMIT 1",
                        key))
            .stream()
            .findFirst();
    found
        .filter(s -> s.state() == KeyShare.State.ACTIVE)
        .ifPresent(
            s -> {
              synchronized (activeShares) {
                if (changes == before) {
                  activeShares.put(key, s);
                }
              }
            });
    return found;
  }

  /** The disk now has another active share of a key. */
  private void changed(String key) {
    synchronized (activeShares) {
      changes++;
      activeShares.remove(key);
    }
  }

  @Override
  public Optional<KeyShare> pending(String key) {
    return file
        .read(db -> shares(db, SELECT_SHARE + " WHERE key = ? AND state = 'PROVISIONAL'", key))
        .stream()
        .findFirst();
  }

  @Override
  public List<KeyShare> lasting(String key) {
    return file.read(db -> shares(db, SELECT_LASTING, key));
  }

  @Override
  public List<KeyShare> undecided() {
    return file.read(
        db ->
            shares(db, SELECT_SHARE + " WHERE state IN ('PROVISIONAL', 'ABANDONED') ORDER BY key"));
  }

  @Override
  public boolean keepsAnother(KeyShare share) {
    byte[] session = share.session().bytes().toByteArray();
    return file.read(db -> db.count(COUNT_OTHERS, share.key(), session) > 0);
  }

  @Override
  public Optional<KeyShare> ofSession(SessionId session) {
    return file
        .read(
            db ->
                shares(
                    db,
                    SELECT_SHARE + " WHERE session_id = ? AND state <> 'SUPERSEDED'",
                    session.bytes().toByteArray()))
        .stream()
        .findFirst();
  }

  @Override
  public Set<Integer> decliners(String key) {
    return file.read(db -> decliners(db, key));
  }

  private static Set<Integer> decliners(Database db, String key) throws SQLException {
    Set<Integer> decliners = new HashSet<>();
    int abandoned = 0;
    try (ResultSet rows =
        db.statement("SELECT decliner FROM key_share WHERE key = ? AND state = 'ABANDONED'", key)
            .executeQuery()) {
      while (rows.next()) {
        abandoned++;
        decliners.add(rows.getInt(1));
      }
    }
    decliners.remove(NO_DECLINER);
    if (abandoned < MAX_ABANDONED) {
      return Set.of();
    }
    return abandoned < MAX_ABANDONED_IN_ALL ? Set.copyOf(decliners) : Set.of(EVERY_PARTY);
  }

  @Override
  public CompletionStage<Boolean> storeProvisional(KeyShare share, AuditEvent completed) {
    return file.writer()
        .submit(
            db -> {
              if (!shares(db, SELECT_LASTING, share.key()).isEmpty()) {
                return false;
              }
              db.update(
                  "UPDATE key_share SET state = 'SUPERSEDED' WHERE key = ? AND state ="
                      + " 'PROVISIONAL'",
                  share.key());
              insertProvisional(db, share, "");
              audit.append(db, completed);
              return true;
            });
  }

  private void insertProvisional(Database db, KeyShare share, String renewed) throws SQLException {
    db.update(
        "INSERT INTO key_share ("
            + SHARE_COLUMNS
            + ", stored_at_ms, account, stored_number)"
            + " SELECT ?, ?, ?, ?, ?, 'PROVISIONAL', ?, ?, ?, ?, ?, ?, ?, ?, ?,"
            + " coalesce((SELECT account FROM key_share WHERE key = ? ORDER BY state = 'ACTIVE'"
            + " DESC, stored_number DESC LIMIT 1), ?),"
            + " coalesce(max(stored_number), 0) + 1 FROM key_share WHERE key = ?",
        share.session().bytes().toByteArray(),
        share.key(),
        share.epoch(),
        share.reshareEpoch(),
        share.scheme().getNumber(),
        PartyIds.text(share.parties()),
        PartyIds.text(share.members()),
        share.keyPublic().toByteArray(),
        share.sealed().toByteArray(),
        share.origin().coordinator(),
        share.origin().requester(),
        share.origin().requestId(),
        share.origin().intentDigest().toByteArray(),
        clock.millis(),
        renewed,
        DiskShares.ofKeys(share.origin().requester()),
        share.key());
  }

  @Override
  public CompletionStage<Boolean> storeNext(KeyShare share, boolean dealt, AuditEvent completed) {
    return file.writer()
        .submit(
            db -> {
              boolean wanted =
                  db.count(
                              "SELECT count(*) FROM key_share WHERE key = ? AND epoch >= ? AND"
                                  + " state IN ('ACTIVE', 'PROVISIONAL')",
                              share.key(),
                              share.epoch())
                          == 0
                      && areOfOneKey(shares(db, SELECT_LASTING, share.key()), share)
                      && (!dealt || hasActive(db, share.key(), share.epoch() - 1))
                      && !isDeclined(db, share.session())
                      && mayFollow(decliners(db, share.key()), share);
              if (wanted) {
                // This party has missed the end of that epoch: it deals with its active share or
                // with none.
                db.update(
                    "UPDATE key_share SET state = CASE WHEN epoch > 1 THEN 'ABANDONED' ELSE"
                        + " 'SUPERSEDED' END WHERE key = ? AND state = 'PROVISIONAL'",
                    share.key());
                insertProvisional(db, share, share.key());
                audit.append(db, completed);
              }
              return wanted;
            });
  }

  private static boolean areOfOneKey(List<KeyShare> held, KeyShare share) {
    return held.stream().allMatch(other -> other.isOf(share.scheme(), share.keyPublic()));
  }

  private static boolean mayFollow(Set<Integer> decliners, KeyShare share) {
    return !decliners.contains(EVERY_PARTY) && Collections.disjoint(decliners, share.members());
  }

  @Override
  public CompletionStage<Boolean> decline(String key, SessionId session, int asker) {
    return file.writer()
        .submit(
            db -> {
              byte[] id = session.bytes().toByteArray();
              if (isDeclined(db, session)) {
                return true;
              }
              if (db.count("SELECT count(*) FROM key_share WHERE session_id = ?", id) > 0
                  || db.count(
                          "SELECT count(*) FROM declined_session WHERE asker = ? AND key = ?",
                          asker,
                          key)
                      >= MAX_DECLINED
                  || db.count("SELECT count(*) FROM declined_session WHERE asker = ?", asker)
                      >= MAX_DECLINED_IN_ALL) {
                return false;
              }
              db.update(
                  "INSERT INTO declined_session (session_id, key, asker, declined_at_ms) VALUES (?,"
                      + " ?, ?, ?)",
                  id,
                  key,
                  asker,
                  clock.millis());
              return true;
            });
  }

  @Override
  public CompletionStage<Boolean> abandon(KeyShare share, int decliner, AuditEvent abandoned) {
    return file.writer()
        .submit(
            db -> {
              boolean done =
                  db.update(
                          "UPDATE key_share SET state = 'ABANDONED', decliner = ? WHERE session_id"
                              + " = ? AND state = 'PROVISIONAL' AND epoch > 1",
                          decliner,
                          share.session().bytes().toByteArray())
                      == 1;
              if (done) {
                audit.append(db, abandoned);
              }
              return done;
            });
  }

  @Override
  public CompletionStage<Boolean> activate(
      KeyShare share, Certificate proof, AuditEvent activated) {
    byte[] session = share.session().bytes().toByteArray();
    return file.writer()
        .submitErasing(
            db -> {
              boolean wanted =
                  db.count(
                              "SELECT count(*) FROM key_share own WHERE session_id = ? AND state IN"
                                  + " ('PROVISIONAL', 'ABANDONED') AND NOT EXISTS (SELECT 1 FROM"
                                  + " key_share used WHERE used.key = own.key"
                                  + " AND used.state = 'ACTIVE' AND (used.epoch > own.epoch OR"
                                  + " (used.epoch = own.epoch AND"
                                  + " used.stored_number > own.stored_number)))",
                              session)
                          == 1
                      && areOfOneKey(active(db, share.key()), share);
              if (wanted) {
                // Every party of the new epoch has its share of it, so no party can ever need the
                // older ones. A share that was stored after this one may still have a certificate,
                // and stays. The index refuses a second active share.
                db.update(
                    "DELETE FROM key_share WHERE key = ? AND session_id <> ? AND (state IN"
                        + " ('ACTIVE', 'SUPERSEDED') OR epoch < ? OR (epoch = ? AND stored_number <"
                        + " (SELECT stored_number FROM key_share WHERE session_id = ?)))",
                    share.key(),
                    session,
                    share.epoch(),
                    share.epoch(),
                    session);
                db.update(
                    "UPDATE key_share SET state = 'ACTIVE', certificate = ? WHERE session_id = ?",
                    proof.bytes().toByteArray(),
                    session);
                exclusions.forget(db, share);
                db.update("DELETE FROM declined_session WHERE key = ?", share.key());
                audit.append(db, activated);
              }
              return wanted;
            })
        .whenComplete(
            (done, _) -> {
              if (Boolean.TRUE.equals(done)) {
                exclusions.forgotten(share.key());
              }
              changed(share.key());
            });
  }

  @Override
  public void onForgotten(Consumer<String> listener) {
    forgetting = listener;
  }

  /**
   * Destroys all shares of a key, and nothing else: exclusions, claims and ended requests stay.
   *
   * @param reason of the operator
   * @return false, and nothing destroyed, if there is none
   */
  CompletionStage<Boolean> forget(KeyToForget gone, String reason) {
    return file.writer()
        .submitErasing(
            db -> {
              List<KeyToForget.Held> deleted = gone.delete(db);
              audit.append(
                  db,
                  AuditEvent.of(
                      "operator",
                      "key.forget",
                      deleted.isEmpty() ? "refused" : "ok",
                      Map.of(
                          "key", gone.key(),
                          "fingerprint", gone.digits(),
                          "shares", KeyToForget.count(deleted),
                          "reason", reason)));
              return !deleted.isEmpty();
            })
        .whenComplete(
            (done, _) -> {
              changed(gone.key());
              if (Boolean.TRUE.equals(done)) {
                forgetting.accept(gone.key());
              }
            });
  }

  private static boolean hasActive(Database db, String key, int epoch) throws SQLException {
    return db.count(
            "SELECT count(*) FROM key_share WHERE key = ? AND state = 'ACTIVE' AND epoch = ?",
            key,
            epoch)
        == 1;
  }

  private static boolean isDeclined(Database db, SessionId session) throws SQLException {
    return db.count(
            "SELECT count(*) FROM declined_session WHERE session_id = ?",
            session.bytes().toByteArray())
        == 1;
  }

  @Override
  public Set<Integer> excluded(String key) {
    return exclusions.of(
        key,
        () -> readable(key).filter(s -> s.scheme() != Scheme.SCHEME_ECDSA_SECP256K1).isEmpty());
  }

  /**
   * See {@link #find}; nothing if the disk cannot be read. A party that is to be excluded is
   * excluded then, too.
   */
  private Optional<KeyShare> readable(String key) {
    try {
      return find(key);
    } catch (StoreException e) {
      log.error("the share of {} cannot be read", key, e);
      return Optional.empty();
    }
  }

  @Override
  public CompletionStage<Boolean> exclude(Exclusion exclusion) {
    if (!exclusion.parties().contains(EVERY_PARTY)
        && readable(exclusion.key()).filter(s -> s.epoch() > exclusion.epoch()).isPresent()) {
      // The secrets that the two had in common are gone with the old shares.
      return CompletableFuture.completedFuture(false);
    }
    return exclusions.exclude(exclusion).whenComplete((_, _) -> changed(exclusion.key()));
  }

  @Override
  public CompletionStage<Boolean> unfreeze(String key) {
    return exclusions.unfreeze(key);
  }

  @Override
  public List<KeyTrouble> troubles() {
    return exclusions.troubles();
  }

  @Override
  public void housekeep() {
    exclusions.retry();
    operator.run();
  }

  private static List<KeyShare> active(Database db, String key) throws SQLException {
    return shares(db, SELECT_SHARE + " WHERE key = ? AND state = 'ACTIVE'", key);
  }

  /** All active shares, by key. */
  static List<KeyShare> active(Database db) throws SQLException {
    return shares(db, SELECT_SHARE + " WHERE state = 'ACTIVE' ORDER BY key");
  }

  private static List<KeyShare> shares(Database db, String sql, Object... parameters)
      throws SQLException {
    List<KeyShare> shares = new ArrayList<>();
    try (ResultSet row = db.statement(sql, parameters).executeQuery()) {
      while (row.next()) {
        shares.add(
            new KeyShare(
                row.getString("key"),
                row.getInt("epoch"),
                row.getInt("reshare_epoch"),
                Scheme.forNumber(row.getInt("scheme")),
                KeyShare.State.valueOf(row.getString("state")),
                PartyIds.of(row.getString("parties")),
                PartyIds.of(row.getString("members")),
                KeyPublic.parseFrom(row.getBytes("key_public")),
                ByteString.copyFrom(row.getBytes("sealed")),
                new KeyShare.Origin(
                    new SessionId(ByteString.copyFrom(row.getBytes("session_id"))),
                    row.getString("coordinator"),
                    row.getString("requester"),
                    row.getString("request_id"),
                    ByteString.copyFrom(row.getBytes("intent_digest"))),
                certificate(row.getBytes("certificate"))));
      }
    } catch (InvalidProtocolBufferException e) {
      throw new StoreException("a stored key's public data does not decode", e);
    }
    return shares;
  }

  private static @Nullable Certificate certificate(byte[] stored) {
    return stored.length == 0 ? null : Certificate.parse(ByteString.copyFrom(stored));
  }
}
