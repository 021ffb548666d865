package io.coterie.coordinator.config;

import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.management.ManagementAccess;
import io.coterie.platform.telemetry.Buckets;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Wiring of what every other part uses: time, randomness, metrics, threads. */
@Configuration(proxyBeanMethods = false)
class CoordinatorConfiguration {
  @Bean
  Clock clock() {
    return Clock.systemUTC();
  }

  @Bean
  SecureRandom secureRandom() {
    return new SecureRandom();
  }

  /** The only web server is that of the management port. */
  @Bean
  ManagementAccess managementAccess(CoordinatorProperties properties) {
    return new ManagementAccess(properties.metrics().passwordFile());
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

  @Bean
  ExecutorService cryptoPool(CoordinatorProperties properties) {
    return Executors.newFixedThreadPool(
        properties.limits().threads(), Thread.ofPlatform().name("crypto-", 0).daemon().factory());
  }

  @Bean
  ExecutorService requestThreads() {
    return Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("run-", 0).factory());
  }
}
