package io.coterie.platform.payload;

import com.esaulpaugh.headlong.abi.Address;
import com.google.protobuf.ByteString;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Locale;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.math.ec.ECCurve;

/** Ethereum addresses in text, with the checksum of EIP-55. */
public final class EthereumAddress {
  /** Bytes of an address. */
  public static final int BYTES = 20;

  private static final ECCurve CURVE = CustomNamedCurves.getByName("secp256k1").getCurve();

  private EthereumAddress() {}

  /**
   * The address of a key.
   *
   * @param publicKey 33 bytes, compressed
   * @throws IllegalArgumentException if there is no such point
   */
  public static String of(ByteString publicKey) {
    byte[] point = CURVE.decodePoint(publicKey.toByteArray()).getEncoded(false);
    byte[] hash = Keccak.hash(Arrays.copyOfRange(point, 1, point.length));
    return text(Arrays.copyOfRange(hash, hash.length - BYTES, hash.length));
  }

  static String text(byte[] address) {
    return Address.toChecksumAddress("0x" + HexFormat.of().formatHex(address));
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
