package io.coterie.coordinator.verification;

import com.google.protobuf.ByteString;
import java.math.BigInteger;
import java.util.Optional;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.math.ec.ECPoint;

/** The curve of ECDSA and BIP-340 keys (SEC 2). Its cofactor is 1. */
final class Secp256k1 {
  static final X9ECParameters CURVE = CustomNamedCurves.getByName("secp256k1");
  static final BigInteger ORDER = CURVE.getN();

  /** Bytes of a compressed point. */
  static final int POINT = 33;

  private Secp256k1() {}

  /** A point other than the identity, in its compressed encoding. */
  static Optional<ECPoint> point(ByteString bytes) {
    if (bytes.size() != POINT) {
      return Optional.empty();
    }
    try {
      return Optional.of(CURVE.getCurve().decodePoint(bytes.toByteArray()));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }
}
