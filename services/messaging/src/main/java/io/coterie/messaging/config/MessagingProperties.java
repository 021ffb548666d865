package io.coterie.messaging.config;

import io.coterie.messaging.account.ServiceNumber;
import io.coterie.messaging.limit.RateLimit.Rate;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * Everything that can be configured about the service, besides Spring's own {@code
 * spring.datasource}, {@code server} and {@code management}. Unknown keys stop the start.
 *
 * @param tls what the public and the management port present
 * @param certificates what sender certificates are signed with
 * @param enrolments one-time tokens with which numbers may register
 * @param redis through which several replicas share online messages and presence; if it is missing,
 *     there must be one replica
 * @param stories whether messages may be sent as stories: by anyone, to every account
 * @param limits sizes and times
 * @param rates token buckets
 */
@ConfigurationProperties(prefix = "coterie.messaging", ignoreUnknownFields = false)
public record MessagingProperties(
    Tls tls,
    Certificates certificates,
    @DefaultValue List<Enrolment> enrolments,
    @Nullable Redis redis,
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

  /**
   * @param content most bytes of one recipient's content
   * @param body most bytes of a request's body over HTTP
   * @param frame most bytes of a WebSocket message
   * @param buffers most bytes that WebSockets hold: incomplete messages, calls in progress, frames
   *     to be written; anonymous ones get at most half
   * @param inFlight most messages pushed to a device and not yet acknowledged
   * @param outbound most bytes that wait to be written to a socket; a client that lets more pile up
   *     is disconnected
   * @param sendTimeout a client that takes longer to read a frame is disconnected
   * @param idle a WebSocket without traffic for so long is closed
   * @param onlineTimeToLive an online message not fetched in this time is dropped
   * @param onlineMessages most online messages that wait for a device
   * @param onlineBytes most bytes of online messages that wait for a device
   * @param onlineTotal most bytes of online messages that wait for all devices; the longest queues
   *     give way
   * @param storedMessages most stored messages that wait for a device
   * @param storedTimeToLive a stored message not fetched in this time is dropped
   * @param storedWait how long messages may wait to be stored before senders that fill more than
   *     their share of the line are told to come back
   * @param storedPending most bytes of messages that wait to be stored
   * @param connections most WebSockets at once; anonymous ones get at most half. Each needs some
   *     130 kB
   * @param cachedAccounts most accounts kept in memory
   * @param drain how long requests in progress may take to end at shutdown
   */
  public record Limits(
      @DefaultValue("96KB") DataSize content,
      @DefaultValue("762176B") DataSize body,
      @DefaultValue("512KB") DataSize frame,
      @DefaultValue("24MB") DataSize buffers,
      @DefaultValue("256") int inFlight,
      @DefaultValue("4MB") DataSize outbound,
      @DefaultValue("20s") Duration sendTimeout,
      @DefaultValue("90s") Duration idle,
      @DefaultValue("10s") Duration onlineTimeToLive,
      @DefaultValue("4096") int onlineMessages,
      @DefaultValue("16MB") DataSize onlineBytes,
      @DefaultValue("24MB") DataSize onlineTotal,
      @DefaultValue("10000") int storedMessages,
      @DefaultValue("30d") Duration storedTimeToLive,
      @DefaultValue("250ms") Duration storedWait,
      @DefaultValue("8MB") DataSize storedPending,
      @DefaultValue("512") int connections,
      @DefaultValue("100000") int cachedAccounts,
      @DefaultValue("10s") Duration drain) {
    public Limits {
      requirePositive(content, "limits.content");
      requirePositive(body, "limits.body");
      requirePositive(frame, "limits.frame");
      requirePositive(buffers, "limits.buffers");
      requirePositive(inFlight, "limits.in-flight");
      requirePositive(outbound, "limits.outbound");
      requirePositive(sendTimeout, "limits.send-timeout");
      requirePositive(idle, "limits.idle");
      requirePositive(onlineTimeToLive, "limits.online-time-to-live");
      requirePositive(onlineMessages, "limits.online-messages");
      requirePositive(onlineBytes, "limits.online-bytes");
      requirePositive(onlineTotal, "limits.online-total");
      requirePositive(storedMessages, "limits.stored-messages");
      requirePositive(storedTimeToLive, "limits.stored-time-to-live");
      requirePositive(storedWait, "limits.stored-wait");
      requirePositive(storedPending, "limits.stored-pending");
      requirePositive(connections, "limits.connections");
      requirePositive(cachedAccounts, "limits.cached-accounts");
      requirePositive(drain, "limits.drain");
    }
  }

  /**
   * Rates as {@code burst/perSecond}. The defaults let parties run many protocol rounds a second.
   *
   * @param registration attempts to register, for each number
   * @param preKeys fetches of a target's prekeys, for each requester
   * @param messages messages, for each pair of sender and recipient
   * @param sealedMessages messages of unidentified senders, for each recipient
   * @param stories stories, for each recipient
   * @param changes uploads of keys and attributes, for each device
   */
  public record Rates(
      @DefaultValue("10/0.1") Rate registration,
      @DefaultValue("200/10") Rate preKeys,
      @DefaultValue("5000/2000") Rate messages,
      @DefaultValue("50000/20000") Rate sealedMessages,
      @DefaultValue("60/1") Rate stories,
      @DefaultValue("60/1") Rate changes) {}

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

  private static void requirePositive(DataSize value, String key) {
    requirePositive(value.toBytes(), key);
  }

  private static void requirePositive(long value, String key) {
    if (value <= 0) {
      throw new IllegalArgumentException("coterie.messaging." + key + " must be positive");
    }
  }
}
