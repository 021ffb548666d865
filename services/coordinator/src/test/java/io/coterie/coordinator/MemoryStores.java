package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.MadeKey;
import io.coterie.coordinator.custody.key.Renewal;
import io.coterie.coordinator.custody.key.RenewalStore;
import io.coterie.coordinator.custody.key.RestoredKey;
import io.coterie.coordinator.custody.ledger.LedgerStore;
import io.coterie.coordinator.custody.request.ReplicaStore;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.ledger.LedgerPosition.Judgement;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.ClaimCount;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * One database in memory, as several replicas see it. {@link StoreContractTest} holds it to that.
 */
public final class MemoryStores {
  private static final class Row<R> {
    R record;
    String worker;

    Row(R record, String worker) {
      this.record = record;
      this.worker = worker;
    }
  }

  private final Map<Long, Row<KeyRecord>> keys = new TreeMap<>();
  private final Map<Long, Row<Renewal>> renewals = new TreeMap<>();
  private final Map<UUID, Row<SigningRecord>> signings = new LinkedHashMap<>();
  private final Map<String, Set<Integer>> exclusions = new TreeMap<>();
  private final Map<String, Set<Integer>> behind = new TreeMap<>();
  private final Map<ByteString, LedgerStore.Remembered> ledgers = new LinkedHashMap<>();
  private final Set<String> there = new HashSet<>();
  private long ids;

  /** The stores of the replica of that name. */
  public Replica replica(String name) {
    return new Replica(
        new Keys(name), new Renewals(name), new Signings(name), new Presence(name), new Ledgers());
  }

  /** The stores of one replica. */
  public record Replica(
      KeyStore keys,
      RenewalStore renewals,
      SigningStore signings,
      ReplicaStore presence,
      LedgerStore ledgers) {}

  private boolean isFree(Row<?> row, String replica, boolean own) {
    return (own && row.worker.equals(replica)) || !there.contains(row.worker);
  }

  private <R> Optional<R> take(Row<R> row, boolean ended, String replica) {
    if (row == null || ended || !isFree(row, replica, true)) {
      return Optional.empty();
    }
    row.worker = replica;
    return Optional.of(row.record);
  }

  private <R> List<R> takeAll(
      Collection<Row<R>> rows, Predicate<R> running, String replica, boolean own) {
    List<R> taken = new ArrayList<>();
    for (Row<R> row : rows) {
      if (running.test(row.record) && isFree(row, replica, own)) {
        row.worker = replica;
        taken.add(row.record);
      }
    }
    return taken;
  }

  private final class Keys implements KeyStore {
    private final String replica;

    Keys(String replica) {
      this.replica = replica;
    }

    @Override
    public Creation create(KeyRecord attempt) {
      synchronized (MemoryStores.this) {
        Optional<KeyRecord> known = findRequest(attempt.requester(), attempt.requestId());
        if (known.isPresent()) {
          return new Creation.Known(known.get());
        }
        if (find(attempt.name()).filter(k -> k.state() != Key.State.FAILED).isPresent()) {
          return new Creation.NameTaken();
        }
        KeyRecord stored = attempt.withId(++ids);
        keys.put(stored.id(), new Row<>(stored, replica));
        return new Creation.Stored(stored);
      }
    }

    @Override
    public List<RestoredKey> restore(List<KeyRecord> kept) {
      synchronized (MemoryStores.this) {
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
        KeyRecord stored = key.withId(++ids);
        keys.put(stored.id(), new Row<>(stored, null));
        return RestoredKey.Fate.WRITTEN;
      }
      boolean renewing =
          renewals.values().stream()
              .map(row -> row.record)
              .anyMatch(r -> r.key().equals(key.name()) && r.state() == Renewal.State.RUNNING);
      RestoredKey.Fate fate = RestoredKey.beside(here.get(), key, renewing);
      if (fate == RestoredKey.Fate.RENEWED) {
        long id = here.get().id();
        keys.get(id).record =
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
        exclusions.remove(key.name());
        behind.remove(key.name());
      }
      return fate;
    }

    @Override
    public boolean finish(long id, MadeKey made, Status error, int sessions) {
      synchronized (MemoryStores.this) {
        Row<KeyRecord> row = keys.get(id);
        if (row.record.state() != Key.State.CREATING) {
          return false;
        }
        row.record =
            made != null ? row.record.active(made, sessions) : row.record.failed(error, sessions);
        return true;
      }
    }

    private Stream<KeyRecord> all() {
      return keys.values().stream().map(row -> row.record);
    }

    @Override
    public Optional<KeyRecord> find(String name) {
      synchronized (MemoryStores.this) {
        return all()
            .filter(k -> k.name().equals(name))
            .max(
                Comparator.<KeyRecord, Boolean>comparing(k -> k.state() != Key.State.FAILED)
                    .thenComparing(KeyRecord::id));
      }
    }

    @Override
    public Optional<KeyRecord> findRequest(String requester, String requestId) {
      synchronized (MemoryStores.this) {
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
      synchronized (MemoryStores.this) {
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
      synchronized (MemoryStores.this) {
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
      synchronized (MemoryStores.this) {
        Row<KeyRecord> row = keys.get(id);
        return MemoryStores.this.take(
            row, row != null && row.record.state() != Key.State.CREATING, replica);
      }
    }

    @Override
    public List<KeyRecord> takeAll(boolean own) {
      synchronized (MemoryStores.this) {
        return MemoryStores.this.takeAll(
            keys.values(), k -> k.state() == Key.State.CREATING, replica, own);
      }
    }

    @Override
    public void exclude(String key, int partyId, String cause, byte[] sessionId, Instant now) {
      synchronized (MemoryStores.this) {
        exclusions.computeIfAbsent(key, k -> new TreeSet<>()).add(partyId);
      }
    }

    @Override
    public Set<String> excludeWentBack(int partyId, Instant now) {
      synchronized (MemoryStores.this) {
        Set<String> added = new TreeSet<>();
        all()
            .filter(k -> k.state() == Key.State.ACTIVE)
            .filter(k -> k.scheme() == Scheme.SCHEME_ECDSA_SECP256K1)
            .filter(k -> k.parties().stream().anyMatch(h -> h.partyId() == partyId))
            .map(KeyRecord::name)
            .filter(k -> exclusions.computeIfAbsent(k, _ -> new TreeSet<>()).add(partyId))
            .forEach(added::add);
        added.forEach(k -> behind.computeIfAbsent(k, _ -> new TreeSet<>()).add(partyId));
        return added;
      }
    }

    @Override
    public Set<Integer> wentBack(String key) {
      synchronized (MemoryStores.this) {
        return Set.copyOf(behind.getOrDefault(key, Set.of()));
      }
    }

    @Override
    public Set<Integer> excluded(String key) {
      synchronized (MemoryStores.this) {
        return Set.copyOf(exclusions.getOrDefault(key, Set.of()));
      }
    }
  }

  private final class Renewals implements RenewalStore {
    private final String replica;

    Renewals(String replica) {
      this.replica = replica;
    }

    private Stream<Renewal> all() {
      return renewals.values().stream().map(row -> row.record);
    }

    private Optional<Row<KeyRecord>> keyAt(String name, int epoch) {
      return keys.values().stream()
          .filter(row -> row.record.name().equals(name) && row.record.epoch() == epoch)
          .findFirst();
    }

    @Override
    public Start start(Renewal attempt) {
      synchronized (MemoryStores.this) {
        Optional<Renewal> known = findRequest(attempt.requester(), attempt.requestId());
        if (known.isPresent()) {
          return new Start.Known(known.get());
        }
        if (isRunning(attempt.key()) || keyAt(attempt.key(), attempt.fromEpoch()).isEmpty()) {
          return new Start.Refused();
        }
        Renewal stored = attempt.withId(++ids);
        renewals.put(stored.id(), new Row<>(stored, replica));
        return new Start.Stored(stored);
      }
    }

    @Override
    public Optional<Renewal> findRequest(String requester, String requestId) {
      synchronized (MemoryStores.this) {
        return all()
            .filter(r -> r.requester().equals(requester) && r.requestId().equals(requestId))
            .findFirst();
      }
    }

    @Override
    public Optional<Renewal> findOfKey(String key, String requestId) {
      synchronized (MemoryStores.this) {
        return all()
            .filter(r -> r.key().equals(key) && r.requestId().equals(requestId))
            .max(Comparator.comparing(Renewal::id));
      }
    }

    private boolean change(
        long id, Renewal.State next, Status error, int sessions, boolean cancelled) {
      Row<Renewal> row = renewals.get(id);
      Renewal r = row.record;
      if (r.state() != Renewal.State.RUNNING) {
        return false;
      }
      row.record = as(r, next, error, sessions, cancelled, r.reopened());
      return true;
    }

    private static Renewal as(
        Renewal r,
        Renewal.State state,
        Status error,
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
      return renewals.get(id).record;
    }

    @Override
    public void ordering(long id) {
      synchronized (MemoryStores.this) {
        change(
            id, Renewal.State.RUNNING, null, Math.max(1, get(id).sessions()), get(id).cancelled());
      }
    }

    @Override
    public boolean cancel(long id) {
      synchronized (MemoryStores.this) {
        return change(id, Renewal.State.RUNNING, null, get(id).sessions(), true);
      }
    }

    @Override
    public boolean isRunning(String key) {
      synchronized (MemoryStores.this) {
        return all().anyMatch(r -> r.key().equals(key) && r.state() == Renewal.State.RUNNING);
      }
    }

    @Override
    public boolean switchEpoch(long id, MadeKey renewed, int sessions) {
      synchronized (MemoryStores.this) {
        Renewal r = get(id);
        Optional<Row<KeyRecord>> key = keyAt(r.key(), r.fromEpoch());
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
        exclusions.remove(k.name());
        behind.remove(k.name());
        return true;
      }
    }

    @Override
    public boolean fail(long id, Status error, int sessions) {
      synchronized (MemoryStores.this) {
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
      synchronized (MemoryStores.this) {
        if (isRunning(key) || keyAt(key, fromEpoch).isEmpty()) {
          return Optional.empty();
        }
        Optional<Row<Renewal>> least =
            renewals.values().stream()
                .filter(row -> row.record.key().equals(key))
                .filter(row -> row.record.fromEpoch() == fromEpoch)
                .filter(row -> row.record.state() == Renewal.State.FAILED)
                .min(
                    Comparator.<Row<Renewal>>comparingInt(row -> row.record.sessions())
                        .thenComparing(row -> -row.record.id()));
        least.ifPresent(
            row -> {
              Renewal r = row.record;
              row.record = as(r, Renewal.State.RUNNING, null, r.sessions(), r.cancelled(), true);
              row.worker = replica;
            });
        return least.map(row -> row.record);
      }
    }

    @Override
    public Optional<Renewal> take(long id) {
      synchronized (MemoryStores.this) {
        Row<Renewal> row = renewals.get(id);
        return MemoryStores.this.take(
            row, row != null && row.record.state() != Renewal.State.RUNNING, replica);
      }
    }

    @Override
    public List<Renewal> takeAll(boolean own) {
      synchronized (MemoryStores.this) {
        return MemoryStores.this.takeAll(
            renewals.values(), r -> r.state() == Renewal.State.RUNNING, replica, own);
      }
    }

    @Override
    public List<Renewal> cancelled() {
      synchronized (MemoryStores.this) {
        return renewals.values().stream()
            .filter(row -> row.worker.equals(replica))
            .map(row -> row.record)
            .filter(r -> r.state() == Renewal.State.RUNNING && r.cancelled())
            .toList();
      }
    }
  }

  private final class Signings implements SigningStore {
    private final String replica;

    Signings(String replica) {
      this.replica = replica;
    }

    @Override
    public Optional<SigningRecord> claimOnce(SigningRecord pending) {
      synchronized (MemoryStores.this) {
        Row<SigningRecord> known =
            signings.putIfAbsent(
                pending.id(), new Row<>(pending.trying(pending.sessions()), replica));
        return Optional.ofNullable(known).map(row -> row.record);
      }
    }

    @Override
    public SigningRecord finish(SigningRecord finished) {
      synchronized (MemoryStores.this) {
        Row<SigningRecord> row =
            signings.computeIfAbsent(finished.id(), id -> new Row<>(finished, replica));
        if (row.record.state() == Signing.State.PENDING
            && row.record.intentDigest().equals(finished.intentDigest())
            && row.record.key().equals(finished.key())
            && (finished.result() != null || row.worker.equals(replica))) {
          row.record = finished;
        }
        return row.record;
      }
    }

    @Override
    public Optional<SigningRecord> settle(SigningRecord shown) {
      synchronized (MemoryStores.this) {
        Row<SigningRecord> row = signings.get(shown.id());
        if (row != null
            && row.record.state() != Signing.State.SIGNED
            && row.record.intentDigest().equals(shown.intentDigest())) {
          row.record = shown;
        }
        return find(shown.id());
      }
    }

    @Override
    public Optional<SigningRecord> find(UUID id) {
      synchronized (MemoryStores.this) {
        return Optional.ofNullable(signings.get(id)).map(row -> row.record);
      }
    }

    @Override
    public List<SigningRecord> list(
        String key, @Nullable Set<String> requesters, @Nullable Place after, int limit) {
      Comparator<Place> newest =
          Comparator.comparing(Place::createdAt)
              .thenComparing(place -> place.id().toString())
              .reversed();
      synchronized (MemoryStores.this) {
        return signings.values().stream()
            .map(row -> row.record)
            .filter(signing -> signing.key().equals(key))
            .filter(signing -> requesters == null || requesters.contains(signing.requester()))
            .filter(signing -> after == null || newest.compare(place(signing), after) > 0)
            .sorted(Comparator.comparing(Signings::place, newest))
            .limit(limit)
            .map(Signings::withoutIntent)
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
          signing.completedAt(),
          signing.result(),
          signing.error(),
          signing.receipts());
    }

    @Override
    public Optional<SigningRecord> take(UUID id) {
      synchronized (MemoryStores.this) {
        Row<SigningRecord> row = signings.get(id);
        return MemoryStores.this.take(
            row, row != null && row.record.state() != Signing.State.PENDING, replica);
      }
    }

    @Override
    public List<UUID> takeAll(boolean own) {
      synchronized (MemoryStores.this) {
        return MemoryStores.this
            .takeAll(signings.values(), s -> s.state() == Signing.State.PENDING, replica, own)
            .stream()
            .map(SigningRecord::id)
            .toList();
      }
    }
  }

  private final class Ledgers implements LedgerStore {
    @Override
    public Remembered remember(
        LedgerPosition position, ClaimCount statement, ByteString evidenceKey) {
      synchronized (MemoryStores.this) {
        ByteString party =
            evidenceKey.concat(ByteString.copyFromUtf8(String.valueOf(statement.getParty())));
        Remembered latest = ledgers.get(party);
        if (position.against(latest == null ? null : latest.position()) == Judgement.LATER) {
          ByteString before = latest == null ? ByteString.EMPTY : latest.beforeNext(position);
          ledgers.put(party, new Remembered(position, statement.toByteString(), before));
        }
        return ledgers.get(party);
      }
    }
  }

  private final class Presence implements ReplicaStore {
    private final String replica;

    Presence(String replica) {
      this.replica = replica;
    }

    @Override
    public int seen() {
      synchronized (MemoryStores.this) {
        there.add(replica);
        return there.size();
      }
    }

    @Override
    public void leave() {
      synchronized (MemoryStores.this) {
        there.remove(replica);
      }
    }
  }
}
