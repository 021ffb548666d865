package io.coterie.coordinator.storage;

import io.coterie.coordinator.custody.request.ReplicaStore;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;

/**
 * This replica, as the {@code worker} of rows that have not ended: such a row belongs to the
 * replica that it names until that one has left or is gone.
 *
 * @param name of this replica
 * @param goneAfter how long a replica counts as there after it was seen
 */
public record Worker(String name, Duration goneAfter) {

  /** A replica {@code r} that is there. Takes {@link #seconds}. */
  static final String IS_THERE = "r.seen_at > now() - make_interval(secs => ?)";

  /**
   * Whether a replica {@code r} that has not left is gone: this one was seen without interruption
   * for so long, and the other was not. Else the database may have been away for both. A replica
   * that was seen as much later was seen before the database's clock was set back. The question is
   * part of the statement that takes rows, which may wait for an outage to end. Takes {@link
   * #seconds} and {@link #name}.
   */
  private static final String IS_GONE =
      "exists (select 1 from coordinator_replicas self, make_interval(secs => ?) long"
          + " where self.name = ? and self.seen_at - long >= self.seen_since"
          + " and r.seen_at not between self.seen_at - long and self.seen_at + long)";

  private static final double NANOS = 1e9;

  /**
   * Makes a row that has not ended this replica's work, if it is free. It waits for a statement
   * that has the row locked: work in progress asks so whether it still has the row, and a row that
   * is skipped would look like another replica's. {@link Sql#taking} bounds the wait. Takes the
   * parameters of {@link #bindTake}.
   *
   * @param table with the columns {@code id}, {@code state} (1: not ended) and {@code worker}
   * @param returning columns of the row
   */
  static String take(String table, String returning) {
    return "update "
        + table
        + " set worker = ? where id = (select id from "
        + table
        + " where id = ? and state = 1 and "
        + free(table)
        + " for update) returning "
        + returning;
  }

  /**
   * The same for all rows that are free and that no statement has locked: nobody waits. Takes the
   * parameters of {@link #bindTakeAll}.
   */
  static String takeAll(String table, String returning) {
    return "update "
        + table
        + " set worker = ? where id in (select id from "
        + table
        + " where state = 1 and "
        + free(table)
        + " for update skip locked) returning "
        + returning;
  }

  /** Whether a row may become this replica's work. Takes the parameters of {@link #bindFree}. */
  private static String free(String table) {
    return "("
        + table
        + ".worker is null or (? and "
        + table
        + ".worker = ?) or not exists (select 1 from coordinator_replicas r where r.name = "
        + table
        + ".worker and not "
        + IS_GONE
        + "))";
  }

  /**
   * Sets the parameters of {@link #free}.
   *
   * @param index of the first of the four
   * @param own whether what is this replica's already counts as free
   */
  private void bindFree(PreparedStatement statement, int index, boolean own) throws SQLException {
    statement.setBoolean(index, own);
    statement.setString(index + 1, name);
    statement.setDouble(index + 2, seconds());
    statement.setString(index + 3, name);
  }

  /**
   * Sets the parameters of an update that makes one row this replica's: name, id, and those of
   * {@link #free}, with its own rows.
   */
  void bindTake(PreparedStatement statement, Object id) throws SQLException {
    statement.setString(1, name);
    statement.setObject(2, id);
    bindFree(statement, 3, true);
  }

  /** As {@link #bindTake}, for all rows that are free. */
  void bindTakeAll(PreparedStatement statement, boolean own) throws SQLException {
    statement.setString(1, name);
    bindFree(statement, 2, own);
  }

  /** {@link #goneAfter}. */
  double seconds() {
    return goneAfter.toNanos() / NANOS;
  }

  /** {@link ReplicaStore#interruption}. */
  double interruptionSeconds() {
    return ReplicaStore.interruption(goneAfter).toNanos() / NANOS;
  }
}
