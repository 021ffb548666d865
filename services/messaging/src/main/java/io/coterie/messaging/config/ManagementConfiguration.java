package io.coterie.messaging.config;

import io.coterie.platform.management.ManagementAccess;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextType;
import org.springframework.context.annotation.Bean;

/** The management port has a web server of its own; this belongs to it and not to the API's. */
@ManagementContextConfiguration(value = ManagementContextType.CHILD, proxyBeanMethods = false)
class ManagementConfiguration {
  @Bean
  ManagementAccess managementAccess(MessagingProperties properties) {
    return new ManagementAccess(properties.metrics().passwordFile());
  }
}
