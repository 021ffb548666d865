package io.coterie.platform.unseal;

/**
 * Gives a party its data key at start. Passphrase today; a cloud KMS, PKCS #11 or Vault are further
 * implementations.
 */
public interface DataKeySource {
  /** Bytes of a data key. */
  int DATA_KEY_BYTES = 32;

  /**
   * The data key.
   *
   * @return {@value #DATA_KEY_BYTES} bytes, a fresh array that the caller zeroes
   * @throws UnsealException if it cannot be had
   */
  byte[] dataKey();
}
