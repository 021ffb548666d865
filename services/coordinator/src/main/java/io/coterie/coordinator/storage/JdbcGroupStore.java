package io.coterie.coordinator.storage;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.group.GroupRecord;
import io.coterie.coordinator.custody.group.GroupStore;
import io.coterie.proto.custody.v1.Group;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Groups in PostgreSQL. */
public final class JdbcGroupStore implements GroupStore {
  private static final String TABLE = "approver_groups";

  private static final String COLUMNS =
      "id, "
          + Headers.COLUMNS
          + ", name, epoch, issuer_threshold, issuers, opener_threshold, openers, state, attested,"
          + " error";

  private static final String CREATE =
      "insert into approver_groups ("
          + Headers.COLUMNS
          + ", name, epoch, issuer_threshold, issuers, opener_threshold, openers, state, worker)"
          + " values ("
          + Headers.PARAMETERS
          + ", ?, ?, ?, ?, ?, ?, 1, ?) on conflict do nothing returning id";

  private static final String FINISH =
      "update approver_groups set state = ?, attested = ?, error = ? where id = ? and state = 1";

  private static final String FIND =
      "select " + COLUMNS + " from approver_groups where name = ? and epoch = ?";

  private static final String FIND_REQUEST =
      "select " + COLUMNS + " from approver_groups where requester = ? and request_id = ?";

  private static final String LIST =
      "select "
          + COLUMNS
          + " from approver_groups where (name, epoch) > (?, ?) and name like any (?)"
          + " order by name, epoch limit ?";

  private static final String TAKE = Worker.take(TABLE, COLUMNS);

  private static final String TAKE_ALL = Worker.takeAll(TABLE, COLUMNS);

  private final Sql sql;
  private final Worker self;

  public JdbcGroupStore(DataSource durable, Worker self) {
    this.sql = new Sql(durable);
    this.self = self;
  }

  @Override
  public Creation create(GroupRecord attempt) {
    Optional<Long> id =
        sql.first(
            CREATE,
            s -> {
              Headers.bind(s, attempt.header());
              s.setString(7, attempt.group());
              s.setInt(8, attempt.epoch());
              s.setInt(9, attempt.issuerThreshold());
              names(s, 10, attempt.issuers());
              s.setInt(11, attempt.openerThreshold());
              names(s, 12, attempt.openers());
              s.setString(13, self.name());
            },
            row -> row.getLong(1));
    if (id.isPresent()) {
      return new Creation.Stored(attempt.withId(id.get()));
    }
    return findRequest(attempt.requester(), attempt.requestId())
        .<Creation>map(Creation.Known::new)
        .orElseGet(Creation.EpochTaken::new);
  }

  private static void names(PreparedStatement statement, int index, List<String> names)
      throws SQLException {
    statement.setArray(index, statement.getConnection().createArrayOf("text", names.toArray()));
  }

  @Override
  public boolean finish(long id, ByteString attested, @Nullable Status error) {
    Group.State state = error == null ? Group.State.ACTIVE : Group.State.FAILED;
    return sql.update(
            FINISH,
            s -> {
              s.setInt(1, state.getNumber());
              s.setBytes(2, error == null ? attested.toByteArray() : null);
              s.setBytes(3, Sql.bytes(error));
              s.setLong(4, id);
            })
        == 1;
  }

  @Override
  public Optional<GroupRecord> find(String group, int epoch) {
    return sql.first(
        FIND,
        s -> {
          s.setString(1, group);
          s.setInt(2, epoch);
        },
        JdbcGroupStore::read);
  }

  @Override
  public Optional<GroupRecord> findRequest(String requester, String requestId) {
    return sql.first(FIND_REQUEST, Headers.request(requester, requestId), JdbcGroupStore::read);
  }

  @Override
  public List<GroupRecord> list(String afterGroup, int afterEpoch, Set<String> globs, int limit) {
    return sql.query(
        LIST,
        s -> {
          s.setString(1, afterGroup);
          s.setInt(2, afterEpoch);
          s.setArray(3, Sql.patterns(s, globs));
          s.setInt(4, limit);
        },
        JdbcGroupStore::read);
  }

  @Override
  public Optional<GroupRecord> take(long id) {
    return sql.taking(TAKE, s -> self.bindTake(s, id), JdbcGroupStore::read);
  }

  @Override
  public List<GroupRecord> takeAll(boolean own) {
    return sql.query(TAKE_ALL, s -> self.bindTakeAll(s, own), JdbcGroupStore::read);
  }

  private static GroupRecord read(ResultSet row) throws SQLException {
    ByteString attested = Sql.byteStringOrNull(row, "attested");
    return new GroupRecord(
        row.getLong("id"),
        Headers.read(row),
        row.getString("name"),
        row.getInt("epoch"),
        row.getInt("issuer_threshold"),
        List.of(Sql.texts(row, "issuers")),
        row.getInt("opener_threshold"),
        List.of(Sql.texts(row, "openers")),
        Objects.requireNonNull(Group.State.forNumber(row.getInt("state"))),
        attested == null ? ByteString.EMPTY : attested,
        Sql.messageOrNull(row, "error", Status.parser()));
  }
}
