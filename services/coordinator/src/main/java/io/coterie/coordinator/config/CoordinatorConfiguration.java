package io.coterie.coordinator.config;

import com.zaxxer.hikari.HikariDataSource;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.Member;
import io.coterie.coordinator.api.CallRecorder;
import io.coterie.coordinator.api.Client;
import io.coterie.coordinator.api.ClientAuthentication;
import io.coterie.coordinator.api.ClientDirectory;
import io.coterie.coordinator.api.ErrorMapping;
import io.coterie.coordinator.api.KeyApi;
import io.coterie.coordinator.api.SigningApi;
import io.coterie.coordinator.channel.ChannelConnector;
import io.coterie.coordinator.channel.ChannelOpener;
import io.coterie.coordinator.channel.SignalChannelOpener;
import io.coterie.coordinator.custody.evidence.EvidenceArchive;
import io.coterie.coordinator.custody.key.KeyCreations;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRenewals;
import io.coterie.coordinator.custody.key.QuorumMargin;
import io.coterie.coordinator.custody.key.ShareSessions;
import io.coterie.coordinator.custody.presignature.PresignatureMaker;
import io.coterie.coordinator.custody.presignature.PresignaturePool;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.coordinator.custody.request.Requests;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.custody.signing.SessionTurns;
import io.coterie.coordinator.custody.signing.SigningAttempts;
import io.coterie.coordinator.custody.signing.Signings;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyHealth;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.storage.JdbcAccountStore;
import io.coterie.coordinator.storage.JdbcAuditStore;
import io.coterie.coordinator.storage.JdbcEvidenceStore;
import io.coterie.coordinator.storage.JdbcKeyStore;
import io.coterie.coordinator.storage.JdbcRenewalStore;
import io.coterie.coordinator.storage.JdbcReplicaStore;
import io.coterie.coordinator.storage.JdbcSigningStore;
import io.coterie.coordinator.storage.Worker;
import io.coterie.coordinator.telemetry.CoordinatorAudit;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.coordinator.verification.Bip340Verifier;
import io.coterie.coordinator.verification.BlstVerifier;
import io.coterie.coordinator.verification.EcdsaVerifier;
import io.coterie.coordinator.verification.Ed25519Verifier;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.Requester;
import io.coterie.platform.intent.RequesterDirectory;
import io.coterie.platform.telemetry.Buckets;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.coterie.platform.unseal.PassphraseDataKeySource;
import io.coterie.proto.custody.v1.Scheme;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.sql.DataSource;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.jdbc.autoconfigure.DataSourceProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.core.annotation.Order;
import org.springframework.grpc.server.GlobalServerInterceptor;

/** Wiring: what is built from what. */
@Configuration(proxyBeanMethods = false)
class CoordinatorConfiguration {
  /** Commits wait for the disk, whatever the server's default is: see docs/adr/0004. */
  private static final String DURABLE_COMMIT = "-c synchronous_commit=on";

  /** Commits may be lost when the database crashes. */
  private static final String SOON_COMMIT = "-c synchronous_commit=off";

  /** Longest text file that the configuration names, in bytes: a few certificates. */
  private static final int MAX_TEXT = 64 * 1024;

  @Bean
  Clock clock() {
    return Clock.systemUTC();
  }

  @Bean
  SecureRandom secureRandom() {
    return new SecureRandom();
  }

  @Bean
  MeterFilter latencyBuckets() {
    return Buckets.filter();
  }

  @Bean
  CoordinatorMetrics coordinatorMetrics(MeterRegistry registry) {
    return new CoordinatorMetrics(registry);
  }

  @Bean
  ProtocolMetrics protocolMetrics(MeterRegistry registry, CoordinatorProperties properties) {
    return new ProtocolMetrics(registry, CoordinatorMetrics.PARTY, properties.region());
  }

  // Storage

  @Bean
  @Primary
  HikariDataSource durableDataSource(DataSourceProperties database) {
    return pool(database, "durable", DURABLE_COMMIT);
  }

  /** For what may be lost; never the place to read back from what is durable. */
  @Bean
  HikariDataSource soonDataSource(DataSourceProperties database) {
    return pool(database, "soon", SOON_COMMIT);
  }

  private static HikariDataSource pool(DataSourceProperties database, String name, String options) {
    HikariDataSource pool =
        database.initializeDataSourceBuilder().type(HikariDataSource.class).build();
    pool.setPoolName(name);
    pool.addDataSourceProperty("options", options);
    pool.setMaximumPoolSize(16);
    pool.setMinimumIdle(4);
    pool.setConnectionTimeout(5_000);
    // Every statement is sent again and again: prepare it at its first use.
    pool.addDataSourceProperty("prepareThreshold", "1");
    pool.addDataSourceProperty("ApplicationName", "coterie-coordinator");
    pool.addDataSourceProperty("tcpKeepAlive", "true");
    return pool;
  }

  @Bean
  Worker worker(CoordinatorProperties properties) {
    return new Worker(properties.replica(), properties.handover().goneAfter());
  }

  @Bean
  JdbcKeyStore keyStore(DataSource durable, Worker worker) {
    return new JdbcKeyStore(durable, worker);
  }

  @Bean
  JdbcSigningStore signingStore(
      DataSource durable, HikariDataSource soonDataSource, Worker worker) {
    return new JdbcSigningStore(durable, soonDataSource, worker);
  }

  @Bean
  @DependsOnDatabaseInitialization
  CoordinatorAudit audit(DataSource durable, Clock clock, CoordinatorProperties properties) {
    String trail = properties.replica();
    return new CoordinatorAudit(new AuditTrail(trail, new JdbcAuditStore(durable, trail), clock));
  }

  @Bean
  @DependsOnDatabaseInitialization
  EvidenceArchive evidence(DataSource durable, CoordinatorMetrics metrics, Clock clock) {
    return new EvidenceArchive(new JdbcEvidenceStore(durable), metrics, clock);
  }

  // Sessions

  @Bean
  ExecutorService cryptoPool(CoordinatorProperties properties) {
    return Executors.newFixedThreadPool(
        properties.limits().threads(), Thread.ofPlatform().name("crypto-", 0).daemon().factory());
  }

  @Bean
  ExecutorService requestThreads() {
    return Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("run-", 0).factory());
  }

  /** For observing only: there is no share and no vault in this process. */
  @Bean
  @ConditionalOnMissingBean
  MpcCore mpcCore() {
    return NativeMpcCore.load();
  }

  @Bean
  PartyHealth partyHealth() {
    return new PartyHealth(System::nanoTime);
  }

  @Bean
  QuorumChooser quorumChooser(PartyHealth health) {
    return new QuorumChooser(health);
  }

  @Bean
  Sessions sessions(
      MpcCore core,
      EvidenceArchive evidence,
      PartyHealth health,
      ExecutorService cryptoPool,
      ProtocolMetrics protocolMetrics,
      CoordinatorMetrics metrics,
      SecureRandom random) {
    Map<Scheme, ResultVerifier> verifiers =
        Map.of(
            Scheme.SCHEME_BLS12381,
            new BlstVerifier(),
            Scheme.SCHEME_ECDSA_SECP256K1,
            new EcdsaVerifier(),
            Scheme.SCHEME_ED25519,
            new Ed25519Verifier(),
            Scheme.SCHEME_BIP340_SECP256K1,
            new Bip340Verifier());
    return new Sessions(
        core, evidence, verifiers, health, cryptoPool, protocolMetrics, metrics, random);
  }

  @Bean
  @ConditionalOnMissingBean
  ChannelOpener channelOpener(
      CoordinatorProperties properties,
      DataSource durable,
      MeterRegistry registry,
      Clock clock,
      SecureRandom random) {
    CoordinatorProperties.Channel channel = properties.channel();
    PassphraseDataKeySource dataKey =
        new PassphraseDataKeySource(
            properties.dataFolder().resolve("data.key"),
            properties.unseal().passphraseFile(),
            NativeMpcCore.load()::argon2id);
    return new SignalChannelOpener(
        new SignalChannelOpener.Replica(
            properties.replica(),
            properties.region(),
            channel.number(),
            channel.tokenFile(),
            properties.dataFolder(),
            properties.rosterFile()),
        ChannelConfig.of(channel.messaging(), text(channel.ca()), text(channel.trustRoot()))
            .withSendMode(channel.sendMode())
            .withSenderKeyAge(channel.senderKeyAge()),
        new JdbcAccountStore(durable),
        dataKey,
        random,
        registry,
        clock);
  }

  @Bean
  ChannelConnector channelConnector(ChannelOpener opener) {
    return new ChannelConnector(opener);
  }

  // Domain

  @Bean
  RequesterDirectory requesterDirectory(CoordinatorProperties properties) {
    return new RequesterDirectory(
        properties.requesters().stream()
            .map(r -> Requester.of(r.name(), text(r.publicKey())))
            .toList());
  }

  private static String text(Path file) {
    try {
      if (Files.size(file) > MAX_TEXT) {
        throw new IllegalArgumentException(file + " has more than " + MAX_TEXT + " bytes");
      }
      return Files.readString(file, StandardCharsets.US_ASCII);
    } catch (IOException e) {
      throw new IllegalArgumentException("cannot read " + file, e);
    }
  }

  @Bean
  IntentCheck intentCheck(RequesterDirectory requesters) {
    return signed -> {
      try {
        return IntentVerifier.verify(signed, requesters);
      } catch (IntentException e) {
        throw e.toCustodyException();
      }
    };
  }

  @Bean
  PresignaturePool presignaturePool(CoordinatorProperties properties, CoordinatorMetrics metrics) {
    CoordinatorProperties.Presignatures limits = properties.presignatures();
    return new PresignaturePool(
        new PresignaturePool.Limits(
            limits.target(),
            limits.lowMark(),
            limits.maxTotal(),
            limits.maxCombinations(),
            limits.maxAge(),
            limits.idleTime()),
        metrics,
        System::nanoTime);
  }

  @Bean
  PresignatureMaker presignatureMaker(
      PresignaturePool pool,
      KeyDirectory keys,
      Sessions sessions,
      ChannelConnector link,
      Signings signings,
      ExecutorService requestThreads,
      CoordinatorProperties properties,
      Clock clock,
      SecureRandom random) {
    CoordinatorProperties.Presignatures limits = properties.presignatures();
    return new PresignatureMaker(
        pool,
        keys,
        sessions,
        link,
        new PresignatureMaker.Limits(limits.maxRunning(), limits.yieldTo(), limits.sessionTime()),
        signings::running,
        signings::hasRoom,
        requestThreads,
        clock,
        random);
  }

  @Bean
  Stopping stopping() {
    return new Stopping();
  }

  @Bean
  Requests.Services requestServices(
      IntentCheck intents,
      ExecutorService requestThreads,
      Stopping stopping,
      CoordinatorMetrics metrics,
      Clock clock,
      SecureRandom random) {
    return new Requests.Services(intents, requestThreads, stopping, metrics, clock, random);
  }

  @Bean
  KeyDirectory keyDirectory(
      JdbcKeyStore store,
      PresignaturePool presignatures,
      ExecutorService requestThreads,
      Clock clock) {
    return new KeyDirectory(store, presignatures, requestThreads, clock, System::nanoTime);
  }

  @Bean
  ShareSessions shareSessions(
      Sessions sessions,
      QuorumChooser chooser,
      ChannelConnector link,
      CoordinatorProperties properties,
      Stopping stopping,
      Clock clock) {
    CoordinatorProperties.KeygenTime time = properties.keygen();
    CoordinatorProperties.Limits limits = properties.limits();
    return new ShareSessions(
        sessions,
        chooser,
        new AdaptiveTimeout(time.min(), time.initial(), time.max()),
        link,
        new RunLimits(limits.runs(), limits.atOnce(), limits.keygenSessions(), limits.clockSkew()),
        stopping,
        clock);
  }

  @Bean
  KeyCreations keyCreations(JdbcKeyStore store, ShareSessions shares, Requests.Services services) {
    return new KeyCreations(store, shares, services);
  }

  @Bean
  KeyRenewals keyRenewals(
      DataSource durable,
      Worker worker,
      KeyDirectory keys,
      ShareSessions shares,
      Requests.Services services) {
    return new KeyRenewals(new JdbcRenewalStore(durable, worker), keys, shares, services);
  }

  @Bean
  Signings signings(
      JdbcSigningStore store,
      KeyDirectory keys,
      KeyRenewals renewals,
      PresignaturePool presignatures,
      Sessions sessions,
      QuorumChooser chooser,
      ChannelConnector link,
      CoordinatorProperties properties,
      Requests.Services services) {
    CoordinatorProperties.SigningTime time = properties.signing();
    CoordinatorProperties.Limits limits = properties.limits();
    Signings signings =
        new Signings(
            store,
            new SigningAttempts.Services(
                keys,
                renewals,
                presignatures,
                sessions,
                chooser,
                new AdaptiveTimeout(time.min(), time.initial(), time.max()),
                link,
                new RunLimits(
                    limits.runs(), limits.atOnce(), limits.signingSessions(), limits.clockSkew()),
                new SessionTurns(limits.atOnce()),
                services.stopping(),
                services.clock()),
            services);
    services.metrics().watchTurns(signings::waiting, signings::atOnce);
    return signings;
  }

  @Bean
  QuorumMargin quorumMargin(JdbcKeyStore store, ChannelConnector link, CoordinatorMetrics metrics) {
    QuorumMargin margin = new QuorumMargin(store, link, System::nanoTime);
    metrics.watchQuorumMargin(margin::parties);
    return margin;
  }

  @Bean
  @DependsOnDatabaseInitialization
  Handover handover(
      HikariDataSource soonDataSource,
      Worker worker,
      KeyCreations creations,
      KeyRenewals renewals,
      Signings signings,
      CoordinatorMetrics metrics) {
    return new Handover(
        new JdbcReplicaStore(soonDataSource, worker),
        List.of(creations, renewals, signings),
        worker.goneAfter(),
        metrics);
  }

  @Bean
  CoordinatorLifecycle coordinatorLifecycle(
      ChannelConnector connector,
      Sessions sessions,
      Stopping stopping,
      KeyCreations creations,
      KeyRenewals renewals,
      Signings signings,
      PresignatureMaker maker,
      Handover handover,
      CoordinatorProperties properties,
      CoordinatorMetrics metrics) {
    metrics.watchRuns(() -> creations.running() + renewals.running() + signings.running());
    return new CoordinatorLifecycle(
        connector, sessions, stopping, signings, maker, handover, properties.handover().drain());
  }

  /** Ready when there is a channel and a party at its other end. */
  @Bean
  HealthIndicator channelHealthIndicator(ChannelConnector connector) {
    return () ->
        connector
            .channel()
            .map(
                channel -> {
                  long parties =
                      channel.reachable().stream()
                          .filter(member -> member.role() == Member.Role.PARTY)
                          .count();
                  return (parties == 0 ? Health.outOfService() : Health.up())
                      .withDetail("reachable", parties)
                      .build();
                })
            .orElseGet(() -> Health.outOfService().withDetail("channel", "not open").build());
  }

  // API

  @Bean
  KeyApi keyApi(
      KeyCreations creations, KeyRenewals renewals, KeyDirectory keys, IntentCheck intents) {
    return new KeyApi(creations, renewals, keys, intents);
  }

  @Bean
  SigningApi signingApi(Signings signings, IntentCheck intents) {
    return new SigningApi(signings, intents);
  }

  @Bean
  ClientDirectory clientDirectory(CoordinatorProperties properties) {
    Map<Client, Set<String>> clients = new LinkedHashMap<>();
    for (CoordinatorProperties.Client c : properties.clients()) {
      clients.put(new Client(c.name(), c.submitFor(), c.readKeys()), c.certificates());
    }
    return new ClientDirectory(clients, properties.edges());
  }

  @Bean
  @Order(10)
  @GlobalServerInterceptor
  ClientAuthentication clientAuthentication(
      ClientDirectory clients, CoordinatorProperties properties, SecureRandom random) {
    return new ClientAuthentication(clients, properties.limits().longestWait(), random);
  }

  @Bean
  @Order(20)
  @GlobalServerInterceptor
  CallRecorder callRecorder(CoordinatorMetrics metrics, CoordinatorAudit audit) {
    return new CallRecorder(metrics, audit);
  }

  @Bean
  @Order(30)
  @GlobalServerInterceptor
  ErrorMapping errorMapping() {
    return new ErrorMapping();
  }
}
