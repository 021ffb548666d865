package io.coterie.channel.link;

import io.coterie.channel.ClientCertificate;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Instant;
import java.util.Base64;
import java.util.Comparator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/** TLS 1.3 to a server whose certificate the installation's own authority has issued. */
public final class PinnedTls {
  private static final Pattern KEY =
      Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----");

  private PinnedTls() {}

  /**
   * A context that trusts the authorities in {@code caPem} and no other.
   *
   * @param client shown to whoever asks for a certificate; null for none
   * @throws IllegalArgumentException naming the text that cannot be used
   */
  public static SSLContext context(String caPem, @Nullable ClientCertificate client) {
    try {
      KeyStore trusted = empty();
      for (Certificate authority : certificates(caPem, "the CA file")) {
        trusted.setCertificateEntry("ca-" + trusted.size(), authority);
      }
      TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
      trust.init(trusted);
      SSLContext context = SSLContext.getInstance("TLSv1.3");
      context.init(client == null ? null : own(client), trust.getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalArgumentException("CA or client certificate cannot be used", e);
    }
  }

  /**
   * The end of the first certificate that ends, among the authorities and those that are shown.
   *
   * @param client shown to whoever asks for a certificate; null for none
   * @throws IllegalArgumentException naming the text that cannot be used
   */
  public static Instant end(String caPem, @Nullable ClientCertificate client) {
    Stream<Certificate> authorities = Stream.of(certificates(caPem, "the CA file"));
    Stream<Certificate> own =
        client == null
            ? Stream.of()
            : Stream.of(certificates(client.chainPem(), "the client certificate's file"));
    return Stream.concat(authorities, own)
        .map(certificate -> ((X509Certificate) certificate).getNotAfter().toInstant())
        .min(Comparator.naturalOrder())
        .orElseThrow();
  }

  private static KeyManager[] own(ClientCertificate client)
      throws GeneralSecurityException, IOException {
    Certificate[] chain = certificates(client.chainPem(), "the client certificate's file");
    Matcher pem = KEY.matcher(client.keyPem());
    if (!pem.find()) {
      throw new IllegalArgumentException("the key file holds no private key (PKCS#8, PEM)");
    }
    PrivateKey key =
        KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm())
            .generatePrivate(new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(pem.group(1))));
    KeyStore store = empty();
    store.setKeyEntry("client", key, new char[0], chain);
    KeyManagerFactory managers = KeyManagerFactory.getInstance("PKIX");
    managers.init(store, new char[0]);
    return managers.getKeyManagers();
  }

  private static KeyStore empty() throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    return store;
  }

  private static Certificate[] certificates(String pem, String where) {
    try {
      Certificate[] all =
          CertificateFactory.getInstance("X.509")
              .generateCertificates(new ByteArrayInputStream(pem.getBytes(StandardCharsets.UTF_8)))
              .toArray(Certificate[]::new);
      if (all.length > 0) {
        return all;
      }
    } catch (CertificateException e) {
      throw new IllegalArgumentException(where + " is not readable as PEM certificates", e);
    }
    throw new IllegalArgumentException(where + " holds no certificate");
  }

  /** TLS 1.3 only, and the certificate must name the host. */
  static SSLParameters parameters() {
    SSLParameters parameters = new SSLParameters();
    parameters.setProtocols(new String[] {"TLSv1.3"});
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    return parameters;
  }
}
