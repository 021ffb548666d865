package io.coterie.coordinator.session;

import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Scheme;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/** The protocols this coordinator orders. */
public enum Protocol {
  BLS_KEYGEN(ProtocolId.PROTOCOL_ID_BLS_KEYGEN, Scheme.SCHEME_BLS12381, Operation.KEYGEN),
  BLS_SIGN(ProtocolId.PROTOCOL_ID_BLS_SIGN, Scheme.SCHEME_BLS12381, Operation.SIGN),
  BLS_REFRESH(ProtocolId.PROTOCOL_ID_BLS_REFRESH, Scheme.SCHEME_BLS12381, Operation.REFRESH),
  BLS_RESHARE(ProtocolId.PROTOCOL_ID_BLS_RESHARE, Scheme.SCHEME_BLS12381, Operation.RESHARE),
  ECDSA_KEYGEN(
      ProtocolId.PROTOCOL_ID_ECDSA_KEYGEN, Scheme.SCHEME_ECDSA_SECP256K1, Operation.KEYGEN),
  ECDSA_SIGN(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, Scheme.SCHEME_ECDSA_SECP256K1, Operation.SIGN),
  ECDSA_PRESIGN(
      ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, Scheme.SCHEME_ECDSA_SECP256K1, Operation.PRESIGN),
  ECDSA_SIGN_PRESIGNED(
      ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED,
      Scheme.SCHEME_ECDSA_SECP256K1,
      Operation.SIGN_PRESIGNED),
  ECDSA_REFRESH(
      ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, Scheme.SCHEME_ECDSA_SECP256K1, Operation.REFRESH),
  ECDSA_RESHARE(
      ProtocolId.PROTOCOL_ID_ECDSA_RESHARE, Scheme.SCHEME_ECDSA_SECP256K1, Operation.RESHARE),
  ED25519_KEYGEN(ProtocolId.PROTOCOL_ID_ED25519_KEYGEN, Scheme.SCHEME_ED25519, Operation.KEYGEN),
  ED25519_SIGN(ProtocolId.PROTOCOL_ID_ED25519_SIGN, Scheme.SCHEME_ED25519, Operation.SIGN),
  ED25519_PRESIGN(ProtocolId.PROTOCOL_ID_ED25519_PRESIGN, Scheme.SCHEME_ED25519, Operation.PRESIGN),
  ED25519_SIGN_PRESIGNED(
      ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED,
      Scheme.SCHEME_ED25519,
      Operation.SIGN_PRESIGNED),
  ED25519_REFRESH(ProtocolId.PROTOCOL_ID_ED25519_REFRESH, Scheme.SCHEME_ED25519, Operation.REFRESH),
  ED25519_RESHARE(ProtocolId.PROTOCOL_ID_ED25519_RESHARE, Scheme.SCHEME_ED25519, Operation.RESHARE),
  BIP340_KEYGEN(
      ProtocolId.PROTOCOL_ID_BIP340_KEYGEN, Scheme.SCHEME_BIP340_SECP256K1, Operation.KEYGEN),
  BIP340_SIGN(ProtocolId.PROTOCOL_ID_BIP340_SIGN, Scheme.SCHEME_BIP340_SECP256K1, Operation.SIGN),
  BIP340_PRESIGN(
      ProtocolId.PROTOCOL_ID_BIP340_PRESIGN, Scheme.SCHEME_BIP340_SECP256K1, Operation.PRESIGN),
  BIP340_SIGN_PRESIGNED(
      ProtocolId.PROTOCOL_ID_BIP340_SIGN_PRESIGNED,
      Scheme.SCHEME_BIP340_SECP256K1,
      Operation.SIGN_PRESIGNED),
  BIP340_REFRESH(
      ProtocolId.PROTOCOL_ID_BIP340_REFRESH, Scheme.SCHEME_BIP340_SECP256K1, Operation.REFRESH),
  BIP340_RESHARE(
      ProtocolId.PROTOCOL_ID_BIP340_RESHARE, Scheme.SCHEME_BIP340_SECP256K1, Operation.RESHARE);

  /** The purpose of a protocol. */
  public enum Operation {
    KEYGEN,
    SIGN,
    /** Makes a presignature: the first rounds of a signature, before there is anything to sign. */
    PRESIGN,
    /** Signs with a presignature. */
    SIGN_PRESIGNED,
    /** Gives the parties of a key new shares of it. */
    REFRESH,
    /** Gives shares of the key to other parties, or of another threshold. */
    RESHARE
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

  /** Parties needed to sign, at least: all but BLS are protocols between several. */
  public int leastThreshold() {
    return scheme == Scheme.SCHEME_BLS12381 ? 1 : 2;
  }

  /** Most presignatures that one session makes, as the core allows; 0 if it makes none. */
  public int maxBatch() {
    if (operation != Operation.PRESIGN) {
      return 0;
    }
    return scheme == Scheme.SCHEME_ECDSA_SECP256K1 ? 4 : 16;
  }

  /** As in metrics and logs: {@code bls_sign}. */
  public String label() {
    return label;
  }
}
