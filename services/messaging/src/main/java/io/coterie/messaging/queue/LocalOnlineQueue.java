package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.util.Optional;
import java.util.UUID;

/** Online messages when there is one replica: nowhere but in its memory. */
public final class LocalOnlineQueue implements OnlineQueue {
  private final OnlineMessages messages;
  private final LocalPresence presence;

  public LocalOnlineQueue(OnlineMessages messages, LocalPresence presence) {
    this.messages = messages;
    this.presence = presence;
  }

  @Override
  public void add(Delivery delivery) {
    for (Delivery.Recipient recipient : delivery.recipients()) {
      messages.add(recipient.device(), delivery.online(recipient));
      presence.onlineAvailable(recipient.device());
    }
  }

  @Override
  public Optional<QueuedMessage> take(DeviceAddress device) {
    return messages.take(device);
  }

  @Override
  public void drop(DeviceAddress device) {
    messages.drop(device);
  }

  @Override
  public void drop(UUID aci) {
    messages.drop(aci);
  }

  @Override
  public void sweep() {
    messages.sweep();
  }

  @Override
  public long depth() {
    return messages.depth();
  }
}
