package io.coterie.channel;

/**
 * The certificate that an edge in front of messaging asks members for, and its key. All parties of
 * an installation show the same one, so it says that a member calls, and not which.
 *
 * @param chainPem PEM text of the certificate and those that lead to its authority
 * @param keyPem PEM text of its private key, PKCS#8, not encrypted
 */
public record ClientCertificate(String chainPem, String keyPem) {
  @Override
  public String toString() {
    return "ClientCertificate";
  }
}
