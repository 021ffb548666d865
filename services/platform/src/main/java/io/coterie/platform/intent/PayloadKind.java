package io.coterie.platform.intent;

import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;

/** The kind of payload of a signing intent: the member of its {@code payload} that is set. */
public enum PayloadKind {
  /** Signed as it is; the scheme hashes it. */
  MESSAGE("message", Scheme.SCHEME_BLS12381, Scheme.SCHEME_ED25519, Scheme.SCHEME_ED25519_EXACT),
  /** 32 bytes that nobody can look behind. */
  DIGEST(
      "digest",
      Scheme.SCHEME_ECDSA_SECP256K1,
      Scheme.SCHEME_BIP340_SECP256K1,
      Scheme.SCHEME_ED25519,
      Scheme.SCHEME_ED25519_EXACT),
  /** An unsigned transaction: legacy with EIP-155, EIP-2930 or EIP-1559. */
  ETHEREUM_TRANSACTION("ethereum-transaction", Scheme.SCHEME_ECDSA_SECP256K1),
  /** EIP-191, version 0x45: {@code personal_sign}. */
  ETHEREUM_MESSAGE("ethereum-message", Scheme.SCHEME_ECDSA_SECP256K1),
  /** EIP-712: {@code eth_signTypedData_v4}. */
  ETHEREUM_TYPED_DATA("ethereum-typed-data", Scheme.SCHEME_ECDSA_SECP256K1),
  /** One input of a PSBT (BIP-174): P2WPKH after BIP-143, or P2TR by key path after BIP-341. */
  BITCOIN_INPUT("bitcoin-input", Scheme.SCHEME_ECDSA_SECP256K1, Scheme.SCHEME_BIP340_SECP256K1),
  /** The message of a Solana transaction: legacy, version 0 or version 1. */
  SOLANA_TRANSACTION("solana-transaction", Scheme.SCHEME_ED25519, Scheme.SCHEME_ED25519_EXACT);

  private final String label;
  private final Set<Scheme> schemes;

  PayloadKind(String label, Scheme... schemes) {
    this.label = label;
    this.schemes = Set.of(schemes);
  }

  /** The stable name: in configuration, in audit records and in {@code DecodedPayload.kind}. */
  public String label() {
    return label;
  }

  /** The kind of a {@link #label}. */
  public static Optional<PayloadKind> ofLabel(String label) {
    return Arrays.stream(values()).filter(k -> k.label.equals(label)).findFirst();
  }

  /** The kind of an intent; empty if it has no payload. */
  public static Optional<PayloadKind> of(SigningIntent intent) {
    return switch (intent.getPayloadCase()) {
      case MESSAGE -> Optional.of(MESSAGE);
      case DIGEST -> Optional.of(DIGEST);
      case ETHEREUM_TRANSACTION -> Optional.of(ETHEREUM_TRANSACTION);
      case ETHEREUM_MESSAGE -> Optional.of(ETHEREUM_MESSAGE);
      case ETHEREUM_TYPED_DATA -> Optional.of(ETHEREUM_TYPED_DATA);
      case BITCOIN_INPUT -> Optional.of(BITCOIN_INPUT);
      case SOLANA_TRANSACTION -> Optional.of(SOLANA_TRANSACTION);
      case PAYLOAD_NOT_SET -> Optional.empty();
    };
  }

  /** Whether keys of a scheme sign it. */
  public boolean fits(Scheme scheme) {
    return schemes.contains(scheme);
  }

  /** The bytes that are to be decoded; of typed data its UTF-8. */
  ByteString content(SigningIntent intent) {
    return switch (this) {
      case MESSAGE -> intent.getMessage();
      case DIGEST -> intent.getDigest();
      case ETHEREUM_TRANSACTION -> intent.getEthereumTransaction();
      case ETHEREUM_MESSAGE -> intent.getEthereumMessage();
      case ETHEREUM_TYPED_DATA -> intent.getEthereumTypedDataBytes();
      case BITCOIN_INPUT -> intent.getBitcoinInput().getPsbt();
      case SOLANA_TRANSACTION -> intent.getSolanaTransaction();
    };
  }
}
