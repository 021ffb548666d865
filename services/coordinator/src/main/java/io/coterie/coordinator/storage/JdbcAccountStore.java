package io.coterie.coordinator.storage;

import io.coterie.coordinator.channel.SealedAccounts;
import java.time.Instant;
import java.util.Optional;
import javax.sql.DataSource;

/** The sealed account of each replica in PostgreSQL. */
public final class JdbcAccountStore implements SealedAccounts {
  private static final String LOAD = "select sealed from channel_account where replica = ?";

  private static final String SAVE =
      "insert into channel_account (replica, sealed, enrolled_at) values (?, ?, ?)"
          + " on conflict do nothing";

  private final Sql sql;

  public JdbcAccountStore(DataSource durable) {
    this.sql = new Sql(durable);
  }

  @Override
  public Optional<byte[]> load(String replica) {
    return sql.query(LOAD, s -> s.setString(1, replica), row -> row.getBytes(1)).stream()
        .findFirst();
  }

  @Override
  public void saveOnce(String replica, byte[] sealed, Instant now) {
    int stored =
        sql.update(
            SAVE,
            s -> {
              s.setString(1, replica);
              s.setBytes(2, sealed);
              s.setObject(3, Sql.time(now));
            });
    if (stored != 1) {
      throw new IllegalStateException(
          "replica " + replica + " has an account already: two processes use one name");
    }
  }
}
