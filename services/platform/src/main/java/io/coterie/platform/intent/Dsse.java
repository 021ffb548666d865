package io.coterie.platform.intent;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.protobuf.ByteString;
import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.interfaces.ECKey;
import java.security.interfaces.EdECPrivateKey;
import java.security.interfaces.EdECPublicKey;
import java.util.Optional;
import org.bouncycastle.crypto.params.Ed25519PrivateKeyParameters;
import org.bouncycastle.crypto.signers.Ed25519Signer;

/** DSSE 1.0: the signature covers the payload's type together with its exact bytes. */
public final class Dsse {
  /** {@code SigningIntent}. */
  static final String SIGNING_TYPE = "application/vnd.coterie.signing-intent.v1+protobuf";

  /** {@code KeyIntent}. */
  static final String KEY_TYPE = "application/vnd.coterie.key-intent.v1+protobuf";

  /** {@code ImportIntent}. */
  static final String IMPORT_TYPE = "application/vnd.coterie.import-intent.v1+protobuf";

  /** {@code RefreshIntent}. */
  static final String REFRESH_TYPE = "application/vnd.coterie.refresh-intent.v1+protobuf";

  /** {@code ReshareIntent}. */
  static final String RESHARE_TYPE = "application/vnd.coterie.reshare-intent.v1+protobuf";

  /** {@code CancelIntent}. */
  static final String CANCEL_TYPE = "application/vnd.coterie.cancel-intent.v1+protobuf";

  /** {@code GroupIntent}. */
  static final String GROUP_TYPE = "application/vnd.coterie.group-intent.v1+protobuf";

  /** {@code TicketIntent}. */
  static final String TICKET_TYPE = "application/vnd.coterie.ticket-intent.v1+protobuf";

  /** {@code OpeningIntent}. */
  static final String OPENING_TYPE = "application/vnd.coterie.opening-intent.v1+protobuf";

  private static final String ED25519 = "Ed25519";
  private static final String ECDSA = "SHA256withECDSA";

  private Dsse() {}

  /** SHA-256 of the bytes. */
  static ByteString sha256(ByteString bytes) {
    try {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      sha256.update(bytes.asReadOnlyByteBuffer());
      return ByteString.copyFrom(sha256.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  /** {@code "DSSEv1" SP len(type) SP type SP len(payload) SP payload}, lengths in decimal. */
  public static byte[] pae(String payloadType, ByteString payload) {
    byte[] type = payloadType.getBytes(UTF_8);
    ByteArrayOutputStream out = new ByteArrayOutputStream(payload.size() + type.length + 32);
    out.writeBytes(("DSSEv1 " + type.length + " ").getBytes(US_ASCII));
    out.writeBytes(type);
    out.writeBytes((" " + payload.size() + " ").getBytes(US_ASCII));
    out.writeBytes(payload.toByteArray());
    return out.toByteArray();
  }

  static byte[] sign(PrivateKey key, byte[] pae) throws GeneralSecurityException {
    Optional<byte[]> seed =
        key instanceof EdECPrivateKey readable ? readable.getBytes() : Optional.empty();
    if (seed.isPresent()) {
      // The same bytes as the JDK's, in a fifth of its time: a client signs each request.
      Ed25519Signer signer = new Ed25519Signer();
      signer.init(true, new Ed25519PrivateKeyParameters(seed.get()));
      signer.update(pae, 0, pae.length);
      return signer.generateSignature();
    }
    Signature signature = Signature.getInstance(key instanceof ECKey ? ECDSA : ED25519);
    signature.initSign(key);
    signature.update(pae);
    return signature.sign();
  }

  /** The pinned key decides the algorithm: nothing that a caller sends does. */
  static boolean verifies(PublicKey key, byte[] pae, byte[] sig) {
    if (key instanceof EdECPublicKey) {
      // Eight times as fast as the JDK's, and every service verifies every intent.
      Ed25519Signer verifier = new Ed25519Signer();
      verifier.init(false, RequesterKeys.ed25519(key));
      verifier.update(pae, 0, pae.length);
      return verifier.verifySignature(sig);
    }
    try {
      Signature signature = Signature.getInstance(ECDSA);
      signature.initVerify(key);
      signature.update(pae);
      return signature.verify(sig);
    } catch (GeneralSecurityException e) {
      // Also thrown for bytes that are not a signature at all.
      return false;
    }
  }
}
