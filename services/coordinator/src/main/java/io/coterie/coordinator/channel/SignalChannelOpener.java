package io.coterie.coordinator.channel;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.link.Enrolment;
import io.coterie.channel.signal.SignalChannel;
import io.coterie.platform.unseal.PassphraseDataKeySource;
import io.coterie.trust.Member;
import io.coterie.trust.MemberEntry;
import io.coterie.trust.Roster;
import io.coterie.trust.TrustFile;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The channel over the messaging service. The first opening makes the data key of this replica and
 * enrols with a one-time token. Each opening writes this replica's roster entry for the operator to
 * collect, and waits for a roster that pins exactly that entry.
 */
public final class SignalChannelOpener implements ChannelOpener {
  private static final Logger log = LoggerFactory.getLogger(SignalChannelOpener.class);

  /** Pause between two looks for a roster that is not there yet. */
  private static final Duration LOOK = Duration.ofMillis(200);

  private static final String ENTRY = "roster-entry.json";

  /**
   * The identity of this replica.
   *
   * @param name in the roster
   * @param number to enrol with
   * @param tokenFile one-time token to enrol with; read at the first start only
   * @param folder for {@code roster-entry.json}
   * @param trustFile names the pinned members
   */
  public record Replica(
      String name, String region, String number, Path tokenFile, Path folder, Path trustFile) {}

  private final Replica replica;
  private final ChannelConfig config;
  private final SealedAccounts accounts;
  private final PassphraseDataKeySource dataKey;
  private final AccountSealer sealer;
  private final MeterRegistry registry;
  private final SecureRandom random;
  private final Clock clock;

  /**
   * Reads and writes nothing before {@link #open}.
   *
   * @param dataKey seals the account
   */
  public SignalChannelOpener(
      Replica replica,
      ChannelConfig config,
      SealedAccounts accounts,
      PassphraseDataKeySource dataKey,
      SecureRandom random,
      MeterRegistry registry,
      Clock clock) {
    this.replica = replica;
    this.config = config;
    this.accounts = accounts;
    this.dataKey = dataKey;
    this.sealer = new AccountSealer(dataKey, random);
    this.random = random;
    this.registry = registry;
    this.clock = clock;
  }

  @Override
  public SecureChannel open(Consumer<InboundMessage> receiver) throws InterruptedException {
    ChannelAccount account = account();
    Member self =
        Enrolment.member(
            account, replica.name(), Member.Role.COORDINATOR, 0, replica.region(), new byte[0]);
    try {
      MemberEntry.write(replica.folder().resolve(ENTRY), self);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + ENTRY, e);
    }
    SecureChannel channel = SignalChannel.open(config, account, awaitRoster(self), registry);
    channel.onMessage(receiver);
    channel.start();
    return channel;
  }

  private ChannelAccount account() {
    Optional<byte[]> sealed = accounts.load(replica.name());
    if (sealed.isPresent()) {
      return sealer.unseal(replica.name(), sealed.get());
    }
    // First of all: the token can be spent only once, and its account must be kept.
    if (!dataKey.exists()) {
      dataKey.create(random, PassphraseDataKeySource.Cost.STANDARD);
    }
    ChannelAccount account =
        Enrolment.enrol(
            config.messaging(),
            config.caPem(),
            config.client(),
            replica.number(),
            token(replica.tokenFile()));
    accounts.saveOnce(replica.name(), sealer.seal(replica.name(), account), clock.instant());
    log.info("replica {} enrolled as account {}", replica.name(), account);
    return account;
  }

  private static String token(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read the enrolment token file " + file, e);
    }
  }

  private Roster awaitRoster(Member self) throws InterruptedException {
    Path file = replica.trustFile();
    String said = "";
    while (true) {
      String problem = "there is no " + file;
      if (Files.exists(file)) {
        try {
          Roster roster = TrustFile.read(file).verified().trust().roster();
          if (roster.byName(replica.name()).filter(self::equals).isPresent()) {
            return roster;
          }
          problem = file + " does not pin this replica as it is: compare with " + ENTRY;
        } catch (IllegalArgumentException | IOException e) {
          problem = file + ": " + e.getMessage();
        }
      }
      if (!problem.equals(said)) {
        log.info("this replica waits for the roster: {}", problem);
        said = problem;
      }
      Thread.sleep(LOOK);
    }
  }
}
