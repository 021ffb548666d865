package io.coterie.platform.payload;

import fr.acinq.bitcoin.Bech32;
import io.coterie.platform.bip32.ExtendedPublicKey;

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

  /** The P2WPKH address of a key (BIP-173). */
  public static String of(ExtendedPublicKey key, Network network) {
    return Bech32.encodeWitnessAddress(network.prefix, (byte) 0, key.identifier().toByteArray());
  }
}
