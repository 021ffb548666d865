package io.coterie.coordinator.storage;

import com.google.rpc.Status;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;

/** Refreshes and reshares in PostgreSQL. */
public final class JdbcRenewalStore implements RenewalStore {
  private static final String COLUMNS =
      "id, "
          + Headers.COLUMNS
          + ", key_name, from_epoch, threshold, party_ids, party_names, cancelled, reopened, state,"
          + " sessions, error";

  /**
   * Both lock the row of the key: a switch that commits meanwhile changes its epoch, and a renewal
   * from an epoch that is over could never end.
   */
  private static final String START =
      "insert into key_renewals ("
          + Headers.COLUMNS
          + ", key_name, from_epoch, threshold, party_ids, party_names, state, worker) select "
          + Headers.PARAMETERS
          + ", name, epoch, ?, ?, ?, 1, ? from keys"
          + " where name = ? and state = 2 and epoch = ? for share"
          + " on conflict do nothing returning id";

  private static final String FIND_REQUEST =
      "select " + COLUMNS + " from key_renewals where requester = ? and request_id = ?";

  private static final String FIND_OF_KEY =
      "select "
          + COLUMNS
          + " from key_renewals where key_name = ? and request_id = ? order by id desc limit 1";

  private static final String ORDERING =
      "update key_renewals set sessions = 1 where id = ? and state = 1 and sessions = 0";

  private static final String CANCEL =
      "update key_renewals set cancelled = true where id = ? and state = 1";

  private static final String IS_RUNNING =
      "select 1 from key_renewals where key_name = ? and state = 1";

  /** One statement, so one transaction: both rows change, or none. */
  private static final String SWITCH =
      "with running as (select * from key_renewals"
          + "   where id = ? and state = 1 for update),"
          + " switched as (update keys k set attestation = ?, epoch = r.from_epoch + 1,"
          + "     threshold = r.threshold, party_ids = r.party_ids, party_names = r.party_names"
          + "   from running r where k.name = r.key_name and k.state = 2 and k.epoch = r.from_epoch"
          + "   returning k.name),"
          + " lifted as (delete from key_exclusions e using switched s where e.key_name = s.name)"
          + " update key_renewals f set state = 2, sessions = ? from switched s, running r"
          + "   where f.id = r.id and s.name = r.key_name";

  private static final String FAIL =
      "update key_renewals set state = 3, error = ?, sessions = greatest(sessions, ?) where id = ?"
          + " and state = 1";

  private static final String REOPEN =
      "update key_renewals set state = 1, error = null, reopened = true, worker = ? where id ="
          + " (select r.id from key_renewals r join keys k on k.name = r.key_name and k.state = 2"
          + "   and k.epoch = r.from_epoch where r.key_name = ? and r.from_epoch = ? and r.state = 3"
          + "   and not exists (select 1 from key_renewals where key_name = ? and state = 1)"
          + "   order by r.sessions, r.id desc limit 1 for share of k for update of r skip locked)"
          + " and state = 3 returning "
          + COLUMNS;

  private static final String TAKE = Worker.take("key_renewals", COLUMNS);

  private static final String TAKE_ALL = Worker.takeAll("key_renewals", COLUMNS);

  private static final String CANCELLED =
      "select " + COLUMNS + " from key_renewals where state = 1 and cancelled and worker = ?";

  private final Sql sql;
  private final Worker self;

  public JdbcRenewalStore(DataSource durable, Worker self) {
    this.sql = new Sql(durable);
    this.self = self;
  }

  @Override
  public Start start(Renewal attempt) {
    Optional<Long> id =
        sql.first(
            START,
            s -> {
              Headers.bind(s, attempt.header());
              s.setInt(7, attempt.threshold());
              Holders.bind(s, 8, attempt.parties());
              s.setString(10, self.name());
              s.setString(11, attempt.key());
              s.setInt(12, attempt.fromEpoch());
            },
            row -> row.getLong(1));
    if (id.isPresent()) {
      return new Start.Stored(attempt.withId(id.get()));
    }
    return findRequest(attempt.requester(), attempt.requestId())
        .<Start>map(Start.Known::new)
        .orElseGet(Start.Refused::new);
  }

  @Override
  public Optional<Renewal> findRequest(String requester, String requestId) {
    return sql.first(FIND_REQUEST, Headers.request(requester, requestId), JdbcRenewalStore::read);
  }

  @Override
  public Optional<Renewal> findOfKey(String key, String requestId) {
    return sql.first(FIND_OF_KEY, Headers.request(key, requestId), JdbcRenewalStore::read);
  }

  @Override
  public void ordering(long id) {
    sql.update(ORDERING, s -> s.setLong(1, id));
  }

  @Override
  public boolean cancel(long id) {
    return sql.update(CANCEL, s -> s.setLong(1, id)) == 1;
  }

  @Override
  public boolean isRunning(String key) {
    return !sql.query(IS_RUNNING, s -> s.setString(1, key), row -> row.getInt(1)).isEmpty();
  }

  @Override
  public boolean switchEpoch(long id, MadeKey renewed, int sessions) {
    return sql.update(
            SWITCH,
            s -> {
              s.setLong(1, id);
              s.setBytes(2, renewed.attestation().toByteArray());
              s.setInt(3, sessions);
            })
        == 1;
  }

  @Override
  public boolean fail(long id, Status error, int sessions) {
    return sql.update(
            FAIL,
            s -> {
              s.setBytes(1, error.toByteArray());
              s.setInt(2, sessions);
              s.setLong(3, id);
            })
        == 1;
  }

  @Override
  public Optional<Renewal> reopen(String key, int fromEpoch) {
    try {
      return sql.first(
          REOPEN,
          s -> {
            s.setString(1, self.name());
            s.setString(2, key);
            s.setInt(3, fromEpoch);
            s.setString(4, key);
          },
          JdbcRenewalStore::read);
    } catch (StoreUnavailableException e) {
      if (Sql.isDuplicate(e)) {
        return Optional.empty(); // another one of the key started meanwhile
      }
      throw e;
    }
  }

  @Override
  public Optional<Renewal> take(long id) {
    return sql.taking(TAKE, s -> self.bindTake(s, id), JdbcRenewalStore::read);
  }

  @Override
  public List<Renewal> takeAll(boolean own) {
    return sql.query(TAKE_ALL, s -> self.bindTakeAll(s, own), JdbcRenewalStore::read);
  }

  @Override
  public List<Renewal> cancelled() {
    return sql.query(CANCELLED, s -> s.setString(1, self.name()), JdbcRenewalStore::read);
  }

  private static Renewal read(ResultSet row) throws SQLException {
    return new Renewal(
        row.getLong("id"),
        Headers.read(row),
        row.getString("key_name"),
        row.getInt("from_epoch"),
        row.getInt("threshold"),
        Holders.read(row),
        row.getBoolean("cancelled"),
        row.getBoolean("reopened"),
        Renewal.State.of(row.getInt("state")),
        row.getInt("sessions"),
        Sql.messageOrNull(row, "error", Status.parser()));
  }
}
