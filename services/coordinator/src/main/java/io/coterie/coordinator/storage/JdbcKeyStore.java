package io.coterie.coordinator.storage;

import com.google.rpc.Status;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.RestoredKey;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Keys in PostgreSQL. */
public final class JdbcKeyStore implements KeyStore {
  private static final String COLUMNS =
      "id, "
          + Headers.COLUMNS
          + ", name, scheme, threshold, party_ids, party_names, state, sessions, attestation, error";

  private static final String CREATE =
      "insert into keys ("
          + Headers.COLUMNS
          + ", name, scheme, threshold, party_ids, party_names, state, worker) values ("
          + Headers.PARAMETERS
          + ", ?, ?, ?, ?, ?, 1, ?) on conflict do nothing returning id";

  private static final String RESTORE =
      "insert into keys ("
          + Headers.COLUMNS
          + ", name, scheme, threshold, party_ids, party_names, state, epoch, attestation) values ("
          + Headers.PARAMETERS
          + ", ?, ?, ?, ?, ?, 2, ?, ?) on conflict do nothing";

  private static final String LOCKED =
      "select " + COLUMNS + " from keys where name = ? and state in (1, 2) for update";

  private static final String RENEWING =
      "select 1 from key_renewals where key_name = ? and state = 1";

  private static final String RENEW =
      "update keys set epoch = ?, attestation = ?, threshold = ?, party_ids = ?, party_names = ?"
          + " where id = ?";

  private static final String INCLUDE_ALL = "delete from key_exclusions where key_name = ?";

  private static final String FINISH =
      "update keys set state = ?, attestation = ?, error = ?, sessions = ?"
          + " where id = ? and state = 1";

  private static final String FIND =
      "select "
          + COLUMNS
          + " from keys where name = ? order by (state in (1, 2)) desc, id desc limit 1";

  private static final String FIND_REQUEST =
      "select " + COLUMNS + " from keys where requester = ? and request_id = ?";

  private static final String LIST =
      "select distinct on (name) "
          + COLUMNS
          + " from keys where name > ? and name like any (?)"
          + " order by name, (state in (1, 2)) desc, id desc limit ?";

  private static final String TAKE = Worker.take("keys", COLUMNS);

  private static final String TAKE_ALL = Worker.takeAll("keys", COLUMNS);

  private static final String QUORUMS =
      "select distinct threshold, array(select p from unnest(party_ids) as p except select party_id"
          + " from key_exclusions where key_name = keys.name order by 1) as parties"
          + " from keys where state = 2";

  private static final String EXCLUDE =
      "insert into key_exclusions (key_name, party_id, cause, session_id, excluded_at)"
          + " values (?, ?, ?, ?, ?) on conflict do nothing";

  private static final String WENT_BACK = "STORE_WENT_BACK";

  private static final String EXCLUDE_WENT_BACK =
      "insert into key_exclusions (key_name, party_id, cause, session_id, excluded_at)"
          + " select name, ?, ?, '', ? from keys where state = 2 and scheme = ?"
          + " and ? = any(party_ids) on conflict do nothing returning key_name";

  private static final String OF_CAUSE =
      "select party_id from key_exclusions where key_name = ? and cause = ?";

  private static final String EXCLUDED = "select party_id from key_exclusions where key_name = ?";

  private final Sql sql;
  private final Worker self;

  public JdbcKeyStore(DataSource durable, Worker self) {
    this.sql = new Sql(durable);
    this.self = self;
  }

  @Override
  public Creation create(KeyRecord attempt) {
    Optional<Long> id =
        sql.first(
            CREATE,
            s -> {
              bind(s, attempt);
              s.setString(12, self.name());
            },
            row -> row.getLong(1));
    if (id.isPresent()) {
      return new Creation.Stored(attempt.withId(id.get()));
    }
    return findRequest(attempt.requester(), attempt.requestId())
        .<Creation>map(Creation.Known::new)
        .orElseGet(Creation.NameTaken::new);
  }

  /** Sets the first eleven parameters. */
  private static void bind(PreparedStatement statement, KeyRecord key) throws SQLException {
    Headers.bind(statement, key.header());
    statement.setString(7, key.name());
    statement.setInt(8, key.scheme().getNumber());
    statement.setInt(9, key.threshold());
    Holders.bind(statement, 10, key.parties());
  }

  @Override
  public List<RestoredKey> restore(List<KeyRecord> keys) {
    return sql.transaction(
        connection -> {
          List<RestoredKey> restored = new ArrayList<>();
          for (KeyRecord key : keys) {
            restored.add(new RestoredKey(key.name(), key.epoch(), restore(connection, key)));
          }
          return restored;
        });
  }

  private static RestoredKey.Fate restore(Connection connection, KeyRecord key)
      throws SQLException {
    Optional<KeyRecord> here = locked(connection, key.name());
    if (here.isEmpty() && insert(connection, key)) {
      return RestoredKey.Fate.WRITTEN;
    }
    if (here.isEmpty()) {
      // Another replica may have begun to make a key of the name in between.
      here = locked(connection, key.name());
      if (here.isEmpty()) {
        return RestoredKey.Fate.REQUEST_TAKEN;
      }
    }
    boolean renewing =
        !Sql.query(connection, RENEWING, s -> s.setString(1, key.name()), row -> row.getInt(1))
            .isEmpty();
    RestoredKey.Fate fate = RestoredKey.beside(here.get(), key, renewing);
    if (fate == RestoredKey.Fate.RENEWED) {
      renew(connection, here.get().id(), key);
    }
    return fate;
  }

  private static Optional<KeyRecord> locked(Connection connection, String name)
      throws SQLException {
    return Sql.query(connection, LOCKED, s -> s.setString(1, name), JdbcKeyStore::read).stream()
        .findFirst();
  }

  private static boolean insert(Connection connection, KeyRecord key) throws SQLException {
    return Sql.update(
            connection,
            RESTORE,
            s -> {
              bind(s, key);
              s.setInt(12, key.epoch());
              s.setBytes(13, attestation(key));
            })
        == 1;
  }

  /** Exclusions are from the shares that nobody uses any more. */
  private static void renew(Connection connection, long id, KeyRecord key) throws SQLException {
    Sql.update(
        connection,
        RENEW,
        s -> {
          s.setInt(1, key.epoch());
          s.setBytes(2, attestation(key));
          s.setInt(3, key.threshold());
          Holders.bind(s, 4, key.parties());
          s.setLong(6, id);
        });
    Sql.update(connection, INCLUDE_ALL, s -> s.setString(1, key.name()));
  }

  private static byte @Nullable [] attestation(KeyRecord key) {
    return Sql.bytes(Objects.requireNonNull(key.made()).attestation());
  }

  @Override
  public boolean finish(long id, @Nullable MadeKey made, @Nullable Status error, int sessions) {
    Key.State state = made != null ? Key.State.ACTIVE : Key.State.FAILED;
    return sql.update(
            FINISH,
            s -> {
              s.setInt(1, state.getNumber());
              s.setBytes(2, Sql.bytes(made == null ? null : made.attestation()));
              s.setBytes(3, Sql.bytes(error));
              s.setInt(4, sessions);
              s.setLong(5, id);
            })
        == 1;
  }

  @Override
  public Optional<KeyRecord> find(String name) {
    return sql.first(FIND, s -> s.setString(1, name), JdbcKeyStore::read);
  }

  @Override
  public Optional<KeyRecord> findRequest(String requester, String requestId) {
    return sql.first(FIND_REQUEST, Headers.request(requester, requestId), JdbcKeyStore::read);
  }

  @Override
  public List<KeyRecord> list(String afterName, Set<String> globs, int limit) {
    return sql.query(
        LIST,
        s -> {
          s.setString(1, afterName);
          s.setArray(2, Sql.patterns(s, globs));
          s.setInt(3, limit);
        },
        JdbcKeyStore::read);
  }

  @Override
  public List<Quorums> quorums() {
    return sql.query(
        QUORUMS,
        s -> {},
        row -> new Quorums(row.getInt("threshold"), Set.of(Sql.numbers(row, "parties"))));
  }

  @Override
  public Optional<KeyRecord> take(long id) {
    return sql.taking(TAKE, s -> self.bindTake(s, id), JdbcKeyStore::read);
  }

  @Override
  public List<KeyRecord> takeAll(boolean own) {
    return sql.query(TAKE_ALL, s -> self.bindTakeAll(s, own), JdbcKeyStore::read);
  }

  @Override
  public void exclude(String key, int partyId, String cause, byte[] sessionId, Instant now) {
    sql.update(
        EXCLUDE,
        s -> {
          s.setString(1, key);
          s.setInt(2, partyId);
          s.setString(3, cause);
          s.setBytes(4, sessionId);
          s.setObject(5, Sql.time(now));
        });
  }

  @Override
  public Set<String> excludeWentBack(int partyId, Instant now) {
    return new TreeSet<>(
        sql.query(
            EXCLUDE_WENT_BACK,
            s -> {
              s.setInt(1, partyId);
              s.setString(2, WENT_BACK);
              s.setObject(3, Sql.time(now));
              s.setInt(4, Scheme.SCHEME_ECDSA_SECP256K1_VALUE);
              s.setInt(5, partyId);
            },
            row -> row.getString("key_name")));
  }

  @Override
  public Set<Integer> wentBack(String key) {
    return new TreeSet<>(
        sql.query(
            OF_CAUSE,
            s -> {
              s.setString(1, key);
              s.setString(2, WENT_BACK);
            },
            row -> row.getInt("party_id")));
  }

  @Override
  public Set<Integer> excluded(String key) {
    return new TreeSet<>(sql.query(EXCLUDED, s -> s.setString(1, key), row -> row.getInt(1)));
  }

  private static KeyRecord read(ResultSet row) throws SQLException {
    Attestation attestation = Sql.messageOrNull(row, "attestation", Attestation.parser());
    return new KeyRecord(
        row.getLong("id"),
        Headers.read(row),
        row.getString("name"),
        Objects.requireNonNull(Scheme.forNumber(row.getInt("scheme"))),
        row.getInt("threshold"),
        Holders.read(row),
        Objects.requireNonNull(Key.State.forNumber(row.getInt("state"))),
        row.getInt("sessions"),
        attestation == null ? null : MadeKey.of(attestation),
        Sql.messageOrNull(row, "error", Status.parser()));
  }
}
