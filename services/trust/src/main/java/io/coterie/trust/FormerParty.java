package io.coterie.trust;

import java.util.Arrays;

/**
 * A party as it was. Its signatures of that time are part of the certificates of keys that still
 * exist.
 *
 * @param name as intents of that time name it
 * @param evidenceKey 32 bytes
 * @param lastEpoch it is believed about no later epoch of a key; at least 1
 */
public record FormerParty(String name, int partyId, byte[] evidenceKey, int lastEpoch) {
  public FormerParty {
    if (!Member.isName(name)) {
      throw new IllegalArgumentException("name '" + name + "' is not 1 to 63 of [a-z0-9-]");
    }
    if (partyId < 1 || partyId > Member.MAX_PARTY_ID) {
      throw new IllegalArgumentException(
          name + ": partyId " + partyId + " is not 1 to " + Member.MAX_PARTY_ID);
    }
    if (evidenceKey.length != Member.EVIDENCE_KEY_BYTES) {
      throw new IllegalArgumentException(
          name + ": evidenceKey has " + evidenceKey.length + " bytes, not 32");
    }
    if (lastEpoch < 1) {
      throw new IllegalArgumentException(name + ": lastEpoch is below 1");
    }
  }

  /** Whether the name or the evidence key shows that both are one party. */
  boolean isSameAs(FormerParty other) {
    return name.equals(other.name) || Arrays.equals(evidenceKey, other.evidenceKey);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FormerParty f
        && name.equals(f.name)
        && partyId == f.partyId
        && Arrays.equals(evidenceKey, f.evidenceKey)
        && lastEpoch == f.lastEpoch;
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(evidenceKey);
  }
}
