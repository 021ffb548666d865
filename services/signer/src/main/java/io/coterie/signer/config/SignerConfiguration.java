package io.coterie.signer.config;

import io.coterie.mpc.MpcCore;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.management.ManagementAccess;
import io.coterie.platform.telemetry.Buckets;
import io.coterie.platform.unseal.DataKeySource;
import io.coterie.platform.unseal.PassphraseDataKeySource;
import io.coterie.signer.claim.OutsideCounter;
import io.coterie.signer.policy.LocalRules;
import io.coterie.signer.storage.FileCounter;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.telemetry.SignerMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.springframework.boot.actuate.autoconfigure.endpoint.EndpointAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.endpoint.jackson.JacksonEndpointAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.endpoint.web.WebEndpointAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.server.ManagementContextAutoConfiguration;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.availability.ApplicationAvailabilityAutoConfiguration;
import org.springframework.boot.autoconfigure.context.ConfigurationPropertiesAutoConfiguration;
import org.springframework.boot.autoconfigure.context.LifecycleAutoConfiguration;
import org.springframework.boot.autoconfigure.context.PropertyPlaceholderAutoConfiguration;
import org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.health.autoconfigure.actuate.endpoint.AvailabilityProbesAutoConfiguration;
import org.springframework.boot.health.autoconfigure.actuate.endpoint.HealthEndpointAutoConfiguration;
import org.springframework.boot.health.autoconfigure.application.AvailabilityHealthContributorAutoConfiguration;
import org.springframework.boot.health.autoconfigure.contributor.HealthContributorAutoConfiguration;
import org.springframework.boot.health.autoconfigure.registry.HealthContributorRegistryAutoConfiguration;
import org.springframework.boot.http.converter.autoconfigure.HttpMessageConvertersAutoConfiguration;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.prometheus.PrometheusMetricsExportAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.jvm.JvmMetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.ssl.SslMetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.system.SystemMetricsAutoConfiguration;
import org.springframework.boot.servlet.autoconfigure.actuate.web.ServletManagementContextAutoConfiguration;
import org.springframework.boot.tomcat.autoconfigure.servlet.TomcatServletWebServerAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.actuate.endpoint.web.WebMvcHealthEndpointExtensionAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorMvcAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Wires one party. All that is configured automatically is listed here: a signer has one inbound
 * port, whatever else is on the class path.
 */
@Configuration(proxyBeanMethods = false)
@EnableConfigurationProperties(SignerProperties.class)
@ImportAutoConfiguration({
  ApplicationAvailabilityAutoConfiguration.class,
  AvailabilityHealthContributorAutoConfiguration.class,
  AvailabilityProbesAutoConfiguration.class,
  CompositeMeterRegistryAutoConfiguration.class,
  ConfigurationPropertiesAutoConfiguration.class,
  DispatcherServletAutoConfiguration.class,
  EndpointAutoConfiguration.class,
  ErrorMvcAutoConfiguration.class,
  HealthContributorAutoConfiguration.class,
  HealthContributorRegistryAutoConfiguration.class,
  HealthEndpointAutoConfiguration.class,
  HttpMessageConvertersAutoConfiguration.class,
  JacksonAutoConfiguration.class,
  JacksonEndpointAutoConfiguration.class,
  JvmMetricsAutoConfiguration.class,
  LifecycleAutoConfiguration.class,
  ManagementContextAutoConfiguration.class,
  MetricsAutoConfiguration.class,
  PrometheusMetricsExportAutoConfiguration.class,
  PropertyPlaceholderAutoConfiguration.class,
  ServletManagementContextAutoConfiguration.class,
  SslAutoConfiguration.class,
  SslMetricsAutoConfiguration.class,
  SystemMetricsAutoConfiguration.class,
  TomcatServletWebServerAutoConfiguration.class,
  WebEndpointAutoConfiguration.class,
  WebMvcAutoConfiguration.class,
  WebMvcHealthEndpointExtensionAutoConfiguration.class,
})
public class SignerConfiguration {

  /** The only web server is that of the management port. */
  @Bean
  ManagementAccess managementAccess(SignerProperties properties) {
    return new ManagementAccess(properties.metrics().passwordFile());
  }

  @Bean
  MeterFilter latencyBuckets() {
    return Buckets.filter();
  }

  @Bean
  SignerMetrics signerMetrics(MeterRegistry registry, SignerProperties properties) {
    return new SignerMetrics(registry, properties.name(), properties.region());
  }

  @Bean
  LocalRules rules(SignerProperties properties) {
    Map<String, LocalRules.Local> rules = new LinkedHashMap<>();
    for (SignerProperties.RequesterSettings requester : properties.requesters()) {
      if (rules.put(requester.name(), requester.local()) != null) {
        throw new IllegalArgumentException("requester " + requester.name() + " has two rules");
      }
    }
    return new LocalRules(rules);
  }

  @Bean
  DataKeySource dataKeySource(SignerProperties properties) {
    PassphraseDataKeySource source =
        new PassphraseDataKeySource(
            properties.keyFile(),
            properties.unseal().passphraseFile(),
            (passphrase, salt, memoryKib, passes, lanes) ->
                NativeMpcCore.load().argon2id(passphrase, salt, memoryKib, passes, lanes));
    return () -> {
      // A party that has stored something needs the very key it was sealed under.
      if (!source.exists() && !Files.exists(properties.data().resolve(PartyStore.FILE))) {
        PartyStore.createFolder(properties.data());
        source.create(new SecureRandom(), PassphraseDataKeySource.Cost.STANDARD);
      }
      return source.dataKey();
    };
  }

  @Bean
  Supplier<MpcCore> nativeCore() {
    return NativeMpcCore::load;
  }

  /** Another kind of counter takes the place of this one. */
  @Bean
  OutsideCounter outsideCounter(SignerProperties properties) {
    Path file = properties.fence().counterFile();
    return file == null ? OutsideCounter.NONE : new FileCounter(file);
  }

  @Bean
  Party party(
      SignerProperties properties,
      DataKeySource dataKeys,
      Supplier<MpcCore> nativeCore,
      LocalRules rules,
      SignerMetrics metrics,
      OutsideCounter counter,
      MeterRegistry registry) {
    return new Party(
        properties,
        dataKeys,
        nativeCore,
        new SignalAccess(properties, registry),
        rules,
        metrics,
        counter,
        Clock.systemUTC());
  }
}
