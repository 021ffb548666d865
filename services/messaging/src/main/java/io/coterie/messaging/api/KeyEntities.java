package io.coterie.messaging.api;

import io.coterie.messaging.account.PreKey;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.InvalidKeyException;
import org.signal.libsignal.protocol.ecc.ECPublicKey;
import org.signal.libsignal.protocol.kem.KEMPublicKey;

/** Keys as they are on the wire, and what makes them acceptable. */
final class KeyEntities {
  /** One upload carries at most this many one-time keys of a kind. */
  static final int MAX_ONE_TIME_KEYS = 100;

  private static final long MAX_KEY_ID = Integer.MAX_VALUE;
  private static final int EC_KEY_BYTES = 33;
  private static final int KEM_KEY_BYTES = 1569;
  private static final int SIGNATURE_BYTES = 64;

  private KeyEntities() {}

  record KeyEntity(
      @Nullable Long keyId, byte @Nullable [] publicKey, byte @Nullable [] signature) {}

  record UnsignedKeyReply(long keyId, byte[] publicKey) {}

  record SignedKeyReply(long keyId, byte[] publicKey, byte @Nullable [] signature) {
    static @Nullable SignedKeyReply of(@Nullable PreKey key) {
      return key == null ? null : new SignedKeyReply(key.keyId(), key.publicKey(), key.signature());
    }
  }

  /** An identity key, or 422. */
  static ECPublicKey identityKey(byte @Nullable [] serialized) {
    if (serialized == null || serialized.length != EC_KEY_BYTES) {
      throw ApiException.unprocessable();
    }
    try {
      return new ECPublicKey(serialized);
    } catch (InvalidKeyException e) {
      throw ApiException.unprocessable();
    }
  }

  /** A key with a valid signature by the identity key, or 422. */
  static PreKey signed(PreKey.Kind kind, @Nullable KeyEntity entity, ECPublicKey identityKey) {
    PreKey key = checked(kind, entity);
    byte[] signature = key.signature();
    if (signature == null
        || signature.length != SIGNATURE_BYTES
        || !identityKey.verifySignature(key.publicKey(), signature)) {
      throw ApiException.unprocessable();
    }
    return key;
  }

  /** A one-time EC key, which needs no signature, or 422. */
  static PreKey unsigned(@Nullable KeyEntity entity) {
    PreKey key = checked(PreKey.Kind.EC, entity);
    return new PreKey(key.keyId(), key.publicKey(), null);
  }

  private static PreKey checked(PreKey.Kind kind, @Nullable KeyEntity entity) {
    if (entity == null || entity.keyId() == null || entity.publicKey() == null) {
      throw ApiException.unprocessable();
    }
    long id = entity.keyId();
    byte[] key = entity.publicKey();
    if (id < 0 || id > MAX_KEY_ID) {
      throw ApiException.unprocessable();
    }
    try {
      switch (kind) {
        case EC -> {
          requireLength(key, EC_KEY_BYTES);
          new ECPublicKey(key);
        }
        case KEM -> {
          requireLength(key, KEM_KEY_BYTES);
          new KEMPublicKey(key);
        }
      }
    } catch (InvalidKeyException e) {
      throw ApiException.unprocessable();
    }
    return new PreKey(id, key, entity.signature());
  }

  private static void requireLength(byte[] key, int length) {
    if (key.length != length) {
      throw ApiException.unprocessable();
    }
  }

  /** One-time keys without repeated ids, or 422. */
  static List<PreKey> distinct(List<PreKey> keys) {
    if (keys.stream().map(PreKey::keyId).distinct().count() != keys.size()) {
      throw ApiException.unprocessable();
    }
    return keys;
  }
}
