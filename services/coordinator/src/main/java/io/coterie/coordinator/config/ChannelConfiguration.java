package io.coterie.coordinator.config;

import io.coterie.channel.ChannelConfig;
import io.coterie.coordinator.channel.ChannelConnector;
import io.coterie.coordinator.channel.ChannelOpener;
import io.coterie.coordinator.channel.SignalChannelOpener;
import io.coterie.coordinator.storage.JdbcAccountStore;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.unseal.PassphraseDataKeySource;
import io.coterie.trust.Member;
import io.micrometer.core.instrument.MeterRegistry;
import java.security.SecureRandom;
import java.time.Clock;
import javax.sql.DataSource;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Wiring of the secure channel to the parties. */
@Configuration(proxyBeanMethods = false)
class ChannelConfiguration {
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
            properties.trustFile()),
        ChannelConfig.of(
                channel.messaging(),
                TextFile.read(channel.ca()),
                TextFile.read(channel.trustRoot()))
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
}
