package io.coterie.messaging.compat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Signal's client for Node.js, of today, uses the service. Its cases are in {@code node}. */
class NpmClientTest {
  private static final Path CASES = Path.of("node").toAbsolutePath();
  private static final long LIMIT_SECONDS = 300;

  /** So many stored messages wait for a device: few, as a case fills a queue. */
  private static final String STORED = "20";

  private static final Pattern COUNT =
      Pattern.compile("^# (tests|pass) (\\d+)$", Pattern.MULTILINE);

  @TempDir private Path folder;

  @Test
  void every_case_of_the_client_of_today_passes() throws Exception {
    assumeTrue(hasNode(), "there is no Node.js");
    assumeTrue(
        Files.exists(CASES.resolve("node_modules/@signalapp/libsignal-client/package.json")),
        "Signal's client is not installed: npm ci --prefix services/messaging-compat/node");
    Security.addProvider(new BouncyCastleProvider());
    List<String> numbers = List.of("+15551000011", "+15551000012", "+15551000013", "+15551000014");
    try (ServiceProcess service =
        new ServiceProcess(numbers, "--coterie.messaging.limits.stored-messages=" + STORED)) {
      Path output = folder.resolve("output");
      ProcessBuilder node =
          new ProcessBuilder("node", "--test-reporter=tap", "client.test.mjs")
              .directory(CASES.toFile())
              .redirectErrorStream(true)
              .redirectOutput(output.toFile());
      node.environment().putAll(environment(service, numbers));
      Process process = node.start();
      boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
      if (!ended) {
        process.destroyForcibly().waitFor();
      }
      String said = Files.readString(output);
      assertThat(ended).as(said).isTrue();
      assertThat(process.exitValue()).as(said).isZero();
      assertThat(count(said, "pass")).as(said).isPositive().isEqualTo(count(said, "tests"));
    }
  }

  private static Map<String, String> environment(ServiceProcess service, List<String> numbers)
      throws Exception {
    return Map.of(
        "SIGNAL_PORT",
        String.valueOf(service.port()),
        "SIGNAL_CA",
        base64(service.ca()),
        "SIGNAL_TRUST_ROOT",
        base64(service.trustRoot()),
        "SIGNAL_STORED",
        STORED,
        "SIGNAL_TOKENS",
        numbers.stream()
            .map(number -> number + "=" + base64(service.token(number)))
            .collect(Collectors.joining(",")));
  }

  private static String base64(byte[] bytes) {
    return new String(Base64.getEncoder().encode(bytes), StandardCharsets.US_ASCII);
  }

  private static int count(String output, String name) {
    Matcher counts = COUNT.matcher(output);
    while (counts.find()) {
      if (counts.group(1).equals(name)) {
        return Integer.parseInt(counts.group(2));
      }
    }
    return 0;
  }

  private static boolean hasNode() throws InterruptedException {
    try {
      return new ProcessBuilder("node", "--version")
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start()
              .waitFor()
          == 0;
    } catch (IOException e) {
      return false;
    }
  }
}
