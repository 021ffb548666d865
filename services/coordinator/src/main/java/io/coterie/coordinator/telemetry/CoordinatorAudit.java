package io.coterie.coordinator.telemetry;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditTrail;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes audit records behind the calls they are about: one writer keeps the chain, and a caller
 * does not wait for it unless it is far behind. The signers record what must not happen without a
 * record before they do it; this trail tells who asked.
 */
public final class CoordinatorAudit implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(CoordinatorAudit.class);

  /** Records that may wait; callers wait beyond. */
  private static final int CAPACITY = 4096;

  private static final long STOP_TIMEOUT_MS = 5_000;
  private static final long RETRY_MS = 200;

  private final BlockingQueue<AuditEvent> waiting = new ArrayBlockingQueue<>(CAPACITY);
  private final AuditTrail trail;
  private final Thread writer;
  private volatile boolean closed;

  /** Starts the writer. */
  public CoordinatorAudit(AuditTrail trail) {
    this.trail = trail;
    this.writer = Thread.ofVirtual().name("audit").start(this::write);
  }

  /** Records a call. */
  public void record(String client, String action, String outcome, Map<String, String> facts) {
    try {
      waiting.put(AuditEvent.of(client, action, outcome, facts));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      log.error("an audit record of {} by {} was lost: {}", action, client, outcome);
    }
  }

  private void write() {
    @Nullable AuditEvent next = null;
    try {
      while (next != null || !closed || !waiting.isEmpty()) {
        if (next == null) {
          next = waiting.poll(RETRY_MS, TimeUnit.MILLISECONDS);
        }
        if (next != null) {
          try {
            trail.append(next);
            next = null;
          } catch (RuntimeException e) {
            log.error("cannot write the audit trail: {}", e.getMessage());
            if (closed) {
              return;
            }
            TimeUnit.MILLISECONDS.sleep(RETRY_MS);
          }
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Writes what waits, within a few seconds. */
  @Override
  public void close() {
    closed = true;
    try {
      if (!writer.join(java.time.Duration.ofMillis(STOP_TIMEOUT_MS))) {
        log.error("{} audit records were not written", waiting.size());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
