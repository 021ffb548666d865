package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditRecord;
import io.coterie.platform.audit.AuditStore;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.session.AuditLog;
import io.coterie.signer.session.Certificate;
import io.coterie.signer.session.ClaimLedger;
import io.coterie.signer.session.KeyShare;
import io.coterie.signer.session.KeyShareStore;
import io.coterie.signer.session.KeyTrouble;
import io.coterie.signer.session.LedgerPosition;
import io.coterie.signer.session.SessionId;
import io.coterie.signer.session.SessionLimits;
import io.coterie.signer.session.ShownClaims;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.ObjLongConsumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.json.JsonMapper;

/**
 * Everything a party keeps, in one SQLite file: claims, sealed shares, exclusions, the audit trail
 * and the party's own sealed secrets. Thread-safe. Only one process can have the file open.
 *
 * <p>What must never happen twice is a constraint of the database, not a check in this program.
 */
public final class PartyStore
    implements ClaimLedger, KeyShareStore, ShownClaims, AuditLog, AutoCloseable {
  /** Name of the file in the data folder. */
  public static final String FILE = "party.db";

  /** Active shares kept in memory, sealed as they are. */
  private static final int MAX_CACHED_SHARES = 1024;

  private static final int READERS = 2;

  /** Requester and request id of a session that nobody asked for. */
  private static final String NOBODY = "";

  /** Of a share that no party has let come to nothing. */
  private static final int NO_DESERTER = 0;

  /** Equal to no session id. */
  private static final byte[] NO_SESSION = new byte[0];

  private static final String SHARE_COLUMNS =
      "session_id, key, epoch, scheme, state, parties, members, key_public, sealed, coordinator,"
          + " requester, request_id, intent_digest";

  private static final String SELECT_SHARE =
      "SELECT " + SHARE_COLUMNS + ", certificate FROM key_share";

  private static final String COUNT_ACTIVE =
      "SELECT count(*) FROM key_share WHERE key = ? AND state = 'ACTIVE'";

  /** Sessions of one key and epoch that this party says it stores no share of. */
  private static final int MAX_FORSAKEN = 1000;

  /** The same for all keys: a party may ask about keys that this one has never heard of. */
  private static final int MAX_FORSAKEN_IN_ALL = 100_000;

  /**
   * Given up shares of one key, above which no session is taken part in with whoever has let one
   * come to nothing.
   */
  static final int MAX_GIVEN_UP = 8;

  /** The same with anybody: each above {@link #MAX_GIVEN_UP} takes another party that lies. */
  private static final int MAX_GIVEN_UP_IN_ALL = MAX_GIVEN_UP + SessionLimits.MAX_PARTIES;

  private static final JsonMapper JSON = JsonMapper.builder().build();
  private static final TypeReference<TreeMap<String, String>> FIELDS = new TypeReference<>() {};

  private final FileChannel lock;
  private final GroupCommit writer;
  private final BlockingQueue<Database> readers = new ArrayBlockingQueue<>(READERS);
  private final Clock clock;
  private final String trailName;
  private final SqliteLedger ledger = new SqliteLedger();
  private final SqliteExclusions exclusions;
  private final OperatorRequests requests;

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

  /** Counts changes of active shares: what was read before one is not kept after it. */
  private long changes;

  /** Touched by the writer's thread alone; absent after a rollback, when its end is unknown. */
  private @Nullable AuditTrail trail;

  /** A secret of the party itself. */
  public record PartySecret(byte[] sealed, byte[] publicPart) {}

  private PartyStore(
      FileChannel lock,
      OperatorRequests requests,
      UnwrittenExclusions notes,
      Database database,
      String party,
      Clock clock,
      ObjLongConsumer<Integer> committed) {
    this.lock = lock;
    this.clock = clock;
    this.trailName = "signer/" + party;
    this.requests = requests;
    this.writer =
        new GroupCommit(
            party,
            database,
            new GroupCommit.Listener() {
              @Override
              public void committed(int writes, long nanos) {
                committed.accept(writes, nanos);
              }

              @Override
              public void rolledBack() {
                trail = null;
              }
            });
    this.exclusions =
        new SqliteExclusions(
            writer,
            notes,
            ledger,
            clock,
            this::append,
            key -> read(db -> SqliteExclusions.of(db, key)));
  }

  /**
   * Opens the party's file, made and migrated if need be.
   *
   * @param folder made if it does not exist; readable by its owner alone
   * @param party roster name of the party
   * @param committed told the number of writes and the nanoseconds of each transaction
   * @throws StoreException if the file cannot be had, or another process has it
   */
  public static PartyStore open(
      Path folder, String party, Clock clock, ObjLongConsumer<Integer> committed) {
    try {
      createFolder(folder);
      FileChannel lock = lock(lockFile(folder));
      try {
        Path file = folder.resolve(FILE);
        if (!Files.exists(file)) {
          Files.createFile(
              file,
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        }
        PartyStore store =
            new PartyStore(
                lock,
                new OperatorRequests(folder),
                new UnwrittenExclusions(folder),
                Database.writer(file),
                party,
                clock,
                committed);
        try {
          store.openReaders(file);
        } catch (SQLException | RuntimeException e) {
          store.close();
          throw e;
        }
        return store;
      } catch (SQLException | RuntimeException e) {
        lock.close();
        throw e;
      }
    } catch (SQLException | IOException e) {
      throw new StoreException("cannot open " + folder.resolve(FILE), e);
    }
  }

  /** Makes the data folder, readable by its owner alone; leaves an existing one as it is. */
  public static void createFolder(Path folder) {
    try {
      Files.createDirectories(
          folder,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (IOException e) {
      throw new StoreException("cannot make " + folder, e);
    }
  }

  /** Locked by whoever has the party's file. */
  static Path lockFile(Path folder) {
    return folder.resolve(FILE + ".lock");
  }

  /**
   * Takes a lock file, made if need be, until the channel is closed or the process ends.
   *
   * @throws StoreException if somebody has it
   */
  static FileChannel lock(Path path) throws IOException {
    FileChannel channel =
        FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try {
      if (channel.tryLock() == null) {
        throw new StoreException("another process has " + path);
      }
      return channel;
    } catch (OverlappingFileLockException e) {
      channel.close();
      throw new StoreException("this process has " + path + " open already", e);
    } catch (RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  private void openReaders(Path file) throws SQLException {
    for (int i = 0; i < READERS; i++) {
      readers.add(Database.reader(file));
    }
    exclusions.start();
  }

  // ---- claims ----------------------------------------------------------------------------------

  @Override
  public CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted) {
    return claiming(
        db -> {
          long now = clock.millis();
          byte[] digest = claim.intentDigest().toByteArray();
          boolean newRequest =
              db.update(
                      "INSERT INTO claimed_request (requester, request_id, intent_digest,"
                          + " claimed_at_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                      claim.requester(),
                      claim.requestId(),
                      digest,
                      now)
                  == 1;
          if (!newRequest && !Arrays.equals(digest, boundTo(db, claim))) {
            return Claimed.not(Outcome.REQUEST_ID_REUSED);
          }
          if (!claimSession(db, claim.session(), claim.requester(), claim.requestId(), now)) {
            return Claimed.not(Outcome.SESSION_REPLAYED);
          }
          if (claim.binding() != null && !bind(db, claim.binding(), claim.instead())) {
            // Nor will it be run later.
            db.update(
                "UPDATE claimed_session SET requester = ?, request_id = ? WHERE session_id = ?",
                NOBODY,
                NOBODY,
                claim.session().bytes().toByteArray());
            return Claimed.not(Outcome.REQUEST_BOUND);
          }
          LedgerPosition position = multiplies(db, claim.session(), claim.multiplication());
          append(db, accepted);
          return new Claimed(Outcome.CLAIMED, position);
        });
  }

  @Override
  public CompletionStage<Outcome> claimSession(
      SessionId session, @Nullable Multiplication multiplication) {
    return claiming(
        db -> {
          if (!claimSession(db, session, NOBODY, NOBODY, clock.millis())) {
            return Claimed.not(Outcome.SESSION_REPLAYED);
          }
          return new Claimed(Outcome.CLAIMED, multiplies(db, session, multiplication));
        });
  }

  /**
   * @param position of the ledger after it
   */
  private record Claimed(Outcome outcome, LedgerPosition position) {
    static Claimed not(Outcome outcome) {
      return new Claimed(outcome, LedgerPosition.NONE);
    }
  }

  private CompletionStage<Outcome> claiming(GroupCommit.Write<Claimed> claim) {
    return writer
        .submit(claim)
        .thenApply(
            claimed -> {
              ledger.committed(claimed.position());
              return claimed.outcome();
            });
  }

  private LedgerPosition multiplies(
      Database db, SessionId session, @Nullable Multiplication multiplication) throws SQLException {
    if (multiplication == null) {
      return LedgerPosition.NONE;
    }
    SqliteLives.begin(db, session, multiplication);
    return ledger.claim(db);
  }

  @Override
  public void multiplied(SessionId session) {
    writer.submitLazily(
        db -> {
          SqliteLives.end(db, session);
          return true;
        });
  }

  /** One session a request: another one takes its place only if the caller knows which it was. */
  private static boolean bind(Database db, Binding binding, @Nullable SessionId instead)
      throws SQLException {
    return db.update(
            "INSERT INTO bound_request (requester, request_id, session_id, order_bytes, envelope,"
                + " not_after_ms) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET session_id ="
                + " excluded.session_id, order_bytes = excluded.order_bytes, envelope ="
                + " excluded.envelope WHERE session_id = ?",
            binding.requester(),
            binding.requestId(),
            binding.session().bytes().toByteArray(),
            binding.order().toByteArray(),
            binding.envelope().toByteArray(),
            binding.notAfter().toEpochMilli(),
            instead == null ? NO_SESSION : instead.bytes().toByteArray())
        == 1;
  }

  @Override
  public CompletionStage<Boolean> forsake(SessionId session) {
    return writer.submit(
        db -> {
          if (claimSession(db, session, NOBODY, NOBODY, clock.millis())) {
            return true;
          }
          return count(
                  db,
                  "SELECT count(*) FROM claimed_session WHERE session_id = ? AND requester = ?",
                  session.bytes().toByteArray(),
                  NOBODY)
              == 1;
        });
  }

  @Override
  public List<Binding> bindings(int limit) {
    return read(
        db -> {
          List<Binding> bindings = new ArrayList<>();
          try (ResultSet row =
              db.statement(
                      "SELECT * FROM bound_request WHERE not_after_ms >= ? ORDER BY not_after_ms"
                          + " DESC LIMIT ?",
                      clock.millis(),
                      limit)
                  .executeQuery()) {
            while (row.next()) {
              bindings.add(
                  new Binding(
                      row.getString("requester"),
                      row.getString("request_id"),
                      new SessionId(ByteString.copyFrom(row.getBytes("session_id"))),
                      ByteString.copyFrom(row.getBytes("order_bytes")),
                      ByteString.copyFrom(row.getBytes("envelope")),
                      Instant.ofEpochMilli(row.getLong("not_after_ms"))));
            }
          }
          return bindings.reversed();
        });
  }

  @Override
  public void forgetBindings(Instant before) {
    writer.submitLazily(
        db -> db.update("DELETE FROM bound_request WHERE not_after_ms < ?", before.toEpochMilli()));
  }

  @Override
  public LedgerPosition position() {
    return ledger.position();
  }

  @Override
  public boolean remembers(LedgerPosition told) {
    return read(db -> SqliteLedger.knows(db, told));
  }

  private static boolean claimSession(
      Database db, SessionId session, String requester, String requestId, long nowMs)
      throws SQLException {
    return db.update(
            "INSERT INTO claimed_session (session_id, requester, request_id, claimed_at_ms)"
                + " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            session.bytes().toByteArray(),
            requester,
            requestId,
            nowMs)
        == 1;
  }

  private static byte[] boundTo(Database db, Claim claim) throws SQLException {
    try (ResultSet row =
        db.statement(
                "SELECT intent_digest FROM claimed_request WHERE requester = ? AND request_id = ?",
                claim.requester(),
                claim.requestId())
            .executeQuery()) {
      return row.next() ? row.getBytes(1) : new byte[0];
    }
  }

  // ---- shares ----------------------------------------------------------------------------------

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
    // ACTIVE sorts before PROVISIONAL.
    Optional<KeyShare> found =
        read(
                db ->
                    shares(
                        db,
                        SELECT_SHARE
                            + " WHERE key = ? AND state IN ('ACTIVE', 'PROVISIONAL')"
                            + " ORDER BY state LIMIT 1",
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

  /** The active share of a key is another one on disk now. */
  private void changed(String key) {
    synchronized (activeShares) {
      changes++;
      activeShares.remove(key);
    }
  }

  @Override
  public Optional<KeyShare> pending(String key) {
    return read(db -> shares(db, SELECT_SHARE + " WHERE key = ? AND state = 'PROVISIONAL'", key))
        .stream()
        .findFirst();
  }

  @Override
  public List<KeyShare> undecided() {
    return read(
        db ->
            shares(db, SELECT_SHARE + " WHERE state IN ('PROVISIONAL', 'GIVEN_UP') ORDER BY key"));
  }

  @Override
  public Optional<KeyShare> ofSession(SessionId session) {
    return read(
            db ->
                shares(
                    db,
                    SELECT_SHARE + " WHERE session_id = ? AND state <> 'SUPERSEDED'",
                    session.bytes().toByteArray()))
        .stream()
        .findFirst();
  }

  @Override
  public Set<Integer> deserters(String key) {
    return read(db -> deserters(db, key));
  }

  private static Set<Integer> deserters(Database db, String key) throws SQLException {
    Set<Integer> deserters = new HashSet<>();
    int givenUp = 0;
    try (ResultSet rows =
        db.statement("SELECT deserter FROM key_share WHERE key = ? AND state = 'GIVEN_UP'", key)
            .executeQuery()) {
      while (rows.next()) {
        givenUp++;
        deserters.add(rows.getInt(1));
      }
    }
    deserters.remove(NO_DESERTER);
    if (givenUp < MAX_GIVEN_UP) {
      return Set.of();
    }
    return givenUp < MAX_GIVEN_UP_IN_ALL ? Set.copyOf(deserters) : Set.of(EVERY_PARTY);
  }

  @Override
  public CompletionStage<Boolean> storeProvisional(KeyShare share, AuditEvent completed) {
    return writer.submit(
        db -> {
          if (count(db, COUNT_ACTIVE, share.key()) > 0) {
            return false;
          }
          db.update(
              "UPDATE key_share SET state = 'SUPERSEDED' WHERE key = ? AND state = 'PROVISIONAL'",
              share.key());
          insertProvisional(db, share);
          append(db, completed);
          return true;
        });
  }

  private void insertProvisional(Database db, KeyShare share) throws SQLException {
    db.update(
        "INSERT INTO key_share ("
            + SHARE_COLUMNS
            + ", stored_at_ms, stored_number)"
            + " SELECT ?, ?, ?, ?, 'PROVISIONAL', ?, ?, ?, ?, ?, ?, ?, ?, ?,"
            + " coalesce(max(stored_number), 0) + 1 FROM key_share WHERE key = ?",
        share.session().bytes().toByteArray(),
        share.key(),
        share.epoch(),
        share.scheme().getNumber(),
        text(share.parties()),
        text(share.members()),
        share.keyPublic().toByteArray(),
        share.sealed().toByteArray(),
        share.coordinator(),
        share.requester(),
        share.requestId(),
        share.intentDigest().toByteArray(),
        clock.millis(),
        share.key());
  }

  static String text(List<Integer> parties) {
    return parties.stream().map(String::valueOf).collect(Collectors.joining(","));
  }

  static List<Integer> ids(String text) {
    return Arrays.stream(text.split(",", -1)).map(Integer::valueOf).toList();
  }

  @Override
  public CompletionStage<Boolean> storeNext(KeyShare share, boolean dealt, AuditEvent completed) {
    return writer.submit(
        db -> {
          boolean wanted =
              count(
                          db,
                          "SELECT count(*) FROM key_share WHERE key = ? AND epoch >= ? AND state IN"
                              + " ('ACTIVE', 'PROVISIONAL')",
                          share.key(),
                          share.epoch())
                      == 0
                  && (!dealt || hasActive(db, share.key(), share.epoch() - 1))
                  && !isForsaken(db, share.session())
                  && mayFollow(deserters(db, share.key()), share);
          if (wanted) {
            // Of an epoch that this party has missed the end of: it deals with its active share
            // or with none.
            db.update(
                "UPDATE key_share SET state = CASE WHEN epoch > 1 THEN 'GIVEN_UP' ELSE 'SUPERSEDED'"
                    + " END WHERE key = ? AND state = 'PROVISIONAL'",
                share.key());
            insertProvisional(db, share);
            append(db, completed);
          }
          return wanted;
        });
  }

  private static boolean mayFollow(Set<Integer> deserters, KeyShare share) {
    return !deserters.contains(EVERY_PARTY) && Collections.disjoint(deserters, share.members());
  }

  @Override
  public CompletionStage<Boolean> forsake(String key, SessionId session) {
    return writer.submit(
        db -> {
          byte[] id = session.bytes().toByteArray();
          if (isForsaken(db, session)) {
            return true;
          }
          if (count(db, "SELECT count(*) FROM key_share WHERE session_id = ?", id) > 0
              || count(db, "SELECT count(*) FROM forsaken_session WHERE key = ?", key)
                  >= MAX_FORSAKEN
              || count(db, "SELECT count(*) FROM forsaken_session") >= MAX_FORSAKEN_IN_ALL) {
            return false;
          }
          db.update(
              "INSERT INTO forsaken_session (session_id, key, forsaken_at_ms) VALUES (?, ?, ?)",
              id,
              key,
              clock.millis());
          return true;
        });
  }

  @Override
  public CompletionStage<Boolean> giveUp(KeyShare share, int deserter, AuditEvent givenUp) {
    return writer.submit(
        db -> {
          boolean done =
              db.update(
                      "UPDATE key_share SET state = 'GIVEN_UP', deserter = ? WHERE session_id = ? AND"
                          + " state = 'PROVISIONAL' AND epoch > 1",
                      deserter,
                      share.session().bytes().toByteArray())
                  == 1;
          if (done) {
            append(db, givenUp);
          }
          return done;
        });
  }

  @Override
  public CompletionStage<Boolean> activate(
      KeyShare share, Certificate proof, AuditEvent activated) {
    byte[] session = share.session().bytes().toByteArray();
    return writer
        .submitErasing(
            db -> {
              boolean wanted =
                  count(
                          db,
                          "SELECT count(*) FROM key_share own WHERE session_id = ? AND state IN"
                              + " ('PROVISIONAL', 'GIVEN_UP') AND NOT EXISTS (SELECT 1 FROM"
                              + " key_share used WHERE used.key = own.key AND used.state = 'ACTIVE'"
                              + " AND (used.epoch > own.epoch OR (used.epoch = own.epoch AND"
                              + " used.stored_number > own.stored_number)))",
                          session)
                      == 1;
              if (wanted) {
                // Every party of the new epoch has its share of it: nobody can ever need the older
                // ones. One that was stored after it may still have a certificate, and stays. A
                // second active share is refused by the index.
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
                db.update("DELETE FROM forsaken_session WHERE key = ?", share.key());
                append(db, activated);
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

  private static boolean hasActive(Database db, String key, int epoch) throws SQLException {
    return count(
            db,
            "SELECT count(*) FROM key_share WHERE key = ? AND state = 'ACTIVE' AND epoch = ?",
            key,
            epoch)
        == 1;
  }

  private static boolean isForsaken(Database db, SessionId session) throws SQLException {
    return count(
            db,
            "SELECT count(*) FROM forsaken_session WHERE session_id = ?",
            session.bytes().toByteArray())
        == 1;
  }

  @Override
  public Set<Integer> excluded(String key) {
    boolean multiplies =
        find(key).filter(s -> s.scheme() != Scheme.SCHEME_ECDSA_SECP256K1).isEmpty();
    return exclusions.of(key, multiplies);
  }

  @Override
  public CompletionStage<Boolean> exclude(Exclusion exclusion) {
    if (!exclusion.parties().contains(EVERY_PARTY)
        && find(exclusion.key()).filter(s -> s.epoch() > exclusion.epoch()).isPresent()) {
      // What the two had in common is gone with the old shares.
      return CompletableFuture.completedFuture(false);
    }
    return exclusions.exclude(exclusion).whenComplete((_, _) -> changed(exclusion.key()));
  }

  @Override
  public List<Shown> shown() {
    return read(SqliteShownClaims::all);
  }

  @Override
  public CompletionStage<Boolean> show(Shown shown) {
    return writer.submit(
        db -> {
          SqliteShownClaims.put(db, shown);
          return true;
        });
  }

  @Override
  public CompletionStage<List<String>> wentBack(int party) {
    return exclusions.wentBack(party, LedgerPosition.NONE);
  }

  @Override
  public CompletionStage<List<String>> wentBack(LedgerPosition forgotten) {
    return exclusions.wentBack(ITSELF, forgotten);
  }

  @Override
  public CompletionStage<Boolean> unfreeze(String key) {
    return exclusions.unfreeze(key);
  }

  @Override
  public List<KeyTrouble> troubles() {
    return exclusions.troubles();
  }

  /**
   * The same of a folder whose party may be running in another process.
   *
   * @throws StoreException if there is no party's file that can be read
   */
  public static List<KeyTrouble> troubles(Path folder) {
    try (Database database = Database.reader(folder.resolve(FILE))) {
      SqliteExclusions.Memory memory = SqliteExclusions.Memory.read(database);
      memory.rememberAll(new UnwrittenExclusions(folder).read());
      return memory.troubles();
    } catch (SQLException e) {
      throw new StoreException("cannot read " + folder.resolve(FILE), e);
    }
  }

  @Override
  public void housekeep() {
    exclusions.retry();
    requests.toUnfreeze(exclusions::unfreeze);
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
                Scheme.forNumber(row.getInt("scheme")),
                KeyShare.State.valueOf(row.getString("state")),
                ids(row.getString("parties")),
                ids(row.getString("members")),
                KeyPublic.parseFrom(row.getBytes("key_public")),
                ByteString.copyFrom(row.getBytes("sealed")),
                new SessionId(ByteString.copyFrom(row.getBytes("session_id"))),
                row.getString("coordinator"),
                row.getString("requester"),
                row.getString("request_id"),
                ByteString.copyFrom(row.getBytes("intent_digest")),
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

  // ---- the party's own secrets -----------------------------------------------------------------

  /** The secret of that name. */
  public Optional<PartySecret> secret(String name) {
    return read(
        db -> {
          try (ResultSet row =
              db.statement("SELECT sealed, public FROM party_secret WHERE name = ?", name)
                  .executeQuery()) {
            return row.next()
                ? Optional.of(new PartySecret(row.getBytes(1), row.getBytes(2)))
                : Optional.empty();
          }
        });
  }

  /** Stores a secret durably, in place of an older one. */
  public void saveSecret(String name, PartySecret secret) {
    writer
        .submit(
            db ->
                db.update(
                    "INSERT INTO party_secret (name, sealed, public) VALUES (?, ?, ?)"
                        + " ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed,"
                        + " public = excluded.public",
                    name,
                    secret.sealed(),
                    secret.publicPart()))
        .toCompletableFuture()
        .join();
  }

  // ---- audit -----------------------------------------------------------------------------------

  @Override
  public void record(AuditEvent event) {
    writer.submitLazily(
        db -> {
          append(db, event);
          return true;
        });
  }

  /** Checks every link of the audit trail. */
  public AuditTrail.Verification verifyAudit() {
    return read(db -> new AuditTrail(trailName, new Records(db), clock).verify());
  }

  /** Audit records from a sequence number on, oldest first. */
  public List<AuditRecord> audit(long fromSequence, int limit) {
    return read(db -> new Records(db).read(fromSequence, limit));
  }

  private void append(Database db, AuditEvent event) {
    AuditTrail open = trail;
    if (open == null) {
      open = new AuditTrail(trailName, new Records(db), clock);
      trail = open;
    }
    open.append(event);
  }

  /** The trail's records, inside whatever transaction the connection is in. */
  private record Records(Database db) implements AuditStore {
    private static final String COLUMNS =
        "sequence, time_ms, actor, action, outcome, fields, previous_hash, hash";

    @Override
    public Optional<AuditRecord> last() {
      return query("SELECT " + COLUMNS + " FROM audit_record ORDER BY sequence DESC LIMIT ?", 1L)
          .stream()
          .findFirst();
    }

    @Override
    public void append(AuditRecord record) {
      try {
        db.update(
            "INSERT INTO audit_record (" + COLUMNS + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            record.sequence(),
            record.time().toEpochMilli(),
            record.event().actor(),
            record.event().action(),
            record.event().outcome(),
            JSON.writeValueAsString(record.event().fields()),
            record.previousHash(),
            record.hash());
      } catch (SQLException e) {
        throw new StoreException("an audit record could not be written", e);
      }
    }

    @Override
    public List<AuditRecord> read(long fromSequence, int limit) {
      return query(
          "SELECT " + COLUMNS + " FROM audit_record WHERE sequence >= ? ORDER BY sequence LIMIT ?",
          fromSequence,
          limit);
    }

    private List<AuditRecord> query(String sql, Object... parameters) {
      List<AuditRecord> records = new ArrayList<>();
      try (ResultSet row = db.statement(sql, parameters).executeQuery()) {
        while (row.next()) {
          SortedMap<String, String> fields = JSON.readValue(row.getString("fields"), FIELDS);
          records.add(
              new AuditRecord(
                  row.getLong("sequence"),
                  Instant.ofEpochMilli(row.getLong("time_ms")),
                  new AuditEvent(
                      row.getString("actor"),
                      row.getString("action"),
                      row.getString("outcome"),
                      fields),
                  row.getBytes("previous_hash"),
                  row.getBytes("hash")));
        }
      } catch (SQLException e) {
        throw new StoreException("the audit trail could not be read", e);
      }
      return records;
    }
  }

  // ---- connections -----------------------------------------------------------------------------

  private static long count(Database db, String sql, Object... parameters) throws SQLException {
    try (ResultSet row = db.statement(sql, parameters).executeQuery()) {
      return row.getLong(1);
    }
  }

  private <T> T read(GroupCommit.Write<T> query) {
    try {
      Database db = readers.take();
      try {
        return query.run(db);
      } finally {
        readers.add(db);
      }
    } catch (SQLException e) {
      throw new StoreException("the party's file could not be read", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted", e);
    }
  }

  /** Writes what waits, then closes the file. */
  @Override
  public void close() {
    writer.close();
    try {
      for (Database reader = readers.poll(); reader != null; reader = readers.poll()) {
        reader.close();
      }
      lock.close();
    } catch (SQLException | IOException e) {
      throw new StoreException("the party's file could not be closed", e);
    }
  }
}
