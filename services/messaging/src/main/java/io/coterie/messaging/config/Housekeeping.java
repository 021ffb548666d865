package io.coterie.messaging.config;

import io.coterie.messaging.storage.PostgresMessageQueue;
import io.coterie.messaging.telemetry.MessagingMetrics;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.scheduling.annotation.Scheduled;

/** The work that is done by the clock. Nothing is correct only because it ran. */
public class Housekeeping {
  private final PostgresMessageQueue queue;
  private final AtomicLong storedDepth = new AtomicLong();

  Housekeeping(PostgresMessageQueue queue, MessagingMetrics metrics) {
    this.queue = queue;
    metrics.queueDepth("stored", storedDepth::get);
  }

  @Scheduled(fixedDelay = 1_000)
  void sweepOnline() {
    queue.sweepOnline();
  }

  @Scheduled(fixedDelay = 15_000)
  void remindConnected() {
    queue.remindConnected();
  }

  @Scheduled(fixedDelay = 15_000)
  void measureDepth() {
    storedDepth.set(queue.storedDepth());
  }

  @Scheduled(fixedDelay = 600_000, initialDelay = 60_000)
  void sweepStored() {
    queue.sweepStored();
  }
}
