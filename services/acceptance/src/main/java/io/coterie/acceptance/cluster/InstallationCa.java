package io.coterie.acceptance.cluster;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.springframework.boot.ssl.SslBundle;
import org.springframework.boot.ssl.pem.PemSslStoreBundle;
import org.springframework.boot.ssl.pem.PemSslStoreDetails;

/**
 * The certificate authorities of one installation: one for each purpose, so that a certificate of
 * one is worth nothing for another (docs/adr/0040).
 */
public final class InstallationCa {
  private static final Pattern IPV4_ADDRESS = Pattern.compile("[0-9]+(\\.[0-9]+){3}");

  private final Authority servers;
  private final Authority management;
  private final Authority clients;
  private final Authority parties;
  private final Leaf party;

  /** PEM files of one certificate and its PKCS#8 key. */
  public record Leaf(Path certificate, Path key) {}

  private InstallationCa(Path folder) {
    servers = Authority.create(folder, "servers", KeyPurposeId.id_kp_serverAuth);
    management = Authority.create(folder, "management", KeyPurposeId.id_kp_serverAuth);
    clients = Authority.create(folder, "clients", KeyPurposeId.id_kp_clientAuth);
    parties = Authority.create(folder, "parties", KeyPurposeId.id_kp_clientAuth);
    party = parties.issue("parties", names("parties"));
  }

  /** Makes new authorities and writes their certificates to {@code folder/PURPOSE-ca.pem}. */
  public static InstallationCa create(Path folder) {
    return new InstallationCa(folder);
  }

  /** The PEM file that callers of messaging, coordinator and edge pin. */
  public Path certificateFile() {
    return servers.file();
  }

  /** The PEM file that readers of a party's management port pin. */
  public Path managementFile() {
    return management.file();
  }

  /** The PEM file by which edge and coordinator know wallet backends. */
  public Path clientsFile() {
    return clients.file();
  }

  /** The PEM file by which the edge knows that a party calls. */
  public Path partiesFile() {
    return parties.file();
  }

  /** A certificate with which a service of that name listens on loopback and at some addresses. */
  public Leaf server(String name, String... addresses) {
    return servers.issue(name, here(addresses));
  }

  /**
   * A certificate with which a service listens under some names.
   *
   * @param file name of its files
   * @param names DNS names and IPv4 addresses, the most important first
   */
  public Leaf listening(String file, String... names) {
    return servers.issue(file, names(names));
  }

  /** A certificate with which a party of that name shows its metrics, as {@link #server}. */
  public Leaf management(String name, String... addresses) {
    return management.issue(name, here(addresses));
  }

  /**
   * A certificate with which a party shows its metrics under some names, as {@link #listening}.
   *
   * @param file name of its files
   */
  public Leaf managementOf(String file, String... names) {
    return management.issue(file, names(names));
  }

  /** A certificate with which a client of that name calls. */
  public Leaf client(String name) {
    return client(name, name);
  }

  /**
   * Another one with which a client of that name calls.
   *
   * @param file name of its files
   */
  public Leaf client(String file, String name) {
    return clients.issue(file, names(name));
  }

  /** The certificate that all parties show at the edge. */
  public Leaf party() {
    return party;
  }

  private static List<GeneralName> here(String... addresses) {
    List<String> all = new ArrayList<>(List.of("localhost", "127.0.0.1"));
    for (String address : addresses) {
      if (!address.equals("localhost")) {
        all.add(address);
      }
    }
    return names(all.toArray(String[]::new));
  }

  private static List<GeneralName> names(String... names) {
    List<GeneralName> all = new ArrayList<>();
    for (String name : names) {
      boolean address = IPV4_ADDRESS.matcher(name).matches();
      all.add(new GeneralName(address ? GeneralName.iPAddress : GeneralName.dNSName, name));
    }
    return all;
  }

  /** TLS that trusts this installation's services, with a certificate for those that ask. */
  public SSLContext tls(Leaf shown) {
    return SslBundle.of(
            new PemSslStoreBundle(
                PemSslStoreDetails.forCertificate(shown.certificate().toUri().toString())
                    .withPrivateKey(shown.key().toUri().toString()),
                PemSslStoreDetails.forCertificate(certificateFile().toUri().toString())))
        .createSslContext();
  }

  /** TLS that trusts this installation's services and their management ports, and nobody else. */
  public SSLContext tls() {
    try {
      KeyStore trust = KeyStore.getInstance(KeyStore.getDefaultType());
      trust.load(null, null);
      trust.setCertificateEntry("servers", servers.certificate());
      trust.setCertificateEntry("management", management.certificate());
      TrustManagerFactory managers =
          TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      managers.init(trust);
      SSLContext tls = SSLContext.getInstance("TLSv1.3");
      tls.init(null, managers.getTrustManagers(), null);
      return tls;
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalStateException("cannot pin the installation's CAs", e);
    }
  }
}
