package io.coterie.messaging;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringWriter;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.ExtendedKeyUsage;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.cert.X509v3CertificateBuilder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.OperatorCreationException;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;

/** An authority of client certificates, and what it certifies. */
public final class ClientCertificates {
  private static final char[] NO_PASSWORD = new char[0];

  private final X500Name name;
  private final KeyPair keys = newKeys();
  private final X509Certificate certificate;
  private final Path file;

  /**
   * @param name of the authority
   */
  public ClientCertificates(String name) {
    this.name = new X500Name("CN=" + name);
    try {
      certificate =
          sign(
              builder(this.name, keys)
                  .addExtension(Extension.basicConstraints, true, new BasicConstraints(true)));
      file = Files.createTempFile("clients", "-ca.pem");
      StringWriter text = new StringWriter();
      try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
        writer.writeObject(certificate);
      }
      Files.writeString(file, text.toString());
    } catch (IOException | GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** PEM file with the authority's own certificate. */
  Path file() {
    return file;
  }

  /** TLS to a service, with a certificate of that name for those that ask. */
  SSLContext naming(String dnsName, TestService service) {
    try {
      KeyPair own = newKeys();
      X509Certificate leaf = issue(dnsName, own);
      KeyStore store = KeyStore.getInstance("PKCS12");
      store.load(null, null);
      store.setKeyEntry(
          "own", own.getPrivate(), NO_PASSWORD, new Certificate[] {leaf, certificate});
      KeyManagerFactory shown =
          KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      shown.init(store, NO_PASSWORD);
      SSLContext tls = SSLContext.getInstance("TLSv1.3");
      tls.init(shown.getKeyManagers(), believed(service).getTrustManagers(), null);
      return tls;
    } catch (IOException | GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A certificate of that name. */
  public X509Certificate certificate(String dnsName) {
    try {
      return issue(dnsName, newKeys());
    } catch (IOException | GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException(e);
    }
  }

  private X509Certificate issue(String dnsName, KeyPair of)
      throws IOException, GeneralSecurityException, OperatorCreationException {
    return sign(
        builder(new X500Name("CN=" + dnsName), of)
            .addExtension(
                Extension.subjectAlternativeName,
                false,
                new GeneralNames(new GeneralName(GeneralName.dNSName, dnsName)))
            .addExtension(
                Extension.extendedKeyUsage,
                false,
                new ExtendedKeyUsage(KeyPurposeId.id_kp_clientAuth)));
  }

  private static TrustManagerFactory believed(TestService service)
      throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream in = Files.newInputStream(service.folder().resolve("ca.pem"))) {
      store.setCertificateEntry(
          "service", CertificateFactory.getInstance("X.509").generateCertificate(in));
    }
    TrustManagerFactory managers =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(store);
    return managers;
  }

  private static KeyPair newKeys() {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(256);
      return generator.generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private JcaX509v3CertificateBuilder builder(X500Name subject, KeyPair of) {
    Instant now = Instant.now();
    return new JcaX509v3CertificateBuilder(
        name,
        BigInteger.valueOf(now.toEpochMilli()),
        Date.from(now.minus(Duration.ofHours(1))),
        Date.from(now.plus(Duration.ofDays(2))),
        subject,
        of.getPublic());
  }

  private X509Certificate sign(X509v3CertificateBuilder builder)
      throws GeneralSecurityException, OperatorCreationException {
    return new JcaX509CertificateConverter()
        .getCertificate(
            builder.build(new JcaContentSignerBuilder("SHA256withECDSA").build(keys.getPrivate())));
  }
}
