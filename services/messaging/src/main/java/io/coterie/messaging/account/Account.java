package io.coterie.messaging.account;

import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A registered account, as of one moment.
 *
 * @param number E.164 number it was enrolled under
 * @param aciIdentityKey serialised public key, 33 bytes
 * @param pniIdentityKey serialised public key, 33 bytes
 * @param unidentifiedAccessKey 16 bytes that let a sender reach the account without naming itself
 * @param unrestrictedUnidentifiedAccess whether anyone may
 * @param devices ordered by id
 */
public record Account(
    UUID aci,
    UUID pni,
    String number,
    byte[] aciIdentityKey,
    byte[] pniIdentityKey,
    byte @Nullable [] unidentifiedAccessKey,
    boolean unrestrictedUnidentifiedAccess,
    List<Device> devices) {
  /** Bytes of an unidentified access key. */
  public static final int ACCESS_KEY_BYTES = 16;

  public Optional<Device> device(int id) {
    for (Device device : devices) {
      if (device.id() == id) {
        return Optional.of(device);
      }
    }
    return Optional.empty();
  }

  public byte[] identityKey(IdentityType identity) {
    return identity == IdentityType.ACI ? aciIdentityKey : pniIdentityKey;
  }

  public boolean isIdentifiedBy(ServiceIdentifier id) {
    return id.uuid().equals(id.kind() == IdentityType.ACI ? aci : pni);
  }

  @Override
  public String toString() {
    return "Account[" + aci + "]";
  }
}
