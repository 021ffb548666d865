package io.coterie.acceptance.cluster;

import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.ExtendedKeyUsage;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.asn1.x509.KeyUsage;
import org.bouncycastle.cert.CertIOException;
import org.bouncycastle.cert.X509v3CertificateBuilder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509ExtensionUtils;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.OperatorCreationException;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;

/**
 * The certificate authority of one installation: what clients and services pin. ECDSA P-256
 * throughout.
 */
public final class InstallationCa {
  /** An installation made for a test or a demo does not live longer. */
  private static final Duration VALIDITY = Duration.ofDays(30);

  /** Certificates count from a little earlier, so that a clock that lags does not refuse them. */
  private static final Duration CLOCK_TOLERANCE = Duration.ofMinutes(5);

  private static final Pattern IPV4_ADDRESS = Pattern.compile("[0-9]+(\\.[0-9]+){3}");
  private static final SecureRandom RANDOM = new SecureRandom();

  private final KeyPair keys;
  private final X509Certificate certificate;
  private final Path folder;

  /** PEM files of one certificate and its PKCS#8 key. */
  public record Leaf(Path certificate, Path key) {}

  private InstallationCa(KeyPair keys, X509Certificate certificate, Path folder) {
    this.keys = keys;
    this.certificate = certificate;
    this.folder = folder;
  }

  /** Makes a new authority and writes its certificate to {@code folder/ca.pem}. */
  public static InstallationCa create(Path folder) {
    try {
      Files.createDirectories(folder);
      KeyPair keys = newKeyPair();
      X500Name name = new X500Name("CN=Coterie installation CA");
      X509Certificate certificate =
          sign(
              builder(name, name, keys)
                  .addExtension(Extension.basicConstraints, true, new BasicConstraints(0))
                  .addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.keyCertSign)),
              keys.getPrivate());
      writePem(folder.resolve("ca.pem"), certificate);
      return new InstallationCa(keys, certificate, folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException("cannot make the installation's CA", e);
    }
  }

  /** The PEM file that clients pin. */
  public Path certificateFile() {
    return folder.resolve("ca.pem");
  }

  public X509Certificate certificate() {
    return certificate;
  }

  /** A certificate with which a service of that name listens on loopback and at some addresses. */
  public Leaf server(String name, String... addresses) {
    List<GeneralName> names = new ArrayList<>();
    names.add(new GeneralName(GeneralName.dNSName, "localhost"));
    names.add(new GeneralName(GeneralName.iPAddress, "127.0.0.1"));
    for (String address : addresses) {
      if (!address.equals("localhost")) {
        names.add(new GeneralName(GeneralName.iPAddress, address));
      }
    }
    return issue(name, names, KeyPurposeId.id_kp_serverAuth);
  }

  /** A certificate with which a client of that name calls. */
  public Leaf client(String name) {
    return issue(
        name, List.of(new GeneralName(GeneralName.dNSName, name)), KeyPurposeId.id_kp_clientAuth);
  }

  /**
   * A certificate with which a service listens under some names, and calls others.
   *
   * @param file name of its files
   * @param names DNS names and IPv4 addresses, the most important first
   */
  public Leaf service(String file, String... names) {
    List<GeneralName> all = new ArrayList<>();
    for (String name : names) {
      boolean address = IPV4_ADDRESS.matcher(name).matches();
      all.add(new GeneralName(address ? GeneralName.iPAddress : GeneralName.dNSName, name));
    }
    return issue(file, all, KeyPurposeId.id_kp_serverAuth, KeyPurposeId.id_kp_clientAuth);
  }

  private Leaf issue(String name, List<GeneralName> names, KeyPurposeId... purposes) {
    try {
      KeyPair leafKeys = newKeyPair();
      X509v3CertificateBuilder builder =
          builder(
                  new X500Name(certificate.getSubjectX500Principal().getName()),
                  new X500Name("CN=" + name),
                  leafKeys)
              .addExtension(Extension.basicConstraints, true, new BasicConstraints(false))
              .addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.digitalSignature))
              .addExtension(Extension.extendedKeyUsage, false, new ExtendedKeyUsage(purposes))
              .addExtension(
                  Extension.authorityKeyIdentifier,
                  false,
                  new JcaX509ExtensionUtils().createAuthorityKeyIdentifier(certificate))
              .addExtension(
                  Extension.subjectAlternativeName,
                  false,
                  new GeneralNames(names.toArray(GeneralName[]::new)));
      Leaf leaf = new Leaf(folder.resolve(name + ".pem"), folder.resolve(name + "-key.pem"));
      writePem(leaf.certificate(), sign(builder, keys.getPrivate()));
      Files.deleteIfExists(leaf.key());
      Files.createFile(
          leaf.key(),
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      writePem(
          leaf.key(),
          new org.bouncycastle.openssl.jcajce.JcaPKCS8Generator(leafKeys.getPrivate(), null)
              .generate());
      return leaf;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException("cannot issue a certificate for " + name, e);
    }
  }

  private static KeyPair newKeyPair() throws GeneralSecurityException {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    return generator.generateKeyPair();
  }

  private static X509v3CertificateBuilder builder(X500Name issuer, X500Name subject, KeyPair keys)
      throws CertIOException, GeneralSecurityException {
    Instant now = Instant.now();
    return new JcaX509v3CertificateBuilder(
            issuer,
            new BigInteger(127, RANDOM).add(BigInteger.ONE),
            Date.from(now.minus(CLOCK_TOLERANCE)),
            Date.from(now.plus(VALIDITY)),
            subject,
            keys.getPublic())
        .addExtension(
            Extension.subjectKeyIdentifier,
            false,
            new JcaX509ExtensionUtils().createSubjectKeyIdentifier(keys.getPublic()));
  }

  private static X509Certificate sign(X509v3CertificateBuilder builder, PrivateKey key)
      throws OperatorCreationException, GeneralSecurityException {
    return new JcaX509CertificateConverter()
        .getCertificate(builder.build(new JcaContentSignerBuilder("SHA256withECDSA").build(key)));
  }

  private static void writePem(Path file, Object object) throws IOException {
    StringWriter text = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
      writer.writeObject(object);
    }
    Files.writeString(file, text.toString());
  }

  /** TLS that trusts this installation's CA and nothing else. */
  public SSLContext tls() {
    try {
      KeyStore trust = KeyStore.getInstance(KeyStore.getDefaultType());
      trust.load(null, null);
      trust.setCertificateEntry("ca", certificate());
      TrustManagerFactory managers =
          TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      managers.init(trust);
      SSLContext tls = SSLContext.getInstance("TLSv1.3");
      tls.init(null, managers.getTrustManagers(), null);
      return tls;
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalStateException("cannot pin the installation's CA", e);
    }
  }
}
