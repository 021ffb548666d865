package io.coterie.trust;

import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.util.Arrays;

/** Root keys of tests. */
final class RootKeys {
  private RootKeys() {}

  static KeyPair pair() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  static RootKey key(KeyPair pair) {
    return new RootKey(pair.getPublic().getEncoded());
  }

  static Roots roots(int threshold, KeyPair... pairs) {
    return new Roots(threshold, Arrays.stream(pairs).map(RootKeys::key).toList());
  }
}
