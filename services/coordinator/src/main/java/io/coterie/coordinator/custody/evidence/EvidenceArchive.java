package io.coterie.coordinator.custody.evidence;

import io.coterie.coordinator.custody.request.Pace;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.session.EvidenceKeeper;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import java.time.Clock;
import java.time.temporal.ChronoUnit;
import java.util.EnumMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes evidence behind the sessions it is from, which wait for nothing. While the database does
 * not answer, records wait for it. A record that is lost is counted and logged.
 */
public final class EvidenceArchive implements EvidenceKeeper, AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(EvidenceArchive.class);

  /**
   * Records of each verdict that may wait; the next one is lost. As in the store, what proves
   * nothing takes no room from what does.
   */
  static final int CAPACITY = 64;

  private static final long STOP_TIMEOUT_MS = 5_000;

  private final Map<Verdict, Semaphore> room = new EnumMap<>(Verdict.class);
  private final Stopping closing = new Stopping();
  private final EvidenceStore store;
  private final CoordinatorMetrics metrics;
  private final Clock clock;
  private final ExecutorService writer;

  /** An archive without evidence. */
  public EvidenceArchive(EvidenceStore store, CoordinatorMetrics metrics, Clock clock) {
    this.store = store;
    this.metrics = metrics;
    this.clock = clock;
    for (Verdict verdict : Verdict.values()) {
      room.put(verdict, new Semaphore(CAPACITY));
    }
    this.writer = Executors.newSingleThreadExecutor(Thread.ofVirtual().name("evidence").factory());
  }

  @Override
  public void keep(SessionConfig session, Accusation accusation, int reporter, Verdict verdict) {
    if (accusation.getSerializedSize() > EvidenceStore.MAX_ACCUSATION) {
      log.warn("party {} showed more than evidence may have; it is not kept", reporter);
      return;
    }
    EvidenceRecord record =
        new EvidenceRecord(
            session, accusation, reporter, verdict, clock.instant().truncatedTo(ChronoUnit.MICROS));
    Semaphore places = places(record);
    if (!places.tryAcquire()) {
      lost(record, "too many wait for the database", null);
      return;
    }
    try {
      writer.execute(() -> write(record));
    } catch (RejectedExecutionException e) {
      places.release();
      lost(record, "the archive is closed", null);
    }
  }

  private Semaphore places(EvidenceRecord record) {
    return Objects.requireNonNull(room.get(record.verdict()));
  }

  private void write(EvidenceRecord record) {
    try {
      append(record);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      lost(record, "the archive is closed", null);
    } catch (RuntimeException e) {
      lost(record, "it cannot be written", e);
    } finally {
      places(record).release();
    }
  }

  /** Tries until the record is durable; once the archive closes, one more time. */
  private void append(EvidenceRecord record) throws InterruptedException {
    Pace pace = new Pace(closing, ReplicaTime.ofMachine());
    while (true) {
      boolean last = closing.hasBegun();
      try {
        store.append(record);
        return;
      } catch (StoreUnavailableException e) {
        if (last) {
          throw e;
        }
        log.warn("evidence waits for the database: {}", e.getMessage());
      }
      pace.pause();
    }
  }

  private void lost(EvidenceRecord record, String why, @Nullable RuntimeException cause) {
    metrics.evidenceLost();
    log.error(
        "evidence of party {} against party {} was lost, {}: session {}",
        record.reporter(),
        record.accusation().getAccused(),
        why,
        HexFormat.of().formatHex(record.session().getSessionId().toByteArray()),
        cause);
  }

  /** Writes what waits if the database answers, within a few seconds. */
  @Override
  public void close() {
    closing.begin();
    writer.shutdown();
    try {
      if (!writer.awaitTermination(STOP_TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
        int waiting = writer.shutdownNow().size();
        log.error("evidence was lost: {} records waited for the database", waiting);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
