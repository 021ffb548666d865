package io.coterie.channel.link;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Collection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/** TLS 1.3 to a server whose certificate the installation's own authority has issued. */
public final class PinnedTls {
  private PinnedTls() {}

  /** A context that trusts the authorities in {@code caPem} and no other. */
  public static SSLContext context(String caPem) {
    try {
      Collection<? extends Certificate> authorities =
          CertificateFactory.getInstance("X.509")
              .generateCertificates(
                  new ByteArrayInputStream(caPem.getBytes(StandardCharsets.UTF_8)));
      if (authorities.isEmpty()) {
        throw new IllegalArgumentException("the CA file holds no certificate");
      }
      KeyStore trusted = KeyStore.getInstance("PKCS12");
      trusted.load(null, null);
      int index = 0;
      for (Certificate authority : authorities) {
        trusted.setCertificateEntry("ca-" + index++, authority);
      }
      TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
      trust.init(trusted);
      SSLContext context = SSLContext.getInstance("TLSv1.3");
      context.init(null, trust.getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalArgumentException("the CA file is not readable as PEM certificates", e);
    }
  }

  /** TLS 1.3 only, and the certificate must name the host. */
  static SSLParameters parameters() {
    SSLParameters parameters = new SSLParameters();
    parameters.setProtocols(new String[] {"TLSv1.3"});
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    return parameters;
  }
}
