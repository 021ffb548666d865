package io.coterie.signer.config;

import io.coterie.channel.SendMode;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.Requester;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.PresignatureLimits;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.policy.LocalRules;
import io.coterie.signer.policy.PathPrefix;
import io.coterie.signer.policy.RequesterRule;
import io.coterie.signer.policy.ShareFloor;
import io.coterie.signer.storage.Backup;
import io.coterie.trust.Glob;
import io.coterie.trust.Member;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.PublicKey;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * The configuration of a signer, {@code coterie.signer.*}. Unknown and impossible settings are
 * refused at start. It holds no secret: secrets are files that it names.
 *
 * @param name of the party in the roster
 * @param partyId 1..65535, stable for the life of its keys
 * @param region where it runs, as it appears in metrics
 * @param data folder of everything the party keeps; owned by this process alone
 * @param drain how long running sessions may take to finish at shutdown
 * @param records how long they are kept, and in how much room
 * @param fence by what else the party notices that its store went back
 * @param metrics password with which they are read
 * @param requesters whom this party obeys, and how far
 */
@ConfigurationProperties(prefix = "coterie.signer", ignoreUnknownFields = false)
public record SignerProperties(
    String name,
    int partyId,
    @DefaultValue("local") String region,
    Path data,
    Unseal unseal,
    Channel channel,
    @DefaultValue Sessions sessions,
    @DefaultValue Presignatures presignatures,
    @DefaultValue("10s") Duration drain,
    @DefaultValue Records records,
    @DefaultValue Fence fence,
    @DefaultValue Metrics metrics,
    @DefaultValue List<RequesterSettings> requesters) {

  private static final Pattern NAME = Pattern.compile("[a-z0-9][a-z0-9-]{0,62}");

  public SignerProperties {
    require(NAME.matcher(name).matches(), "name is not 1 to 63 of [a-z0-9-]");
    require(partyId >= 1 && partyId <= Member.MAX_PARTY_ID, "party-id is not 1 to 65535");
    require(!drain.isNegative(), "drain is negative");
    requesters = List.copyOf(requesters);
  }

  /**
   * How the party gets its data key.
   *
   * @param passphraseFile the passphrase; normally a mounted secret
   * @param keyFile the wrapped data key; {@code data.key} in the data folder if not given. Made at
   *     the first start.
   */
  public record Unseal(Path passphraseFile, @Nullable Path keyFile) {}

  /**
   * The audit records and all that shows what the party did.
   *
   * @param retention how long they are kept: at least three days, a day longer than requests
   * @param minFree with less space than this in the data folder the party is not ready and takes no
   *     new orders, so that what it must not forget can still be written
   */
  public record Records(
      @DefaultValue("30d") Duration retention, @DefaultValue("64MB") DataSize minFree) {
    private static final Duration LEAST = Duration.ofDays(3);

    public Records {
      require(retention.compareTo(LEAST) >= 0, "records.retention is less than 3 days");
      require(!minFree.isNegative(), "records.min-free is negative");
    }
  }

  /**
   * The fence of a store that went back.
   *
   * @param counterFile a file that counts claims outside the data folder; none if not given. It
   *     belongs on a volume that nobody puts back together with the data folder
   */
  public record Fence(@Nullable Path counterFile) {}

  /**
   * Access to the metrics, and to the details of health.
   *
   * @param passwordFile with the password of the user {@code metrics}; nobody may read them if it
   *     is not given
   */
  public record Metrics(@Nullable Path passwordFile) {}

  /**
   * How the party gets onto the secure channel.
   *
   * @param messaging base URI of the messaging service, https
   * @param caFile PEM of the authority of messaging's certificate, or of the edge's before it
   * @param certificateFile PEM of the certificate that all parties of the installation show at the
   *     edge; none is shown if not given
   * @param privateKeyFile its key
   * @param trustRoot base64 of the key under which the messaging service certifies senders
   * @param number account number to enrol with
   * @param tokenFile one-time token to enrol with; needed at the first start only
   * @param trustFile the pinned members; {@code trust.json} in the data folder if not given
   * @param trustFileRoots fingerprint of the root keys that some version of the trust file must
   *     have; if not given, those of the first file count
   * @param senderKeyAge how long a sender key is used before it is replaced
   * @param measured whether this is a measurement: then messages may go by name, and contributions
   *     to all, to compare
   * @param contributionsToAll whether BLS contributions, which the coordinator alone needs, go to
   *     the other parties of the signing set as well, as in the paper's prototype
   */
  public record Channel(
      URI messaging,
      Path caFile,
      @Nullable Path certificateFile,
      @Nullable Path privateKeyFile,
      String trustRoot,
      String number,
      @Nullable Path tokenFile,
      @DefaultValue("GROUP") SendMode sendMode,
      @Nullable Path trustFile,
      @Nullable String trustFileRoots,
      @DefaultValue("6h") Duration senderKeyAge,
      @DefaultValue("false") boolean measured,
      @DefaultValue("false") boolean contributionsToAll) {

    public Channel {
      sendMode.requireFor(measured);
      require(
          measured || !contributionsToAll,
          "channel.contributions-to-all only where channel.measured is true");
      require(
          (certificateFile == null) == (privateKeyFile == null),
          "channel.certificate-file and channel.private-key-file go together");
    }
  }

  /**
   * Limits of sessions; see {@link SessionLimits}. However high {@code maxPerRequester} is, a
   * requester leaves places to others.
   *
   * @param clockSkew a second at most: no request id that was claimed before may lie after the
   *     fence of a start, which takes longer
   * @param threads that compute; 0 for one a processor
   */
  public record Sessions(
      @DefaultValue("256") int max,
      @DefaultValue("256") int maxPerRequester,
      @DefaultValue("2m") Duration maxTime,
      @DefaultValue("1s") Duration clockSkew,
      @DefaultValue("30ms") Duration combineDelay,
      @DefaultValue("0") int threads) {

    private static final Duration MOST_SKEW = Duration.ofSeconds(1);

    public Sessions {
      require(clockSkew.compareTo(MOST_SKEW) <= 0, "sessions.clock-skew is above a second");
      require(threads >= 0 && threads <= 256, "sessions.threads is not 0 to 256");
    }

    SessionLimits limits(Presignatures presignatures) {
      return new SessionLimits(
          max, maxPerRequester, maxTime, clockSkew, combineDelay, presignatures.limits());
    }

    int poolSize() {
      return threads == 0 ? Runtime.getRuntime().availableProcessors() : threads;
    }
  }

  /**
   * Limits of presignatures, see {@link PresignatureLimits}. Each takes memory and makes one
   * signature faster.
   */
  public record Presignatures(
      @DefaultValue("256") int maxPerKey,
      @DefaultValue("1024") int maxTotal,
      @DefaultValue("8") int maxRunning,
      @DefaultValue("12") int maxBlocks,
      @DefaultValue("30m") Duration maxAge) {

    /** Most blocks, so that the vault has as much room for signatures that find none prepared. */
    private static final int MOST_BLOCKS = 24;

    public Presignatures {
      require(maxBlocks <= MOST_BLOCKS, "presignatures.max-blocks is above 24");
    }

    PresignatureLimits limits() {
      return new PresignatureLimits(maxPerKey, maxTotal, maxRunning, maxBlocks, maxAge);
    }
  }

  /**
   * One requester. Everything that is not allowed is forbidden, here or by the trust file.
   *
   * @param name as it writes it into {@code keyid}
   * @param publicKeyFile PEM, Ed25519 or P-256, which the trust file must have as its present key,
   *     too; whichever that file gives it if not given
   * @param keys names or globs, for example {@code keys/treasury-*} or {@code groups/approvers}
   * @param schemes {@code bls12381}, {@code ecdsa-secp256k1}, {@code ed25519}, {@code
   *     bip340-secp256k1}
   * @param mayCreateKeys whether it may create keys of those names
   * @param mayImportKeys whether it may have keys of those names taken over that exist already,
   *     within the bounds that follow; not implied by any other right
   * @param mayRefreshKeys whether it may have their shares replaced; not implied by any other right
   * @param mayReshareKeys whether it may hand their shares to other parties or change the
   *     threshold, within the bounds that follow; not implied by any other right
   * @param mayCreateGroups whether it may have groups of approvers of those names made; not implied
   *     by any other right
   * @param mayOpenApprovals whether it may learn who made an approval; not implied by anything
   * @param minThreshold the fewest parties that may be able to sign with a key that it creates or
   *     reshares; 2 if not given
   * @param minParties the fewest parties that may hold a share of such a key; 2 if not given
   * @param allowedParties names of the parties that may hold a share of such a key; every party of
   *     the roster if not given
   * @param payloads labels of {@link PayloadKind}; if not given, transactions and Ethereum
   *     messages: not {@code digest} and {@code message}, which may be anything, and not {@code
   *     ethereum-typed-data}, which may mean anything to its contract
   * @param derivationPrefixes paths below a key that it may use: {@code m} for all
   * @param purposes globs over the intent's purpose
   * @param maxMessageBytes of a payload to sign
   * @param lapse {@code never}: this party contributes to one session of a request alone
   * @param approvals without which no key signs for it; none are needed if not given
   */
  public record RequesterSettings(
      String name,
      @Nullable Path publicKeyFile,
      List<String> keys,
      @DefaultValue("bls12381") List<String> schemes,
      @DefaultValue("false") boolean mayCreateKeys,
      @DefaultValue("false") boolean mayImportKeys,
      @DefaultValue("false") boolean mayRefreshKeys,
      @DefaultValue("false") boolean mayReshareKeys,
      @DefaultValue("false") boolean mayCreateGroups,
      @DefaultValue("false") boolean mayOpenApprovals,
      @DefaultValue("2") int minThreshold,
      @DefaultValue("2") int minParties,
      @DefaultValue List<String> allowedParties,
      @DefaultValue({
            "ethereum-transaction",
            "ethereum-message",
            "bitcoin-input",
            "solana-transaction"
          })
          List<String> payloads,
      @DefaultValue("m") List<String> derivationPrefixes,
      @DefaultValue("*") List<String> purposes,
      @DefaultValue("65536") int maxMessageBytes,
      @DefaultValue("after-deadline") RequesterRule.Lapse lapse,
      @Nullable Approvals approvals) {

    public RequesterSettings {
      require(Requester.isName(name), "a requester's name is not 1 to 63 of [a-z0-9._-]");
      require(!keys.isEmpty(), "requester " + name + " has no keys");
      require(maxMessageBytes > 0, "requester " + name + ": max-message-bytes is not positive");
    }

    LocalRules.Local local() {
      return new LocalRules.Local(pinned(), rule());
    }

    private Optional<PublicKey> pinned() {
      if (publicKeyFile == null) {
        return Optional.empty();
      }
      try {
        return Optional.of(Requester.of(name, Files.readString(publicKeyFile)).publicKey());
      } catch (IOException e) {
        throw new IllegalArgumentException(
            "requester " + name + ": cannot read " + publicKeyFile, e);
      }
    }

    RequesterRule rule() {
      try {
        return stated();
      } catch (IllegalArgumentException e) {
        throw new IllegalArgumentException("requester " + name + ": " + e.getMessage(), e);
      }
    }

    private RequesterRule stated() {
      return new RequesterRule(
          keys.stream().map(Glob::ofKeys).toList(),
          schemes.stream().map(RequesterSettings::scheme).collect(Collectors.toSet()),
          mayCreateKeys,
          mayImportKeys,
          mayRefreshKeys,
          mayReshareKeys,
          mayCreateGroups,
          mayOpenApprovals,
          new ShareFloor(minThreshold, minParties, Set.copyOf(allowedParties)),
          payloads.stream().map(RequesterSettings::payloadKind).collect(Collectors.toSet()),
          derivationPrefixes.stream().map(PathPrefix::parse).toList(),
          purposes.stream().map(Glob::new).toList(),
          maxMessageBytes,
          lapse,
          approvals == null ? null : approvals.stated());
    }

    private static PayloadKind payloadKind(String label) {
      return PayloadKind.ofLabel(label)
          .orElseThrow(() -> new IllegalArgumentException("no payload kind " + label));
    }

    private static Scheme scheme(String text) {
      String wanted = "SCHEME_" + text.replace('-', '_').toUpperCase(Locale.ROOT);
      Set<Scheme> none = Set.of(Scheme.SCHEME_UNSPECIFIED, Scheme.UNRECOGNIZED);
      return Arrays.stream(Scheme.values())
          .filter(s -> !none.contains(s) && s.name().equals(wanted))
          .findFirst()
          .orElseThrow(() -> new IllegalArgumentException("no scheme " + text));
    }
  }

  /**
   * The approvals that a requester's signatures need.
   *
   * @param group of approvers, without {@code groups/}
   * @param needed how many of its members have to approve, 1 to 32
   */
  public record Approvals(@Nullable String group, int needed) {
    NeededApprovals stated() {
      return new NeededApprovals("groups/" + (group == null ? "" : group), needed);
    }
  }

  Path keyFile() {
    return unseal.keyFile() == null ? data.resolve(Backup.DATA_KEY) : unseal.keyFile();
  }

  Path trustFile() {
    return channel.trustFile() == null ? data.resolve("trust.json") : channel.trustFile();
  }

  /** Where the party's own entry for the roster is written. */
  Path rosterEntryFile() {
    return data.resolve("roster-entry.json");
  }

  private static void require(boolean condition, String problem) {
    if (!condition) {
      throw new IllegalArgumentException("coterie.signer: " + problem);
    }
  }
}
