package io.coterie.cli;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.payload.BitcoinAddress;
import io.coterie.platform.payload.EthereumAddress;
import io.coterie.platform.payload.SolanaAddress;
import io.coterie.proto.custody.v1.Scheme;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** Chains whose addresses are known. */
enum Chain {
  ETHEREUM,
  BITCOIN,
  SOLANA;

  /**
   * The address of a key's descendant; with BIP-340, of its output key without scripts.
   *
   * @throws CliException if keys of its scheme have no addresses on this chain
   */
  String address(AttestedKey key, List<Integer> path, BitcoinAddress.Network network) {
    boolean schnorr = key.scheme() == Scheme.SCHEME_BIP340_SECP256K1;
    boolean known =
        switch (this) {
          case ETHEREUM -> key.scheme() == Scheme.SCHEME_ECDSA_SECP256K1;
          case BITCOIN -> schnorr || key.scheme() == Scheme.SCHEME_ECDSA_SECP256K1;
          case SOLANA -> key.scheme() == Scheme.SCHEME_ED25519;
        };
    if (!known) {
      throw CliException.local(
          key.name()
              + " has no "
              + name().toLowerCase(Locale.ROOT)
              + " addresses: its scheme is "
              + Output.scheme(key.scheme().name()));
    }
    KeyTarget target =
        schnorr ? new KeyTarget(path, Optional.of(ByteString.EMPTY)) : KeyTarget.at(path);
    ByteString publicKey = AttestedKeys.verifyingKey(key, target);
    return switch (this) {
      case ETHEREUM -> EthereumAddress.of(publicKey);
      case SOLANA -> SolanaAddress.of(publicKey);
      case BITCOIN ->
          schnorr
              ? BitcoinAddress.taproot(publicKey, network)
              : BitcoinAddress.of(publicKey, network);
    };
  }
}
