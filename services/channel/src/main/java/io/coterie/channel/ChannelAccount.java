package io.coterie.channel;

import java.util.Optional;
import java.util.UUID;

/**
 * A member's durable account at the messaging service. Ratchets and sender keys are not here: they
 * live and die with the process.
 *
 * @param aci account id
 * @param deviceId 1..127
 * @param password for the messaging service; secret
 * @param registrationId 1..0x3FFF
 * @param identityKeyPair serialised Signal identity key pair; secret
 */
public record ChannelAccount(
    UUID aci, int deviceId, byte[] password, int registrationId, byte[] identityKeyPair) {

  /** Where the account is kept, sealed. */
  public interface Store {
    Optional<ChannelAccount> load();

    void save(ChannelAccount account);
  }

  @Override
  public String toString() {
    return "ChannelAccount[" + aci + "." + deviceId + "]";
  }
}
