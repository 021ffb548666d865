package io.coterie.messaging.config;

import io.coterie.messaging.account.ServiceNumber;
import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.Rates;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Everything that can be configured about the service, besides Spring's own {@code
 * spring.datasource}, {@code server} and {@code management}. Unknown keys stop the start.
 *
 * @param tls certificates of the public and the management port
 * @param certificates keys that sign sender certificates
 * @param trustedEdge the proxy that is believed when it says where its clients are; none if it is
 *     missing
 * @param enrolments one-time tokens with which numbers may register
 * @param redis through which several replicas share online messages and presence; if it is missing,
 *     there must be one replica
 * @param metrics password with which they are read
 * @param stories whether messages may be sent as stories: by anyone, to every account
 * @param limits sizes and times
 * @param rates token buckets
 */
@ConfigurationProperties(prefix = "coterie.messaging", ignoreUnknownFields = false)
public record MessagingProperties(
    Tls tls,
    Certificates certificates,
    @Nullable Edge trustedEdge,
    @DefaultValue List<Enrolment> enrolments,
    @Nullable Redis redis,
    @DefaultValue Metrics metrics,
    @DefaultValue("false") boolean stories,
    @DefaultValue Limits limits,
    @DefaultValue Rates rates) {

  public MessagingProperties {
    requirePresent(tls, "tls");
    requirePresent(certificates, "certificates");
    enrolments = List.copyOf(enrolments);
  }

  /**
   * @param certificate PEM file, server certificate first
   * @param privateKey PEM file
   */
  public record Tls(Path certificate, Path privateKey) {
    public Tls {
      requirePresent(certificate, "tls.certificate");
      requirePresent(privateKey, "tls.private-key");
    }
  }

  /**
   * The edge, which names its clients' addresses in {@code x-coterie-client-address}.
   *
   * @param authority PEM file with the authorities of its client certificate, which it shows to
   *     this service
   * @param names of that certificate, written {@code subject:CN=...}, {@code dns:...} or {@code
   *     uri:...}
   */
  public record Edge(Path authority, Set<String> names) {
    public Edge {
      requirePresent(authority, "trusted-edge.authority");
      requirePresent(names, "trusted-edge.names");
      names = Set.copyOf(names);
    }
  }

  /**
   * Access to the metrics, and to the details of health.
   *
   * @param passwordFile with the password of the user {@code metrics}; nobody may read them if it
   *     is not given
   */
  public record Metrics(@Nullable Path passwordFile) {}

  /**
   * @param trustRoot file with the base64 of the trust root's public key
   * @param serverCertificate file with the base64 of the certificate that the root signed
   * @param serverPrivateKey file with the base64 of its private key
   * @param lifetime how long a sender certificate is valid
   */
  public record Certificates(
      Path trustRoot,
      Path serverCertificate,
      Path serverPrivateKey,
      @DefaultValue("24h") Duration lifetime) {
    public Certificates {
      requirePresent(trustRoot, "certificates.trust-root");
      requirePresent(serverCertificate, "certificates.server-certificate");
      requirePresent(serverPrivateKey, "certificates.server-private-key");
      requirePositive(lifetime, "certificates.lifetime");
    }
  }

  /**
   * @param number E.164
   * @param tokenSha256 hex of the SHA-256 of the token's bytes, which are what the client sends as
   *     its recovery password
   */
  public record Enrolment(String number, String tokenSha256) {
    private static final int SHA256_BYTES = 32;

    public Enrolment {
      requirePresent(number, "enrolments[].number");
      requirePresent(tokenSha256, "enrolments[].token-sha256");
      if (!ServiceNumber.isValid(number)) {
        throw new IllegalArgumentException("enrolments.number is not an E.164 number: " + number);
      }
      if (tokenSha256.length() != 2 * SHA256_BYTES) {
        throw new IllegalArgumentException(
            "enrolments.token-sha256 of " + number + " is not 64 hexadecimal digits");
      }
      HexFormat.of().parseHex(tokenSha256);
    }

    @Override
    public String toString() {
      return "Enrolment[" + number + "]";
    }

    public byte[] tokenHash() {
      return HexFormat.of().parseHex(tokenSha256);
    }
  }

  /**
   * @param uri {@code rediss://host:port}, or {@code redis://} without TLS; credentials do not
   *     belong in it
   * @param ca PEM file with the authorities of Redis' certificate; the system's if missing
   * @param username missing for Redis' default user
   * @param passwordFile file whose first line is the password; missing if Redis asks for none
   * @param timeout how long to wait for an answer
   */
  public record Redis(
      URI uri,
      @Nullable Path ca,
      @Nullable String username,
      @Nullable Path passwordFile,
      @DefaultValue("2s") Duration timeout) {
    public Redis {
      requirePresent(uri, "redis.uri");
      requirePositive(timeout, "redis.timeout");
      if (!"redis".equals(uri.getScheme()) && !"rediss".equals(uri.getScheme())) {
        throw new IllegalArgumentException(
            "coterie.messaging.redis.uri must begin with rediss:// or redis://");
      }
      if (uri.getUserInfo() != null) {
        throw new IllegalArgumentException(
            "coterie.messaging.redis.uri must not hold credentials: use redis.username and"
                + " redis.password-file");
      }
    }
  }

  /** The binder leaves null what is not configured, whatever the types say. */
  private static void requirePresent(@Nullable Object value, String key) {
    if (value == null) {
      throw new IllegalArgumentException("coterie.messaging." + key + " is missing");
    }
  }

  private static void requirePositive(Duration value, String key) {
    if (value.isZero() || value.isNegative()) {
      throw new IllegalArgumentException("coterie.messaging." + key + " must be positive");
    }
  }
}
