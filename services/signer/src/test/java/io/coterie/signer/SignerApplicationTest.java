package io.coterie.signer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.signer.storage.PartyStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.ConfigurableApplicationContext;

/** The service as a process: its configuration, its one port, its health. */
class SignerApplicationTest {
  @TempDir Path folder;

  private static final String PASSWORD = "password of the metrics";

  private List<String> arguments() throws Exception {
    Path password = Files.writeString(folder.resolve("metrics-password"), PASSWORD);
    Path pem = folder.resolve("wallet.pem");
    Files.writeString(
        pem,
        "-----BEGIN PUBLIC KEY-----\n"
            + Base64.getMimeEncoder()
                .encodeToString(Installation.ed25519().getPublic().getEncoded())
            + "\n-----END PUBLIC KEY-----\n");
    return new ArrayList<>(
        List.of(
            "--coterie.signer.name=alpha",
            "--coterie.signer.party-id=1",
            "--coterie.signer.data=" + folder.resolve("data"),
            "--coterie.signer.unseal.passphrase-file=" + folder.resolve("passphrase"),
            "--coterie.signer.channel.messaging=https://localhost:1",
            "--coterie.signer.channel.ca-file=" + folder.resolve("ca.pem"),
            "--coterie.signer.channel.trust-root=AAAA",
            "--coterie.signer.channel.number=+4911",
            "--coterie.signer.metrics.password-file=" + password,
            "--coterie.signer.requesters[0].name=wallet",
            "--coterie.signer.requesters[0].public-key-file=" + pem,
            "--coterie.signer.requesters[0].keys[0]=keys/*",
            "--management.server.port=" + freePort(),
            "--server.ssl.enabled=false",
            "--logging.structured.format.console="));
  }

  private static ConfigurableApplicationContext start(List<String> arguments) {
    return SignerApplication.start(arguments.toArray(String[]::new));
  }

  @Test
  void sealed_signer_is_live_but_not_ready() throws Exception {
    try (ConfigurableApplicationContext context = start(arguments())) {
      String port = context.getEnvironment().getProperty("local.server.port");
      assertThat(get(port, "/actuator/health/liveness").statusCode()).isEqualTo(200);
      HttpResponse<String> readiness = get(port, "/actuator/health/readiness");
      assertThat(readiness.statusCode()).isEqualTo(503);
      assertThat(readiness.body()).as("for everybody").doesNotContain("SEALED", "party");
      assertThat(asUser(port, "/actuator/health/readiness").body()).contains("SEALED");
      assertThat(get(port, "/actuator/prometheus").statusCode()).isEqualTo(401);
      HttpResponse<String> metrics = asUser(port, "/actuator/prometheus");
      assertThat(metrics.statusCode()).isEqualTo(200);
      assertThat(metrics.body()).contains("coterie_vault_open 0.0");
      for (String closed : List.of("/", "/actuator/env", "/actuator/shutdown", "/error")) {
        assertThat(get(port, closed).statusCode()).as(closed).isEqualTo(401);
        assertThat(asUser(port, closed).statusCode()).as(closed).isNotEqualTo(200);
      }
    }
  }

  @Test
  void unknown_setting_is_refused_at_start() throws Exception {
    List<String> arguments = arguments();
    arguments.add("--coterie.signer.max-sesions=3");
    assertThatThrownBy(() -> start(arguments)).hasStackTraceContaining("max-sesions");
  }

  @Test
  void impossible_setting_is_refused_at_start() throws Exception {
    List<String> arguments = arguments();
    arguments.add("--coterie.signer.requesters[0].schemes[0]=rsa");
    assertThatThrownBy(() -> start(arguments)).hasStackTraceContaining("no scheme rsa");
  }

  private record Ran(int code, String out, String err) {}

  private static Ran run(String... words) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    int code =
        SignerApplication.command(
            InputStream.nullInputStream(),
            new PrintStream(out, true, UTF_8),
            new PrintStream(err, true, UTF_8),
            words);
    return new Ran(code, out.toString(UTF_8), err.toString(UTF_8));
  }

  private static void refused(int code, String because, String... words) {
    Ran ran = run(words);
    assertThat(ran.code()).isEqualTo(code);
    assertThat(ran.out()).isEmpty();
    assertThat(ran.err()).hasLineCount(1).contains(because).doesNotContain("\tat ");
  }

  @Test
  void a_command_that_goes_wrong_says_in_one_line_what_to_do() throws Exception {
    String data = folder.toString();
    Path file = folder.resolve(PartyStore.FILE);
    refused(2, "usage: ", "keys");
    refused(2, "usage: ", "key", data);
    refused(2, "usage: ", "hold", data, "keys/hot");
    refused(2, "usage: ", "unfreeze", data, "keys/hot", "why");
    refused(2, "usage: ", "forget-key", data, "keys/hot", "why");
    refused(1, "is missing: give the data folder of a party", "keys", data);
    refused(1, "is missing: give the data folder of a party", "keys", file + "/x");
    refused(1, "is missing: give the data folder of a party", "unfreeze", data, "keys/hot");
    refused(1, "Nul character", "keys", "a\0b");
    refused(1, "is missing: no party's data folder", "backup", data);
    refused(1, "not a whole party's backup", "restore", data + "/new");
    Files.writeString(file, "this is no file of SQLite, whatever it is called.".repeat(100));
    refused(1, "cannot be read", "keys", data);
    Files.writeString(file, "");
    refused(1, "has version 0", "keys", data);
    Files.delete(file);
    try (PartyStore store = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {})) {
      assertThat(store.holds().all()).isEmpty();
    }
    assertThat(run("keys", data)).isEqualTo(new Ran(0, "", ""));
    refused(1, "is no time such as", "fence", data, "now", "why");
    refused(1, "is not installation", "hold", data, "hot", "why");
    String[] forget = {"forget-key", data, "keys/hot", "0123 ".repeat(8).strip(), "why"};
    refused(1, "holds nothing of keys/hot with the fingerprint 0123 0123", forget);
    refused(1, "the reason is not one line", "lift", data, "keys/hot", "");
    try (Connection raw = DriverManager.getConnection("jdbc:sqlite:" + file);
        var statement = raw.createStatement()) {
      statement.executeUpdate(
          "INSERT INTO key_share VALUES (zeroblob(32), 'keys/hot', 1, 0, 99, 'ACTIVE', 'x', '1', x'ff',"
              + " x'', '', '', '', zeroblob(32), 0, 0, '', 0, x'')");
    }
    refused(1, "is damaged", "keys", data);
    refused(1, "is not the sequence number", "records", data, "all");
    assertThat(run("records", data, "1")).isEqualTo(new Ran(0, "", ""));
  }

  @Test
  void requests_reach_the_running_signer_and_show_in_keys() throws Exception {
    String data = folder.toString();
    try (PartyStore store = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {})) {
      assertThat(run("hold", data, "keys/hot", "an odd withdrawal")).isEqualTo(new Ran(0, "", ""));
      store.shares().housekeep();
      Installation.until("it is on disk", () -> !PartyStore.holds(folder).isEmpty());
      assertThat(run("keys", data).out())
          .startsWith("keys/hot is on hold since ")
          .endsWith(": an odd withdrawal; lifted by the operator of this party, with 'lift'\n");
      assertThat(run("lift", data, "keys/hot", "explained").code()).isZero();
      store.shares().housekeep();
      Installation.until("it is lifted", () -> PartyStore.holds(folder).isEmpty());
    }
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  private static HttpResponse<String> get(String port, String path, String... headers)
      throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create("http://localhost:" + port + path));
    if (headers.length > 0) {
      request.headers(headers);
    }
    try (HttpClient http = HttpClient.newHttpClient()) {
      return http.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }
  }

  private static HttpResponse<String> asUser(String port, String path) throws Exception {
    String credentials =
        Base64.getEncoder().encodeToString(("metrics:" + PASSWORD).getBytes(UTF_8));
    return get(port, path, "Authorization", "Basic " + credentials);
  }
}
