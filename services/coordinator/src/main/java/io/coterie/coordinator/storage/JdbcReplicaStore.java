package io.coterie.coordinator.storage;

import io.coterie.coordinator.custody.request.ReplicaStore;
import javax.sql.DataSource;

/** The replicas that are there, in PostgreSQL and by its clock. */
public final class JdbcReplicaStore implements ReplicaStore {
  private static final String SEEN =
      "with this as (insert into coordinator_replicas as r (name, seen_at, seen_since)"
          // The time at which the row is written: now() is of before a wait for a lock.
          + "   values (?, clock_timestamp(), clock_timestamp()) on conflict (name) do update set"
          // A clock that was set back has interrupted it, too.
          + "   seen_since = case when r.seen_at between"
          + "     clock_timestamp() - make_interval(secs => ?) and clock_timestamp()"
          + "     then r.seen_since else clock_timestamp() end, seen_at = clock_timestamp())"
          + " select 1 + count(*) from coordinator_replicas r where r.name <> ? and "
          + Worker.IS_THERE;

  private static final String LEAVE = "delete from coordinator_replicas where name = ?";

  private final Sql sql;
  private final Worker self;

  /**
   * A store for one replica.
   *
   * @param own one connection that waits for no other statement; its commits may be lost when the
   *     database crashes: then all replicas are seen again
   */
  public JdbcReplicaStore(DataSource own, Worker self) {
    this.sql = new Sql(own);
    this.self = self;
  }

  @Override
  public int seen() {
    return sql.query(
            SEEN,
            s -> {
              s.setString(1, self.name());
              s.setDouble(2, self.interruptionSeconds());
              s.setString(3, self.name());
              s.setDouble(4, self.seconds());
            },
            row -> row.getInt(1))
        .getFirst();
  }

  @Override
  public void leave() {
    sql.update(LEAVE, s -> s.setString(1, self.name()));
  }
}
