package io.coterie.signer;

import io.coterie.signer.config.SignerConfiguration;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Import;

/** Starts one party. */
@SpringBootConfiguration(proxyBeanMethods = false)
@Import(SignerConfiguration.class)
public class SignerApplication {

  /**
   * Starts a signer in this process.
   *
   * @param args Spring properties, {@code --coterie.signer.name=alpha}
   */
  public static ConfigurableApplicationContext start(String... args) {
    return new SpringApplicationBuilder(SignerApplication.class)
        .web(WebApplicationType.SERVLET)
        .properties("spring.config.name=signer")
        .run(args);
  }

  public static void main(String[] args) {
    start(args);
  }
}
