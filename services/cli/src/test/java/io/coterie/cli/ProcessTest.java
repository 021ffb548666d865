package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.ExitCode;
import io.grpc.ConnectivityState;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The command as people start it: a process, on the class path that it has without the tests. */
class ProcessTest {
  @TempDir static Path folder;

  @BeforeAll
  static void makeClients() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.certificate(folder, "other");
    TestFiles.trust(folder);
  }

  private static Run run(List<String> command) throws IOException, InterruptedException {
    Path out = Files.createTempFile(folder, "run", ".out");
    Path err = Files.createTempFile(folder, "run", ".err");
    Process process =
        new ProcessBuilder(command)
            .redirectOutput(out.toFile())
            .redirectError(err.toFile())
            .start();
    process.getOutputStream().close();
    int exitCode = process.waitFor();
    return new Run(
        exitCode,
        Files.readString(out, StandardCharsets.UTF_8),
        Files.readString(err, StandardCharsets.UTF_8));
  }

  private static Run coterie(String... args) throws Exception {
    return coterie(List.of(), args);
  }

  private static Run coterie(List<String> options, String... args) throws Exception {
    return run(command(options, args));
  }

  private static List<String> command(List<String> options, String... args) throws IOException {
    Path classPath = Path.of("target", "runtime.classpath");
    assumeThat(classPath).exists();
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-XX:TieredStopAtLevel=1"));
    command.addAll(options);
    command.addAll(
        List.of(
            "-cp",
            Path.of("target", "classes") + ":" + Files.readString(classPath).strip(),
            Coterie.class.getName()));
    command.addAll(List.of(args));
    return command;
  }

  private static Run online(String endpoint, String ca, String key, String... more)
      throws Exception {
    return coterie(connected(endpoint, ca, key, more));
  }

  private static String[] connected(String endpoint, String ca, String key, String... more) {
    List<String> args = new ArrayList<>(List.of(more));
    args.addAll(List.of("--endpoint", endpoint, "--timeout", "10"));
    args.addAll(List.of("--ca", "" + folder.resolve(ca)));
    args.addAll(List.of("--cert", "" + folder.resolve("wallet.pem")));
    args.addAll(List.of("--key", "" + folder.resolve(key)));
    args.addAll(List.of("--trust", "" + folder.resolve("trust.json")));
    return args.toArray(String[]::new);
  }

  /** Its classes make each start longer: they are in a signed jar, which no cache holds. */
  @Test
  void a_call_starts_without_bouncycastles_provider() throws Exception {
    Path loaded = folder.resolve("loaded");
    List<String> options = List.of("-Xlog:class+load:file=" + loaded);
    Run nobody =
        coterie(options, connected("localhost:1", "wallet.pem", "wallet-key.pem", "keys", "list"));
    assertThat(nobody.exitCode()).as(nobody.err()).isEqualTo(ExitCode.UNAVAILABLE);
    List<String> classes = Files.readAllLines(loaded);
    assertThat(classes).anyMatch(line -> line.contains(" io.coterie.cli.profile.TlsFiles "));
    assertThat(classes).noneMatch(line -> line.contains(" org.bouncycastle.jce.provider."));
  }

  /** The handshake goes on while the trust file is read. */
  @Test
  void a_connection_is_begun_before_the_first_call() throws Exception {
    String[] options = connected("localhost:1", "wallet.pem", "wallet-key.pem");
    CountDownLatch begun = new CountDownLatch(1);
    try (Profile.Connection connection =
        CommandLine.populateCommand(new Profile(), options).connect()) {
      connection.channel().notifyWhenStateChanged(ConnectivityState.IDLE, begun::countDown);
      assertThat(begun.await(30, TimeUnit.SECONDS)).isTrue();
    }
  }

  @Test
  void a_failure_is_one_line_and_no_library_adds_to_it() throws Exception {
    Run nobody = online("localhost:1", "wallet.pem", "wallet-key.pem", "keys", "list");
    assertThat(nobody.exitCode()).as(nobody.err()).isEqualTo(ExitCode.UNAVAILABLE);
    assertThat(nobody.err()).hasLineCount(1).startsWith("coterie: UNAVAILABLE");
  }

  @Test
  void a_name_that_does_not_resolve_is_one_line_too() throws Exception {
    Run unknown =
        online("coordinator.invalid:9090", "wallet.pem", "wallet-key.pem", "keys", "list");
    assertThat(unknown.exitCode()).as(unknown.err()).isEqualTo(ExitCode.UNAVAILABLE);
    assertThat(unknown.err())
        .hasLineCount(1)
        .contains("coordinator.invalid")
        .doesNotContain("Exception");
  }

  @Test
  void the_wrong_ca_file_is_named() throws Exception {
    Files.writeString(folder.resolve("wrong.pem"), "no certificate\n");
    Run wrong = online("localhost:1", "wrong.pem", "wallet-key.pem", "keys", "list");
    assertThat(wrong.exitCode()).as(wrong.err()).isEqualTo(ExitCode.LOCAL);
    assertThat(wrong.err()).hasLineCount(1).contains("wrong.pem", "certificate");
    Run doctor = online("localhost:1", "wrong.pem", "wallet-key.pem", "doctor");
    assertThat(doctor.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(doctor.out())
        .containsPattern("FAIL +ca +.*wrong\\.pem")
        .doesNotContain("unexpected");
    assertThat(doctor.err()).isEmpty();
    Run swapped = online("localhost:1", "wallet.pem", "wallet.pem", "keys", "list");
    assertThat(swapped.err()).hasLineCount(1).contains("wallet.pem", "PKCS#8");
  }

  @Test
  void the_doctor_says_what_is_wrong_with_each_thing_and_what_it_did_not_check() throws Exception {
    Run doctor =
        online(
            "localhost:1",
            "wallet.pem",
            "other-key.pem",
            "doctor",
            "--management",
            "https://localhost:1");
    assertThat(doctor.out())
        .containsPattern("FAIL +tls key +.*other-key\\.pem is not the key of .*wallet\\.pem")
        .containsPattern("FAIL +clock +\\S+")
        .doesNotContain("Try again");
    Run without = online("localhost:1", "wallet.pem", "wallet-key.pem", "doctor");
    assertThat(without.out()).containsPattern("skip +clock +not checked");
    Path anothers = folder.resolve("another-requester.pem");
    assertThat(Run.of("intent", "new-requester", "" + anothers).exitCode()).isZero();
    Run another =
        online(
            "localhost:1",
            "wallet.pem",
            "wallet-key.pem",
            "doctor",
            "--requester",
            "wallet",
            "--requester-key",
            "" + anothers);
    assertThat(another.out()).containsPattern("FAIL +requester +the requester key is none");
  }

  /** Signs an intent in a terminal of its own, where somebody types an answer. */
  private static Run inTerminal(Path intent, String answer, String redirections) throws Exception {
    List<String> sign =
        command(
            List.of(),
            "intent",
            "sign",
            "treasury",
            "-m",
            "hello",
            "--fingerprint",
            "'" + TestFiles.FINGERPRINT + "'",
            "--requester",
            "wallet",
            "--requester-key",
            "" + folder.resolve("wallet-intents.pem"),
            "--trust",
            "" + folder.resolve("trust.json"),
            "--out",
            "" + intent);
    String line = String.join(" ", sign) + " " + redirections;
    Path typed = Files.writeString(Files.createTempFile(folder, "typed", ""), answer + "\n");
    Path shown = Files.createTempFile(folder, "shown", "");
    Process process =
        new ProcessBuilder("script", "-qec", line, "/dev/null")
            .redirectInput(typed.toFile())
            .redirectOutput(shown.toFile())
            .start();
    return new Run(process.waitFor(), Files.readString(shown), "");
  }

  /** The results of a script go to a file, and a person still decides. */
  @Test
  void a_person_is_asked_at_the_terminal_where_results_go_to_a_file() throws Exception {
    Path results = folder.resolve("results");
    Path intent = folder.resolve("asked");
    Run signed = inTerminal(intent, "y", "</dev/null >" + results);
    assertThat(signed.exitCode()).as(signed.out()).isZero();
    assertThat(signed.out()).contains("to be signed by wallet", "text: hello", "Sign this? [y/N]");
    assertThat(Files.readString(results)).contains("intent     " + intent);
    assertThat(intent).exists();

    Path other = folder.resolve("declined");
    Run declined = inTerminal(other, "n", "</dev/null >" + results);
    assertThat(declined.exitCode()).as(declined.out()).isEqualTo(ExitCode.NO);
    assertThat(other).doesNotExist();
  }

  @Test
  void nobody_is_asked_about_what_the_terminal_does_not_show() throws Exception {
    Path said = folder.resolve("said");
    Path intent = folder.resolve("unseen");
    Run unseen = inTerminal(intent, "y", "2>" + said);
    assertThat(unseen.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(unseen.out()).doesNotContain("Sign this?");
    assertThat(Files.readString(said)).contains("text: hello", "Nobody can be asked here");
    assertThat(intent).doesNotExist();
  }
}
