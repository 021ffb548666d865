package io.coterie.coordinator.storage.memory;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** Signings, in memory, as one replica sees them. */
final class MemorySigningStore implements SigningStore {
  private final MemoryDatabase database;
  private final String replica;

  MemorySigningStore(MemoryDatabase database, String replica) {
    this.database = database;
    this.replica = replica;
  }

  @Override
  public Optional<SigningRecord> claimOnce(SigningRecord pending) {
    synchronized (database) {
      MemoryDatabase.Row<SigningRecord> known =
          database.signings.putIfAbsent(
              pending.id(), new MemoryDatabase.Row<>(pending.trying(pending.sessions()), replica));
      if (known == null) {
        database.unwritten(() -> database.signings.remove(pending.id()));
      }
      return Optional.ofNullable(known).map(row -> row.record);
    }
  }

  @Override
  public Optional<SigningRecord> reopen(SigningRecord ended, List<ByteString> approvals) {
    synchronized (database) {
      MemoryDatabase.Row<SigningRecord> row = database.signings.get(ended.id());
      if (row == null || ended.state() != Signing.State.UNKNOWN || !row.record.equals(ended)) {
        return Optional.empty();
      }
      row.record = ended.approved(approvals);
      row.worker = replica;
      database.written();
      return Optional.of(row.record);
    }
  }

  @Override
  public SigningRecord finish(SigningRecord finished) {
    synchronized (database) {
      MemoryDatabase.Row<SigningRecord> row =
          database.signings.computeIfAbsent(
              finished.id(),
              id -> {
                database.written();
                return new MemoryDatabase.Row<>(finished, replica);
              });
      if (row.record.state() == Signing.State.PENDING
          && row.record.intentDigest().equals(finished.intentDigest())
          && row.record.key().equals(finished.key())
          && (finished.result() != null || replica.equals(row.worker))) {
        row.record = finished;
        database.written();
      }
      return row.record;
    }
  }

  @Override
  public Optional<SigningRecord> settle(SigningRecord shown) {
    synchronized (database) {
      MemoryDatabase.Row<SigningRecord> row = database.signings.get(shown.id());
      if (row != null
          && row.record.state() != Signing.State.SIGNED
          && row.record.intentDigest().equals(shown.intentDigest())) {
        row.record = shown;
        database.written();
      }
      return find(shown.id()).filter(stored -> stored.intentDigest().equals(shown.intentDigest()));
    }
  }

  @Override
  public Optional<SigningRecord> find(UUID id) {
    synchronized (database) {
      return Optional.ofNullable(database.signings.get(id)).map(row -> row.record);
    }
  }

  @Override
  public List<SigningRecord> list(
      String key, @Nullable Set<String> requesters, @Nullable Place after, int limit) {
    Comparator<Place> newest =
        Comparator.comparing(Place::createdAt)
            .thenComparing(place -> place.id().toString())
            .reversed();
    synchronized (database) {
      return database.signings.values().stream()
          .map(row -> row.record)
          .filter(signing -> signing.key().equals(key))
          .filter(signing -> requesters == null || requesters.contains(signing.requester()))
          .filter(signing -> after == null || newest.compare(place(signing), after) > 0)
          .sorted(Comparator.comparing(MemorySigningStore::place, newest))
          .limit(limit)
          .map(MemorySigningStore::withoutIntent)
          .toList();
    }
  }

  private static Place place(SigningRecord signing) {
    return new Place(signing.header().createdAt(), signing.id());
  }

  private static SigningRecord withoutIntent(SigningRecord signing) {
    RequestHeader header = signing.header();
    return new SigningRecord(
        signing.id(),
        new RequestHeader(
            header.requester(),
            header.requestId(),
            header.intentDigest(),
            SignedIntent.getDefaultInstance(),
            header.notAfter(),
            header.createdAt()),
        signing.key(),
        signing.scheme(),
        signing.state(),
        signing.sessions(),
        signing.signingSet(),
        signing.payloadDigest(),
        signing.decoded(),
        List.of(),
        signing.completedAt(),
        signing.result(),
        signing.error(),
        signing.receipts());
  }

  @Override
  public Optional<SigningRecord> take(UUID id) {
    synchronized (database) {
      MemoryDatabase.Row<SigningRecord> row = database.signings.get(id);
      boolean ended = row != null && row.record.state() != Signing.State.PENDING;
      String worker = row == null ? null : row.worker;
      Optional<SigningRecord> taken = database.take(row, ended, replica);
      if (row != null && taken.isPresent()) {
        database.unwritten(() -> row.worker = worker);
      }
      return taken;
    }
  }

  @Override
  public List<UUID> takeAll(boolean own) {
    synchronized (database) {
      Map<UUID, Optional<String>> workers = new HashMap<>();
      database.signings.forEach((id, row) -> workers.put(id, Optional.ofNullable(row.worker)));
      List<UUID> taken =
          database
              .takeAll(
                  database.signings.values(), s -> s.state() == Signing.State.PENDING, replica, own)
              .stream()
              .map(SigningRecord::id)
              .toList();
      for (UUID id : taken) {
        MemoryDatabase.Row<SigningRecord> row = Objects.requireNonNull(database.signings.get(id));
        String worker = workers.getOrDefault(id, Optional.empty()).orElse(null);
        database.unwritten(() -> row.worker = worker);
      }
      return taken;
    }
  }
}
