package io.coterie.coordinator.api;

import java.security.cert.CertificateParsingException;
import java.security.cert.X509Certificate;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import javax.security.auth.x500.X500Principal;

/**
 * The clients of the configuration, found by what their certificate says. Names of a certificate
 * are written {@code subject:CN=...} (RFC 2253), {@code dns:...} or {@code uri:...}.
 */
public final class ClientDirectory {
  /** GeneralName types of RFC 5280, 4.2.1.6. */
  private static final int SAN_DNS = 2;

  private static final int SAN_URI = 6;

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
            String normal = normal(name);
            if (byName.put(normal, client) != null) {
              throw new IllegalArgumentException("two clients have the certificate name " + name);
            }
          }
        });
    for (String edge : edges) {
      String normal = normal(edge);
      if (byName.containsKey(normal)) {
        throw new IllegalArgumentException(
            "a client and an edge have the certificate name " + edge);
      }
      this.edges.add(normal);
    }
  }

  /** Whether a certificate whose chain TLS has verified is that of a trusted proxy. */
  boolean isEdge(X509Certificate certificate) {
    return names(certificate).stream().anyMatch(edges::contains);
  }

  private static String normal(String name) {
    int colon = name.indexOf(':');
    return switch (colon < 0 ? "" : name.substring(0, colon)) {
      case "subject" -> "subject:" + new X500Principal(name.substring(colon + 1)).getName();
      case "dns", "uri" -> name;
      default ->
          throw new IllegalArgumentException(
              "certificate name " + name + " does not start with subject:, dns: or uri:");
    };
  }

  /** The client of a certificate whose chain TLS has verified, if exactly one is configured. */
  Optional<Client> find(X509Certificate certificate) {
    Set<Client> found = new HashSet<>();
    for (String name : names(certificate)) {
      Client client = byName.get(name);
      if (client != null) {
        found.add(client);
      }
    }
    return found.size() == 1 ? Optional.of(found.iterator().next()) : Optional.empty();
  }

  private static Set<String> names(X509Certificate certificate) {
    Set<String> names = new HashSet<>();
    names.add("subject:" + certificate.getSubjectX500Principal().getName());
    try {
      Collection<List<?>> alternatives = certificate.getSubjectAlternativeNames();
      if (alternatives != null) {
        for (List<?> alternative : alternatives) {
          if (alternative.get(0) instanceof Integer type
              && alternative.get(1) instanceof String value) {
            if (type == SAN_DNS) {
              names.add("dns:" + value);
            } else if (type == SAN_URI) {
              names.add("uri:" + value);
            }
          }
        }
      }
    } catch (CertificateParsingException e) {
      // A certificate that cannot be read names nobody.
      return Set.of();
    }
    return names;
  }
}
