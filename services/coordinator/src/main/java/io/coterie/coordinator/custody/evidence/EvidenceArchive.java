package io.coterie.coordinator.custody.evidence;

import io.coterie.coordinator.session.EvidenceKeeper;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import java.time.Clock;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes evidence behind the sessions it is from, which wait for nothing. */
public final class EvidenceArchive implements EvidenceKeeper, AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(EvidenceArchive.class);

  /** Records that may wait; what comes when so many do is lost. */
  private static final int CAPACITY = 64;

  private static final long STOP_TIMEOUT_MS = 5_000;

  private final EvidenceStore store;
  private final Clock clock;
  private final ThreadPoolExecutor writer;

  /** Starts nothing before there is evidence. */
  public EvidenceArchive(EvidenceStore store, Clock clock) {
    this.store = store;
    this.clock = clock;
    this.writer =
        new ThreadPoolExecutor(
            1,
            1,
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(CAPACITY),
            Thread.ofVirtual().name("evidence").factory(),
            (task, executor) -> log.error("evidence was lost: {} records wait", CAPACITY));
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
    writer.execute(() -> write(record));
  }

  private void write(EvidenceRecord record) {
    try {
      store.append(record);
    } catch (RuntimeException e) {
      log.error(
          "evidence of party {} against party {} was lost: session {}",
          record.reporter(),
          record.accusation().getAccused(),
          HexFormat.of().formatHex(record.session().getSessionId().toByteArray()),
          e);
    }
  }

  /** Writes what waits, within a few seconds. */
  @Override
  public void close() {
    writer.shutdown();
    try {
      if (!writer.awaitTermination(STOP_TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
        log.error("evidence was lost: {} records wait", writer.getQueue().size());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
