package io.coterie.messaging.socket;

import java.util.concurrent.Semaphore;

/**
 * Bytes of stored messages that connections load from the database at once. A load waits for its
 * turn; it ends when its messages are frames, which {@link PushMemory} counts.
 */
final class StoredLoads {
  /** As text in the driver, which is twice as long, as the message, and while it becomes one. */
  static final int COPIES = 4;

  private static final int UNIT = 1_024;

  private final int units;
  private final Semaphore room;

  /**
   * @param maxBytes most memory of all loads
   */
  StoredLoads(long maxBytes) {
    this.units = (int) Math.max(1, maxBytes / UNIT);
    this.room = new Semaphore(units, true);
  }

  /**
   * Loads when there is room.
   *
   * @param bytes most bytes of messages that the load gets
   */
  void run(long bytes, Runnable load) {
    int needed = (int) Math.min(units, COPIES * bytes / UNIT + 1);
    room.acquireUninterruptibly(needed);
    try {
      load.run();
    } finally {
      room.release(needed);
    }
  }
}
