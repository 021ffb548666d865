package io.coterie.messaging.config;

import com.github.benmanes.caffeine.cache.Ticker;
import io.coterie.messaging.account.AccountStore;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.api.AccessCheck;
import io.coterie.messaging.api.AccountCalls;
import io.coterie.messaging.api.Dispatcher;
import io.coterie.messaging.api.KeyCalls;
import io.coterie.messaging.api.MessageCalls;
import io.coterie.messaging.api.ServiceCalls;
import io.coterie.messaging.certificate.SenderCertificates;
import io.coterie.messaging.keys.PreKeyStore;
import io.coterie.messaging.limit.RateConverter;
import io.coterie.messaging.limit.RateLimits;
import io.coterie.messaging.queue.LocalPresence;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.socket.ApiServlet;
import io.coterie.messaging.socket.Connections;
import io.coterie.messaging.storage.PostgresAccountStore;
import io.coterie.messaging.storage.PostgresMessageQueue;
import io.coterie.messaging.storage.PostgresPreKeyStore;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.platform.telemetry.Buckets;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import java.security.SecureRandom;
import java.time.Clock;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
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
  Accounts accounts(AccountStore store, Clock clock, MessagingProperties properties) {
    return new Accounts(store, clock, properties.limits().cachedAccounts());
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

  @Bean
  @ConditionalOnMissingBean
  Presence presence() {
    return new LocalPresence();
  }

  @Bean
  PostgresMessageQueue messageQueue(
      JdbcClient jdbc,
      JdbcTemplate batch,
      PlatformTransactionManager transactions,
      Presence presence,
      Clock clock,
      MessagingMetrics metrics,
      MessagingProperties properties) {
    MessagingProperties.Limits limits = properties.limits();
    PostgresMessageQueue queue =
        new PostgresMessageQueue(
            jdbc,
            batch,
            new TransactionTemplate(transactions),
            presence,
            clock,
            new PostgresMessageQueue.Limits(
                limits.onlineTimeToLive(),
                limits.onlineMessages(),
                limits.onlineBytes().toBytes(),
                limits.storedMessages(),
                limits.storedTimeToLive()));
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
    AccessCheck access = new AccessCheck(accounts);
    return ServiceCalls.dispatcher(
        new AccountCalls(accounts, certificates, queue, presence, rates, new SecureRandom(), clock),
        new KeyCalls(preKeys, access, rates),
        new MessageCalls(
            accounts,
            access,
            queue,
            rates,
            metrics,
            properties.limits().content().toBytes(),
            clock),
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
  ServletRegistrationBean<ApiServlet> apiServlet(
      Dispatcher dispatcher,
      Accounts accounts,
      Connections connections,
      MessagingProperties properties) {
    return new ServletRegistrationBean<>(
        new ApiServlet(
            dispatcher, accounts, connections, (int) properties.limits().body().toBytes()),
        "/*");
  }
}
