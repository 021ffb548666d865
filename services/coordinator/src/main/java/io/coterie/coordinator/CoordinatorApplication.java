package io.coterie.coordinator;

import io.coterie.coordinator.config.CoordinatorProperties;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.ConfigurableApplicationContext;

/** Start-up only. */
@SpringBootApplication
@EnableConfigurationProperties(CoordinatorProperties.class)
public class CoordinatorApplication {

  /** Starts a coordinator as a process. */
  public static void main(String[] args) {
    start(args);
  }

  /** Starts a coordinator in this JVM; closing the context stops it. */
  public static ConfigurableApplicationContext start(String... args) {
    return builder().run(args);
  }

  static SpringApplicationBuilder builder() {
    return new SpringApplicationBuilder(CoordinatorApplication.class)
        .properties("spring.config.name=coordinator")
        .bannerMode(Banner.Mode.OFF);
  }
}
