package io.coterie.messaging;

import io.coterie.messaging.certificate.SenderCertificates;
import io.coterie.messaging.config.MessagingConfiguration;
import java.io.IOException;
import java.nio.file.Path;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** Starts the messaging service. */
public final class MessagingApplication {
  private static final String GENERATE_CERTIFICATES = "generate-certificates";

  private MessagingApplication() {}

  /**
   * Starts the service; its configuration is {@code messaging.yaml}, then Spring's other sources,
   * then the arguments.
   */
  public static ConfigurableApplicationContext start(String... args) {
    return new SpringApplicationBuilder(MessagingConfiguration.class)
        .properties("spring.config.name=messaging")
        .run(args);
  }

  /**
   * Without a command, starts the service. {@code generate-certificates <folder> <keyId>} makes a
   * trust root and a server certificate and ends.
   */
  public static void main(String[] args) throws IOException {
    if (args.length == 3 && args[0].equals(GENERATE_CERTIFICATES)) {
      SenderCertificates.generate(Path.of(args[1]), Integer.parseInt(args[2]));
    } else {
      start(args);
    }
  }
}
