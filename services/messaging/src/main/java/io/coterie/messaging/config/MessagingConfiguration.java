package io.coterie.messaging.config;

import com.github.benmanes.caffeine.cache.Ticker;
import io.coterie.messaging.account.AccountChanges;
import io.coterie.messaging.account.AccountStore;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.api.AccessCheck;
import io.coterie.messaging.api.AccountCalls;
import io.coterie.messaging.api.Dispatcher;
import io.coterie.messaging.api.KeyCalls;
import io.coterie.messaging.api.MessageCalls;
import io.coterie.messaging.api.MultiRecipientCalls;
import io.coterie.messaging.api.Sending;
import io.coterie.messaging.api.ServiceCalls;
import io.coterie.messaging.certificate.SenderCertificates;
import io.coterie.messaging.keys.PreKeyStore;
import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.RateConverter;
import io.coterie.messaging.limit.RateLimits;
import io.coterie.messaging.queue.LocalOnlineQueue;
import io.coterie.messaging.queue.LocalPresence;
import io.coterie.messaging.queue.OnlineMessages;
import io.coterie.messaging.queue.OnlineQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.redis.RedisAccountChanges;
import io.coterie.messaging.redis.RedisDevices;
import io.coterie.messaging.redis.RedisLink;
import io.coterie.messaging.socket.ApiServlet;
import io.coterie.messaging.socket.ConnectionWork;
import io.coterie.messaging.socket.Connections;
import io.coterie.messaging.socket.FairProtocol;
import io.coterie.messaging.socket.TrustedEdge;
import io.coterie.messaging.storage.PostgresAccountStore;
import io.coterie.messaging.storage.PostgresMessageQueue;
import io.coterie.messaging.storage.PostgresPreKeyStore;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.platform.telemetry.Buckets;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.NoneNestedConditions;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.tomcat.TomcatProtocolHandlerCustomizer;
import org.springframework.boot.tomcat.servlet.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.Ssl;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Puts the parts together. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@EnableScheduling
@EnableConfigurationProperties(MessagingProperties.class)
public class MessagingConfiguration {

  @Bean
  static RateConverter rateConverter() {
    return new RateConverter();
  }

  @Bean
  static MeterFilter latencyBuckets() {
    return Buckets.filter();
  }

  @Bean
  @ConditionalOnMissingBean
  Clock clock() {
    return Clock.systemUTC();
  }

  @Bean
  @ConditionalOnMissingBean
  Ticker ticker() {
    return Ticker.systemTicker();
  }

  @Bean
  MessagingMetrics messagingMetrics(MeterRegistry registry) {
    return new MessagingMetrics(registry);
  }

  @Bean
  PostgresPreKeyStore preKeyStore(
      JdbcClient jdbc, JdbcTemplate batch, PlatformTransactionManager transactions) {
    return new PostgresPreKeyStore(jdbc, batch, new TransactionTemplate(transactions));
  }

  @Bean
  AccountStore accountStore(
      JdbcClient jdbc,
      PlatformTransactionManager transactions,
      PostgresPreKeyStore preKeys,
      Clock clock,
      MessagingProperties properties) {
    AccountStore store =
        new PostgresAccountStore(jdbc, new TransactionTemplate(transactions), preKeys, clock);
    properties.enrolments().forEach(e -> store.enrol(e.number(), e.tokenHash()));
    return store;
  }

  @Bean
  Accounts accounts(
      AccountStore store, AccountChanges changes, Clock clock, MessagingProperties properties) {
    return new Accounts(store, changes, clock, properties.limits().cachedAccounts());
  }

  @Bean
  SenderCertificates senderCertificates(MessagingProperties properties, Clock clock) {
    MessagingProperties.Certificates files = properties.certificates();
    return new SenderCertificates(
        new SenderCertificates.CertificateFiles(
            files.trustRoot(), files.serverCertificate(), files.serverPrivateKey()),
        files.lifetime(),
        clock);
  }

  /** One replica: everybody is connected to it. */
  @Configuration(proxyBeanMethods = false)
  @Conditional(OneReplica.WithoutRedis.class)
  static class OneReplica {
    static final class WithoutRedis extends NoneNestedConditions {
      WithoutRedis() {
        super(ConfigurationPhase.PARSE_CONFIGURATION);
      }

      @ConditionalOnProperty("coterie.messaging.redis.uri")
      static class WithRedis {}
    }

    @Bean
    AccountChanges accountChanges() {
      return AccountChanges.NONE;
    }

    @Bean
    LocalPresence presence() {
      return new LocalPresence();
    }

    @Bean
    LocalOnlineQueue onlineQueue(
        LocalPresence presence, Clock clock, MessagingProperties properties) {
      return new LocalOnlineQueue(new OnlineMessages(clock, onlineLimits(properties)), presence);
    }
  }

  /** Several replicas, which reach each other through Redis. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnProperty("coterie.messaging.redis.uri")
  static class SeveralReplicas {
    @Bean
    RedisLink redisLink(MessagingProperties properties, MessagingMetrics metrics) {
      MessagingProperties.Redis redis = Objects.requireNonNull(properties.redis());
      return new RedisLink(
          new RedisLink.Settings(
              redis.uri(), redis.ca(), redis.username(), redis.passwordFile(), redis.timeout()),
          metrics);
    }

    @Bean
    RedisAccountChanges accountChanges(RedisLink link) {
      return new RedisAccountChanges(link);
    }

    @Bean
    RedisDevices devices(
        RedisLink link, RedisAccountChanges changes, Clock clock, MessagingProperties properties) {
      return new RedisDevices(link, changes, clock, onlineLimits(properties));
    }
  }

  private static OnlineMessages.Limits onlineLimits(MessagingProperties properties) {
    Limits limits = properties.limits();
    return new OnlineMessages.Limits(
        limits.onlineTimeToLive(),
        limits.onlineMessages(),
        limits.onlineBytes().toBytes(),
        limits.onlineTotal().toBytes());
  }

  /** Tells under the name {@code replicas} whether devices of other replicas can be reached. */
  @Bean
  HealthIndicator replicasHealthIndicator(Presence presence) {
    return () -> (presence.available() ? Health.up() : Health.down()).build();
  }

  @Bean
  PostgresMessageQueue messageQueue(
      JdbcClient jdbc,
      JdbcTemplate batch,
      PlatformTransactionManager transactions,
      OnlineQueue online,
      Presence presence,
      Clock clock,
      MessagingMetrics metrics,
      MessagingProperties properties) {
    Limits limits = properties.limits();
    PostgresMessageQueue queue =
        new PostgresMessageQueue(
            jdbc,
            batch,
            new TransactionTemplate(transactions),
            online,
            presence,
            clock,
            new PostgresMessageQueue.Limits(
                limits.storedMessages(),
                limits.storedBytes().toBytes(),
                limits.storedTimeToLive(),
                limits.storedWait(),
                limits.storedPending().toBytes()));
    metrics.queueDepth("online", queue::onlineDepth);
    return queue;
  }

  @Bean
  Housekeeping housekeeping(PostgresMessageQueue queue, MessagingMetrics metrics) {
    return new Housekeeping(queue, metrics);
  }

  @Bean
  RateLimits rateLimits(MessagingProperties properties, Ticker ticker) {
    return new RateLimits(properties.rates(), ticker);
  }

  @Bean
  Dispatcher dispatcher(
      Accounts accounts,
      SenderCertificates certificates,
      PreKeyStore preKeys,
      PostgresMessageQueue queue,
      Presence presence,
      RateLimits rates,
      MessagingMetrics metrics,
      MessagingProperties properties,
      Clock clock) {
    AccessCheck access = new AccessCheck(accounts, properties.stories());
    Sending sending =
        new Sending(queue, rates, metrics, properties.limits().content().toBytes(), clock);
    return ServiceCalls.dispatcher(
        new AccountCalls(accounts, certificates, queue, presence, rates, new SecureRandom(), clock),
        new KeyCalls(preKeys, access, rates),
        new MessageCalls(accounts, access, sending),
        new MultiRecipientCalls(accounts, access, sending),
        accounts,
        metrics,
        clock);
  }

  @Bean
  Connections connections(
      Dispatcher dispatcher,
      Accounts accounts,
      PostgresMessageQueue queue,
      Presence presence,
      MessagingMetrics metrics,
      MessagingProperties properties) {
    return new Connections(dispatcher, accounts, queue, presence, metrics, properties.limits());
  }

  @Bean
  ConnectionWork connectionWork(
      MessagingProperties properties, Ticker ticker, MessagingMetrics metrics) {
    MessagingProperties.@Nullable Edge edge = properties.trustedEdge();
    return new ConnectionWork(
        properties.limits(),
        properties.rates(),
        edge == null ? null : new TrustedEdge(edge.names()),
        ticker,
        metrics);
  }

  @Bean
  WebServerFactoryCustomizer<TomcatServletWebServerFactory> fairConnections(
      ConnectionWork work, MessagingProperties properties) {
    TomcatProtocolHandlerCustomizer<FairProtocol> serve = protocol -> protocol.serve(work);
    return factory -> {
      if (properties.trustedEdge() != null) {
        // Others need not show a certificate.
        Objects.requireNonNull(factory.getSsl()).setClientAuth(Ssl.ClientAuth.WANT);
      }
      factory.setProtocol(FairProtocol.class.getName());
      factory.addProtocolHandlerCustomizers(serve);
    };
  }

  @Bean
  ServletRegistrationBean<ApiServlet> apiServlet(
      Dispatcher dispatcher,
      Accounts accounts,
      Connections connections,
      ConnectionWork work,
      MessagingProperties properties) {
    return new ServletRegistrationBean<>(
        new ApiServlet(
            dispatcher, accounts, connections, work, (int) properties.limits().body().toBytes()),
        "/*");
  }
}
