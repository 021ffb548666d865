package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.evidence.EvidenceArchive;
import io.coterie.coordinator.custody.evidence.EvidenceRecord;
import io.coterie.coordinator.custody.evidence.EvidenceStore;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class EvidenceArchiveTest {
  private static final Instant NOW = Instant.parse("2030-01-01T00:00:00Z");

  /** A database that can be away, hold a call back, and refuse records for good. */
  private static final class Database implements EvidenceStore {
    private final MemoryEvidenceStore store = new MemoryEvidenceStore();
    final AtomicInteger tries = new AtomicInteger();
    final CountDownLatch open = new CountDownLatch(1);
    volatile boolean away;

    @Override
    public void append(EvidenceRecord record) {
      try {
        open.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      tries.incrementAndGet();
      if (away) {
        throw new StoreUnavailableException("as told", new IllegalStateException());
      }
      if (record.reporter() == REFUSED) {
        throw new IllegalArgumentException("as told");
      }
      store.append(record);
    }

    @Override
    public List<EvidenceRecord> ofKey(String key) {
      return store.ofKey(key);
    }

    /** In the order in which they were written. */
    List<EvidenceRecord> written() {
      return ofKey(KEY).reversed();
    }
  }

  private static final int REFUSED = 9;
  private static final String KEY = "keys/a";

  private final Database database = new Database();
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

  private EvidenceArchive archive() {
    return new EvidenceArchive(
        database, new CoordinatorMetrics(registry), Clock.fixed(NOW, ZoneOffset.UTC));
  }

  private static void keep(EvidenceArchive archive, int reporter, Verdict verdict) {
    archive.keep(
        SessionConfig.newBuilder()
            .setSessionId(ByteString.copyFrom(new byte[32]))
            .setKeyId(KEY)
            .build(),
        Accusation.newBuilder().setAccused(3).build(),
        reporter,
        verdict);
  }

  private List<Integer> reporters() {
    return database.written().stream().map(EvidenceRecord::reporter).toList();
  }

  private double lost() {
    return registry.get(CoordinatorMetrics.EVIDENCE_LOST).counter().count();
  }

  @Test
  void evidence_is_written_once_the_database_is_back() {
    database.open.countDown();
    database.away = true;
    try (EvidenceArchive archive = archive()) {
      keep(archive, 1, Verdict.VERDICT_PROVEN);
      keep(archive, 2, Verdict.VERDICT_PROVEN);
      eventually(() -> database.tries.get() > 2);
      assertThat(database.written()).isEmpty();
      database.away = false;
      eventually(() -> database.written().size() == 2);
    }
    assertThat(reporters()).containsExactly(1, 2);
    assertThat(lost()).isZero();
  }

  @Test
  void a_record_that_the_database_refuses_for_good_holds_up_no_other() {
    database.open.countDown();
    try (EvidenceArchive archive = archive()) {
      keep(archive, REFUSED, Verdict.VERDICT_PROVEN);
      keep(archive, 2, Verdict.VERDICT_PROVEN);
      eventually(() -> !database.written().isEmpty());
    }
    assertThat(reporters()).containsExactly(2);
    assertThat(lost()).isEqualTo(1);
  }

  @Test
  void who_shows_evidence_does_not_wait_and_what_proves_nothing_takes_no_room_from_what_does() {
    try (EvidenceArchive archive = archive()) {
      for (int i = 0; i < 1_000; i++) {
        keep(archive, 1, Verdict.VERDICT_REFUTED);
      }
      keep(archive, 2, Verdict.VERDICT_PROVEN);
      assertThat(database.written()).isEmpty();
      assertThat(lost()).isGreaterThan(900);
      database.open.countDown();
    }
    assertThat(reporters()).contains(1, 2).hasSize(1_001 - (int) lost());
  }

  @Test
  void an_archive_that_closes_reports_each_record_that_the_database_does_not_take() {
    database.open.countDown();
    database.away = true;
    EvidenceArchive archive = archive();
    keep(archive, 1, Verdict.VERDICT_PROVEN);
    keep(archive, 2, Verdict.VERDICT_PROVEN);
    archive.close();
    keep(archive, 3, Verdict.VERDICT_PROVEN);
    assertThat(database.written()).isEmpty();
    assertThat(lost()).isEqualTo(3);
  }
}
