package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import fr.acinq.bitcoin.Bech32;
import fr.acinq.bitcoin.Crypto;
import io.coterie.platform.scheme.TaprootKey;

/** Bitcoin addresses of keys. */
public final class BitcoinAddress {
  private BitcoinAddress() {}

  /** The networks an address can be for. */
  public enum Network {
    MAINNET("bc"),
    TESTNET("tb"),
    REGTEST("bcrt");

    private final String prefix;

    Network(String prefix) {
      this.prefix = prefix;
    }
  }

  /**
   * The P2WPKH address of a key (BIP-173).
   *
   * @param publicKey 33 bytes, compressed
   */
  public static String of(ByteString publicKey, Network network) {
    return Bech32.encodeWitnessAddress(
        network.prefix, (byte) 0, Crypto.hash160(publicKey.toByteArray()));
  }

  /**
   * The P2TR address of an output key (BIP-341, BIP-350).
   *
   * @param outputKey 32 bytes, after the tweak
   */
  public static String taproot(ByteString outputKey, Network network) {
    if (outputKey.size() != TaprootKey.X_ONLY_BYTES) {
      throw new IllegalArgumentException("output key is not 32 bytes");
    }
    return Bech32.encodeWitnessAddress(network.prefix, (byte) 1, outputKey.toByteArray());
  }
}
