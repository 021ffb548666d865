package io.coterie.platform.protocol;

import io.coterie.proto.core.v1.ProtocolId;
import java.util.Arrays;
import java.util.Optional;

/**
 * The steps of pairs that sign with an imported Ed25519 key exactly as RFC 8032 says. Each is a
 * session of the core, whose run tells how many rounds it has. Orders name the first and the last
 * of them, for all that the parties do in the session: see {@link Protocol#isOfPairs}.
 */
public enum ExactProtocol {
  /** Sets a pair up. */
  PAIR(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR),
  /** Prepares one signature. */
  PREPARE(ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE),
  /** Opens the nonce of a message. */
  NONCE(ProtocolId.PROTOCOL_ID_ED25519_EXACT_NONCE),
  /** Makes the signature. */
  ANSWER(ProtocolId.PROTOCOL_ID_ED25519_EXACT_ANSWER);

  private final ProtocolId id;

  ExactProtocol(ProtocolId id) {
    this.id = id;
  }

  /** The protocol of that id; empty if it is none of these. */
  public static Optional<ExactProtocol> of(ProtocolId id) {
    return Arrays.stream(values()).filter(p -> p.id == id).findFirst();
  }

  public ProtocolId id() {
    return id;
  }
}
