package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Terminal;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import picocli.CommandLine;

/** The commands that sign an intent for the parties show it and ask first. */
class IntentApprovalTest {
  private static final String ID = RequestId.next();

  /**
   * A command that signs.
   *
   * @param line the command; K is the name of a key of its own
   * @param declined exit code after another answer than yes
   * @param outcome words after another answer than yes
   * @param call that brings the intent to the coordinator
   * @param shown of the intent, beside its key, installation and digest
   */
  record Signing(String line, int declined, String outcome, String call, List<String> shown) {
    @Override
    public String toString() {
      return line;
    }
  }

  private static final List<Signing> COMMANDS =
      List.of(
          new Signing(
              "keys create K --scheme ed25519 --threshold 2 --parties p1,p2,p3 --purpose cold",
              ExitCode.NO,
              "nothing was signed",
              "createKey",
              List.of(
                  "asks for    a new key", "threshold: 2 of 3: p1, p2, p3", "purpose     cold")),
          new Signing(
              "keys refresh K",
              ExitCode.NO,
              "nothing was signed",
              "refreshKey",
              List.of("asks for    new shares", "epoch: 1", "fingerprint ")),
          new Signing(
              "keys reshare K --threshold 3 --parties p2,p3,p4",
              ExitCode.NO,
              "nothing was signed",
              "reshareKey",
              List.of(
                  "and no others", "threshold: 3 of 3: p2, p3, p4", "epoch: 1", "public key: ")),
          new Signing(
              "cancel K --reshare-epoch 0 --request-id " + ID,
              ExitCode.UNAVAILABLE,
              "was not cancelled, and whether it was signed is not known",
              "cancelSigning",
              List.of("no signature, ever", "request id: " + ID, "reshare epoch: 0")));

  @TempDir static Path folder;
  private static FakeCoordinator coordinator;
  private static int keys;

  private String key = "";

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    coordinator.never = Set.of(1, 2, 3);
  }

  @AfterAll
  static void stop() throws Exception {
    coordinator.close();
  }

  @BeforeEach
  void nameAKey() {
    keys++;
    key = "key-" + keys;
  }

  private Run run(Terminal terminal, Signing command, String... more) {
    if (!command.call().equals("createKey")) {
      createKey();
    }
    coordinator.honest();
    return coterie(terminal, command.line(), more);
  }

  private void createKey() {
    Run created = coterie(question -> Optional.of("y"), COMMANDS.getFirst().line());
    assertThat(created.exitCode()).as(created.err()).isZero();
  }

  private Run coterie(Terminal terminal, String line, String... more) {
    List<String> all = new ArrayList<>(List.of(line.replace("K", key).split(" ")));
    all.addAll(List.of(more));
    return Run.ofWallet(terminal, folder.resolve("trust.json"), coordinator.port(), all);
  }

  private void assertShown(Signing command, Run run) {
    assertThat(run.err())
        .startsWith("to be signed by wallet\nkey         keys/" + key + "\n")
        .contains("in          test\n", "scheme      ed25519\n", "good until  ")
        .contains(command.shown())
        .containsPattern("digest      [0-9a-f]{64}\n");
  }

  @ParameterizedTest
  @FieldSource("COMMANDS")
  void another_answer_than_yes_signs_and_sends_nothing(Signing command) {
    for (String answer : List.of("", "n", "yes please")) {
      nameAKey();
      Run run = run(question -> Optional.of(answer), command);
      assertThat(run.exitCode()).isEqualTo(command.declined());
      assertShown(command, run);
      assertThat(run.err()).contains(command.outcome()).doesNotContain("\nrequest id ");
      assertNothingSent(command, run);
    }
  }

  @Test
  void every_party_is_shown_and_none_can_pose_as_a_line_of_the_command() {
    List<String> parties = new ArrayList<>();
    for (int i = 10; i < 30; i++) {
      parties.add("p" + i + "-" + "x".repeat(60));
    }
    parties.add("p\ndigest      00\u001b[2J\\n");
    String named = String.join(",", parties);
    Run run = run(question -> Optional.of("n"), COMMANDS.getFirst(), "--parties", named);
    assertThat(run.err().replace("\n  | ", ""))
        .contains("threshold: 2 of 24: p1, p2, p3, p10-")
        .contains(parties.subList(0, 20))
        .contains("p\\ndigest      00\\u{1b}[2J\\\\n\n")
        .doesNotContain("\u001b");
  }

  @ParameterizedTest
  @FieldSource("COMMANDS")
  void where_nobody_can_be_asked_nothing_is_signed(Signing command) {
    Run run = run(question -> Optional.empty(), command);
    assertThat(run.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
    assertShown(command, run);
    assertThat(run.err()).contains("Nobody can be asked here: --yes signs without a question");
    assertNothingSent(command, run);
  }

  private static void assertNothingSent(Signing command, Run run) {
    assertThat(run.out()).isEmpty();
    assertThat(coordinator.intents).isEmpty();
    assertThat(coordinator.calls).doesNotContain(command.call());
  }

  @Test
  void a_signing_names_the_requester_in_whose_name_it_is() {
    createKey();
    coordinator.honest();
    Run run = coterie(question -> Optional.of("n"), "sign K -m hello --scheme ed25519");
    assertThat(run.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(run.err()).startsWith("to be signed by wallet\nkey         keys/" + key + "\n");
  }

  /** A name can stand for two attested keys, of which the coordinator shows one. */
  @Test
  void what_is_signed_is_shown_whole_before_the_question_with_the_key_that_the_answer_showed()
      throws Exception {
    createKey();
    Key attested = coordinator.key("keys/" + key);
    for (String command : List.of("sign K -m hello --scheme ed25519", "sign --intent FILE")) {
      Path file = intent("wallet", "wallet-intents.pem", fingerprint(attested));
      coordinator.honest();
      Run declined =
          coterie(
              question -> {
                assertThat(coordinator.calls).containsExactly("getKey");
                return Optional.of("n");
              },
              command.replace("FILE", "" + file));
      assertThat(declined.exitCode()).isEqualTo(ExitCode.NO);
      assertThat(declined.err().replace("\n  | ", ""))
          .contains("fingerprint " + fingerprint(attested) + "\nin          test\n")
          .contains("public key  " + hex(attested.getPublicKey()) + "\n")
          .contains("reshare epoch: 0\n");

      Run run = coterie(question -> Optional.of("y"), command.replace("FILE", "" + file));
      assertThat(run.exitCode()).as(run.err()).isZero();
      ByteString sent = coordinator.intents.getLast().getPayload();
      assertThat(run.err().replace("\n  | ", ""))
          .contains("request id: " + SigningIntent.parseFrom(sent).getRequestId() + "\n")
          .contains("digest of the intent: " + hex(IntentVerifier.digest(sent)) + "\n");
    }
  }

  private static String fingerprint(Key attested) {
    return KeyFingerprint.text(attested.getFingerprint());
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  /** A file says by itself whose it is, so nobody is asked about one that is not that one's. */
  @Test
  void an_intent_of_a_file_is_shown_if_the_requester_that_it_names_has_signed_it()
      throws Exception {
    createKey();
    String fingerprint = fingerprint(coordinator.key("keys/" + key));
    Path good = intent("wallet", "wallet-intents.pem", fingerprint);
    coordinator.honest();
    Run shown = coterie(question -> Optional.of("n"), "sign --intent " + good);
    assertThat(shown.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(shown.err()).startsWith("signed by wallet\nkey         keys/" + key + "\n");

    coordinator.honest();
    Path forged = folder.resolve("forged-" + key);
    SignedIntent signed = SignedIntent.parseFrom(Files.readAllBytes(good));
    Files.write(
        forged, signed.toBuilder().addSignatures(signed.getSignatures(0)).build().toByteArray());
    assertNotShown(forged, "the trust file says whose signatures are known");
    assertNotShown(intent("keeper", "wallet-intents.pem"), "the trust file says");
    TestFiles.pem(
        folder.resolve("thief-" + key),
        "PRIVATE KEY",
        TestFiles.ed25519().getPrivate().getEncoded());
    assertNotShown(intent("wallet", "thief-" + key), "sig does not verify", "trust file");
    assertThat(coordinator.calls).isEmpty();
  }

  private void assertNotShown(Path file, String... told) {
    Run run =
        coterie(
            question -> {
              throw new AssertionError("asked about a forgery: " + question);
            },
            "sign --intent " + file);
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains(told);
  }

  private Path intent(String requester, String privateKey) {
    return intent(requester, privateKey, TestFiles.FINGERPRINT);
  }

  private Path intent(String requester, String privateKey, String fingerprint) {
    Path file = folder.resolve("intent-" + RequestId.next());
    List<String> args =
        new ArrayList<>(List.of("intent", "sign", key, "-m", "hello", "--scheme", "ed25519"));
    args.addAll(List.of("--fingerprint", fingerprint, "--out", "" + file, "--yes"));
    args.addAll(List.of("--trust", "" + folder.resolve("trust.json"), "--requester", requester));
    args.addAll(List.of("--requester-key", "" + folder.resolve(privateKey)));
    Run run = Run.of(args.toArray(String[]::new));
    assertThat(run.exitCode()).as(run.err()).isZero();
    return file;
  }

  /** Nobody approves a payload and learns afterwards that an option was misspelt. */
  @Test
  void a_fingerprint_that_is_none_is_refused_before_anything_is_shown_or_sent() {
    createKey();
    coordinator.honest();
    List<String> asked = new ArrayList<>();
    Run run =
        coterie(
            question -> {
              asked.add(question);
              return Optional.of("y");
            },
            "sign K -m hello --scheme ed25519 --fingerprint 00");
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains("--fingerprint is not 16 bytes");
    assertThat(asked).isEmpty();
    assertThat(coordinator.calls).isEmpty();
  }

  @Test
  void a_load_shows_its_first_intent_and_signs_nothing_unless_the_answer_is_yes() {
    createKey();
    for (Optional<String> answer : List.of(Optional.of("n"), Optional.<String>empty())) {
      coordinator.honest();
      Run refused = coterie(question -> answer, "load K --rate 2 --seconds 3");
      assertThat(refused.exitCode())
          .isEqualTo(answer.isPresent() ? ExitCode.NO : CommandLine.ExitCode.USAGE);
      assertThat(refused.out()).isEmpty();
      assertLoadShown(refused, 6);
      assertThat(refused.err()).contains(answer.isPresent() ? "nothing was signed" : "--yes");
      assertThat(coordinator.intents).isEmpty();
    }
    Run answered = coterie(question -> Optional.of("y"), "load K --rate 2 --seconds 1");
    assertThat(answered.exitCode()).as(answered.toString()).isZero();
    assertLoadShown(answered, 2);
    assertThat(coordinator.intents).hasSize(2);

    coordinator.honest();
    Run told = coterie(question -> Optional.empty(), "load K --rate 2 --seconds 1 --yes");
    assertThat(told.exitCode()).as(told.toString()).isZero();
    assertLoadShown(told, 2);
    assertThat(coordinator.intents).hasSize(2);
  }

  private void assertLoadShown(Run run, int times) {
    assertThat(run.err())
        .startsWith(
            "to be signed by wallet, %d times with a payload of its own each; the first\nkey         keys/%s\n"
                .formatted(times, key))
        .contains("in          test\n", "purpose     load\n", "good until  ")
        .contains("digest      " + "0".repeat(64) + "\n");
  }

  @ParameterizedTest
  @FieldSource("COMMANDS")
  void what_is_sent_is_what_was_shown(Signing command) {
    List<String> asked = new ArrayList<>();
    Run answered =
        run(
            question -> {
              asked.add(question);
              assertThat(coordinator.intents).isEmpty();
              return Optional.of("Yes");
            },
            command);
    assertThat(answered.exitCode()).as(answered.err()).isZero();
    assertThat(asked).containsExactly("Sign this? [y/N] ");
    assertSent(command, answered);

    nameAKey();
    Run told =
        run(
            question -> {
              throw new AssertionError("a script is asked: " + question);
            },
            command,
            "--yes");
    assertThat(told.exitCode()).as(told.err()).isZero();
    assertSent(command, told);
  }

  private void assertSent(Signing command, Run run) {
    assertShown(command, run);
    assertThat(coordinator.calls).contains(command.call());
    assertThat(coordinator.intents)
        .singleElement()
        .satisfies(
            sent -> {
              byte[] digest = IntentVerifier.digest(sent.getPayload()).toByteArray();
              assertThat(run.err())
                  .contains("digest      " + HexFormat.of().formatHex(digest) + "\n");
            });
  }
}
