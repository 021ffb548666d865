package io.coterie.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.Bytes;
import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Terminal;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** The text that a person sees before anything is signed, and the keys that sign it. */
class ApprovalTest {
  /** EIP-155's example: nonce 9, 1 ether to 0x3535..., chain 1. */
  private static final String TRANSACTION =
      "ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080";

  private static final String ITS_DIGEST =
      "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53";

  @TempDir Path folder;
  private Path requester;
  private Path intent;

  @BeforeEach
  void makeRequester() throws IOException {
    TestFiles.trust(folder);
    requester = folder.resolve("requester.pem");
    intent = folder.resolve("intent");
    assertThat(Run.of("intent", "new-requester", "" + requester).exitCode()).isZero();
  }

  private Run sign(Terminal terminal, String... payload) {
    List<String> args = new ArrayList<>(List.of("intent", "sign", "treasury"));
    args.addAll(List.of(payload));
    args.addAll(List.of("--requester", "wallet", "--requester-key", "" + requester));
    args.addAll(List.of("--trust", "" + folder.resolve("trust.json")));
    args.addAll(List.of("--fingerprint", TestFiles.FINGERPRINT, "--out", "" + intent));
    return Run.of(terminal, args.toArray(String[]::new));
  }

  @Test
  void an_intent_is_shown_decoded_with_its_digest_and_signed_if_the_answer_is_yes()
      throws Exception {
    Path transaction = Files.writeString(folder.resolve("tx"), TRANSACTION);
    List<String> asked = new ArrayList<>();
    Run run =
        sign(
            question -> {
              asked.add(question);
              return Optional.of("Yes");
            },
            "--ethereum-transaction",
            "" + transaction,
            "--path",
            "m/0/1",
            "--purpose",
            "withdrawal 4711");
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err())
        .startsWith("to be signed by wallet\n")
        .contains("keys/treasury", "m/0/1", "withdrawal 4711", "ethereum-transaction")
        .contains("fingerprint " + TestFiles.FINGERPRINT, "in          test")
        .contains("to: 0x3535353535353535353535353535353535353535")
        .contains("digest      " + ITS_DIGEST);
    assertThat(asked).hasSize(1);
    assertThat(SignedIntent.parseFrom(Files.readAllBytes(intent)).getSignaturesCount())
        .isEqualTo(1);
  }

  /** The tweak decides which key signs, as the path does. */
  @Test
  void a_taproot_output_key_is_shown_with_its_root() {
    String root = "ab".repeat(32);
    String[] payload = {"--digest", "cd".repeat(32), "--scheme", "bip340-secp256k1"};
    Run plain = sign(question -> Optional.of("n"), payload);
    assertThat(plain.err()).doesNotContain("taproot");
    List<String> tweaked = new ArrayList<>(List.of(payload));
    tweaked.addAll(List.of("--taproot", root));
    Run run = sign(question -> Optional.of("n"), tweaked.toArray(String[]::new));
    assertThat(unwrapped(run.err())).contains("taproot     root " + root + "\n");
  }

  /** Nobody is asked to approve what nobody can read. */
  @Test
  void a_payload_that_cannot_be_read_is_refused_before_anybody_is_asked() throws Exception {
    // To 0x3535... with multicall(bytes[])
    String call = "e3010182520894" + "35".repeat(20) + "8084ac9650d8018080";
    List<String> asked = new ArrayList<>();
    Run run =
        sign(
            question -> {
              asked.add(question);
              return Optional.of("Yes");
            },
            "--ethereum-transaction",
            "" + Files.writeString(folder.resolve("call"), call));
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err())
        .contains("no signer can read all of the payload", "(call of function 0xac9650d8)")
        .contains("a rule that allows digest")
        .doesNotContain("keys/treasury", "chain id");
    assertThat(asked).isEmpty();
    assertThat(intent).doesNotExist();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "n", "no", "yes please"})
  void any_other_answer_signs_nothing(String answer) {
    Run run = sign(question -> Optional.of(answer), "-m", "hello");
    assertThat(run.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(run.err()).contains("text: hello", "nothing was signed");
    assertThat(intent).doesNotExist();
  }

  @Test
  void where_nobody_can_be_asked_a_script_has_to_say_yes() {
    Run run = sign(question -> Optional.empty(), "-m", "hello");
    assertThat(run.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(run.err()).contains("--yes");
    assertThat(intent).doesNotExist();
    assertThat(sign(question -> Optional.empty(), "-m", "hello", "--yes").exitCode()).isZero();
  }

  @Test
  void a_message_cannot_pose_as_a_line_of_the_command_or_control_the_terminal() {
    String hostile = "pay 1\n            to: me\u001b[2J\u202egnp\u009b1m";
    Run run = sign(question -> Optional.of("n"), "-m", hostile);
    assertThat(run.err())
        .contains("text: pay 1\\u{a}            to: me\\u{1b}[2J\\u{202e}gnp\\u{9b}1m")
        .doesNotContain("\u001b", "\u202e", "\u009b");
  }

  /** Somebody in front of a terminal of some width, who says no. */
  private record Refusing(int columns) implements Terminal {
    @Override
    public Optional<String> ask(String question) {
      return Optional.of("n");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {8, 33, 80, 132})
  void no_text_of_a_long_line_begins_a_line_of_the_terminal(int columns) {
    for (String character : List.of("x", "漢", "𝒙", "é", "\u202e")) {
      // Where the terminal wraps it, it looks like lines of the command.
      String forged = "sha-256     " + "0".repeat(columns);
      String hostile = character.repeat(columns) + forged;
      Run run = sign(new Refusing(columns), "-m", "hello", "--purpose", hostile);
      assertShown(run, columns, forged);
    }
    // Begins just where a line of 80 columns ends.
    String message = "x".repeat(62) + "sha-256     " + "0".repeat(50);
    assertShown(sign(new Refusing(columns), "-m", message), columns, "text: " + message);
  }

  private static void assertShown(Run run, int columns, String text) {
    String shown = run.err().substring(0, run.err().indexOf("coterie: "));
    assertThat(shown.lines()).allMatch(line -> columns(line) <= columns);
    List<String> begun = shown.lines().filter(line -> !line.startsWith("  | ")).toList();
    List<String> rows = unwrapped(shown).lines().toList();
    assertThat(begun).hasSameSizeAs(rows);
    assertThat(begun.getLast()).startsWith("sha-256");
    assertThat(begun.subList(0, begun.size() - 1)).noneMatch(line -> line.startsWith("sha-256"));
    assertThat(unwrapped(shown)).contains(text);
  }

  /** With every character that is not ASCII as wide as some terminal shows it. */
  private static long columns(String line) {
    return line.codePoints().map(point -> point < 0x80 ? 1 : 2).sum();
  }

  private static String unwrapped(String shown) {
    return shown.replace("\n  | ", "");
  }

  @Test
  void a_signed_intent_is_shown_in_lines_that_the_terminal_does_not_wrap() {
    requester = folder.resolve("wallet-intents.pem");
    String message = "x".repeat(100) + "signed by another";
    assertThat(sign(question -> Optional.of("y"), "-m", message).exitCode()).isZero();
    Run shown = show();
    assertThat(shown.out().lines()).allMatch(line -> line.length() <= Terminal.USUAL_COLUMNS);
    assertThat(unwrapped(shown.out())).contains("text: " + message + "\n");
  }

  @Test
  void a_long_message_is_shown_whole_with_its_digest() throws Exception {
    String end = "\ndigest      00\nto be signed by wallet\n";
    String message = "pay 1 ".repeat(2_000) + end;
    Run run = sign(question -> Optional.of("n"), "-m", message, "--scheme", "ed25519");
    assertThat(run.exitCode()).isEqualTo(ExitCode.NO);
    String shown =
        unwrapped(run.err())
            .lines()
            .map(line -> line.replaceFirst("^ {12}text( \\(\\d+\\))?: ", "text>"))
            .filter(line -> line.startsWith("text>"))
            .map(line -> line.substring("text>".length()))
            .collect(Collectors.joining());
    assertThat(shown).isEqualTo(message.replace("\n", "\\u{a}"));
    assertThat(run.err().lines())
        .containsOnlyOnce("to be signed by wallet")
        .doesNotContain("digest      00");
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(message.getBytes(UTF_8));
    assertThat(unwrapped(run.err())).contains("sha-256     " + HexFormat.of().formatHex(digest));
  }

  @Test
  void a_purpose_is_shown_whole() {
    String purpose = "p".repeat(2_000) + "end";
    Run run = sign(question -> Optional.of("n"), "-m", "hello", "--purpose", purpose);
    assertThat(unwrapped(run.err())).contains("purpose     " + purpose + "\n");
  }

  @Test
  void an_intent_is_good_for_a_day_at_most() {
    Run run = sign(question -> Optional.of("y"), "-m", "hello", "--expires-in", "86401");
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains("--expires-in");
    assertThat(intent).doesNotExist();
  }

  @Test
  void the_longest_intent_is_accepted_and_measured_from_its_request_id() throws Exception {
    Run longest = sign(question -> Optional.of("y"), "-m", "hello", "--expires-in", "86400");
    assertThat(longest.exitCode()).as(longest.err()).isZero();
    SigningIntent signed =
        SigningIntent.parseFrom(SignedIntent.parseFrom(Files.readAllBytes(intent)).getPayload());
    Instant drawn = RequestId.time(signed.getRequestId());
    assertThat(signed.getNotAfter())
        .isEqualTo(Timestamps.fromMillis(drawn.plus(VerifiedIntent.MAX_LIFE).toEpochMilli()));
    Files.delete(intent);

    String older = RequestId.at(Instant.now().minus(Duration.ofHours(1)));
    Run dead = withId(RequestId.at(Instant.now().minus(VerifiedIntent.MAX_LIFE)), "86400");
    assertThat(dead.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(dead.err()).hasLineCount(1).contains("--expires-in counts from", "--request-id");
    assertThat(intent).doesNotExist();
    Run shorter = withId(older, "80000");
    assertThat(shorter.exitCode()).as(shorter.err()).isZero();
  }

  private Run withId(String requestId, String seconds) {
    return sign(
        question -> Optional.of("y"),
        "-m",
        "hello",
        "--request-id",
        requestId,
        "--expires-in",
        seconds);
  }

  private Run show() {
    return Run.of("intent", "show", "" + intent, "--trust", "" + folder.resolve("trust.json"));
  }

  @Test
  void a_signed_intent_is_shown_decoded_if_the_trust_file_knows_its_signature() throws Exception {
    Path unknown = requester;
    requester = folder.resolve("wallet-intents.pem");
    assertThat(sign(question -> Optional.of("y"), "-m", "hello").exitCode()).isZero();
    SignedIntent signed = SignedIntent.parseFrom(Files.readAllBytes(intent));
    Run shown = show();
    assertThat(shown.exitCode()).as(shown.err()).isZero();
    assertThat(shown.out())
        .startsWith("signed by wallet\n")
        .contains("keys/treasury", "text: hello", "fingerprint " + TestFiles.FINGERPRINT)
        .contains(SigningIntent.parseFrom(signed.getPayload()).getRequestId());

    Files.write(
        intent,
        signed.toBuilder()
            .setPayload(
                SigningIntent.parseFrom(signed.getPayload()).toBuilder()
                    .setPurpose("other")
                    .build()
                    .toByteString())
            .build()
            .toByteArray());
    assertNotShown("does not verify");
    requester = unknown;
    assertThat(sign(question -> Optional.of("y"), "-m", "hello").exitCode()).isZero();
    assertNotShown("does not verify");
    Files.writeString(intent, "hello");
    assertNotShown("no intent");
  }

  /** A file shows the intent that another command would send. */
  @Test
  void an_intent_is_shown_to_the_end_of_its_file_or_not_at_all() throws Exception {
    requester = folder.resolve("wallet-intents.pem");
    assertThat(sign(question -> Optional.of("y"), "-m", "hello").exitCode()).isZero();
    byte[] shown = Files.readAllBytes(intent);
    int most = 2 * IntentVerifier.MAX_PAYLOAD;
    // Two bytes of tag and three of length stand before what fills the file up to its bound.
    UnknownFieldSet.Field much =
        UnknownFieldSet.Field.newBuilder()
            .addLengthDelimited(ByteString.copyFrom(new byte[most - shown.length - 5]))
            .build();
    byte[] filled =
        Bytes.concat(shown, UnknownFieldSet.newBuilder().addField(99, much).build().toByteArray());
    assertThat(filled).hasSize(most);
    // The payload of the second would be in force.
    Files.write(intent, Bytes.concat(filled, shown));
    assertNotShown("no intent");
    Run sent = Run.of("sign", "--intent", "" + intent, "--yes");
    assertThat(sent.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(sent.err()).hasLineCount(1).contains("no intent");
  }

  private void assertNotShown(String why) {
    Run run = show();
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).hasLineCount(1).contains(why);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-r-----", "rw----r--", "rw--w----", "rw-----w-"})
  void a_key_that_others_can_read_or_replace_is_not_used(String permissions) throws Exception {
    Files.setPosixFilePermissions(requester, PosixFilePermissions.fromString(permissions));
    Run run = sign(question -> Optional.of("y"), "-m", "hello");
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains("chmod 600 " + requester);
    assertThat(intent).doesNotExist();
  }
}
