package io.coterie.coordinator.api;

import io.coterie.platform.certificate.CertificateNames;
import java.security.cert.X509Certificate;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The clients of the configuration, found by what their certificate says: {@link CertificateNames}.
 */
public final class ClientDirectory {
  private final Map<String, Client> byName = new HashMap<>();
  private final Set<String> edges = new HashSet<>();

  /**
   * A directory.
   *
   * @param names of certificates, by client; no name may stand for two clients
   * @param edges names of certificates of proxies that are believed when they say who calls; none
   *     may stand for a client too
   */
  public ClientDirectory(Map<Client, Set<String>> names, Set<String> edges) {
    names.forEach(
        (client, certificateNames) -> {
          for (String name : certificateNames) {
            String normal = CertificateNames.normal(name);
            if (byName.put(normal, client) != null) {
              throw new IllegalArgumentException("two clients have the certificate name " + name);
            }
          }
        });
    for (String edge : edges) {
      String normal = CertificateNames.normal(edge);
      if (byName.containsKey(normal)) {
        throw new IllegalArgumentException(
            "a client and an edge have the certificate name " + edge);
      }
      this.edges.add(normal);
    }
  }

  /** Whether a certificate whose chain TLS has verified is that of a trusted proxy. */
  boolean isEdge(X509Certificate certificate) {
    return CertificateNames.of(certificate).stream().anyMatch(edges::contains);
  }

  /** The client of a certificate whose chain TLS has verified, if exactly one is configured. */
  Optional<Client> find(X509Certificate certificate) {
    Set<Client> found = new HashSet<>();
    for (String name : CertificateNames.of(certificate)) {
      Client client = byName.get(name);
      if (client != null) {
        found.add(client);
      }
    }
    return found.size() == 1 ? Optional.of(found.iterator().next()) : Optional.empty();
  }
}
