package io.coterie.messaging.keys;

import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.PreKey;
import java.util.List;
import java.util.Optional;

/** The prekeys of devices, durably. */
public interface PreKeyStore {

  /** The keys that an upload replaces; an empty field leaves the stored ones. */
  public record Upload(
      List<PreKey> oneTimeEc,
      Optional<PreKey> signed,
      List<PreKey> oneTimeKem,
      Optional<PreKey> lastResort) {}

  /** Replaces keys: all of the upload or nothing. */
  void store(DeviceAddress device, IdentityType identity, Upload upload);

  /** The signed EC key or the last-resort KEM key. */
  Optional<PreKey> repeated(DeviceAddress device, IdentityType identity, PreKey.Kind kind);

  /** Takes the one-time key with the smallest id; no key is ever returned twice. */
  Optional<PreKey> takeOneTime(DeviceAddress device, IdentityType identity, PreKey.Kind kind);

  /** How many one-time keys are left. */
  int countOneTime(DeviceAddress device, IdentityType identity, PreKey.Kind kind);
}
