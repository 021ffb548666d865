package io.coterie.platform.payload;

import org.bouncycastle.crypto.digests.KeccakDigest;

/** Keccak-256 as Ethereum uses it: before NIST changed the padding. */
final class Keccak {
  static final int BYTES = 32;

  private Keccak() {}

  /** The hash of the concatenation. */
  static byte[] hash(byte[]... parts) {
    KeccakDigest keccak = new KeccakDigest(8 * BYTES);
    for (byte[] part : parts) {
      keccak.update(part, 0, part.length);
    }
    byte[] hash = new byte[BYTES];
    keccak.doFinal(hash, 0);
    return hash;
  }
}
