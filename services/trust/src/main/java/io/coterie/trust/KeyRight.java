package io.coterie.trust;

/** More than signatures that a requester may ask for; see the rights of its rule at the signers. */
public enum KeyRight {
  /** Makes a new key, or a new epoch of a group of approvers. */
  CREATE,
  /** Has parties take over a key that exists already. */
  IMPORT,
  /** Gives the same parties new shares. */
  REFRESH,
  /** Gives shares to other parties, or changes the threshold. */
  RESHARE,
  /** Learns who made an approval of a group. */
  OPEN
}
