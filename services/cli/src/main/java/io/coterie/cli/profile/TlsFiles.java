package io.coterie.cli.profile;

import io.coterie.cli.terminal.CliException;
import io.grpc.ChannelCredentials;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** The files of a TLS connection, read here first: gRPC's errors name no file. */
public final class TlsFiles {
  private static final Pattern PKCS8 =
      Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----");

  private TlsFiles() {}

  /**
   * For a channel with our certificate that trusts this authority and no other.
   *
   * @throws CliException naming the file that cannot be used
   */
  static ChannelCredentials credentials(Path ca, Path certificate, Path key) {
    try {
      return TlsChannelCredentials.newBuilder()
          .trustManager(authorities(ca))
          .keyManager(own(certificates("cert", certificate), key))
          .build();
    } catch (IOException | GeneralSecurityException e) {
      throw CliException.local(
          "certificate, key or CA cannot be used: " + CliException.firstLine(e.getMessage()));
    }
  }

  /**
   * Trusts the authorities of a file and no others.
   *
   * @throws CliException if there is none in it
   */
  public static TrustManager[] authorities(Path ca) throws IOException, GeneralSecurityException {
    return trust(certificates("ca", ca));
  }

  /** For a channel that is never used. */
  static ChannelCredentials trustingNobody() throws IOException, GeneralSecurityException {
    return TlsChannelCredentials.newBuilder().trustManager(trust(List.of())).build();
  }

  private static TrustManager[] trust(List<X509Certificate> authorities)
      throws IOException, GeneralSecurityException {
    KeyStore store = empty();
    for (X509Certificate authority : authorities) {
      store.setCertificateEntry("ca-" + store.size(), authority);
    }
    TrustManagerFactory managers = TrustManagerFactory.getInstance("PKIX");
    managers.init(store);
    return managers.getTrustManagers();
  }

  /**
   * gRPC could read the files too, but by BouncyCastle's provider, whose classes make each start
   * longer: they are in a signed jar, which no cache holds.
   */
  private static KeyManager[] own(List<X509Certificate> chain, Path key)
      throws IOException, GeneralSecurityException {
    PrivateKey own = privateKey(key, chain.getFirst().getPublicKey().getAlgorithm());
    KeyStore store = empty();
    store.setKeyEntry("own", own, new char[0], chain.toArray(X509Certificate[]::new));
    KeyManagerFactory managers = KeyManagerFactory.getInstance("PKIX");
    managers.init(store, new char[0]);
    return managers.getKeyManagers();
  }

  private static KeyStore empty() throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance("JKS");
    store.load(null, null);
    return store;
  }

  /**
   * The first certificate of a file.
   *
   * @param what name of the setting with the file
   * @throws CliException if there is none
   */
  public static X509Certificate certificate(String what, Path file) {
    return certificates(what, file).getFirst();
  }

  private static List<X509Certificate> certificates(String what, Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      List<X509Certificate> all =
          CertificateFactory.getInstance("X.509").generateCertificates(in).stream()
              .map(X509Certificate.class::cast)
              .toList();
      if (!all.isEmpty()) {
        return all;
      }
    } catch (IOException | CertificateException e) {
      // Said below.
    }
    throw CliException.local(what + " file " + file + " holds no certificate (PEM)");
  }

  /**
   * Whether a key is that of a certificate.
   *
   * @throws CliException if one of the files cannot be used
   */
  public static boolean belongs(Path key, X509Certificate certificate) {
    String algorithm = certificate.getPublicKey().getAlgorithm();
    String scheme =
        switch (algorithm) {
          case "EC" -> "SHA256withECDSA";
          case "RSA" -> "SHA256withRSA";
          default -> algorithm;
        };
    byte[] probe = {1};
    try {
      Signature signature = Signature.getInstance(scheme);
      signature.initSign(privateKey(key, algorithm));
      signature.update(probe);
      byte[] signed = signature.sign();
      signature.initVerify(certificate.getPublicKey());
      signature.update(probe);
      return signature.verify(signed);
    } catch (GeneralSecurityException e) {
      return false;
    }
  }

  private static PrivateKey privateKey(Path file, String algorithm) {
    byte[] pem = new byte[0];
    try {
      pem = Files.readAllBytes(PrivateFile.require(file));
      Matcher block = PKCS8.matcher(new String(pem, StandardCharsets.ISO_8859_1));
      if (block.find()) {
        return KeyFactory.getInstance(algorithm)
            .generatePrivate(
                new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(block.group(1))));
      }
    } catch (IOException | GeneralSecurityException | IllegalArgumentException e) {
      // Said below.
    } finally {
      Arrays.fill(pem, (byte) 0);
    }
    throw CliException.local(
        "key file " + file + " holds no " + algorithm + " key (PKCS#8, PEM, not encrypted)");
  }
}
