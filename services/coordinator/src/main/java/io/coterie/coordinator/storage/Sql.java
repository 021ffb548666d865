package io.coterie.coordinator.storage;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Single statements on a pool: one round trip each, committed when they return; and, beside the
 * path of signatures, some together. JDBC itself, because most are on that path.
 */
final class Sql {

  /** SQLSTATE of PostgreSQL. */
  private static final String UNIQUE_VIOLATION = "23505";

  /** How long a statement waits for a row that another one has locked, if it is {@link #taking}. */
  private static final String LOCK_WAIT = "set local lock_timeout = '1s'";

  /** Classes of SQLSTATE: a value that a type or a constraint does not allow. */
  private static final Set<String> ABOUT_VALUES = Set.of("22", "23");

  /** Sets the parameters of a statement. */
  @FunctionalInterface
  interface Binder {
    void bind(PreparedStatement statement) throws SQLException;
  }

  /** Reads one row. */
  @FunctionalInterface
  interface Reader<T> {
    T read(ResultSet row) throws SQLException;
  }

  /** Statements on one connection. */
  @FunctionalInterface
  interface Transaction<T> {
    T run(Connection connection) throws SQLException;
  }

  private final DataSource pool;

  Sql(DataSource pool) {
    this.pool = pool;
  }

  /** Runs a statement that changes rows. */
  int update(String sql, Binder binder) {
    try (Connection connection = pool.getConnection()) {
      return update(connection, sql, binder);
    } catch (SQLException e) {
      throw failed(e);
    }
  }

  static int update(Connection connection, String sql, Binder binder) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      binder.bind(statement);
      return statement.executeUpdate();
    }
  }

  /** Runs a statement that returns rows. */
  <T> List<T> query(String sql, Binder binder, Reader<T> reader) {
    try (Connection connection = pool.getConnection()) {
      return query(connection, sql, binder, reader);
    } catch (SQLException e) {
      throw failed(e);
    }
  }

  static <T> List<T> query(Connection connection, String sql, Binder binder, Reader<T> reader)
      throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      binder.bind(statement);
      try (ResultSet rows = statement.executeQuery()) {
        List<T> result = new ArrayList<>();
        while (rows.next()) {
          result.add(reader.read(rows));
        }
        return result;
      }
    }
  }

  /** Runs statements that take effect together, or not at all. */
  <T> T transaction(Transaction<T> work) {
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      T result = work.run(connection);
      connection.commit();
      return result; // Else the pool rolls back. It also resets the connection.
    } catch (SQLException e) {
      throw failed(e);
    }
  }

  /** The first row that a statement returns. */
  <T> Optional<T> first(String sql, Binder binder, Reader<T> reader) {
    return query(sql, binder, reader).stream().findFirst();
  }

  /**
   * The first row that a statement returns which may meet rows that others have locked: after a
   * second it fails. Else such statements would hold all connections of the pool.
   */
  <T> Optional<T> taking(String sql, Binder binder, Reader<T> reader) {
    return transaction(
            connection -> {
              update(connection, LOCK_WAIT, _ -> {});
              return query(connection, sql, binder, reader);
            })
        .stream()
        .findFirst();
  }

  /** Whether a statement failed because a unique index already has the row that it would make. */
  static boolean isDuplicate(StoreUnavailableException failure) {
    return failure.getCause() instanceof SQLException cause
        && UNIQUE_VIOLATION.equals(cause.getSQLState());
  }

  /** Whether a statement failed for its values, so that it fails whenever it is tried again. */
  static boolean isAboutValues(StoreUnavailableException failure) {
    return failure.getCause() instanceof SQLException cause
        && cause.getSQLState() != null
        && ABOUT_VALUES.contains(cause.getSQLState().substring(0, 2));
  }

  /** The database's text may quote values, so only its code is passed on. */
  private static StoreUnavailableException failed(SQLException e) {
    return new StoreUnavailableException("database error, SQLSTATE " + e.getSQLState(), e);
  }

  static OffsetDateTime time(Instant instant) {
    return instant.atOffset(ZoneOffset.UTC);
  }

  static Instant time(ResultSet row, String column) throws SQLException {
    return row.getObject(column, OffsetDateTime.class).toInstant();
  }

  static @Nullable Instant timeOrNull(ResultSet row, String column) throws SQLException {
    OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
    return time == null ? null : time.toInstant();
  }

  static byte @Nullable [] bytes(@Nullable ByteString bytes) {
    return bytes == null ? null : bytes.toByteArray();
  }

  static byte @Nullable [] bytes(@Nullable Message message) {
    return message == null ? null : message.toByteArray();
  }

  static ByteString byteString(ResultSet row, String column) throws SQLException {
    return ByteString.copyFrom(row.getBytes(column));
  }

  static @Nullable ByteString byteStringOrNull(ResultSet row, String column) throws SQLException {
    byte[] bytes = row.getBytes(column);
    return bytes == null ? null : ByteString.copyFrom(bytes);
  }

  static <M extends Message> @Nullable M messageOrNull(
      ResultSet row, String column, Parser<M> parser) throws SQLException {
    byte[] bytes = row.getBytes(column);
    return bytes == null ? null : parse(bytes, column, parser);
  }

  static <M extends Message> M message(ResultSet row, String column, Parser<M> parser)
      throws SQLException {
    return parse(row.getBytes(column), column, parser);
  }

  private static <M extends Message> M parse(byte[] bytes, String column, Parser<M> parser)
      throws SQLException {
    try {
      return parser.parseFrom(bytes);
    } catch (InvalidProtocolBufferException e) {
      throw new SQLException("column " + column + " holds other bytes than were stored", e);
    }
  }

  /** Patterns of {@code like} for names in which {@code *} stands for any text. */
  static Array patterns(PreparedStatement statement, Set<String> globs) throws SQLException {
    return statement
        .getConnection()
        .createArrayOf("text", globs.stream().map(Sql::pattern).toArray());
  }

  private static String pattern(String glob) {
    return glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace('*', '%');
  }

  static String[] texts(ResultSet row, String column) throws SQLException {
    return (String[]) row.getArray(column).getArray();
  }

  static Integer[] numbers(ResultSet row, String column) throws SQLException {
    return (Integer[]) row.getArray(column).getArray();
  }
}
