package io.coterie.signer.config;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.SecureChannel;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.Vault;
import io.coterie.platform.unseal.DataKeySource;
import io.coterie.signer.channel.ChannelNetwork;
import io.coterie.signer.claim.OutsideCounter;
import io.coterie.signer.group.ApprovalCheck;
import io.coterie.signer.group.GroupPorts;
import io.coterie.signer.group.GroupService;
import io.coterie.signer.nativecore.VaultCore;
import io.coterie.signer.order.Hold;
import io.coterie.signer.party.PeerClocks;
import io.coterie.signer.party.ThreadWorkPool;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.policy.LocalRules;
import io.coterie.signer.policy.TrustedPolicy;
import io.coterie.signer.session.SessionPorts;
import io.coterie.signer.session.SessionService;
import io.coterie.signer.share.KeyTrouble;
import io.coterie.signer.storage.AcceptedTrust;
import io.coterie.signer.storage.PartySecrets;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.telemetry.SignerMetrics;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.Trust;
import java.io.IOException;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.SmartLifecycle;

/**
 * One incarnation of a party, step by step: unseal, enrol, wait for the roster, connect, serve,
 * drain. Each step is tried again until it succeeds; until then the process is live but not ready.
 */
final class Party implements SmartLifecycle, HealthIndicator {
  private static final Logger log = LoggerFactory.getLogger(Party.class);

  private static final String IDENTITY = "evidence-identity";
  private static final String ACCOUNT = "channel-account";
  private static final String ACCOUNT_LABEL = "coterie/signer/channel-account/1";

  /** Where the party is. */
  enum Phase {
    /** No data key: nothing can be opened. */
    SEALED(Duration.ofSeconds(5)),
    ENROLLING(Duration.ofSeconds(1)),
    WAITING_FOR_ROSTER(Duration.ofMillis(200)),
    CONNECTING(Duration.ofSeconds(1)),
    READY(Duration.ZERO),
    DRAINING(Duration.ZERO),
    STOPPED(Duration.ZERO);

    /** Pause before the step that leads out of this phase is tried again. */
    private final Duration pause;

    Phase(Duration pause) {
      this.pause = pause;
    }
  }

  private final SignerProperties properties;
  private final DataKeySource dataKeys;
  private final Supplier<MpcCore> core;
  private final ChannelAccess access;
  private final LocalRules rules;
  private final DiskRoom room;
  private final SignerMetrics metrics;
  private final OutsideCounter counter;
  private final Clock clock;

  private volatile Phase phase = Phase.STOPPED;
  private volatile String problem = "";
  private @Nullable ScheduledExecutorService starter;

  // Touched by the starter's thread, and by the stopping one after that has ended.
  private volatile @Nullable PartyStore store;
  private @Nullable Vault vault;
  private byte[] sealedIdentity = {};
  private byte[] evidenceKey = {};
  private @Nullable ChannelAccount account;
  private @Nullable Member self;
  private @Nullable Trust trust;
  private @Nullable WorkPool pool;
  private @Nullable SecureChannel channel;
  private volatile BooleanSupplier connected = () -> false;
  private @Nullable SessionService service;
  private @Nullable GroupService groups;
  private volatile @Nullable PeerClocks clocks;

  /** Requesters of the configuration whom the trust file does not bear out. */
  private volatile List<String> leftOut = List.of();

  Party(
      SignerProperties properties,
      DataKeySource dataKeys,
      Supplier<MpcCore> core,
      ChannelAccess access,
      LocalRules rules,
      SignerMetrics metrics,
      OutsideCounter counter,
      Clock clock) {
    this.properties = properties;
    this.dataKeys = dataKeys;
    this.core = core;
    this.access = access;
    this.rules = rules;
    this.room =
        new DiskRoom(properties.data(), properties.records().minFree().toBytes(), () -> store);
    this.metrics = metrics;
    this.counter = counter;
    this.clock = clock;
    metrics.vault(() -> phase != Phase.SEALED && phase != Phase.STOPPED);
    metrics.troubles(this::troubles);
    metrics.holds(this::holds);
    metrics.room(room::free, room::total);
    metrics.clock(() -> ahead().toMillis() / 1000.0);
  }

  @Override
  public synchronized void start() {
    ScheduledThreadPoolExecutor executor =
        new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().daemon().name(properties.name() + "-start").factory());
    executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    starter = executor;
    phase = Phase.SEALED;
    executor.execute(this::advance);
  }

  /** Goes as far as it can, then comes back after the phase's pause. */
  private void advance() {
    try {
      while (step()) {
        problem = "";
      }
    } catch (IOException | RuntimeException | Error e) {
      // An error too, for example a native library that does not load: it must be seen.
      tell(phase + ": " + e.getMessage(), e);
    }
    ScheduledExecutorService executor = starter;
    if (executor != null && !executor.isShutdown() && phase != Phase.READY) {
      executor.schedule(this::advance, phase.pause.toNanos(), TimeUnit.NANOSECONDS);
    }
  }

  /** One step; false if it has to be tried again later, or nothing is left to do. */
  private boolean step() throws IOException {
    return switch (phase) {
      case SEALED -> {
        unseal();
        yield enter(Phase.ENROLLING);
      }
      case ENROLLING -> {
        enrol();
        yield enter(Phase.WAITING_FOR_ROSTER);
      }
      case WAITING_FOR_ROSTER -> {
        trust = pinned().orElse(null);
        yield trust != null && enter(Phase.CONNECTING);
      }
      case CONNECTING -> {
        connect();
        yield enter(Phase.READY);
      }
      case READY, DRAINING, STOPPED -> false;
    };
  }

  private boolean enter(Phase next) {
    phase = next;
    log.info("{} is {}", properties.name(), next);
    return true;
  }

  private void tell(String what, @Nullable Throwable e) {
    if (!what.equals(problem)) {
      problem = what;
      log.warn("{}", what, e);
    }
  }

  private void unseal() {
    // The key first: its source makes one only as long as there is nothing sealed under another.
    if (vault == null) {
      byte[] dataKey = dataKeys.dataKey();
      try {
        vault = core.get().openVault(dataKey);
      } finally {
        Arrays.fill(dataKey, (byte) 0);
      }
    }
    if (store == null) {
      store =
          PartyStore.open(
              properties.data(),
              properties.name(),
              clock,
              metrics::committed,
              properties.records().retention(),
              properties.records().minFree().toBytes(),
              counter);
    }
    PartySecrets.Secret identity = store.secrets().find(IDENTITY).orElse(null);
    if (identity == null) {
      Vault.SealedIdentity fresh = vault.createIdentity(properties.name());
      identity = new PartySecrets.Secret(fresh.sealed(), fresh.evidenceKey());
      store.secrets().save(IDENTITY, identity);
    }
    sealedIdentity = identity.sealed();
    evidenceKey = identity.publicPart();
  }

  private void enrol() throws IOException {
    PartyStore openStore = present(store);
    Vault openVault = present(vault);
    PartySecrets.Secret stored = openStore.secrets().find(ACCOUNT).orElse(null);
    ChannelAccount found;
    if (stored == null) {
      found = access.enrol();
      byte[] plain = AccountCodec.encode(found);
      try {
        openStore
            .secrets()
            .save(
                ACCOUNT,
                new PartySecrets.Secret(openVault.seal(ACCOUNT_LABEL, plain), new byte[0]));
      } finally {
        Arrays.fill(plain, (byte) 0);
      }
    } else {
      byte[] plain = openVault.unseal(ACCOUNT_LABEL, stored.sealed());
      try {
        found = AccountCodec.decode(plain);
      } finally {
        Arrays.fill(plain, (byte) 0);
      }
    }
    account = found;
    self = access.member(found, evidenceKey);
    access.writeEntry(self);
  }

  /**
   * The trust file, once it is there and its roster names exactly this party. A later version is
   * remembered also if it does not: the party may have left. A first one is not: it may be that of
   * another installation, and then none of its own could ever follow.
   */
  private Optional<Trust> pinned() throws IOException {
    // Here and not with the sessions' housekeeping: without a roster there are no sessions.
    present(store).doAsAsked();
    Optional<SignedTrust> offered = access.trust();
    Member me = present(self);
    if (offered.isEmpty()) {
      problem = "there is no roster yet";
      return Optional.empty();
    }
    SignedTrust signed = offered.get();
    AcceptedTrust accepted = present(store).trust();
    Roster roster = signed.trust().roster();
    boolean named = roster.byName(me.name()).filter(me::equals).isPresent();
    if (named || accepted.find().isPresent()) {
      accepted.accept(signed, held -> TrustAudit.accepted(held, signed));
    }
    if (!named) {
      tell("the roster does not have this party as its roster entry says", null);
      return Optional.empty();
    }
    return Optional.of(signed.trust());
  }

  private void connect() throws IOException {
    closeSessions();
    Trust trusted = present(trust);
    TrustedPolicy policy = rules.within(trusted);
    leftOut = policy.leftOut();
    leftOut.forEach(each -> log.warn("{}: its intents are refused", each));
    WorkPool freshPool =
        new ThreadWorkPool(
            properties.name(),
            properties.sessions().poolSize(),
            properties.sessions().combineDelay());
    pool = freshPool;
    ChannelAccess.Opened opened = access.open(present(account), trusted.roster());
    SecureChannel freshChannel = opened.channel();
    channel = freshChannel;
    connected = opened.connected();
    ChannelNetwork network =
        new ChannelNetwork(
            freshChannel, freshPool, metrics, properties.channel().contributionsToAll());
    PartyStore openStore = present(store);
    VaultCore vaultCore = new VaultCore(present(vault), sealedIdentity);
    PeerClocks freshClocks =
        new PeerClocks(network, vaultCore::signStatement, freshPool, clock, new SecureRandom());
    clocks = freshClocks;
    SessionService freshService =
        new SessionService(
            new SessionPorts(
                network,
                policy,
                new ApprovalCheck(
                    openStore.groups(), network.roster(), vaultCore, freshPool::nanos),
                new SessionPorts.Ledgers(
                    openStore.claims(),
                    openStore.shares(),
                    openStore.shownClaims(),
                    openStore.holds(),
                    openStore.exactNonces()),
                vaultCore,
                openStore.audit(),
                metrics,
                clock),
            properties.sessions().limits(properties.presignatures()),
            freshClocks::behind,
            freshPool);
    service = freshService;
    GroupService freshGroups =
        new GroupService(
            new GroupPorts(
                network,
                policy,
                new GroupPorts.Memory(
                    openStore.groups(),
                    openStore.tickets(),
                    openStore.claims(),
                    freshService.disk(),
                    openStore.holds(),
                    freshService::mayHaveForgotten),
                properties.sessions().limits(properties.presignatures()),
                vaultCore,
                vaultCore,
                openStore.audit(),
                metrics,
                clock,
                new SecureRandom()),
            freshPool);
    groups = freshGroups;
    network.deliverTo(freshClocks);
    network.deliverTo(freshGroups);
    network.deliverTo(freshService);
    freshChannel.start();
  }

  private static <T> T present(@Nullable T value) {
    if (value == null) {
      throw new IllegalStateException("a step of the start was left out");
    }
    return value;
  }

  /** Refuses new orders, lets running sessions finish, and gives everything back. */
  @Override
  public synchronized void stop() {
    ScheduledExecutorService executor = starter;
    if (executor == null) {
      return;
    }
    boolean wasReady = phase == Phase.READY;
    executor.shutdownNow();
    try {
      if (!executor.awaitTermination(properties.drain().toMillis() + 1, TimeUnit.MILLISECONDS)) {
        log.warn("this party stops while a step of its start is still running");
      }
      if (wasReady && service != null) {
        phase = Phase.DRAINING;
        if (groups != null) {
          groups.drain();
        }
        boolean drained = service.drain(properties.drain());
        log.info("this party's sessions {}", drained ? "have ended" : "did not end in time");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    phase = Phase.STOPPED;
    closeSessions();
    if (vault != null) {
      vault.close();
      vault = null;
    }
    if (store != null) {
      store.close();
      store = null;
    }
    starter = null;
  }

  private void closeSessions() {
    PeerClocks closing = clocks;
    if (closing != null) {
      closing.close();
      clocks = null;
    }
    if (groups != null) {
      groups.close();
      groups = null;
    }
    if (service != null) {
      service.close();
      service = null;
    }
    if (channel != null) {
      channel.close();
      channel = null;
    }
    if (pool != null) {
      pool.close();
      pool = null;
    }
  }

  /** The troubles that keep keys from being used here. */
  private List<KeyTrouble> troubles() {
    PartyStore open = store;
    return open == null ? List.of() : open.shares().troubles();
  }

  private Duration ahead() {
    PeerClocks open = clocks;
    return open == null ? Duration.ZERO : open.ahead();
  }

  private List<Hold> holds() {
    PartyStore open = store;
    return open == null ? List.of() : open.holds().all();
  }

  @Override
  public boolean isRunning() {
    return starter != null;
  }

  @Override
  public Health health() {
    Phase now = phase;
    boolean online = now == Phase.READY && connected.getAsBoolean();
    Optional<String> room = this.room.problem();
    PeerClocks clocks = this.clocks;
    boolean apart = clocks != null && clocks.isApart();
    PartyStore open = store;
    Optional<String> counting = open == null ? Optional.empty() : open.counterProblem();
    boolean well = online && room.isEmpty() && counting.isEmpty() && !apart;
    Health.Builder health = well ? Health.up() : Health.outOfService();
    counting.ifPresent(problem -> health.withDetail("counter", problem));
    if (apart) {
      health.withDetail(
          "clock", "the clocks of the peers are ahead by " + ahead() + ": set this one right");
    }
    room.ifPresent(problem -> health.withDetail("disk", problem));
    health.withDetail("phase", now.name());
    if (now == Phase.READY && !online) {
      health.withDetail("problem", "the messaging service is not connected");
    }
    if (now != Phase.READY && !problem.isEmpty()) {
      health.withDetail("problem", problem);
    }
    List<String> unknown = leftOut;
    if (!unknown.isEmpty()) {
      health.withDetail("requesters", unknown);
    }
    List<String> troubles = troubles().stream().map(KeyTrouble::text).toList();
    if (!troubles.isEmpty()) {
      health.withDetail("keys", troubles);
    }
    List<String> holds = holds().stream().map(Hold::text).toList();
    if (!holds.isEmpty()) {
      health.withDetail("holds", holds);
    }
    return health.build();
  }
}
