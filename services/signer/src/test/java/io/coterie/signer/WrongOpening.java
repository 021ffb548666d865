package io.coterie.signer;

import com.google.protobuf.ByteString;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;

/** A party opens something else than it has committed itself to, under its own signature. */
final class WrongOpening {
  private static final byte[] SIGNED_TAG =
      "coterie/envelope-signature/2".getBytes(StandardCharsets.US_ASCII);
  private static final int BODY_AT = 46 + 16 + 32;
  private static final int ROUND_AT = 35;

  /** In which dealers open what they have committed themselves to. */
  private static final int OPENING_ROUND = 2;

  private static final int SIGNATURE_BYTES = 64;

  private WrongOpening() {}

  /** Whether an envelope of the core is of the round in which commitments are opened. */
  static boolean isOpening(ByteString envelope) {
    return !envelope.isEmpty() && envelope.byteAt(ROUND_AT) == OPENING_ROUND;
  }

  /** The last bit of the opening is another one, and the envelope is signed again. */
  static byte[] of(NativeParties cores, String dealer, ByteString opening) {
    byte[] envelope = opening.toByteArray();
    int end = envelope.length - SIGNATURE_BYTES;
    envelope[end - 1] ^= 1;
    byte[] signed =
        ByteString.copyFrom(SIGNED_TAG)
            .concat(ByteString.copyFrom(envelope, 0, BODY_AT))
            .concat(ByteString.copyFrom(sha256(Arrays.copyOfRange(envelope, BODY_AT, end))))
            .toByteArray();
    System.arraycopy(cores.signAs(dealer, signed), 0, envelope, end, SIGNATURE_BYTES);
    return envelope;
  }

  private static byte[] sha256(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
