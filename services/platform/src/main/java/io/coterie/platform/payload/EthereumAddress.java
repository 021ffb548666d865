package io.coterie.platform.payload;

import com.esaulpaugh.headlong.abi.Address;
import com.google.protobuf.ByteString;
import io.coterie.platform.bip32.ExtendedPublicKey;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Locale;

/** Ethereum addresses in text, with the checksum of EIP-55. */
public final class EthereumAddress {
  /** Bytes of an address. */
  public static final int BYTES = 20;

  private EthereumAddress() {}

  /** The address of a key. */
  public static String of(ExtendedPublicKey key) {
    byte[] hash = Keccak.hash(key.uncompressedPublicKey().substring(1).toByteArray());
    return text(Arrays.copyOfRange(hash, hash.length - BYTES, hash.length));
  }

  static String text(byte[] address) {
    return Address.toChecksumAddress("0x" + HexFormat.of().formatHex(address));
  }

  static String text(ByteString address) {
    return text(address.toByteArray());
  }

  /**
   * Whether a text of {@code 0x} and 40 hexadecimal digits is an address: all in lower case, all in
   * upper case, or with the right checksum.
   */
  static boolean isValid(String text) {
    String digits = text.substring(2);
    return digits.equals(digits.toLowerCase(Locale.ROOT))
        || digits.equals(digits.toUpperCase(Locale.ROOT))
        || Address.toChecksumAddress("0x" + digits.toLowerCase(Locale.ROOT)).equals("0x" + digits);
  }
}
