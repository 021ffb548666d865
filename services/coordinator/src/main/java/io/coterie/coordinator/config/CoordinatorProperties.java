package io.coterie.coordinator.config;

import io.coterie.channel.SendMode;
import io.coterie.coordinator.session.AdaptiveTimeout;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Everything that can be configured about the service, besides Spring's own {@code
 * spring.datasource}, {@code spring.grpc.server}, {@code server} and {@code management}. Unknown
 * keys stop the start.
 *
 * @param replica name of this member in the roster, another one for each replica
 * @param region where it runs, as it appears in metrics
 * @param dataFolder where {@code roster-entry.json} and the wrapped data key are written to
 * @param tls certificates of the gRPC and the management port, and the authorities that they trust
 * @param channel the way to the parties
 * @param unseal means to open the channel account
 * @param requesters whose intents are accepted
 * @param clients whose certificates are accepted
 * @param edges names of certificates, as {@link Client#certificates}, of the proxies that are
 *     believed when they say in {@code x-forwarded-client-cert} who calls
 * @param limits bounds of the work
 * @param handover between the replicas
 * @param signing time for one session of a signature
 * @param keygen time for one session of a key generation or refresh
 * @param presignatures stock that is kept ready for signings to come
 * @param metrics password with which they are read
 */
@ConfigurationProperties(prefix = "coterie.coordinator", ignoreUnknownFields = false)
public record CoordinatorProperties(
    @DefaultValue("coordinator") String replica,
    @DefaultValue("local") String region,
    Path dataFolder,
    Tls tls,
    Channel channel,
    Unseal unseal,
    @DefaultValue List<Requester> requesters,
    @DefaultValue List<Client> clients,
    @DefaultValue Set<String> edges,
    @DefaultValue Limits limits,
    @DefaultValue Handover handover,
    @DefaultValue SigningTime signing,
    @DefaultValue KeygenTime keygen,
    @DefaultValue Presignatures presignatures,
    @DefaultValue Metrics metrics) {

  /** A party refuses orders whose deadline is further away: its {@code sessions.max-time}. */
  private static final Duration LONGEST_ORDER = Duration.ofMinutes(2);

  Path trustFile() {
    return channel.trustFile() == null ? dataFolder.resolve("trust.json") : channel.trustFile();
  }

  public CoordinatorProperties {
    requesters = List.copyOf(requesters);
    clients = List.copyOf(clients);
    edges = Set.copyOf(edges);
    for (Duration time :
        List.of(
            signing.max(), keygen.max(), presignatures.sessionTime(), AdaptiveTimeout.LONGEST)) {
      if (time.plus(limits.clockSkew()).compareTo(LONGEST_ORDER) > 0) {
        throw new IllegalArgumentException(
            "a session's time and the clock skew together are more than "
                + LONGEST_ORDER
                + ", which parties refuse");
      }
    }
  }

  /**
   * Transport security.
   *
   * @param certificate PEM file, server certificate first
   * @param privateKey PEM file
   * @param clientCa PEM file with the authorities whose client certificates are accepted
   */
  public record Tls(Path certificate, Path privateKey, Path clientCa) {}

  /**
   * Access to the metrics, and to the details of health.
   *
   * @param passwordFile with the password of the user {@code metrics}; nobody may read them if it
   *     is not given
   */
  public record Metrics(@Nullable Path passwordFile) {}

  /**
   * The way to the parties.
   *
   * @param messaging base URI of the messaging service
   * @param ca PEM file with the installation's certificate authority
   * @param trustRoot file with the base64 of the public key that vouches for senders
   * @param number under which this replica is registered
   * @param tokenFile one-time enrolment token; needed until the first start has succeeded
   * @param sendMode how broadcasts travel
   * @param senderKeyAge how long a sender key is used before it is replaced
   * @param trustFile the pinned members; {@code trust.json} in the data folder if not given
   * @param measured whether this is a measurement: then messages may go by name, to compare
   */
  public record Channel(
      URI messaging,
      Path ca,
      Path trustRoot,
      String number,
      Path tokenFile,
      @DefaultValue("group") SendMode sendMode,
      @DefaultValue("6h") Duration senderKeyAge,
      @Nullable Path trustFile,
      @DefaultValue("false") boolean measured) {

    public Channel {
      sendMode.requireFor(measured);
    }
  }

  /**
   * Unsealing.
   *
   * @param passphraseFile file of the passphrase that unwraps the data key
   */
  public record Unseal(Path passphraseFile) {}

  /**
   * A requester.
   *
   * @param name as in the {@code keyid} of its intents
   * @param publicKey PEM file (SPKI) with an Ed25519 or P-256 key
   */
  public record Requester(String name, Path publicKey) {}

  /**
   * A client.
   *
   * @param name for the audit trail
   * @param certificates names of its certificates: {@code subject:CN=...}, {@code dns:...} or
   *     {@code uri:...}; one match is enough
   * @param submitFor requesters whose intents it may submit
   * @param readKeys keys it may read: resource names in which {@code *} stands for any text
   * @param readSignings requesters whose signings of these keys it may read, besides those that it
   *     submits for; {@code *} for all
   */
  public record Client(
      String name,
      Set<String> certificates,
      @DefaultValue Set<String> submitFor,
      @DefaultValue Set<String> readKeys,
      @DefaultValue Set<String> readSignings) {}

  /**
   * Bounds.
   *
   * @param runs requests being worked on at once; one requester gets at most seven times as many as
   *     are free, so seven of eight if it is alone
   * @param atOnce signing sessions at once; more requests than that wait for their turn. Fewer run
   *     while the parties cannot do as many in time
   * @param signingSessions sessions tried for one signature
   * @param keygenSessions sessions tried for one key
   * @param clockSkew by how much the parties' clocks may differ
   * @param longestWait how long a call without a deadline waits
   * @param cryptoThreads platform threads for the core and the verifier; 0: one a processor
   */
  public record Limits(
      @DefaultValue("1024") int runs,
      @DefaultValue("128") int atOnce,
      @DefaultValue("100") int signingSessions,
      @DefaultValue("8") int keygenSessions,
      @DefaultValue("2s") Duration clockSkew,
      @DefaultValue("30s") Duration longestWait,
      @DefaultValue("0") int cryptoThreads) {
    public Limits {
      if (runs < 1
          || atOnce < 1
          || signingSessions < 1
          || keygenSessions < 1
          || cryptoThreads < 0) {
        throw new IllegalArgumentException("limits must be positive");
      }
      if (clockSkew.isNegative() || !longestWait.isPositive()) {
        throw new IllegalArgumentException(
            "limits.clock-skew and limits.longest-wait are out of range");
      }
    }

    int threads() {
      return cryptoThreads > 0 ? cryptoThreads : Runtime.getRuntime().availableProcessors();
    }
  }

  /**
   * How replicas hand their work to each other.
   *
   * @param goneAfter how long a replica is believed to be there that does not show it: every second
   *     it says so in the database. Its work is taken over then. At least 4 s, so that an outage
   *     after which it seems gone is one that the others have noticed
   * @param drain how long a replica that stops lets its calls end; then it leaves their work to the
   *     others. Less than {@code spring.grpc.server.shutdown.grace-period}
   */
  public record Handover(
      @DefaultValue("5s") Duration goneAfter, @DefaultValue("8s") Duration drain) {
    public Handover {
      if (goneAfter.compareTo(Duration.ofSeconds(4)) < 0 || drain.isNegative()) {
        throw new IllegalArgumentException(
            "handover.gone-after is below 4 s, or handover.drain is negative");
      }
    }
  }

  /**
   * Time for one signing session: adapts between the bounds to what sessions take.
   *
   * @param initial until the first one has succeeded
   */
  public record SigningTime(
      @DefaultValue("1s") Duration min,
      @DefaultValue("3s") Duration initial,
      @DefaultValue("10s") Duration max) {}

  /** Time for one key generation session; as {@link SigningTime}. */
  public record KeygenTime(
      @DefaultValue("5s") Duration min,
      @DefaultValue("15s") Duration initial,
      @DefaultValue("60s") Duration max) {}

  /**
   * The pool of presignatures. One of 2 parties costs each about as much computation as a signature
   * and 43 KB of messages; the parties have limits of their own.
   *
   * @param target wanted for a combination of key, signing set and derivation path that is in use;
   *     fewer than one session makes may lack. 0: none are made
   * @param targetBlocks wanted in blocks of the message, for signatures of imported Ed25519 keys,
   *     each of which costs a party a quarter of a second and some 20 MB a block; the parties keep
   *     12 of all coordinators by default
   * @param lowMark below so many, they are made even while signings are waiting
   * @param maxTotal over all combinations; the parties keep 1024 of all coordinators by default
   * @param maxCombinations that are kept filled
   * @param maxAge after which one is not used any more; less than the parties' own
   * @param idleTime after which an unused combination is not filled any more
   * @param maxRunning sessions at once, each of up to 4 (ECDSA) or 16 presignatures; the parties
   *     run 8 at once for all coordinators by default
   * @param yieldTo signings being worked on from which on nothing is made above the low mark
   * @param sessionTime for one session
   */
  public record Presignatures(
      @DefaultValue("64") int target,
      @DefaultValue("2") int targetBlocks,
      @DefaultValue("32") int lowMark,
      @DefaultValue("512") int maxTotal,
      @DefaultValue("128") int maxCombinations,
      @DefaultValue("10m") Duration maxAge,
      @DefaultValue("10m") Duration idleTime,
      @DefaultValue("4") int maxRunning,
      @DefaultValue("4") int yieldTo,
      @DefaultValue("5s") Duration sessionTime) {
    public Presignatures {
      if (target < 0
          || targetBlocks < 0
          || lowMark < 0
          || maxTotal < target
          || maxCombinations < 1
          || maxRunning < 1
          || yieldTo < 1) {
        throw new IllegalArgumentException("presignatures has a number out of range");
      }
      if (!maxAge.isPositive() || !idleTime.isPositive() || !sessionTime.isPositive()) {
        throw new IllegalArgumentException("times of presignatures must be positive");
      }
    }
  }
}
