package io.coterie.signer.session;

import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Scheme;
import java.util.Arrays;
import java.util.Optional;

/** The protocols this signer drives, and what it must know of each to drive it. */
public enum Protocol {
  BLS_KEYGEN(ProtocolId.PROTOCOL_ID_BLS_KEYGEN_1, Scheme.SCHEME_BLS12381, Operation.KEYGEN, 4),
  BLS_SIGN(ProtocolId.PROTOCOL_ID_BLS_SIGN_1, Scheme.SCHEME_BLS12381, Operation.SIGN, 1);

  /** What a protocol is for. */
  public enum Operation {
    KEYGEN,
    SIGN
  }

  private final ProtocolId id;
  private final Scheme scheme;
  private final Operation operation;
  private final int lastRound;

  Protocol(ProtocolId id, Scheme scheme, Operation operation, int lastRound) {
    this.id = id;
    this.scheme = scheme;
    this.operation = operation;
    this.lastRound = lastRound;
  }

  /** The protocol of that id, if this signer drives it. */
  public static Optional<Protocol> of(ProtocolId id) {
    return Arrays.stream(values()).filter(p -> p.id == id).findFirst();
  }

  public ProtocolId id() {
    return id;
  }

  public Scheme scheme() {
    return scheme;
  }

  public Operation operation() {
    return operation;
  }

  /** The round after whose messages this party has nothing more to send. */
  public int lastRound() {
    return lastRound;
  }

  /** As in metrics and the audit trail: {@code bls_sign_1}. */
  public String label() {
    return id.name().substring("PROTOCOL_ID_".length()).toLowerCase(java.util.Locale.ROOT);
  }
}
