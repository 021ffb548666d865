package io.coterie.trust;

import java.util.Arrays;
import java.util.UUID;
import java.util.regex.Pattern;

/**
 * One pinned member of the roster: a party or the coordinator.
 *
 * @param name unique in the roster, 1 to 63 of {@code [a-z0-9-]}
 * @param role party or coordinator
 * @param partyId 1 to {@value #MAX_PARTY_ID} for a party, stable for the life of a key; 0 for a
 *     coordinator
 * @param region where it runs, as it appears in metrics
 * @param aci account id at the messaging service
 * @param deviceId 1..127
 * @param identityKey the Signal identity public key, 33 bytes serialised
 * @param evidenceKey Ed25519 public key (32 bytes) that signs envelopes which may serve as
 *     evidence; empty for a coordinator
 */
public record Member(
    String name,
    Role role,
    int partyId,
    String region,
    UUID aci,
    int deviceId,
    byte[] identityKey,
    byte[] evidenceKey) {
  /** The highest id of a party; the lowest is 1. */
  public static final int MAX_PARTY_ID = 65_535;

  static final int EVIDENCE_KEY_BYTES = 32;

  private static final Pattern NAME = Pattern.compile("[a-z0-9][a-z0-9-]{0,62}");

  /** The role of a member in the system. */
  public enum Role {
    PARTY,
    COORDINATOR
  }

  /** Whether a string can be the name of a member or of an installation. */
  public static boolean isName(String name) {
    return NAME.matcher(name).matches();
  }

  /** Two members are the same when everything pinned about them is. */
  @Override
  public boolean equals(Object other) {
    return other instanceof Member m
        && name.equals(m.name)
        && role == m.role
        && partyId == m.partyId
        && region.equals(m.region)
        && aci.equals(m.aci)
        && deviceId == m.deviceId
        && Arrays.equals(identityKey, m.identityKey)
        && Arrays.equals(evidenceKey, m.evidenceKey);
  }

  @Override
  public int hashCode() {
    return aci.hashCode() * 31 + deviceId;
  }
}
