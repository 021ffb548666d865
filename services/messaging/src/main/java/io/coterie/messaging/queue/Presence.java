package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.util.UUID;

/** Which devices are connected, and how to reach them. A device is connected at most once. */
public interface Presence {

  /** Makes a subscriber the only one of its device; an older one is told that it was displaced. */
  void connect(DeviceAddress device, Subscriber subscriber);

  /** Ends a subscription, if it is still the current one. */
  void disconnect(DeviceAddress device, Subscriber subscriber);

  /** Tells the device, if it is connected, that there are online messages. */
  void onlineAvailable(DeviceAddress device);

  /** Tells the device, if it is connected, that there are stored messages. */
  void storedAvailable(DeviceAddress device);

  /** Tells a device that it must authenticate anew. */
  void revoke(DeviceAddress device);

  /** Tells all devices of an account that they must authenticate anew. */
  void revoke(UUID aci);

  /** The connection of a device. Its methods must not block. */
  interface Subscriber {
    void onlineAvailable();

    void storedAvailable();

    void displaced();

    void revoked();
  }
}
