package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/** Messages that wait for devices. Online ones are in memory only, and for a short time. */
public interface MessageQueue {

  /**
   * Takes over a request for all its recipients, or for none. Stored messages are durable when this
   * returns.
   *
   * @throws QueueFullException if a recipient's queue is at its limit
   */
  void enqueue(Delivery delivery);

  /** Takes the oldest online message that is still in time. */
  Optional<QueuedMessage> takeOnline(DeviceAddress device);

  /** Stored messages, oldest first, leaving out {@code except}. */
  List<QueuedMessage> stored(DeviceAddress device, Collection<Long> except, int limit);

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

  /** A device's queue is at its limit; nothing of the request was queued. */
  final class QueueFullException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public QueueFullException() {
      super("the queue of a recipient is full", null, false, false);
    }
  }
}
