package io.coterie.platform.intent;

import java.security.PublicKey;
import java.util.regex.Pattern;

/**
 * Someone whose intents a service accepts, as its configuration pins it.
 *
 * @param name as the requester writes it into {@code keyid}: 1 to 63 of {@code [a-z0-9._-]},
 *     starting with a letter or digit
 * @param publicKey Ed25519 or ECDSA P-256
 */
public record Requester(String name, PublicKey publicKey) {
  private static final Pattern NAME = Pattern.compile("[a-z0-9][a-z0-9._-]{0,62}");

  public Requester {
    if (!isName(name)) {
      throw new IllegalArgumentException(
          "requester name is not 1 to 63 of [a-z0-9._-], starting with [a-z0-9]");
    }
    RequesterKeys.requireSupported(publicKey);
  }

  /**
   * Reads one entry of a configuration.
   *
   * @param publicKeyPem one {@code PUBLIC KEY} block (SPKI) and nothing else
   * @throws IllegalArgumentException saying what is wrong
   */
  public static Requester of(String name, String publicKeyPem) {
    return new Requester(name, RequesterKeys.publicKey(publicKeyPem));
  }

  /** Whether a string can be the name of a requester. */
  public static boolean isName(String name) {
    return NAME.matcher(name).matches();
  }
}
