package io.coterie.signer.storage;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sqlite.JDBC;
import org.sqlite.SQLiteConfig;

/**
 * One connection to the party's file, with its prepared statements kept. Used by one thread at a
 * time.
 */
final class Database implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Database.class);

  /** In order. Before 0.2.0 the one file is edited in place; a released one is never changed. */
  private static final List<String> MIGRATIONS = List.of("V0001__party.sql");

  /** Readers never wait for the writer in WAL mode; this is for checkpoints. */
  private static final int BUSY_TIMEOUT_MS = 5_000;

  /** Pages of the cache, in KiB, as SQLite wants it: negative. */
  private static final int CACHE_KIB = -2_048;

  /** The journal is cut to it whenever it begins anew. */
  private static final int JOURNAL_BYTES = 8 << 20;

  private final Connection connection;
  private final Map<String, PreparedStatement> statements = new HashMap<>();

  /** Whether there may be no transaction: a statement would be on disk by itself then. */
  private boolean uncertain;

  private Database(Connection connection) {
    this.connection = connection;
  }

  /** The connection that writes: a commit is on disk when it returns. */
  static Database writer(Path file) throws SQLException {
    SQLiteConfig config = config();
    config.setJournalMode(SQLiteConfig.JournalMode.WAL);
    config.setSynchronous(SQLiteConfig.SynchronousMode.FULL);
    config.setTransactionMode(SQLiteConfig.TransactionMode.IMMEDIATE);
    config.setJournalSizeLimit(JOURNAL_BYTES);
    Database database = open(file, config);
    try {
      database.execute("PRAGMA secure_delete = ON");
      database.migrate();
      database.connection.setAutoCommit(false);
      return database;
    } catch (SQLException | RuntimeException e) {
      database.close();
      throw e;
    }
  }

  /** A connection that only reads what is committed. */
  static Database reader(Path file) throws SQLException {
    SQLiteConfig config = config();
    config.setReadOnly(true);
    return open(file, config);
  }

  private static SQLiteConfig config() {
    SQLiteConfig config = new SQLiteConfig();
    config.setBusyTimeout(BUSY_TIMEOUT_MS);
    config.setCacheSize(CACHE_KIB);
    config.enforceForeignKeys(true);
    return config;
  }

  private static Database open(Path file, SQLiteConfig config) throws SQLException {
    return new Database(JDBC.createConnection("jdbc:sqlite:" + file, config.toProperties()));
  }

  private void migrate() throws SQLException {
    int version;
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("PRAGMA user_version")) {
      version = row.getInt(1);
    }
    if (version > MIGRATIONS.size()) {
      throw new StoreException(
          "the party's file has version " + version + ", newer than this program knows");
    }
    for (int next = version + 1; next <= MIGRATIONS.size(); next++) {
      execute(
          "BEGIN IMMEDIATE;"
              + script(MIGRATIONS.get(next - 1))
              + ";PRAGMA user_version = "
              + next
              + ";COMMIT");
    }
  }

  private static String script(String name) {
    try (InputStream in = Database.class.getResourceAsStream("/db/signer/" + name)) {
      if (in == null) {
        throw new StoreException("migration " + name + " is not on the class path");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new StoreException("migration " + name + " cannot be read", e);
    }
  }

  private void execute(String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate(sql);
    }
  }

  /** The statement for this text, its parameters set in order. */
  PreparedStatement statement(String sql, Object... parameters) throws SQLException {
    PreparedStatement statement = statements.get(sql);
    if (statement == null) {
      statement = connection.prepareStatement(sql);
      statements.put(sql, statement);
    }
    for (int i = 0; i < parameters.length; i++) {
      switch (parameters[i]) {
        case byte[] bytes -> statement.setBytes(i + 1, bytes);
        case String text -> statement.setString(i + 1, text);
        case Long number -> statement.setLong(i + 1, number);
        case Integer number -> statement.setInt(i + 1, number);
        default ->
            throw new IllegalArgumentException("no SQL type for " + parameters[i].getClass());
      }
    }
    return statement;
  }

  /** Runs a statement that changes rows; says how many. */
  int update(String sql, Object... parameters) throws SQLException {
    return statement(sql, parameters).executeUpdate();
  }

  /** The number that a query for one has. */
  long count(String sql, Object... parameters) throws SQLException {
    try (ResultSet row = statement(sql, parameters).executeQuery()) {
      return row.getLong(1);
    }
  }

  /**
   * Brings everything from the journal into the file and empties the journal, so that what was
   * deleted is in neither. Outside a transaction. Readers that are busy can prevent it.
   *
   * @return whether it was done
   */
  boolean checkpoint() throws SQLException {
    requireTransaction();
    uncertain = true;
    connection.setAutoCommit(true);
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("PRAGMA wal_checkpoint(TRUNCATE)")) {
      return row.getInt(1) == 0;
    } finally {
      connection.setAutoCommit(false);
      uncertain = false;
    }
  }

  /**
   * Writes what is committed now into another file, which has no journal then. Writers of this one
   * go on meanwhile.
   *
   * @param file empty
   */
  void copyTo(Path file) throws SQLException {
    try (PreparedStatement copy = connection.prepareStatement("VACUUM INTO ?")) {
      copy.setString(1, file.toString());
      copy.execute();
    }
  }

  /**
   * Checks that this program knows the file.
   *
   * @throws StoreException if it is of another version, or another program's
   */
  void requireKnown() throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("PRAGMA user_version")) {
      if (row.getInt(1) != MIGRATIONS.size()) {
        throw new StoreException(
            "the party's file has version %d, and this program reads version %d: use the program of"
                    .formatted(row.getInt(1), MIGRATIONS.size())
                + " the running party");
      }
    }
  }

  /**
   * Reads everything and looks for damage.
   *
   * @throws StoreException if there is some, or it is another program's file
   */
  void check() throws SQLException {
    try (Statement statement = connection.createStatement()) {
      try (ResultSet row = statement.executeQuery("PRAGMA integrity_check(1)")) {
        if (!row.getString(1).equals("ok")) {
          throw new StoreException("the party's file is damaged: " + row.getString(1));
        }
      }
      try (ResultSet row = statement.executeQuery("PRAGMA user_version")) {
        if (row.getInt(1) < 1) {
          throw new StoreException("this is no party's file");
        }
      }
    }
  }

  /**
   * To be called before the first statement of a transaction.
   *
   * @throws SQLException if there is none and none can be begun: then nothing may be written
   */
  void requireTransaction() throws SQLException {
    if (uncertain) {
      rollback();
    }
  }

  /**
   * Commits the transaction and begins another one.
   *
   * @throws SQLException if nothing is committed; if only the next transaction cannot be begun,
   *     {@link #requireTransaction} tries again and says so
   */
  void commit() throws SQLException {
    execute("COMMIT");
    uncertain = true;
    try {
      execute("BEGIN IMMEDIATE");
      uncertain = false;
    } catch (SQLException e) {
      log.warn("no transaction can be begun after one that is on disk", e);
    }
  }

  /**
   * Undoes the transaction and begins another one.
   *
   * @throws SQLException if there may be none now
   */
  void rollback() throws SQLException {
    uncertain = true;
    forgetStatements();
    try {
      connection.rollback();
    } catch (SQLException e) {
      // SQLite has undone it by itself, as on a full disk; then the driver has begun no other one.
      execute("BEGIN IMMEDIATE");
    }
    uncertain = false;
  }

  /** Closes the prepared statements after an error, one of which the driver has abandoned. */
  void forgetStatements() throws SQLException {
    List<PreparedStatement> all = List.copyOf(statements.values());
    statements.clear();
    for (PreparedStatement statement : all) {
      statement.close();
    }
  }

  @Override
  public void close() throws SQLException {
    forgetStatements();
    connection.close();
  }
}
