package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.util.Optional;
import java.util.UUID;

/**
 * Messages that are dropped if nobody fetches them in time. Those of one sender to one device are
 * taken in the order in which they were added.
 */
public interface OnlineQueue {

  /** Makes a message available to each of its recipients, and tells those who are connected. */
  void add(Delivery delivery);

  /** Takes the oldest message that is here and still in time. */
  Optional<QueuedMessage> take(DeviceAddress device);

  /** Forgets the messages of a device. */
  void drop(DeviceAddress device);

  /** Forgets the messages of all devices of an account. */
  void drop(UUID aci);

  /** Frees what has expired. Nothing expired is ever delivered, swept or not. */
  void sweep();

  /** Messages that wait in this process, of all devices. */
  long depth();
}
