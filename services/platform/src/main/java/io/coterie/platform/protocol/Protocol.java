package io.coterie.platform.protocol;

import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Scheme;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/**
 * The protocols that a coordinator orders and a signer runs, with the facts that both need to do
 * so. {@code core.proto} lists the same protocols for the core.
 */
public enum Protocol {
  BLS_KEYGEN(ProtocolId.PROTOCOL_ID_BLS_KEYGEN, Scheme.SCHEME_BLS12381, Operation.KEYGEN, 4),
  BLS_SIGN(ProtocolId.PROTOCOL_ID_BLS_SIGN, Scheme.SCHEME_BLS12381, Operation.SIGN, 1),
  BLS_REFRESH(ProtocolId.PROTOCOL_ID_BLS_REFRESH, Scheme.SCHEME_BLS12381, Operation.REFRESH, 4),
  BLS_RESHARE(ProtocolId.PROTOCOL_ID_BLS_RESHARE, Scheme.SCHEME_BLS12381, Operation.RESHARE, 4),
  ECDSA_KEYGEN(
      ProtocolId.PROTOCOL_ID_ECDSA_KEYGEN, Scheme.SCHEME_ECDSA_SECP256K1, Operation.KEYGEN, 6),
  ECDSA_SIGN(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, Scheme.SCHEME_ECDSA_SECP256K1, Operation.SIGN, 3),
  ECDSA_PRESIGN(
      ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, Scheme.SCHEME_ECDSA_SECP256K1, Operation.PRESIGN, 2),
  ECDSA_SIGN_PRESIGNED(
      ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED,
      Scheme.SCHEME_ECDSA_SECP256K1,
      Operation.SIGN_PRESIGNED,
      1),
  ECDSA_REFRESH(
      ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, Scheme.SCHEME_ECDSA_SECP256K1, Operation.REFRESH, 6),
  ECDSA_RESHARE(
      ProtocolId.PROTOCOL_ID_ECDSA_RESHARE, Scheme.SCHEME_ECDSA_SECP256K1, Operation.RESHARE, 6),
  ED25519_KEYGEN(ProtocolId.PROTOCOL_ID_ED25519_KEYGEN, Scheme.SCHEME_ED25519, Operation.KEYGEN, 4),
  ED25519_SIGN(ProtocolId.PROTOCOL_ID_ED25519_SIGN, Scheme.SCHEME_ED25519, Operation.SIGN, 2),
  ED25519_PRESIGN(
      ProtocolId.PROTOCOL_ID_ED25519_PRESIGN, Scheme.SCHEME_ED25519, Operation.PRESIGN, 1),
  ED25519_SIGN_PRESIGNED(
      ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED,
      Scheme.SCHEME_ED25519,
      Operation.SIGN_PRESIGNED,
      1),
  ED25519_REFRESH(
      ProtocolId.PROTOCOL_ID_ED25519_REFRESH, Scheme.SCHEME_ED25519, Operation.REFRESH, 4),
  ED25519_RESHARE(
      ProtocolId.PROTOCOL_ID_ED25519_RESHARE, Scheme.SCHEME_ED25519, Operation.RESHARE, 4),
  /** The import of a key: each pair of its parties sets up and makes the owner's test signature. */
  ED25519_EXACT_PAIR(
      ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR,
      Scheme.SCHEME_ED25519_EXACT,
      Operation.IMPORT,
      PairRounds.NEVER_LAST),
  /** A pair prepares a signature, and sets up first if it has to. */
  ED25519_EXACT_PREPARE(
      ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE,
      Scheme.SCHEME_ED25519_EXACT,
      Operation.PRESIGN,
      PairRounds.NEVER_LAST),
  /** A signature by a pair, with one that it has prepared. */
  ED25519_EXACT_NONCE(
      ProtocolId.PROTOCOL_ID_ED25519_EXACT_NONCE,
      Scheme.SCHEME_ED25519_EXACT,
      Operation.SIGN_PRESIGNED,
      PairRounds.NEVER_LAST),
  /** A signature by a pair, with everything that it needs. */
  ED25519_EXACT_ANSWER(
      ProtocolId.PROTOCOL_ID_ED25519_EXACT_ANSWER,
      Scheme.SCHEME_ED25519_EXACT,
      Operation.SIGN,
      PairRounds.NEVER_LAST),
  BIP340_KEYGEN(
      ProtocolId.PROTOCOL_ID_BIP340_KEYGEN, Scheme.SCHEME_BIP340_SECP256K1, Operation.KEYGEN, 4),
  BIP340_SIGN(
      ProtocolId.PROTOCOL_ID_BIP340_SIGN, Scheme.SCHEME_BIP340_SECP256K1, Operation.SIGN, 2),
  BIP340_PRESIGN(
      ProtocolId.PROTOCOL_ID_BIP340_PRESIGN, Scheme.SCHEME_BIP340_SECP256K1, Operation.PRESIGN, 1),
  BIP340_SIGN_PRESIGNED(
      ProtocolId.PROTOCOL_ID_BIP340_SIGN_PRESIGNED,
      Scheme.SCHEME_BIP340_SECP256K1,
      Operation.SIGN_PRESIGNED,
      1),
  BIP340_REFRESH(
      ProtocolId.PROTOCOL_ID_BIP340_REFRESH, Scheme.SCHEME_BIP340_SECP256K1, Operation.REFRESH, 4),
  BIP340_RESHARE(
      ProtocolId.PROTOCOL_ID_BIP340_RESHARE, Scheme.SCHEME_BIP340_SECP256K1, Operation.RESHARE, 4);

  /** The purpose of a protocol. */
  public enum Operation {
    /** Makes a key: from nothing to a share. */
    KEYGEN,
    /** Takes a key over: from the share that its owner has made to the party's own. */
    IMPORT,
    /** Signs, from a share. */
    SIGN,
    /** Makes a presignature, from a share. Nobody has asked for a signature yet. */
    PRESIGN,
    /** Signs, from a presignature. */
    SIGN_PRESIGNED,
    /** Replaces a share by one of the next epoch, at all parties. */
    REFRESH,
    /** The same for other parties, or with another threshold. */
    RESHARE;

    /** Whether it ends with a signature. */
    public boolean signs() {
      return this == SIGN || this == SIGN_PRESIGNED;
    }

    /** Whether it ends with a share. */
    public boolean makesShare() {
      return makesKey() || makesNextEpoch();
    }

    /** Whether it ends with the first share of a key. */
    public boolean makesKey() {
      return this == KEYGEN || this == IMPORT;
    }

    /** Whether what it makes takes the place of older shares. */
    public boolean makesNextEpoch() {
      return this == REFRESH || this == RESHARE;
    }
  }

  private static final class PairRounds {
    /** Parties of a pair answer each other to the end. */
    static final int NEVER_LAST = Integer.MAX_VALUE;
  }

  private final ProtocolId id;
  private final Scheme scheme;
  private final Operation operation;
  private final int lastRound;
  private final String label;

  Protocol(ProtocolId id, Scheme scheme, Operation operation, int lastRound) {
    this.id = id;
    this.scheme = scheme;
    this.operation = operation;
    this.lastRound = lastRound;
    this.label = id.name().substring("PROTOCOL_ID_".length()).toLowerCase(Locale.ROOT);
  }

  /** The protocol of that id; empty if it is not known here. */
  public static Optional<Protocol> of(ProtocolId id) {
    return Arrays.stream(values()).filter(p -> p.id == id).findFirst();
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

  public Scheme scheme() {
    return scheme;
  }

  public Operation operation() {
    return operation;
  }

  /** Whether it makes a signature that would be another one if it were made again. */
  public boolean signsAtRandom() {
    return operation.signs() && scheme != Scheme.SCHEME_BLS12381 && !isOfPairs();
  }

  /**
   * Whether a party's one contribution goes to the coordinator alone. Nothing that a party does
   * later depends on those of the others: a second signature would be the same, and a wrong
   * contribution shows nobody a secret (docs/adr/0071).
   */
  public boolean answersCoordinatorAlone() {
    return operation.signs() && scheme == Scheme.SCHEME_BLS12381;
  }

  /**
   * Whether its parties talk in pairs, in steps of the {@link ExactProtocol} kind. Nobody observes
   * that: a party tells its coordinator the signature, and the round tells the step.
   */
  public boolean isOfPairs() {
    return scheme == Scheme.SCHEME_ED25519_EXACT;
  }

  /**
   * Whether its parties multiply with the secrets that pairs of them have in common, of which a
   * wrong message tells whether a guess was right. Key generation, refresh and reshare use none:
   * they make new ones, which are forgotten with a run that fails.
   */
  public boolean multiplies() {
    return scheme == Scheme.SCHEME_ECDSA_SECP256K1
        && (operation == Operation.SIGN || operation == Operation.PRESIGN);
  }

  /** Whether others must know how far this party's ledger has come before it hears a peer. */
  public boolean needsWitnesses() {
    return multiplies() || (scheme == Scheme.SCHEME_ECDSA_SECP256K1 && operation.makesNextEpoch());
  }

  /** The round after whose messages this party has nothing more to send. */
  public int lastRound() {
    return lastRound;
  }

  /** The least threshold of a key: a party signs alone with BLS only. */
  public int leastThreshold() {
    return scheme == Scheme.SCHEME_BLS12381 ? 1 : 2;
  }

  /** Most presignatures that one session makes, as the core allows; 0 if it makes none. */
  public int maxBatch() {
    if (operation != Operation.PRESIGN) {
      return 0;
    }
    return switch (scheme) {
      case SCHEME_ED25519_EXACT -> 1;
      case SCHEME_ECDSA_SECP256K1 -> 4;
      default -> 16;
    };
  }

  /** As in metrics, logs and the audit trail: {@code bls_sign}. */
  public String label() {
    return label;
  }
}
