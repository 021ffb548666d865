package io.coterie.coordinator.api;

import java.io.ByteArrayInputStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The client certificate that a proxy has verified and tells of in {@code x-forwarded-client-cert},
 * as Envoy writes it: one element, of which only {@code Cert}, the URL-encoded PEM, is read. To be
 * believed only of a proxy that replaces what its clients send.
 */
final class ForwardedCertificate {
  static final String HEADER = "x-forwarded-client-cert";

  private static final Pattern CERT =
      Pattern.compile("(?:^|;)Cert=\"([A-Za-z0-9%._~+/=-]+)\"(;|$)");

  private ForwardedCertificate() {}

  /** The certificate, if the header names exactly one and that is valid today. */
  static Optional<X509Certificate> parse(String header) {
    Matcher cert = CERT.matcher(header);
    // A comma would separate the elements of several proxies, of which the first are the client's.
    if (header.indexOf(',') >= 0 || !cert.find() || cert.find(cert.end() - 1)) {
      return Optional.empty();
    }
    cert.find(0);
    try {
      String pem = URLDecoder.decode(cert.group(1).replace("+", "%2B"), StandardCharsets.US_ASCII);
      X509Certificate certificate =
          (X509Certificate)
              CertificateFactory.getInstance("X.509")
                  .generateCertificate(
                      new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII)));
      certificate.checkValidity();
      return Optional.of(certificate);
    } catch (CertificateException | IllegalArgumentException e) {
      return Optional.empty();
    }
  }
}
