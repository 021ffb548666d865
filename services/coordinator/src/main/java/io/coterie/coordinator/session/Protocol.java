package io.coterie.coordinator.session;

import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Scheme;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/** The protocols this coordinator orders. */
public enum Protocol {
  BLS_KEYGEN(ProtocolId.PROTOCOL_ID_BLS_KEYGEN_1, Scheme.SCHEME_BLS12381, Operation.KEYGEN),
  BLS_SIGN(ProtocolId.PROTOCOL_ID_BLS_SIGN_1, Scheme.SCHEME_BLS12381, Operation.SIGN);

  /** What a protocol is for. */
  public enum Operation {
    KEYGEN,
    SIGN
  }

  private final ProtocolId id;
  private final Scheme scheme;
  private final Operation operation;
  private final String label;

  Protocol(ProtocolId id, Scheme scheme, Operation operation) {
    this.id = id;
    this.scheme = scheme;
    this.operation = operation;
    this.label = id.name().substring("PROTOCOL_ID_".length()).toLowerCase(Locale.ROOT);
  }

  /** The protocol that does this for that scheme, if there is one. */
  public static Optional<Protocol> of(Scheme scheme, Operation operation) {
    return Arrays.stream(values())
        .filter(p -> p.scheme == scheme && p.operation == operation)
        .findFirst();
  }

  public ProtocolId id() {
    return id;
  }

  /** As in metrics and logs: {@code bls_sign_1}. */
  public String label() {
    return label;
  }
}
