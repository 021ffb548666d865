package io.coterie.platform.bip32;

import com.google.protobuf.ByteString;
import fr.acinq.bitcoin.Base58;
import fr.acinq.bitcoin.Base58Check;
import fr.acinq.bitcoin.Crypto;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.digests.SHA512Digest;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.macs.HMac;
import org.bouncycastle.crypto.params.KeyParameter;
import org.bouncycastle.math.ec.ECPoint;
import org.bouncycastle.math.ec.FixedPointCombMultiplier;

/**
 * A secp256k1 public key with its chain code and its place in the tree (BIP-32). Only non-hardened
 * children can be had from it; that is all a key has whose private half exists nowhere.
 */
public final class ExtendedPublicKey {
  /** Bytes of a compressed public key. */
  public static final int PUBLIC_KEY_BYTES = 33;

  /** Bytes of a chain code. */
  public static final int CHAIN_CODE_BYTES = 32;

  /** Numbers of a path. */
  public static final int MAX_DEPTH = 10;

  /** Bytes of the identifier that name a parent. */
  private static final int FINGERPRINT_BYTES = 4;

  /** Bytes of the serialised form, before its checksum. */
  private static final int ENCODED_BYTES = 78;

  private static final int CHECKSUM_BYTES = 4;

  /** Characters of an xpub. */
  private static final int MAX_TEXT = 112;

  /** Version of a public key on the main net, which base58 turns into {@code xpub}. */
  private static final byte[] VERSION = {0x04, (byte) 0x88, (byte) 0xb2, 0x1e};

  private static final X9ECParameters CURVE = CustomNamedCurves.getByName("secp256k1");

  private final ECPoint point;
  private final byte[] chainCode;
  private final int depth;
  private final byte[] parent;
  private final int childNumber;

  private ExtendedPublicKey(
      ECPoint point, byte[] chainCode, int depth, byte[] parent, int childNumber) {
    this.point = point;
    this.chainCode = chainCode;
    this.depth = depth;
    this.parent = parent;
    this.childNumber = childNumber;
  }

  /**
   * The root of a tree.
   *
   * @param publicKey 33 bytes, compressed
   * @param chainCode 32 bytes
   * @throws IllegalArgumentException if a length is wrong or there is no such point
   */
  public static ExtendedPublicKey of(ByteString publicKey, ByteString chainCode) {
    if (publicKey.size() != PUBLIC_KEY_BYTES) {
      throw new IllegalArgumentException("public key is not 33 bytes");
    }
    if (chainCode.size() != CHAIN_CODE_BYTES) {
      throw new IllegalArgumentException("chain code is not 32 bytes");
    }
    return new ExtendedPublicKey(
        point(publicKey.toByteArray()), chainCode.toByteArray(), 0, new byte[FINGERPRINT_BYTES], 0);
  }

  /**
   * Reads the serialised form.
   *
   * @param xpub as {@link #xpub} writes it
   * @throws IllegalArgumentException if it is not an extended public key of the main net
   */
  public static ExtendedPublicKey parse(String xpub) {
    if (xpub.length() > MAX_TEXT) {
      throw notAnXpub();
    }
    ByteBuffer data;
    try {
      data = ByteBuffer.wrap(Base58.decode(xpub));
    } catch (RuntimeException e) {
      // How the library says that a character is not one of base58.
      throw notAnXpub();
    }
    if (data.remaining() != ENCODED_BYTES + CHECKSUM_BYTES) {
      throw notAnXpub();
    }
    byte[] encoded = Arrays.copyOf(data.array(), ENCODED_BYTES);
    byte[] checksum = Arrays.copyOfRange(data.array(), ENCODED_BYTES, data.limit());
    byte[] version = new byte[VERSION.length];
    byte[] parent = new byte[FINGERPRINT_BYTES];
    byte[] chainCode = new byte[CHAIN_CODE_BYTES];
    byte[] publicKey = new byte[PUBLIC_KEY_BYTES];
    data.get(version);
    int depth = data.get() & 0xff;
    data.get(parent);
    int childNumber = data.getInt();
    data.get(chainCode).get(publicKey);
    boolean root = Arrays.equals(parent, new byte[FINGERPRINT_BYTES]) && childNumber == 0;
    if (!Arrays.equals(checksum, Base58Check.checksum(encoded))
        || !Arrays.equals(version, VERSION)
        || (depth == 0 && !root)) {
      throw notAnXpub();
    }
    return new ExtendedPublicKey(point(publicKey), chainCode, depth, parent, childNumber);
  }

  private static IllegalArgumentException notAnXpub() {
    return new IllegalArgumentException("not an extended public key (xpub)");
  }

  private static ECPoint point(byte[] compressed) {
    if (compressed[0] != 2 && compressed[0] != 3) {
      throw new IllegalArgumentException("public key is not compressed");
    }
    return CURVE.getCurve().decodePoint(compressed);
  }

  /**
   * The descendant at a path; the key itself for an empty one.
   *
   * @param path non-hardened numbers, 0 to 2^31 - 1
   * @throws IllegalArgumentException if the path is longer than {@link #MAX_DEPTH}, has a hardened
   *     number, or names one of the children that do not exist (one in 2^127)
   */
  public ExtendedPublicKey derive(List<Integer> path) {
    if (path.size() > MAX_DEPTH) {
      throw new IllegalArgumentException("path has more than " + MAX_DEPTH + " numbers");
    }
    ExtendedPublicKey key = this;
    for (int number : path) {
      key = key.child(number);
    }
    return key;
  }

  /** CKDpub. */
  private ExtendedPublicKey child(int number) {
    if (number < 0) {
      throw new IllegalArgumentException("path has a hardened number");
    }
    byte[] key = point.getEncoded(true);
    HMac hmac = new HMac(new SHA512Digest());
    hmac.init(new KeyParameter(chainCode));
    byte[] data = ByteBuffer.allocate(key.length + 4).put(key).putInt(number).array();
    hmac.update(data, 0, data.length);
    byte[] i = new byte[64];
    hmac.doFinal(i, 0);
    BigInteger tweak = new BigInteger(1, i, 0, 32);
    ECPoint child =
        new FixedPointCombMultiplier().multiply(CURVE.getG(), tweak).add(point).normalize();
    if (tweak.compareTo(CURVE.getN()) >= 0 || child.isInfinity()) {
      throw new IllegalArgumentException("there is no such child");
    }
    return new ExtendedPublicKey(
        child,
        Arrays.copyOfRange(i, 32, 64),
        depth + 1,
        Arrays.copyOf(Crypto.hash160(key), FINGERPRINT_BYTES),
        number);
  }

  /** 33 bytes, compressed. */
  public ByteString publicKey() {
    return ByteString.copyFrom(point.getEncoded(true));
  }

  /** 32 bytes. */
  public ByteString chainCode() {
    return ByteString.copyFrom(chainCode);
  }

  /** The serialised form, base58 with checksum, 111 characters. */
  public String xpub() {
    byte[] data =
        ByteBuffer.allocate(ENCODED_BYTES - VERSION.length)
            .put((byte) depth)
            .put(parent)
            .putInt(childNumber)
            .put(chainCode)
            .put(point.getEncoded(true))
            .array();
    return Base58Check.encode(VERSION, data);
  }

  @Override
  public String toString() {
    return xpub();
  }
}
