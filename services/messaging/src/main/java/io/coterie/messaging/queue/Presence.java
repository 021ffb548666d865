package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.util.Set;
import java.util.UUID;

/** Which devices are connected, and how to reach them. A device is connected at most once. */
public interface Presence {

  /**
   * Makes a subscriber the only one of its device, on whichever replica; an older one is told that
   * it was displaced. From when this returns, the subscriber is told of every new message.
   *
   * @throws org.springframework.dao.DataAccessException if what the replicas share is out of reach
   */
  void connect(DeviceAddress device, Subscriber subscriber);

  /** Ends a subscription, if it is still the current one. */
  void disconnect(DeviceAddress device, Subscriber subscriber);

  /** Tells the device, if it is connected, that there are stored messages. */
  void storedAvailable(DeviceAddress device);

  /** The devices that are connected to this replica. */
  Set<DeviceAddress> connectedHere();

  /** Whether devices of other replicas can be reached; always, if there are none. */
  boolean available();

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

    /** The credentials may no longer be valid: to be checked, and the connection closed if so. */
    void credentialsChanged();
  }
}
