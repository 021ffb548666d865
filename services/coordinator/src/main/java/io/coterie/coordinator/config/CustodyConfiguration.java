package io.coterie.coordinator.config;

import io.coterie.coordinator.channel.ChannelConnector;
import io.coterie.coordinator.custody.evidence.EvidenceArchive;
import io.coterie.coordinator.custody.group.ApprovalOpenings;
import io.coterie.coordinator.custody.group.GroupCreations;
import io.coterie.coordinator.custody.group.GroupMaker;
import io.coterie.coordinator.custody.group.GroupOrders;
import io.coterie.coordinator.custody.group.GroupSteps;
import io.coterie.coordinator.custody.group.MemberAdmissions;
import io.coterie.coordinator.custody.key.EpochQuestions;
import io.coterie.coordinator.custody.key.KeyCreations;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRenewals;
import io.coterie.coordinator.custody.key.KeyRestoration;
import io.coterie.coordinator.custody.key.KeyStore;
import io.coterie.coordinator.custody.key.QuorumMargin;
import io.coterie.coordinator.custody.key.ShareSessions;
import io.coterie.coordinator.custody.ledger.PartyLedgers;
import io.coterie.coordinator.custody.presignature.PresignatureMaker;
import io.coterie.coordinator.custody.presignature.PresignatureStock;
import io.coterie.coordinator.custody.request.Handover;
import io.coterie.coordinator.custody.request.IntentCheck;
import io.coterie.coordinator.custody.request.ReplicaStore;
import io.coterie.coordinator.custody.request.Requests;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.custody.signing.CancelQuestions;
import io.coterie.coordinator.custody.signing.SessionTurns;
import io.coterie.coordinator.custody.signing.SigningAttempts;
import io.coterie.coordinator.custody.signing.Signings;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyHealth;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.session.ResultVerifier;
import io.coterie.coordinator.session.Sessions;
import io.coterie.coordinator.storage.JdbcGroupStore;
import io.coterie.coordinator.storage.JdbcKeyStore;
import io.coterie.coordinator.storage.JdbcLedgerStore;
import io.coterie.coordinator.storage.JdbcRenewalStore;
import io.coterie.coordinator.storage.JdbcSigningStore;
import io.coterie.coordinator.storage.Worker;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.coordinator.verification.Bip340Verifier;
import io.coterie.coordinator.verification.BlstVerifier;
import io.coterie.coordinator.verification.EcdsaVerifier;
import io.coterie.coordinator.verification.Ed25519Verifier;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.coterie.proto.custody.v1.Scheme;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import javax.sql.DataSource;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Wiring of keys, signings and presignatures, and of the sessions that they order. */
@Configuration(proxyBeanMethods = false)
class CustodyConfiguration {
  /** The core only observes: there is no share and no vault in this process. */
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
  PartyLedgers partyLedgers(
      DataSource durable,
      KeyDirectory keys,
      ChannelConnector link,
      ExecutorService requestThreads,
      CoordinatorMetrics metrics) {
    return new PartyLedgers(
        new JdbcLedgerStore(durable), keys, link, requestThreads, metrics, System::nanoTime);
  }

  @Bean
  EpochQuestions epochQuestions(ChannelConnector link, CoordinatorMetrics metrics) {
    return new EpochQuestions(link, metrics, EpochQuestions.WAIT, System::nanoTime);
  }

  @Bean
  CancelQuestions cancelQuestions(ChannelConnector link, CoordinatorMetrics metrics) {
    return new CancelQuestions(link, metrics, CancelQuestions.WAIT, ReplicaTime.ofMachine());
  }

  @Bean
  Sessions sessions(
      MpcCore core,
      EvidenceArchive evidence,
      PartyLedgers ledgers,
      EpochQuestions epochs,
      CancelQuestions cancels,
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
            Scheme.SCHEME_ED25519_EXACT,
            new Ed25519Verifier(),
            Scheme.SCHEME_BIP340_SECP256K1,
            new Bip340Verifier());
    return new Sessions(
        core,
        evidence,
        ledgers,
        epochs,
        cancels,
        verifiers,
        health,
        cryptoPool,
        protocolMetrics,
        metrics,
        random);
  }

  @Bean
  PresignatureStock presignatureStock(
      CoordinatorProperties properties, CoordinatorMetrics metrics) {
    CoordinatorProperties.Presignatures limits = properties.presignatures();
    return new PresignatureStock(
        new PresignatureStock.Limits(
            limits.target(),
            limits.targetBlocks(),
            limits.lowMark(),
            limits.maxTotal(),
            limits.maxCombinations(),
            limits.maxAge(),
            limits.idleTime(),
            limits.yieldTo()),
        metrics,
        System::nanoTime);
  }

  // A start that fails destroys the beans and closes no context; the threads wait for the maker to
  // end.
  @Bean(destroyMethod = "stop")
  PresignatureMaker presignatureMaker(
      PresignatureStock stock,
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
        stock,
        keys,
        sessions,
        link,
        new PresignatureMaker.Limits(limits.maxRunning(), limits.sessionTime()),
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
    return new Requests.Services(
        intents, requestThreads, stopping, metrics, clock, ReplicaTime.ofMachine(), random);
  }

  @Bean
  KeyDirectory keyDirectory(
      JdbcKeyStore store,
      PresignatureStock presignatures,
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
  GroupOrders groupOrders(Sessions sessions, Requests.Services services) {
    GroupOrders orders = new GroupOrders(services.metrics(), services.time(), services.random());
    sessions.reportGroupsTo(orders);
    return orders;
  }

  @Bean
  GroupSteps groupSteps(
      GroupCreations groups,
      GroupOrders orders,
      ChannelConnector link,
      CoordinatorProperties properties,
      Requests.Services services) {
    CoordinatorProperties.KeygenTime time = properties.keygen();
    return new GroupSteps(
        groups.store(),
        orders,
        link,
        new AdaptiveTimeout(time.min(), time.initial(), time.max()),
        properties.limits().clockSkew(),
        services.time(),
        services.clock());
  }

  @Bean
  MemberAdmissions memberAdmissions(
      GroupSteps steps, GroupOrders orders, Requests.Services services) {
    return new MemberAdmissions(steps, orders, services.threads());
  }

  @Bean
  ApprovalOpenings approvalOpenings(GroupSteps steps) {
    return new ApprovalOpenings(steps);
  }

  @Bean
  GroupCreations groupCreations(
      DataSource durable,
      Worker worker,
      GroupOrders orders,
      MpcCore core,
      ChannelConnector link,
      CoordinatorProperties properties,
      Requests.Services services) {
    CoordinatorProperties.KeygenTime time = properties.keygen();
    CoordinatorProperties.Limits limits = properties.limits();
    GroupMaker maker =
        new GroupMaker(
            orders,
            // Groups are checked without any secret, whatever observes the sessions of keys.
            NativeMpcCore.load()::call,
            core,
            link,
            new AdaptiveTimeout(time.min(), time.initial(), time.max()),
            new RunLimits(
                limits.runs(), limits.atOnce(), limits.keygenSessions(), limits.clockSkew()),
            services.stopping(),
            services.time(),
            services.clock());
    return new GroupCreations(new JdbcGroupStore(durable, worker), maker, services);
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
      CancelQuestions cancels,
      KeyDirectory keys,
      KeyRenewals renewals,
      PresignatureStock presignatures,
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
            cancels,
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
                new SessionTurns(limits.atOnce(), services.time()),
                services.stopping(),
                services.clock()),
            services);
    services.metrics().watchTurns(signings::waiting, signings::atOnce);
    for (CoordinatorProperties.Requester requester : properties.requesters()) {
      String name = requester.name();
      services
          .metrics()
          .watchRequester(name, () -> signings.running(name), () -> signings.waiting(name));
    }
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
      ReplicaStore replicas,
      KeyCreations creations,
      KeyRenewals renewals,
      GroupCreations groups,
      Signings signings,
      Requests.Services services) {
    return new Handover(
        replicas,
        List.of(creations, renewals, groups, signings),
        services.threads(),
        services.time(),
        services.metrics());
  }

  @Bean
  CoordinatorLifecycle coordinatorLifecycle(
      KeyStore keyStore,
      ChannelConnector connector,
      Sessions sessions,
      Stopping stopping,
      KeyCreations creations,
      KeyRenewals renewals,
      GroupCreations groups,
      Signings signings,
      PresignatureMaker maker,
      Handover handover,
      CoordinatorProperties properties,
      CoordinatorMetrics metrics) {
    metrics.watchRuns(
        () -> creations.running() + renewals.running() + groups.running() + signings.running());
    KeptKeys keptKeys =
        new KeptKeys(new KeyRestoration(keyStore), properties.dataFolder(), properties.trustFile());
    return new CoordinatorLifecycle(
        keptKeys,
        connector,
        sessions,
        stopping,
        signings,
        maker,
        handover,
        properties.handover().drain());
  }
}
