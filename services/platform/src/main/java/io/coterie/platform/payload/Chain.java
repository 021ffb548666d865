package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import java.util.List;
import java.util.Optional;

/** The chains on which keys have addresses. */
public enum Chain {
  /** Keys of ECDSA. */
  ETHEREUM,
  /** ECDSA: P2WPKH. BIP-340: Taproot without scripts (BIP-86). */
  BITCOIN,
  /** Keys of Ed25519. */
  SOLANA;

  /** Whether keys of a scheme have addresses here. */
  public boolean has(Scheme scheme) {
    return switch (this) {
      case ETHEREUM -> scheme == Scheme.SCHEME_ECDSA_SECP256K1;
      case BITCOIN ->
          scheme == Scheme.SCHEME_ECDSA_SECP256K1 || scheme == Scheme.SCHEME_BIP340_SECP256K1;
      case SOLANA -> scheme == Scheme.SCHEME_ED25519 || scheme == Scheme.SCHEME_ED25519_EXACT;
    };
  }

  /**
   * The address of a key's descendant.
   *
   * @param key as the core made it
   * @param path of the descendant; empty for the key itself
   * @param network of Bitcoin; other chains have the same addresses on all
   * @throws IllegalArgumentException if keys of the scheme have no such descendant, or no addresses
   *     here
   */
  public String address(
      Scheme scheme, KeyPublic key, List<Integer> path, BitcoinAddress.Network network) {
    if (!has(scheme)) {
      throw new IllegalArgumentException(scheme + " has no addresses on " + this);
    }
    boolean taproot = scheme == Scheme.SCHEME_BIP340_SECP256K1;
    ByteString publicKey =
        SchemeKeys.of(scheme)
            .verifyingKey(
                key,
                taproot ? new KeyTarget(path, Optional.of(ByteString.EMPTY)) : KeyTarget.at(path));
    return switch (this) {
      case ETHEREUM -> EthereumAddress.of(publicKey);
      case SOLANA -> SolanaAddress.of(publicKey);
      case BITCOIN ->
          taproot
              ? BitcoinAddress.taproot(publicKey, network)
              : BitcoinAddress.of(publicKey, network);
    };
  }
}
