package io.coterie.coordinator.storage.memory;

import com.google.rpc.Status;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.key.RestoredKey;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Keys and exclusions, in memory, as one replica sees them. */
final class MemoryKeyStore implements KeyStore {
  private final MemoryDatabase database;
  private final String replica;

  MemoryKeyStore(MemoryDatabase database, String replica) {
    this.database = database;
    this.replica = replica;
  }

  @Override
  public Creation create(KeyRecord attempt) {
    synchronized (database) {
      Optional<KeyRecord> known = findRequest(attempt.requester(), attempt.requestId());
      if (known.isPresent()) {
        return new Creation.Known(known.get());
      }
      if (find(attempt.name()).filter(k -> k.state() != Key.State.FAILED).isPresent()) {
        return new Creation.NameTaken();
      }
      KeyRecord stored = attempt.withId(database.nextId());
      database.keys.put(stored.id(), new MemoryDatabase.Row<>(stored, replica));
      database.written();
      return new Creation.Stored(stored);
    }
  }

  @Override
  public List<RestoredKey> restore(List<KeyRecord> kept) {
    synchronized (database) {
      return kept.stream()
          .map(key -> new RestoredKey(key.name(), key.epoch(), restore(key)))
          .toList();
    }
  }

  private RestoredKey.Fate restore(KeyRecord key) {
    Optional<KeyRecord> here = find(key.name()).filter(k -> k.state() != Key.State.FAILED);
    if (here.isEmpty()) {
      if (findRequest(key.requester(), key.requestId()).isPresent()) {
        return RestoredKey.Fate.REQUEST_TAKEN;
      }
      KeyRecord stored = key.withId(database.nextId());
      database.keys.put(stored.id(), new MemoryDatabase.Row<>(stored, null));
      database.written();
      return RestoredKey.Fate.WRITTEN;
    }
    boolean renewing =
        database.renewals.values().stream()
            .map(row -> row.record)
            .anyMatch(r -> r.key().equals(key.name()) && r.state() == Renewal.State.RUNNING);
    RestoredKey.Fate fate = RestoredKey.beside(here.get(), key, renewing);
    if (fate == RestoredKey.Fate.RENEWED) {
      long id = here.get().id();
      row(id).record =
          new KeyRecord(
              id,
              here.get().header(),
              key.name(),
              key.scheme(),
              key.threshold(),
              key.parties(),
              Key.State.ACTIVE,
              here.get().sessions(),
              key.made(),
              null);
      database.exclusions.remove(key.name());
      database.behind.remove(key.name());
      database.written();
    }
    return fate;
  }

  @Override
  public boolean finish(long id, @Nullable MadeKey made, @Nullable Status error, int sessions) {
    synchronized (database) {
      MemoryDatabase.Row<KeyRecord> row = row(id);
      if (row.record.state() != Key.State.CREATING) {
        return false;
      }
      row.record =
          made != null
              ? row.record.active(made, sessions)
              : row.record.failed(Objects.requireNonNull(error), sessions);
      database.written();
      return true;
    }
  }

  private MemoryDatabase.Row<KeyRecord> row(long id) {
    return Objects.requireNonNull(database.keys.get(id));
  }

  private Stream<KeyRecord> all() {
    return database.keys.values().stream().map(row -> row.record);
  }

  @Override
  public Optional<KeyRecord> find(String name) {
    synchronized (database) {
      return all()
          .filter(k -> k.name().equals(name))
          .max(
              Comparator.<KeyRecord, Boolean>comparing(k -> k.state() != Key.State.FAILED)
                  .thenComparing(KeyRecord::id));
    }
  }

  @Override
  public Optional<KeyRecord> findRequest(String requester, String requestId) {
    synchronized (database) {
      return all()
          .filter(k -> k.requester().equals(requester) && k.requestId().equals(requestId))
          .findFirst();
    }
  }

  @Override
  public List<KeyRecord> list(String afterName, Set<String> globs, int limit) {
    List<Pattern> wanted =
        globs.stream()
            .map(
                glob ->
                    Pattern.compile(
                        Stream.of(glob.split("\\*", -1))
                            .map(Pattern::quote)
                            .collect(Collectors.joining(".*"))))
            .toList();
    synchronized (database) {
      return all()
          .map(KeyRecord::name)
          .distinct()
          .sorted()
          .filter(name -> name.compareTo(afterName) > 0)
          .filter(name -> wanted.stream().anyMatch(p -> p.matcher(name).matches()))
          .limit(limit)
          .map(name -> find(name).orElseThrow())
          .toList();
    }
  }

  @Override
  public List<Quorums> quorums() {
    synchronized (database) {
      return all()
          .filter(k -> k.state() == Key.State.ACTIVE)
          .map(
              k ->
                  new Quorums(
                      k.threshold(),
                      k.parties().stream()
                          .map(KeyRecord.Holder::partyId)
                          .filter(party -> !excluded(k.name()).contains(party))
                          .collect(Collectors.toSet())))
          .distinct()
          .toList();
    }
  }

  @Override
  public Optional<KeyRecord> take(long id) {
    synchronized (database) {
      MemoryDatabase.Row<KeyRecord> row = database.keys.get(id);
      boolean ended = row != null && row.record.state() != Key.State.CREATING;
      Optional<KeyRecord> taken = database.take(row, ended, replica);
      taken.ifPresent(_ -> database.written());
      return taken;
    }
  }

  @Override
  public List<KeyRecord> takeAll(boolean own) {
    synchronized (database) {
      List<KeyRecord> taken =
          database.takeAll(
              database.keys.values(), k -> k.state() == Key.State.CREATING, replica, own);
      if (!taken.isEmpty()) {
        database.written();
      }
      return taken;
    }
  }

  @Override
  public void exclude(String key, int partyId, String cause, byte[] sessionId, Instant now) {
    synchronized (database) {
      if (database.exclusions.computeIfAbsent(key, k -> new TreeSet<>()).add(partyId)) {
        database.written();
      }
    }
  }

  @Override
  public Set<String> excludeWentBack(int partyId, Instant now) {
    synchronized (database) {
      Set<String> added = new TreeSet<>();
      all()
          .filter(k -> k.state() == Key.State.ACTIVE)
          .filter(k -> k.scheme() == Scheme.SCHEME_ECDSA_SECP256K1)
          .filter(k -> k.parties().stream().anyMatch(h -> h.partyId() == partyId))
          .map(KeyRecord::name)
          .filter(k -> database.exclusions.computeIfAbsent(k, _ -> new TreeSet<>()).add(partyId))
          .forEach(added::add);
      added.forEach(k -> database.behind.computeIfAbsent(k, _ -> new TreeSet<>()).add(partyId));
      if (!added.isEmpty()) {
        database.written();
      }
      return added;
    }
  }

  @Override
  public Set<Integer> wentBack(String key) {
    synchronized (database) {
      return new TreeSet<>(database.behind.getOrDefault(key, Set.of()));
    }
  }

  @Override
  public Set<Integer> excluded(String key) {
    synchronized (database) {
      return new TreeSet<>(database.exclusions.getOrDefault(key, Set.of()));
    }
  }
}
