package io.coterie.coordinator.storage.memory;

import com.google.rpc.Status;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.key.RenewalStore;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Renewals, in memory, as one replica sees them. */
final class MemoryRenewalStore implements RenewalStore {
  private final MemoryDatabase database;
  private final String replica;

  MemoryRenewalStore(MemoryDatabase database, String replica) {
    this.database = database;
    this.replica = replica;
  }

  private Stream<Renewal> all() {
    return database.renewals.values().stream().map(row -> row.record);
  }

  private Optional<MemoryDatabase.Row<KeyRecord>> keyAt(String name, int epoch) {
    return database.keys.values().stream()
        .filter(row -> row.record.name().equals(name) && row.record.epoch() == epoch)
        .findFirst();
  }

  @Override
  public Start start(Renewal attempt) {
    synchronized (database) {
      Optional<Renewal> known = findRequest(attempt.requester(), attempt.requestId());
      if (known.isPresent()) {
        return new Start.Known(known.get());
      }
      if (isRunning(attempt.key()) || keyAt(attempt.key(), attempt.fromEpoch()).isEmpty()) {
        return new Start.Refused();
      }
      Renewal stored = attempt.withId(database.nextId());
      database.renewals.put(stored.id(), new MemoryDatabase.Row<>(stored, replica));
      database.written();
      return new Start.Stored(stored);
    }
  }

  @Override
  public Optional<Renewal> findRequest(String requester, String requestId) {
    synchronized (database) {
      return all()
          .filter(r -> r.requester().equals(requester) && r.requestId().equals(requestId))
          .findFirst();
    }
  }

  @Override
  public Optional<Renewal> findOfKey(String key, String requestId) {
    synchronized (database) {
      return all()
          .filter(r -> r.key().equals(key) && r.requestId().equals(requestId))
          .max(Comparator.comparing(Renewal::id));
    }
  }

  private boolean change(
      long id, Renewal.State next, @Nullable Status error, int sessions, boolean cancelled) {
    MemoryDatabase.Row<Renewal> row = row(id);
    Renewal r = row.record;
    if (r.state() != Renewal.State.RUNNING) {
      return false;
    }
    row.record = as(r, next, error, sessions, cancelled, r.reopened());
    database.written();
    return true;
  }

  private static Renewal as(
      Renewal r,
      Renewal.State state,
      @Nullable Status error,
      int sessions,
      boolean cancelled,
      boolean reopened) {
    return new Renewal(
        r.id(),
        r.header(),
        r.key(),
        r.fromEpoch(),
        r.threshold(),
        r.parties(),
        cancelled,
        reopened,
        state,
        sessions,
        error);
  }

  private Renewal get(long id) {
    return row(id).record;
  }

  private MemoryDatabase.Row<Renewal> row(long id) {
    return Objects.requireNonNull(database.renewals.get(id));
  }

  @Override
  public void ordering(long id) {
    synchronized (database) {
      change(id, Renewal.State.RUNNING, null, Math.max(1, get(id).sessions()), get(id).cancelled());
    }
  }

  @Override
  public boolean cancel(long id) {
    synchronized (database) {
      return change(id, Renewal.State.RUNNING, null, get(id).sessions(), true);
    }
  }

  @Override
  public boolean isRunning(String key) {
    synchronized (database) {
      return all().anyMatch(r -> r.key().equals(key) && r.state() == Renewal.State.RUNNING);
    }
  }

  @Override
  public boolean switchEpoch(long id, MadeKey renewed, int sessions) {
    synchronized (database) {
      Renewal r = get(id);
      Optional<MemoryDatabase.Row<KeyRecord>> key = keyAt(r.key(), r.fromEpoch());
      if (key.isEmpty() || !change(id, Renewal.State.DONE, null, sessions, r.cancelled())) {
        return false;
      }
      KeyRecord k = key.get().record;
      key.get().record =
          new KeyRecord(
              k.id(),
              k.header(),
              k.name(),
              k.scheme(),
              r.threshold(),
              r.parties(),
              k.state(),
              k.sessions(),
              renewed,
              null);
      database.exclusions.remove(k.name());
      database.behind.remove(k.name());
      return true;
    }
  }

  @Override
  public boolean fail(long id, Status error, int sessions) {
    synchronized (database) {
      return change(
          id,
          Renewal.State.FAILED,
          error,
          Math.max(sessions, get(id).sessions()),
          get(id).cancelled());
    }
  }

  @Override
  public Optional<Renewal> reopen(String key, int fromEpoch) {
    synchronized (database) {
      if (isRunning(key) || keyAt(key, fromEpoch).isEmpty()) {
        return Optional.empty();
      }
      Optional<MemoryDatabase.Row<Renewal>> least =
          database.renewals.values().stream()
              .filter(row -> row.record.key().equals(key))
              .filter(row -> row.record.fromEpoch() == fromEpoch)
              .filter(row -> row.record.state() == Renewal.State.FAILED)
              .min(
                  Comparator.<MemoryDatabase.Row<Renewal>>comparingInt(row -> row.record.sessions())
                      .thenComparing(row -> -row.record.id()));
      least.ifPresent(
          row -> {
            Renewal r = row.record;
            row.record = as(r, Renewal.State.RUNNING, null, r.sessions(), r.cancelled(), true);
            row.worker = replica;
            database.written();
          });
      return least.map(row -> row.record);
    }
  }

  @Override
  public Optional<Renewal> take(long id) {
    synchronized (database) {
      MemoryDatabase.Row<Renewal> row = database.renewals.get(id);
      boolean ended = row != null && row.record.state() != Renewal.State.RUNNING;
      Optional<Renewal> taken = database.take(row, ended, replica);
      taken.ifPresent(_ -> database.written());
      return taken;
    }
  }

  @Override
  public List<Renewal> takeAll(boolean own) {
    synchronized (database) {
      List<Renewal> taken =
          database.takeAll(
              database.renewals.values(), r -> r.state() == Renewal.State.RUNNING, replica, own);
      if (!taken.isEmpty()) {
        database.written();
      }
      return taken;
    }
  }

  @Override
  public List<Renewal> cancelled() {
    synchronized (database) {
      return database.renewals.values().stream()
          .filter(row -> replica.equals(row.worker))
          .map(row -> row.record)
          .filter(r -> r.state() == Renewal.State.RUNNING && r.cancelled())
          .toList();
    }
  }
}
