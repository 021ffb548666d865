package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.digests.SHA256Digest;
import org.bouncycastle.crypto.digests.SHA512Digest;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.crypto.macs.HMac;
import org.bouncycastle.crypto.params.ECDomainParameters;
import org.bouncycastle.crypto.params.ECPrivateKeyParameters;
import org.bouncycastle.crypto.params.ECPublicKeyParameters;
import org.bouncycastle.crypto.params.KeyParameter;
import org.bouncycastle.crypto.signers.ECDSASigner;
import org.bouncycastle.crypto.signers.HMacDSAKCalculator;
import org.bouncycastle.math.ec.ECPoint;

/** Shared ECDSA keys with a dealer, and signing by whoever has enough shares. */
public final class TestEcdsa {
  private static final X9ECParameters PARAMETERS = CustomNamedCurves.getByName("secp256k1");
  private static final ECDomainParameters CURVE = new ECDomainParameters(PARAMETERS);
  private static final BigInteger N = CURVE.getN();

  private TestEcdsa() {}

  /**
   * A dealt key.
   *
   * @param shares by party id
   */
  public record Dealt(KeyPublic keyPublic, Map<Integer, BigInteger> shares) {}

  /** A signature with its recovery id. */
  public record Signed(ByteString bytes, int recoveryId) {}

  public static Dealt deal(String keyId, int threshold, Collection<Integer> parties, long seed) {
    Random random = new Random(seed);
    byte[] chainCode = new byte[32];
    random.nextBytes(chainCode);
    BigInteger secret = new BigInteger(512, random).mod(N);
    return deal(
        KeyPublic.newBuilder()
            .setKeyId(keyId)
            .setEpoch(1)
            .setThreshold(threshold)
            .setPublicKey(point(secret))
            .setChainCode(ByteString.copyFrom(chainCode))
            .build(),
        secret,
        parties,
        random);
  }

  /** New shares of the same key. */
  public static Dealt refresh(Dealt old, long seed) {
    return reshare(old, old.keyPublic().getThreshold(), old.shares().keySet(), seed);
  }

  /** New shares of the same key, for other parties or another number of them. */
  public static Dealt reshare(Dealt old, int threshold, Collection<Integer> parties, long seed) {
    KeyPublic next =
        old.keyPublic().toBuilder()
            .setEpoch(old.keyPublic().getEpoch() + 1)
            .setThreshold(threshold)
            .clearVerificationShares()
            .build();
    return deal(next, secret(old.shares()), parties, new Random(seed));
  }

  private static Dealt deal(
      KeyPublic key, BigInteger secret, Collection<Integer> parties, Random random) {
    List<BigInteger> polynomial = new ArrayList<>(List.of(secret));
    while (polynomial.size() < key.getThreshold()) {
      polynomial.add(new BigInteger(512, random).mod(N));
    }
    Map<Integer, BigInteger> shares = new TreeMap<>();
    KeyPublic.Builder result = key.toBuilder();
    for (int party : parties) {
      BigInteger value = BigInteger.ZERO;
      for (BigInteger coefficient : polynomial.reversed()) {
        value = value.multiply(BigInteger.valueOf(party)).add(coefficient).mod(N);
      }
      shares.put(party, value);
      result.addVerificationShares(
          VerificationShare.newBuilder().setParty(party).setPoint(point(value)));
    }
    return new Dealt(result.build(), shares);
  }

  static ByteString point(BigInteger scalar) {
    return ByteString.copyFrom(CURVE.getG().multiply(scalar).normalize().getEncoded(true));
  }

  /** The key that some of its shares, at least threshold, make. */
  static BigInteger secret(Map<Integer, BigInteger> shares) {
    BigInteger secret = BigInteger.ZERO;
    for (Map.Entry<Integer, BigInteger> share : shares.entrySet()) {
      BigInteger c = share.getValue();
      for (int j : shares.keySet()) {
        if (j != share.getKey()) {
          c =
              c.multiply(BigInteger.valueOf(j))
                  .multiply(BigInteger.valueOf(j - share.getKey()).mod(N).modInverse(N))
                  .mod(N);
        }
      }
      secret = secret.add(c).mod(N);
    }
    return secret;
  }

  /** Signs with the key's descendant. */
  public static Signed sign(
      Map<Integer, BigInteger> shares, KeyPublic key, List<Integer> path, ByteString digest) {
    BigInteger secret = secret(shares);
    ExtendedPublicKey parent = ExtendedPublicKey.of(key.getPublicKey(), key.getChainCode());
    for (int number : path) {
      // CKDpriv, non-hardened.
      HMac hmac = new HMac(new SHA512Digest());
      hmac.init(new KeyParameter(parent.chainCode().toByteArray()));
      byte[] data =
          ByteBuffer.allocate(37).put(parent.publicKey().toByteArray()).putInt(number).array();
      hmac.update(data, 0, data.length);
      byte[] i = new byte[64];
      hmac.doFinal(i, 0);
      secret = secret.add(new BigInteger(1, i, 0, 32)).mod(N);
      parent = parent.derive(List.of(number));
    }
    ECDSASigner signer = new ECDSASigner(new HMacDSAKCalculator(new SHA256Digest()));
    signer.init(true, new ECPrivateKeyParameters(secret, CURVE));
    BigInteger[] rs = signer.generateSignature(digest.toByteArray());
    BigInteger s = rs[1].min(N.subtract(rs[1]));
    ByteBuffer bytes = ByteBuffer.allocate(64).put(word(rs[0])).put(word(s));
    // R = (digest G + r Q) / s with the s that was kept.
    BigInteger e = new BigInteger(1, digest.toByteArray());
    BigInteger inverse = s.modInverse(N);
    ECPoint nonce =
        CURVE.getG().multiply(e.add(rs[0].multiply(secret)).multiply(inverse).mod(N)).normalize();
    int recoveryId =
        (nonce.getAffineYCoord().testBitZero() ? 1 : 0)
            | (nonce.getAffineXCoord().toBigInteger().compareTo(N) >= 0 ? 2 : 0);
    return new Signed(ByteString.copyFrom(bytes.array()), recoveryId);
  }

  /** By BouncyCastle's own verification. */
  public static boolean verifies(ByteString publicKey, ByteString digest, ByteString signature) {
    ECDSASigner verifier = new ECDSASigner();
    verifier.init(
        false,
        new ECPublicKeyParameters(CURVE.getCurve().decodePoint(publicKey.toByteArray()), CURVE));
    return verifier.verifySignature(
        digest.toByteArray(),
        new BigInteger(1, signature.substring(0, 32).toByteArray()),
        new BigInteger(1, signature.substring(32).toByteArray()));
  }

  private static byte[] word(BigInteger value) {
    byte[] big = value.toByteArray();
    byte[] word = new byte[32];
    int length = Math.min(32, big.length);
    System.arraycopy(big, big.length - length, word, 32 - length, length);
    return word;
  }

  static byte[] partial(BigInteger share) {
    return word(share);
  }
}
