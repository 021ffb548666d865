package io.coterie.cli.payload;

import java.util.Arrays;
import supranational.blst.BLST_ERROR;
import supranational.blst.P1_Affine;
import supranational.blst.P2_Affine;

/** Verifies BLS signatures of Ethereum's proof-of-possession suite, without the installation. */
final class BlsVerifier {
  private static final String SUITE = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
  private static final int PUBLIC_KEY_BYTES = 48;
  private static final int SIGNATURE_BYTES = 96;

  private BlsVerifier() {}

  /** False for a wrong signature as for anything that is not a canonical point of the group. */
  static boolean verify(byte[] publicKey, byte[] message, byte[] signature) {
    if (publicKey.length != PUBLIC_KEY_BYTES || signature.length != SIGNATURE_BYTES) {
      return false;
    }
    P1_Affine key;
    P2_Affine point;
    try {
      key = new P1_Affine(publicKey);
      point = new P2_Affine(signature);
    } catch (RuntimeException e) {
      return false; // jblst throws its BLST_ERROR as the text of a RuntimeException
    }
    return !key.is_inf()
        && key.in_group()
        && point.in_group()
        && Arrays.equals(key.compress(), publicKey)
        && Arrays.equals(point.compress(), signature)
        && point.core_verify(key, true, message, SUITE) == BLST_ERROR.BLST_SUCCESS;
  }
}
