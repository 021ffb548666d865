package io.coterie.coordinator.storage;

import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;

/**
 * This replica, as the {@code worker} of rows that have not ended: such a row belongs to the
 * replica that it names for as long as that one is there.
 *
 * @param name of this replica
 * @param goneAfter how long a replica counts as there after it was seen
 */
public record Worker(String name, Duration goneAfter) {

  /** A replica {@code r} that is there. Takes {@link #seconds}. */
  static final String IS_THERE = "r.seen_at > now() - make_interval(secs => ?)";

  private static final double NANOS = 1e9;

  /**
   * Whether a row may become this replica's work. Takes what {@link #bindFree} sets.
   *
   * @param table that the row is in
   */
  static String free(String table) {
    return "("
        + table
        + ".worker is null or (? and "
        + table
        + ".worker = ?) or not exists (select 1 from coordinator_replicas r where r.name = "
        + table
        + ".worker and "
        + IS_THERE
        + "))";
  }

  /**
   * Sets the parameters of {@link #free}.
   *
   * @param index of the first of the three
   * @param own whether what is this replica's already counts as free
   */
  void bindFree(PreparedStatement statement, int index, boolean own) throws SQLException {
    statement.setBoolean(index, own);
    statement.setString(index + 1, name);
    statement.setDouble(index + 2, seconds());
  }

  /** {@link #goneAfter}. */
  double seconds() {
    return goneAfter.toNanos() / NANOS;
  }
}
