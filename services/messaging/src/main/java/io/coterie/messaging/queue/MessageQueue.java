package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.limit.Source;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

/** Messages that wait for devices. Online ones are in memory only, and for a short time. */
public interface MessageQueue {

  /**
   * Takes over a request. Those of one caller keep their order. A recipient whose queue is full
   * does not get the message, and keeps nobody else from getting it.
   *
   * @param source whose share of the queue the request uses
   * @return completed with the recipients whose queues are full when the message is where it waits:
   *     in memory or, if it is to be stored, durably
   * @throws io.coterie.messaging.limit.RateLimit.RateLimitedException if the source has to wait
   */
  CompletableFuture<Set<DeviceAddress>> enqueue(Delivery delivery, Source source);

  /** Takes the oldest online message that is still in time. */
  Optional<QueuedMessage> takeOnline(DeviceAddress device);

  /**
   * Stored messages, oldest first, leaving out {@code except}.
   *
   * @param limit most messages
   * @param bytes most bytes of them in memory; further messages stay where they are
   */
  Loaded stored(DeviceAddress device, Collection<Long> except, int limit, long bytes);

  /**
   * Messages out of a device's queue.
   *
   * @param more whether there may be others
   * @param larger the bytes of the first message if it alone has more than was asked for, and so is
   *     not among the messages; otherwise 0
   */
  record Loaded(List<QueuedMessage> messages, boolean more, long larger) {}

  /**
   * Forgets a stored message that its device has acknowledged. Does not block: from now on {@link
   * #stored} leaves the message out, and soon it is gone for good. If the service dies before that,
   * the device gets the message again.
   */
  void acknowledge(long storedId);

  /** Forgets the online messages of a device. Stored ones go with the device itself. */
  void dropOnline(DeviceAddress device);

  /** Forgets the online messages of all devices of an account. */
  void dropOnline(UUID aci);

  /** The queues of all recipients are at their limits. */
  final class QueueFullException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public QueueFullException() {
      super("the queues of all recipients are full", null, false, false);
    }
  }
}
