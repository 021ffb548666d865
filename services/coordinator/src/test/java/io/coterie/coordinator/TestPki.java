package io.coterie.coordinator;

import java.io.IOException;
import java.io.StringWriter;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.cert.X509v3CertificateBuilder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.openssl.jcajce.JcaPKCS8Generator;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;

/** A certificate authority for one test. */
final class TestPki {
  private final KeyPair caKeys = keys();
  private final X500Name caName;
  final X509Certificate ca;
  private int serial = 1;

  TestPki(String name) {
    caName = new X500Name("CN=" + name);
    ca = issue(caName, caKeys, null, true);
  }

  /** A certificate with its key, as PEM files. */
  record Leaf(Path certificate, Path privateKey) {}

  Leaf leaf(Path folder, String commonName, GeneralName... alternatives) {
    KeyPair pair = keys();
    X509Certificate certificate =
        issue(new X500Name("CN=" + commonName), pair, new GeneralNames(alternatives), false);
    try {
      Path cert = folder.resolve(commonName + ".crt");
      Path key = folder.resolve(commonName + ".key");
      Files.writeString(cert, pem(certificate));
      Files.writeString(key, pem(new JcaPKCS8Generator(pair.getPrivate(), null)));
      return new Leaf(cert, key);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  Path caFile(Path folder) {
    try {
      return Files.writeString(folder.resolve("ca-" + caName.hashCode() + ".crt"), pem(ca));
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  static String pem(Object object) {
    StringWriter text = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
      writer.writeObject(object);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return text.toString();
  }

  private X509Certificate issue(
      X500Name subject, KeyPair pair, GeneralNames alternatives, boolean authority) {
    try {
      Instant now = Instant.now();
      X509v3CertificateBuilder builder =
          new JcaX509v3CertificateBuilder(
              caName,
              BigInteger.valueOf(serial++),
              Date.from(now.minus(Duration.ofMinutes(5))),
              Date.from(now.plus(Duration.ofHours(1))),
              subject,
              pair.getPublic());
      builder.addExtension(Extension.basicConstraints, true, new BasicConstraints(authority));
      if (alternatives != null && alternatives.getNames().length > 0) {
        builder.addExtension(Extension.subjectAlternativeName, false, alternatives);
      }
      return new JcaX509CertificateConverter()
          .getCertificate(
              builder.build(
                  new JcaContentSignerBuilder("SHA256withECDSA").build(caKeys.getPrivate())));
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static KeyPair keys() {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      return generator.generateKeyPair();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
