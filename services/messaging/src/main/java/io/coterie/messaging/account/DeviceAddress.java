package io.coterie.messaging.account;

import java.util.UUID;

/** Where a message goes: one device of one account. */
public record DeviceAddress(UUID aci, int deviceId) {
  @Override
  public String toString() {
    return aci + "." + deviceId;
  }
}
