package io.coterie.channel;

import java.net.URI;
import java.time.Duration;
import java.util.Base64;
import org.jspecify.annotations.Nullable;

/**
 * How a member reaches the messaging service, and every limit of the channel.
 *
 * @param messaging base URI of the messaging service, {@code https://host:port}; REST and WebSocket
 *     live below it
 * @param caPem PEM text of the installation's certificate authority; no other is trusted for TLS
 * @param client shown to whoever asks for a certificate: an edge in front of messaging does
 * @param trustRoot public key (33 bytes) under which the messaging service's sender certificates
 *     must verify; installation data that comes with the CA
 * @param sendMode how broadcasts travel
 * @param limits sizes and counts
 * @param timing time-outs, back-off and periods
 */
public record ChannelConfig(
    URI messaging,
    String caPem,
    @Nullable ClientCertificate client,
    byte[] trustRoot,
    SendMode sendMode,
    Limits limits,
    Timing timing) {

  public ChannelConfig {
    if (!"https".equals(messaging.getScheme()) || messaging.getHost() == null) {
      throw new IllegalArgumentException(
          "messaging must be an https URI with a host, not " + messaging);
    }
    if (trustRoot.length != 33) {
      throw new IllegalArgumentException(
          "the trust root has " + trustRoot.length + " bytes, not 33");
    }
  }

  /** Group mode with the default limits and timing. */
  public static ChannelConfig of(URI messaging, String caPem, byte[] trustRoot) {
    return new ChannelConfig(
        messaging, caPem, null, trustRoot, SendMode.GROUP, Limits.DEFAULT, Timing.DEFAULT);
  }

  /** As {@link #of(URI, String, byte[])}, with the trust root as it is published: base64. */
  public static ChannelConfig of(URI messaging, String caPem, String trustRootBase64) {
    return of(messaging, caPem, Base64.getDecoder().decode(trustRootBase64.strip()));
  }

  public ChannelConfig withClient(@Nullable ClientCertificate other) {
    return new ChannelConfig(messaging, caPem, other, trustRoot, sendMode, limits, timing);
  }

  public ChannelConfig withSendMode(SendMode mode) {
    return new ChannelConfig(messaging, caPem, client, trustRoot, mode, limits, timing);
  }

  public ChannelConfig withLimits(Limits other) {
    return new ChannelConfig(messaging, caPem, client, trustRoot, sendMode, other, timing);
  }

  public ChannelConfig withTiming(Timing other) {
    return new ChannelConfig(messaging, caPem, client, trustRoot, sendMode, limits, other);
  }

  /**
   * With another {@link Timing#senderKeyAge}.
   *
   * @throws IllegalArgumentException below a second: a key must be handed out before it is used
   */
  public ChannelConfig withSenderKeyAge(Duration age) {
    if (age.compareTo(Duration.ofSeconds(1)) < 0) {
      throw new IllegalArgumentException("a sender key must live for a second, not " + age);
    }
    return withTiming(timing.withSenderKeyAge(age));
  }

  /**
   * Sizes are in bytes.
   *
   * @param maxBody largest body of {@code broadcast} and {@code send}
   * @param chunk bodies above this travel in several messages; with padding, encryption and base64
   *     it stays below the 96 KiB content limit of a Signal server
   * @param maxWebSocketMessage largest message accepted from the messaging service
   * @param maxQueued bytes waiting for the socket before it is taken for dead, and bytes of bodies
   *     that wait until the service has room for them
   * @param maxRequests requests that may wait for an answer at the same time, per socket
   * @param maxInbound messages being decrypted at the same time; more wait in the socket
   * @param maxReassemblies unfinished chunked bodies kept for each sender
   * @param maxReassemblyBytes bytes of unfinished bodies of all senders
   * @param maxHeld group messages kept for each sender until its sender key comes
   * @param maxHeldBytes their bytes
   * @param preKeyBatch one-time prekeys of each kind uploaded at a time, at most 100; one of each
   *     is 2.3 KB together, and a process that starts uploads them before it greets anybody
   * @param senderKeyMessages broadcasts under one sender key before it is replaced; a member that
   *     is in none of them must still be able to follow (25,000 steps)
   * @param cryptoThreads platform threads for cryptography; at least 3, because a stalled socket
   *     may hold up to two of them for a write time-out
   */
  public record Limits(
      int maxBody,
      int chunk,
      int maxWebSocketMessage,
      int maxQueued,
      int maxRequests,
      int maxInbound,
      int maxReassemblies,
      int maxReassemblyBytes,
      int maxHeld,
      int maxHeldBytes,
      int preKeyBatch,
      int senderKeyMessages,
      int cryptoThreads) {
    /** Largest number of chunks of a body. */
    public static final int MAX_CHUNKS = 1024;

    public static final Limits DEFAULT =
        new Limits(
            4 << 20,
            64 << 10,
            512 << 10,
            32 << 20,
            4096,
            512,
            8,
            64 << 20,
            64,
            1 << 20,
            32,
            10_000,
            Math.max(4, Runtime.getRuntime().availableProcessors()));

    public Limits {
      if (maxBody < 1
          || chunk < 1024
          || chunk > 64 << 10
          || maxReassemblies < 1
          || maxHeld < 0
          || maxRequests < 1
          || maxInbound < 1) {
        throw new IllegalArgumentException(
            "channel limits out of range: " + maxBody + ", " + chunk);
      }
      if (maxBody > MAX_CHUNKS * (long) chunk) {
        throw new IllegalArgumentException("maxBody needs more than " + MAX_CHUNKS + " chunks");
      }
      if (preKeyBatch < 1 || preKeyBatch > 100) {
        throw new IllegalArgumentException("preKeyBatch " + preKeyBatch + " is not 1 to 100");
      }
      if (senderKeyMessages < 1 || senderKeyMessages > 20_000) {
        throw new IllegalArgumentException(
            "senderKeyMessages " + senderKeyMessages + " is not 1 to 20000");
      }
      if (cryptoThreads < 3) {
        throw new IllegalArgumentException("cryptoThreads " + cryptoThreads + " is below 3");
      }
    }
  }

  /**
   * @param connect TCP, TLS and WebSocket handshake each
   * @param request until the messaging service must have answered; also how long a request waits
   *     for a reconnect
   * @param write a single write to the socket, before it is taken for dead
   * @param establishWait how long a send waits for keys of a recipient before it fails with
   *     NOT_ESTABLISHED
   * @param reconnectMin first pause before a reconnect; doubles up to {@code reconnectMax}, with
   *     jitter
   * @param displaced pause after the service said that this account is connected elsewhere
   * @param keepAlive pause between keep-alive requests on each socket
   * @param helloMin first pause before an unanswered hello is repeated; doubles up to {@code
   *     helloMax}, with jitter
   * @param reassembly how long an unfinished chunked body is kept
   * @param held how long a group message waits for its sender key
   * @param senderKeyAge a sender key is replaced when it is this old
   * @param rotation how long peers have to confirm a new sender key before it is used anyway
   * @param maxRetryAfter a longer {@code Retry-After} fails the send with RATE_LIMITED
   * @param preKeyCheck period of the check that the service still has one-time prekeys
   * @param heartbeat period of a small broadcast that shows peers this member is alive; a member
   *     unheard for three of them is not reachable
   */
  public record Timing(
      Duration connect,
      Duration request,
      Duration write,
      Duration establishWait,
      Duration reconnectMin,
      Duration reconnectMax,
      Duration displaced,
      Duration keepAlive,
      Duration helloMin,
      Duration helloMax,
      Duration reassembly,
      Duration held,
      Duration senderKeyAge,
      Duration rotation,
      Duration maxRetryAfter,
      Duration preKeyCheck,
      Duration heartbeat) {
    public static final Timing DEFAULT =
        new Timing(
            Duration.ofSeconds(5),
            Duration.ofSeconds(10),
            Duration.ofSeconds(5),
            Duration.ofSeconds(2),
            Duration.ofMillis(50),
            Duration.ofSeconds(10),
            Duration.ofSeconds(30),
            Duration.ofSeconds(20),
            Duration.ofSeconds(1),
            Duration.ofSeconds(10),
            Duration.ofSeconds(30),
            Duration.ofSeconds(10),
            Duration.ofHours(6),
            Duration.ofSeconds(5),
            Duration.ofSeconds(2),
            Duration.ofMinutes(5),
            Duration.ofSeconds(5));

    Timing withSenderKeyAge(Duration age) {
      return new Timing(
          connect,
          request,
          write,
          establishWait,
          reconnectMin,
          reconnectMax,
          displaced,
          keepAlive,
          helloMin,
          helloMax,
          reassembly,
          held,
          age,
          rotation,
          maxRetryAfter,
          preKeyCheck,
          heartbeat);
    }
  }

  @Override
  public String toString() {
    return "ChannelConfig[" + messaging + ", " + sendMode + "]";
  }
}
