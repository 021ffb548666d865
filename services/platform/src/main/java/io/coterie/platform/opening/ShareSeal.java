package io.coterie.platform.opening;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.Optional;
import org.bouncycastle.crypto.AsymmetricCipherKeyPair;
import org.bouncycastle.crypto.InvalidCipherTextException;
import org.bouncycastle.crypto.hpke.HPKE;
import org.bouncycastle.crypto.hpke.HPKEContextWithEncapsulation;

/**
 * Seals an opener's share to the key that the requester has drawn for one opening: HPKE (RFC 9180)
 * in base mode, X25519, HKDF-SHA256, AES-256-GCM. {@code info} is a label, the opener's id (u32)
 * and the digest of the intent; no other data are authenticated. A sealed share is the encapsulated
 * key, 32 bytes, then the ciphertext. Enough shares open an approval for everybody, so the
 * coordinator that carries them must not read them.
 */
public final class ShareSeal {
  /** Bytes of a key of a recipient. */
  public static final int KEY_BYTES = 32;

  private static final byte[] LABEL = "coterie/opening-share/1".getBytes(US_ASCII);
  private static final int SEED_BYTES = 32;

  private ShareSeal() {}

  /** A key pair for one opening; its private half is kept in memory until the shares have come. */
  public static final class Recipient {
    private final AsymmetricCipherKeyPair keys;

    /** A fresh one. */
    public Recipient(SecureRandom random) {
      keys = hpke().deriveKeyPair(seed(random));
    }

    /** The key for the intent, {@value #KEY_BYTES} bytes. */
    public ByteString publicKey() {
      return ByteString.copyFrom(hpke().serializePublicKey(keys.getPublic()));
    }

    /**
     * Opens a share.
     *
     * @param intentDigest SHA-256 of the payload of the intent that asked for it
     * @return empty if it was not sealed by anybody for this key, opener and intent
     */
    public Optional<ByteString> open(int opener, ByteString intentDigest, ByteString sealed) {
      if (sealed.size() < KEY_BYTES) {
        return Optional.empty();
      }
      try {
        return Optional.of(
            ByteString.copyFrom(
                hpke()
                    .setupBaseR(
                        sealed.substring(0, KEY_BYTES).toByteArray(),
                        keys,
                        info(opener, intentDigest))
                    .open(new byte[0], sealed.substring(KEY_BYTES).toByteArray())));
      } catch (InvalidCipherTextException | IllegalStateException | IllegalArgumentException e) {
        return Optional.empty();
      }
    }
  }

  /**
   * Seals a share.
   *
   * @param recipient key of the intent
   * @param intentDigest SHA-256 of the intent's payload
   * @return empty if the recipient is no key
   */
  public static Optional<ByteString> seal(
      ByteString recipient,
      int opener,
      ByteString intentDigest,
      ByteString share,
      SecureRandom random) {
    HPKE hpke = hpke();
    try {
      HPKEContextWithEncapsulation context =
          hpke.setupBaseS(
              hpke.deserializePublicKey(recipient.toByteArray()),
              info(opener, intentDigest),
              hpke.deriveKeyPair(seed(random)));
      byte[] sealed = context.seal(new byte[0], share.toByteArray());
      return Optional.of(
          ByteString.copyFrom(context.getEncapsulation()).concat(ByteString.copyFrom(sealed)));
    } catch (InvalidCipherTextException | IllegalStateException | IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  private static byte[] info(int opener, ByteString intentDigest) {
    return ByteBuffer.allocate(LABEL.length + Integer.BYTES + intentDigest.size())
        .put(LABEL)
        .putInt(opener)
        .put(intentDigest.asReadOnlyByteBuffer())
        .array();
  }

  private static byte[] seed(SecureRandom random) {
    byte[] seed = new byte[SEED_BYTES];
    random.nextBytes(seed);
    return seed;
  }

  private static HPKE hpke() {
    return new HPKE(
        HPKE.mode_base, HPKE.kem_X25519_SHA256, HPKE.kdf_HKDF_SHA256, HPKE.aead_AES_GCM256);
  }
}
