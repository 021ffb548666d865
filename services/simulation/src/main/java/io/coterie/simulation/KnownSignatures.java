package io.coterie.simulation;

import com.google.protobuf.ByteString;
import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.PublicKey;
import java.security.Security;
import java.security.Signature;
import java.security.SignatureException;
import java.security.SignatureSpi;
import java.security.interfaces.EdECPrivateKey;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Remembers which Ed25519 signatures are right, for this process: parties state their ledgers to
 * each other again and again, and to verify that was two thirds of a schedule. A signature that
 * this process has made is right; any other is verified, once.
 */
final class KnownSignatures extends Provider {
  private static final long serialVersionUID = 1L;
  private static final String ALGORITHM = "Ed25519";
  private static final int MAX_KNOWN = 200_000;
  private static final Map<ByteString, Boolean> KNOWN = new ConcurrentHashMap<>();

  private KnownSignatures() {
    super("simulated", "1", "Ed25519 with a memory");
    put("Signature." + ALGORITHM, Remembered.class.getName());
  }

  /** From now on this process remembers. */
  static void use() {
    Security.insertProviderAt(new KnownSignatures(), 1);
  }

  private static ByteString name(byte[] publicKey, byte[] message, byte[] signature) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.writeBytes(Identities.hash(publicKey));
    all.writeBytes(Identities.hash(message));
    all.writeBytes(signature);
    return ByteString.copyFrom(Identities.hash(all.toByteArray()));
  }

  /**
   * A signature that was just made.
   *
   * @param publicKey as X.509 has it
   */
  static void made(byte[] publicKey, byte[] message, byte[] signature) {
    remember(name(publicKey, message, signature), true);
  }

  private static void remember(ByteString name, boolean right) {
    if (KNOWN.size() >= MAX_KNOWN) {
      KNOWN.clear();
    }
    KNOWN.put(name, right);
  }

  /** Made by the provider; public for that. */
  public static final class Remembered extends SignatureSpi {
    private final ByteArrayOutputStream message = new ByteArrayOutputStream();
    private @Nullable PublicKey publicKey;
    private @Nullable PrivateKey privateKey;

    private static Signature real() throws GeneralSecurityException {
      return Signature.getInstance(ALGORITHM, "SunEC");
    }

    @Override
    protected void engineInitVerify(PublicKey key) {
      publicKey = key;
      message.reset();
    }

    @Override
    protected void engineInitSign(PrivateKey key) {
      privateKey = key;
      message.reset();
    }

    @Override
    protected void engineUpdate(byte next) {
      message.write(next);
    }

    @Override
    protected void engineUpdate(byte[] bytes, int from, int length) {
      message.write(bytes, from, length);
    }

    @Override
    protected byte[] engineSign() throws SignatureException {
      if (!(privateKey instanceof EdECPrivateKey key)) {
        throw new SignatureException("no key");
      }
      byte[] seed = key.getBytes().orElseThrow();
      byte[] signed = message.toByteArray();
      message.reset();
      return Identities.sign(seed, signed);
    }

    @Override
    protected boolean engineVerify(byte[] signature) throws SignatureException {
      PublicKey key = publicKey;
      if (key == null) {
        throw new SignatureException("no key");
      }
      byte[] signed = message.toByteArray();
      message.reset();
      ByteString name = name(key.getEncoded(), signed, signature);
      Boolean known = KNOWN.get(name);
      if (known == null) {
        known = verify(key, signed, signature);
        remember(name, known);
      }
      return known;
    }

    private static boolean verify(PublicKey key, byte[] signed, byte[] signature)
        throws SignatureException {
      try {
        Signature real = real();
        real.initVerify(key);
        real.update(signed);
        return real.verify(signature);
      } catch (InvalidKeyException e) {
        throw new SignatureException(e);
      } catch (SignatureException e) {
        // Not of the form of one: as wrong as any other.
        return false;
      } catch (GeneralSecurityException e) {
        throw new IllegalStateException("every Java platform has Ed25519", e);
      }
    }

    @Override
    @Deprecated
    protected void engineSetParameter(String name, Object value) {
      throw new UnsupportedOperationException();
    }

    @Override
    @Deprecated
    protected Object engineGetParameter(String name) {
      throw new UnsupportedOperationException();
    }
  }
}
