package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import io.coterie.platform.certificate.CertificateNames;
import java.security.cert.X509Certificate;
import java.util.Enumeration;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The proxy that is believed when it says where its clients are (docs/adr/0062). It is known by its
 * client certificate, whose chain TLS verifies, and by nothing else.
 */
public final class TrustedEdge {
  /** With the client's address as a literal. The proxy replaces what its clients send. */
  public static final String HEADER = "x-coterie-client-address";

  private final Set<String> names;

  /**
   * @param names of certificates, as {@link CertificateNames} has them
   * @throws IllegalArgumentException if one of them is of no kind that is known
   */
  public TrustedEdge(Set<String> names) {
    this.names =
        names.stream().map(CertificateNames::normal).collect(Collectors.toUnmodifiableSet());
  }

  /**
   * Whether certificates are the edge's.
   *
   * @param chain that TLS has verified, the client's own first; empty if it has shown none
   */
  boolean isShownBy(X509Certificate[] chain) {
    return chain.length > 0 && CertificateNames.of(chain[0]).stream().anyMatch(names::contains);
  }

  /**
   * The client that the edge speaks for; empty if it does not say so, or not clearly.
   *
   * @param values of all headers called {@link #HEADER}
   */
  static Optional<Source> client(Enumeration<String> values) {
    if (!values.hasMoreElements()) {
      return Optional.empty();
    }
    String address = values.nextElement();
    return values.hasMoreElements() ? Optional.empty() : Source.ofLiteral(address);
  }
}
