package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/** Presence when there is one replica: every connection is in this process. */
public final class LocalPresence implements Presence {
  private final Map<DeviceAddress, Subscriber> subscribers = new ConcurrentHashMap<>();

  @Override
  public void connect(DeviceAddress device, Subscriber subscriber) {
    Subscriber older = subscribers.put(device, subscriber);
    if (older != null) {
      older.displaced();
    }
  }

  @Override
  public void disconnect(DeviceAddress device, Subscriber subscriber) {
    subscribers.remove(device, subscriber);
  }

  /** Tells the device, if it is connected, that there are online messages. */
  void onlineAvailable(DeviceAddress device) {
    Subscriber subscriber = subscribers.get(device);
    if (subscriber != null) {
      subscriber.onlineAvailable();
    }
  }

  @Override
  public void storedAvailable(DeviceAddress device) {
    Subscriber subscriber = subscribers.get(device);
    if (subscriber != null) {
      subscriber.storedAvailable();
    }
  }

  @Override
  public Set<DeviceAddress> connectedHere() {
    return Set.copyOf(subscribers.keySet());
  }

  @Override
  public boolean available() {
    return true;
  }

  @Override
  public void revoke(DeviceAddress device) {
    Subscriber subscriber = subscribers.remove(device);
    if (subscriber != null) {
      subscriber.revoked();
    }
  }

  @Override
  public void revoke(UUID aci) {
    for (DeviceAddress device : subscribers.keySet()) {
      if (device.aci().equals(aci)) {
        revoke(device);
      }
    }
  }
}
