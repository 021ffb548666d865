package io.coterie.platform.scheme;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.KeyTarget;
import java.math.BigInteger;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.digests.SHA256Digest;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.math.ec.ECPoint;
import org.bouncycastle.math.ec.FixedPointCombMultiplier;

/** Keys of Taproot (BIP-340, BIP-341): points of secp256k1 whose second coordinate is even. */
public final class TaprootKey {
  /** Bytes of a key without its parity. */
  public static final int X_ONLY_BYTES = 32;

  /** Bytes of a key with it. */
  private static final int COMPRESSED_BYTES = 33;

  private static final byte EVEN = 2;
  private static final X9ECParameters CURVE = CustomNamedCurves.getByName("secp256k1");

  private TaprootKey() {}

  /**
   * A key without its parity.
   *
   * @param compressed 33 bytes
   */
  public static ByteString xOnly(ByteString compressed) {
    if (compressed.size() != COMPRESSED_BYTES) {
      throw new IllegalArgumentException("public key is not 33 bytes");
    }
    return compressed.substring(1);
  }

  /**
   * The output key of an internal key (BIP-341, taproot_tweak_pubkey).
   *
   * @param internal 32 bytes
   * @param merkleRoot of the script tree, 32 bytes; empty if there is none
   * @throws IllegalArgumentException if a length is wrong, there is no such point, or no such
   *     output key (one in 2^128)
   */
  public static ByteString output(ByteString internal, ByteString merkleRoot) {
    if (!merkleRoot.isEmpty() && merkleRoot.size() != KeyTarget.MERKLE_ROOT_BYTES) {
      throw new IllegalArgumentException("merkle root is not 32 bytes");
    }
    BigInteger tweak =
        new BigInteger(1, taggedHash("TapTweak", internal.concat(merkleRoot).toByteArray()));
    ECPoint output =
        new FixedPointCombMultiplier()
            .multiply(CURVE.getG(), tweak)
            .add(even(internal))
            .normalize();
    if (tweak.compareTo(CURVE.getN()) >= 0 || output.isInfinity()) {
      throw new IllegalArgumentException("there is no such output key");
    }
    return xOnly(ByteString.copyFrom(output.getEncoded(true)));
  }

  /**
   * The point of that first coordinate whose second one is even (BIP-340, lift_x).
   *
   * @throws IllegalArgumentException if there is none
   */
  public static ECPoint even(ByteString xOnly) {
    if (xOnly.size() != X_ONLY_BYTES) {
      throw new IllegalArgumentException("key is not 32 bytes");
    }
    return CURVE
        .getCurve()
        .decodePoint(ByteString.copyFrom(new byte[] {EVEN}).concat(xOnly).toByteArray());
  }

  /** SHA-256 in the domain of a tag (BIP-340, tagged hashes). */
  public static byte[] taggedHash(String tag, byte[] data) {
    SHA256Digest sha256 = new SHA256Digest();
    byte[] domain = tag.getBytes(US_ASCII);
    sha256.update(domain, 0, domain.length);
    byte[] hash = new byte[sha256.getDigestSize()];
    sha256.doFinal(hash, 0);
    sha256.update(hash, 0, hash.length);
    sha256.update(hash, 0, hash.length);
    sha256.update(data, 0, data.length);
    sha256.doFinal(hash, 0);
    return hash;
  }
}
