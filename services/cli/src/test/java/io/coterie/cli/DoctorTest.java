package io.coterie.cli;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyStore;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Everything that {@code coterie doctor} checks fails in turn, beside all else that is well: with
 * one line that says what to do.
 */
@Timeout(120)
class DoctorTest {
  private static final Pattern LINE = Pattern.compile("(ok|skip|FAIL) +(tls key|[a-z]+) +(.*)");
  private static final List<String> CHECKS =
      List.of("ca", "certificate", "tls key", "trust", "requester", "health", "api", "clock");

  @TempDir static Path folder;
  private static FakeCoordinator coordinator;
  private static Management management;

  /** The options of the command, which a test changes. */
  private final Map<String, String> options = new LinkedHashMap<>();

  /** A management endpoint that says what it is told to say. */
  private static final class Management implements AutoCloseable {
    private final SSLServerSocket socket;
    private final Thread thread = new Thread(this::serve, "management");

    volatile String status = "200 OK";
    volatile Supplier<String> date = () -> "";

    /** Text that goes on without end after the head; none if it is empty. */
    volatile String endless = "";

    Management(Path store) throws Exception {
      char[] password = "changeit".toCharArray();
      KeyManagerFactory keys =
          KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      keys.init(KeyStore.getInstance(store.toFile(), password), password);
      SSLContext tls = SSLContext.getInstance("TLS");
      tls.init(keys.getKeyManagers(), null, null);
      socket = (SSLServerSocket) tls.getServerSocketFactory().createServerSocket(0);
      thread.start();
    }

    void well() {
      status = "200 OK";
      date = () -> date(Duration.ZERO);
      endless = "";
    }

    String url() {
      return "https://localhost:" + socket.getLocalPort();
    }

    private void serve() {
      while (!socket.isClosed()) {
        try (SSLSocket caller = (SSLSocket) socket.accept()) {
          answer(caller);
        } catch (IOException e) {
          // The caller has what it needs, or the test is over.
        }
      }
    }

    private void answer(SSLSocket caller) throws IOException {
      BufferedReader in =
          new BufferedReader(new InputStreamReader(caller.getInputStream(), US_ASCII));
      String line = in.readLine();
      while (line != null && !line.isEmpty()) {
        line = in.readLine();
      }
      OutputStream out = caller.getOutputStream();
      out.write(("HTTP/1.1 " + status + "\r\n" + date.get()).getBytes(US_ASCII));
      if (endless.isEmpty()) {
        out.write("Content-Length: 2\r\n\r\n{}".getBytes(US_ASCII));
      }
      while (!endless.isEmpty()) {
        out.write(endless.getBytes(US_ASCII));
      }
    }

    @Override
    public void close() throws Exception {
      endless = "";
      socket.close();
      thread.join();
    }
  }

  private static String date(Duration ahead) {
    return "Date: "
        + DateTimeFormatter.RFC_1123_DATE_TIME.format(
            Instant.now().plus(ahead).atOffset(ZoneOffset.UTC))
        + "\r\n";
  }

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.certificate(folder, "other");
    TestFiles.certificate(folder, "expired", "-40d");
    TestFiles.certificate(folder, "early", "+2d");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    management = new Management(folder.resolve("wallet.p12"));
  }

  @AfterAll
  static void stop() throws Exception {
    coordinator.close();
    management.close();
  }

  @BeforeEach
  void allIsWell() {
    coordinator.honest();
    coordinator.health.setStatus("", ServingStatus.SERVING);
    management.well();
    options.put("--endpoint", "localhost:" + coordinator.port());
    options.put("--ca", file("wallet.pem"));
    options.put("--cert", file("wallet.pem"));
    options.put("--key", file("wallet-key.pem"));
    options.put("--trust", file("trust.json"));
    options.put("--requester", "wallet");
    options.put("--requester-key", file("wallet-intents.pem"));
    options.put("--management", management.url());
    options.put("--timeout", "20");
  }

  private static String file(String name) {
    return folder.resolve(name).toString();
  }

  private record Finding(String mark, String text) {}

  private Map<String, Finding> doctor(int exitCode) {
    List<String> args = new ArrayList<>(List.of("doctor"));
    options.forEach((name, value) -> args.addAll(List.of(name, value)));
    Run run = Run.of(args.toArray(String[]::new));
    assertThat(run.exitCode()).as(run.toString()).isEqualTo(exitCode);
    assertThat(run.err()).isEmpty();
    Map<String, Finding> findings = new LinkedHashMap<>();
    run.out()
        .lines()
        .forEach(
            line -> {
              Matcher parts = LINE.matcher(line);
              assertThat(parts.matches()).as(line).isTrue();
              Finding finding = new Finding(parts.group(1), parts.group(3));
              assertThat(findings.put(parts.group(2), finding)).as("a second line").isNull();
            });
    return findings;
  }

  /** Those checks fail and no others; the first says so in these words. */
  private void assertFails(List<String> failing, String... said) {
    Map<String, Finding> findings = doctor(ExitCode.NO);
    assertThat(findings.keySet().stream().filter(name -> findings.get(name).mark().equals("FAIL")))
        .as("%s", findings)
        .containsExactlyElementsOf(failing);
    String text = findings.get(failing.getFirst()).text();
    assertThat(List.of(said)).allMatch(text::contains, "in: " + text);
    assertThat(text).isNotBlank().doesNotContain("Exception", "unexpected");
  }

  @Test
  void everything_is_checked_and_well() {
    Map<String, Finding> findings = doctor(0);
    assertThat(findings.keySet()).containsExactlyElementsOf(CHECKS);
    assertThat(findings.values()).extracting(Finding::mark).containsOnly("ok");
  }

  @Test
  void an_authority_that_has_expired_is_to_be_renewed() throws Exception {
    options.put("--ca", both("expired.pem"));
    assertFails(List.of("ca"), "renew it, or set this machine's clock");
  }

  @Test
  void an_authority_that_is_not_valid_yet_is_to_be_renewed() throws Exception {
    options.put("--ca", both("early.pem"));
    assertFails(List.of("ca"), "is valid from ", "renew it, or set this machine's clock");
  }

  /** A file with that certificate first, beside the authority that works. */
  private static String both(String first) throws IOException {
    Path both = folder.resolve("both-" + first);
    return Files.writeString(
            both,
            Files.readString(folder.resolve(first))
                + Files.readString(folder.resolve("wallet.pem")))
        .toString();
  }

  @Test
  void an_authority_that_is_no_certificate_or_not_there_is_named() throws Exception {
    options.put("--ca", Files.writeString(folder.resolve("no-ca.pem"), "none\n").toString());
    assertFails(List.of("ca", "connection", "clock"), "no-ca.pem holds no certificate (PEM)");
    options.put("--ca", file("missing.pem"));
    assertFails(List.of("ca", "connection", "clock"), "missing.pem cannot be read");
  }

  @Test
  void a_certificate_that_has_expired_is_to_be_renewed() {
    options.put("--cert", file("expired.pem"));
    options.put("--key", file("expired-key.pem"));
    assertFails(List.of("certificate", "health", "api"), "expired.pem is valid from ", "renew it");
  }

  @Test
  void a_certificate_that_the_coordinator_does_not_know_fails_where_it_is_used() {
    options.put("--cert", file("other.pem"));
    options.put("--key", file("other-key.pem"));
    assertFails(List.of("health", "api"), "certificate");
  }

  @Test
  void a_key_of_another_certificate_is_told() {
    options.put("--key", file("other-key.pem"));
    assertFails(
        List.of("tls key", "health", "api"),
        "other-key.pem is not the key of ",
        "give both of one");
  }

  @Test
  void a_key_that_others_can_read_is_told_with_what_mends_it() throws Exception {
    Path open = Files.copy(folder.resolve("wallet-key.pem"), folder.resolve("open-key.pem"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rw-r--r--"));
    options.put("--key", open.toString());
    assertFails(List.of("tls key", "connection"), "chmod 600 " + open);
  }

  @Test
  void a_trust_file_that_is_none_is_told_with_where_to_get_one() throws Exception {
    options.put("--trust", Files.writeString(folder.resolve("none.json"), "{}").toString());
    // Without its requesters the requester's key is compared with nothing.
    assertFails(List.of("trust"), "none.json cannot be used", "Take it from the operators");
    assertThat(doctor(ExitCode.NO).get("requester").mark()).isEqualTo("skip");
  }

  @Test
  void a_requester_key_that_is_anothers_is_told() {
    options.put("--requester-key", file("another.pem"));
    assertThat(Run.of("intent", "new-requester", file("another.pem")).exitCode()).isZero();
    assertFails(List.of("requester"), "none that the trust file has of wallet", "of one client");
  }

  @Test
  void a_requester_that_the_trust_file_does_not_know_is_not_checked() {
    options.put("--requester", "nobody");
    assertThat(doctor(0).get("requester"))
        .isEqualTo(
            new Finding("skip", "not checked: the trust file has no key of requester nobody"));
  }

  @Test
  void a_coordinator_that_is_not_there_is_told() {
    options.put("--endpoint", "localhost:1");
    assertFails(List.of("health", "api"), "is the coordinator running");
  }

  @Test
  void a_coordinator_that_does_not_serve_has_the_reason_in_its_log() {
    coordinator.health.setStatus("", ServingStatus.NOT_SERVING);
    assertFails(List.of("health"), "the coordinator says NOT_SERVING: see its log");
  }

  @Test
  void an_api_that_refuses_says_what_the_error_reference_advises() {
    coordinator.aboutLists =
        list -> {
          throw StatusErrors.of(ErrorReason.FORBIDDEN);
        };
    assertFails(List.of("api"), "FORBIDDEN", ErrorReason.FORBIDDEN.advice());
  }

  @Test
  void a_clock_that_is_off_is_to_be_set() {
    management.date = () -> date(Duration.ofMinutes(-2));
    assertFails(List.of("clock"), "this machine differs by 1", " s: set the clock (NTP)");
    management.date = () -> date(Duration.ofMinutes(2));
    assertFails(List.of("clock"), "this machine differs by 1", " s: set the clock (NTP)");
  }

  @Test
  void a_time_that_is_not_told_is_not_checked_and_one_that_is_none_fails() {
    management.date = () -> "";
    assertThat(doctor(0).get("clock"))
        .isEqualTo(new Finding("skip", "not checked: the management endpoint tells no time"));
    management.date = () -> "Date: yesterday\r\n";
    assertFails(List.of("clock"), "a Date that is none", "is it the coordinator's");
    options.remove("--management");
    assertThat(doctor(0).get("clock"))
        .isEqualTo(new Finding("skip", "not checked: no management endpoint in the profile"));
  }

  @Test
  void a_coordinator_that_is_not_ready_has_the_reason_in_its_log() {
    management.status = "503 Service Unavailable";
    assertFails(List.of("clock"), "is not ready (HTTP 503): see its log");
  }

  @Test
  void a_management_endpoint_that_is_not_there_or_anothers_is_told() throws Exception {
    options.put("--management", "https://localhost:1");
    assertFails(List.of("clock"), "https://localhost:1 gives no answer: is it the coordinator's");
    try (Management anothers = new Management(folder.resolve("other.p12"))) {
      options.put("--management", anothers.url());
      assertFails(List.of("clock"), "gives no answer (", "with a certificate from this CA?");
    }
  }

  /** Its head says all; the rest would fill the memory, or be waited for without end. */
  @Test
  void an_answer_without_end_is_not_read() {
    management.date = () -> date(Duration.ZERO) + "Transfer-Encoding: chunked\r\n\r\n";
    management.endless = "400\r\n" + "x".repeat(0x400) + "\r\n";
    assertThat(doctor(0).get("clock").mark()).isEqualTo("ok");
  }

  @ParameterizedTest
  @ValueSource(strings = {"X-Filler: x\r\n", "x"})
  void a_head_without_end_is_not_read(String filler) {
    management.endless = filler.repeat(1000);
    long start = System.nanoTime();
    assertFails(List.of("clock"), "gives no answer", "is it the coordinator's");
    assertThat(TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start)).isLessThan(60);
  }
}
