package io.coterie.platform.certificate;

import java.security.cert.CertificateParsingException;
import java.security.cert.X509Certificate;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.security.auth.x500.X500Principal;

/**
 * Names of certificates, as configuration has them: {@code subject:CN=...} (RFC 2253), {@code
 * dns:...} or {@code uri:...}.
 */
public final class CertificateNames {
  /** GeneralName types of RFC 5280, 4.2.1.6. */
  private static final int SAN_DNS = 2;

  private static final int SAN_URI = 6;

  private CertificateNames() {}

  /**
   * A configured name in the form that {@link #of} gives.
   *
   * @throws IllegalArgumentException if it is of no kind that is known
   */
  public static String normal(String name) {
    int colon = name.indexOf(':');
    return switch (colon < 0 ? "" : name.substring(0, colon)) {
      case "subject" -> "subject:" + new X500Principal(name.substring(colon + 1)).getName();
      case "dns", "uri" -> name;
      default ->
          throw new IllegalArgumentException(
              "certificate name " + name + " does not start with subject:, dns: or uri:");
    };
  }

  /** All names of a certificate; none if it cannot be read. */
  public static Set<String> of(X509Certificate certificate) {
    Set<String> names = new HashSet<>();
    names.add("subject:" + certificate.getSubjectX500Principal().getName());
    try {
      Collection<List<?>> alternatives = certificate.getSubjectAlternativeNames();
      if (alternatives != null) {
        for (List<?> alternative : alternatives) {
          if (alternative.get(0) instanceof Integer type
              && alternative.get(1) instanceof String value) {
            if (type == SAN_DNS) {
              names.add("dns:" + value);
            } else if (type == SAN_URI) {
              names.add("uri:" + value);
            }
          }
        }
      }
    } catch (CertificateParsingException e) {
      // A certificate that cannot be read names nobody.
      return Set.of();
    }
    return names;
  }
}
