package io.coterie.platform.protocol;

import io.coterie.proto.core.v1.ProtocolId;
import java.util.Arrays;
import java.util.Optional;

/**
 * The protocols of issuers, openers and members of a group of anonymous approvers. They make no
 * signature and no key that signs, so no {@link Protocol} of a scheme is one of them.
 */
public enum GroupProtocol {
  /** Makes an issuing key. */
  ISSUING_KEYGEN(ProtocolId.PROTOCOL_ID_ISSUING_KEYGEN, 4),
  /** Makes new shares of an issuing key. */
  ISSUING_REFRESH(ProtocolId.PROTOCOL_ID_ISSUING_REFRESH, 4),
  /** Makes a group's public data. */
  ISSUING_PUBLISH(ProtocolId.PROTOCOL_ID_ISSUING_PUBLISH, 3),
  /** Makes a member's key. */
  ISSUING_JOIN(ProtocolId.PROTOCOL_ID_ISSUING_JOIN, 6),
  /** Makes an openers' key. */
  OPENING_KEYGEN(ProtocolId.PROTOCOL_ID_OPENING_KEYGEN, 4);

  private final ProtocolId id;
  private final int lastRound;

  GroupProtocol(ProtocolId id, int lastRound) {
    this.id = id;
    this.lastRound = lastRound;
  }

  /** The protocol of that id; empty if it is none of a group. */
  public static Optional<GroupProtocol> of(ProtocolId id) {
    return Arrays.stream(values()).filter(p -> p.id == id).findFirst();
  }

  public ProtocolId id() {
    return id;
  }

  /** The round after whose messages a party has nothing more to send. */
  public int lastRound() {
    return lastRound;
  }
}
