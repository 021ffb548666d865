package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

/** {@code coterie cancel} before a coordinator that answers as it likes. */
class CancelTest {
  @TempDir static Path folder;
  private static FakeCoordinator coordinator;

  /** The key "moved" as it was before it was reshared. */
  private static Key stale;

  private String id = RequestId.next();

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    for (String key : List.of("hot", "moved")) {
      create(key);
    }
    stale = coordinator.key("keys/moved");
    reshare("moved");
  }

  private static void create(String key) {
    Run created =
        coterie(
            "keys",
            "create",
            key,
            "--scheme",
            "ed25519",
            "--threshold",
            "2",
            "--parties",
            "p1,p2,p3");
    assertThat(created.exitCode()).as(created.err()).isZero();
    assertThat(created.out()).contains("3 of 3 receipts prove that a request was not signed");
  }

  private static void reshare(String key) {
    Run run = coterie("keys", "reshare", key, "--threshold", "3", "--parties", "p1,p2,p3,p4");
    assertThat(run.exitCode()).as(run.err()).isZero();
  }

  @AfterAll
  static void stop() throws Exception {
    coordinator.close();
  }

  @BeforeEach
  void honest() {
    coordinator.honest();
    coordinator.never = Set.of();
  }

  private static Run coterie(String... args) {
    return Run.ofWallet(
        question -> Optional.of("y"),
        folder.resolve("trust.json"),
        coordinator.port(),
        List.of(args));
  }

  private Run cancel(String... more) {
    List<String> all =
        new ArrayList<>(List.of("cancel", "hot", "--request-id", id, "--reshare-epoch", "0"));
    all.addAll(List.of(more));
    return coterie(all.toArray(String[]::new));
  }

  @Test
  void receipts_of_enough_parties_prove_that_nothing_was_signed() {
    coordinator.never = Set.of(1, 2, 3);
    Run run = cancel();
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.out())
        .contains(
            "NOT_SIGNED",
            "NOT SIGNED: p1, p2, p3 will never sign wallet's request %s with keys/hot (fingerprint %s,"
                    .formatted(id, fingerprint("hot"))
                + " parties of reshare epoch 0)",
            "if at most 1 of these parties lies");
    assertThat(cancel("-o", "json").out()).contains("\"state\": \"NOT_SIGNED\"", "\"receipts\"");
  }

  @Test
  void the_trust_file_says_how_many_are_enough_and_not_the_coordinator() {
    // Enough for the coordinator, which counts on no liar.
    coordinator.never = Set.of(1, 3);
    Run run = cancel();
    assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
    assertThat(run.out())
        .contains(
            "UNKNOWN: 2 of 3 parties say that they never sign wallet's request " + id,
            "(p1, p3), which is not enough",
            "3 of 3 receipts prove",
            "Ask for the payload under no other id")
        .doesNotContain("NOT SIGNED", "NOT_SIGNED");
    coordinator.never = Set.of();
    coordinator.aboutSignings =
        honest -> honest.toBuilder().setState(Signing.State.NOT_SIGNED).build();
    assertThat(cancel().exitCode()).as("its bare word").isEqualTo(ExitCode.UNAVAILABLE);
    coordinator.aboutSignings =
        honest ->
            honest.toBuilder()
                .setState(Signing.State.UNKNOWN)
                .setError(Status.newBuilder().setMessage("NOT SIGNED: p1, p2, p3 will never"))
                .build();
    for (String format : List.of("text", "json")) {
      Run told = cancel("-o", format);
      assertThat(told.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
      assertThat(told.out() + told.err()).contains("UNKNOWN").doesNotContain("NOT SIGNED");
    }
  }

  private static Run moved(String id, int reshareEpoch) {
    return coterie("cancel", "moved", "--request-id", id, "--reshare-epoch", "" + reshareEpoch);
  }

  @Test
  void parties_of_another_time_say_nothing_about_a_request() {
    coordinator.never = Set.of(1, 2, 3, 4);
    assertThat(moved(id, 2).exitCode()).isZero();
    assertThat(moved(id, 0).exitCode()).as("p4 was no party then").isEqualTo(ExitCode.REFUSED);
    coordinator.never = Set.of(1, 2);
    assertThat(moved(id, 2).exitCode()).as("one may lie").isEqualTo(ExitCode.UNAVAILABLE);
    coordinator.never = Set.of(1, 2, 3);
    assertThat(moved(id, 0).exitCode()).isZero();
    assertThat(moved(id, 7).exitCode()).isEqualTo(ExitCode.REFUSED);
    // A coordinator that shows the key as before: its old parties have not heard of the request.
    coordinator.aboutKeys = honest -> stale;
    Run shown = moved(id, 2);
    assertThat(shown.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(shown.out()).isEmpty();
  }

  @Test
  void the_coordinator_is_never_asked_which_parties_have_the_request() {
    coordinator.never = Set.of(1, 2, 3);
    for (Run run :
        List.of(
            coterie("cancel", "moved", "--request-id", id),
            coterie("cancel", "moved", "--reshare-epoch", "0"),
            coterie("cancel", "--request-id", id, "--reshare-epoch", "0"),
            coterie("cancel"))) {
      assertThat(run.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
      assertThat(run.err()).contains("--reshare-epoch", "or --intent FILE alone");
    }
    assertThat(coordinator.calls).isEmpty();
    Run signed = coterie("sign", "moved", "-m", "hello", "--scheme", "ed25519");
    assertThat(signed.err())
        .containsPattern("request id \\S+\nreshare epoch 2\nfingerprint " + fingerprint("moved"));
  }

  @Test
  void an_intent_says_all_about_its_request_and_nothing_else_does() {
    String fingerprint = fingerprint("moved");
    Path old = intent("moved", fingerprint, 0, "--request-id", id);
    coordinator.never = Set.of(1, 2, 3);
    Run run = coterie("cancel", "--intent", "" + old);
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.out()).contains(id, "keys/moved", "parties of reshare epoch 0");
    Path now = intent("moved", fingerprint, 2, "--request-id", id);
    coordinator.never = Set.of(1, 2, 4);
    assertThat(coterie("cancel", "--intent", "" + now).exitCode()).isZero();
    assertThat(coterie("cancel", "--intent", "" + old).exitCode())
        .as("p4 was no party then")
        .isEqualTo(ExitCode.REFUSED);
    coordinator.calls.clear();
    for (List<String> other :
        List.of(
            List.of("hot"),
            List.of("--request-id", id),
            List.of("--reshare-epoch", "0"),
            List.of("--fingerprint", fingerprint),
            List.of("moved", "--request-id", id, "--reshare-epoch", "0"))) {
      List<String> args = new ArrayList<>(List.of("cancel", "--intent", "" + old));
      args.addAll(other);
      assertThat(coterie(args.toArray(String[]::new)).exitCode())
          .isEqualTo(CommandLine.ExitCode.USAGE);
    }
    assertThat(coordinator.calls).isEmpty();
  }

  @Test
  void an_intent_of_another_key_of_that_name_or_another_requester_is_not_cancelled() {
    coordinator.never = Set.of(1, 2, 3);
    Path other = intent("hot", fingerprint("moved"), 0, "--request-id", id);
    Run run = coterie("cancel", "--intent", "" + other);
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).contains(fingerprint("moved"), fingerprint("hot"));
    Path keepers =
        intent("hot", fingerprint("hot"), 0, "--request-id", id, "--requester", "keeper");
    Run keeper = coterie("cancel", "--intent", "" + keepers);
    assertThat(keeper.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(keeper.err()).contains("not one of requester wallet");
    assertThat(coordinator.calls).doesNotContain("cancelSigning");
  }

  @Test
  void a_key_of_that_name_with_another_fingerprint_is_not_asked_to_cancel() {
    coordinator.never = Set.of(1, 2, 3);
    Run run = cancel("--fingerprint", fingerprint("moved"));
    assertThat(run.exitCode()).as("%s", run).isEqualTo(ExitCode.LOCAL);
    assertThat(run.out()).isEmpty();
    assertThat(run.err())
        .hasLineCount(1)
        .contains("nothing is cancelled", fingerprint("moved"), fingerprint("hot"));
    assertThat(cancel("--fingerprint", "00").exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(coordinator.calls).doesNotContain("cancelSigning");
    List<String> repeated =
        new ArrayList<>(List.of("sign", "hot", "-m", "hello", "--scheme", "ed25519"));
    repeated.addAll(List.of("--request-id", id, "--reshare-epoch", "0", "--fingerprint"));
    repeated.add(fingerprint("moved"));
    Run other = coterie(repeated.toArray(String[]::new));
    assertThat(other.exitCode()).as("%s", other).isEqualTo(ExitCode.LOCAL);
    assertThat(other.err()).contains("nothing is signed", fingerprint("moved"));
    assertThat(coordinator.calls).doesNotContain("sign");
    Run same = cancel("--fingerprint", fingerprint("hot"));
    assertThat(same.exitCode()).as("%s", same).isZero();
    assertThat(coordinator.calls).contains("cancelSigning");
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  private static String fingerprint(String key) {
    return coterie("keys", "get", key)
        .out()
        .lines()
        .filter(line -> line.startsWith("fingerprint"))
        .findFirst()
        .orElseThrow()
        .replace("fingerprint", "")
        .strip();
  }

  /** A file with a signed intent. */
  private static Path intent(String key, String fingerprint, int reshareEpoch, String... more) {
    Path file = folder.resolve("intent-" + RequestId.next());
    List<String> args =
        new ArrayList<>(List.of("intent", "sign", key, "-m", "hello", "--scheme", "ed25519"));
    args.addAll(List.of("--fingerprint", fingerprint, "--reshare-epoch", "" + reshareEpoch));
    args.addAll(List.of("--out", "" + file, "--trust", "" + folder.resolve("trust.json")));
    args.addAll(List.of("--requester-key", "" + folder.resolve("wallet-intents.pem")));
    args.addAll(List.of(more));
    if (!args.contains("--requester")) {
      args.addAll(List.of("--requester", "wallet"));
    }
    Run signed = Run.of(question -> Optional.of("y"), args.toArray(String[]::new));
    assertThat(signed.exitCode()).as(signed.err()).isZero();
    return file;
  }

  record Lie(String told, UnaryOperator<Receipt.Builder> change, int signer) {
    @Override
    public String toString() {
      return told;
    }
  }

  static Stream<Lie> lies() {
    return Stream.of(
        new Lie("another request", r -> r.setRequestId(RequestId.next()), 2),
        new Lie("another requester", r -> r.setRequester("keeper"), 2),
        new Lie("another key", r -> r.setKey("keys/moved"), 2),
        new Lie("another installation", r -> r.setInstallation("staging"), 2),
        new Lie("another time", r -> r.setReshareEpoch(2), 2),
        new Lie(
            "another fingerprint", r -> r.setKeyFingerprint(ByteString.copyFrom(new byte[16])), 2),
        new Lie(
            "a signed request",
            r -> r.setKind(Receipt.Kind.SIGNED).setIntentDigest(ByteString.copyFrom(new byte[32])),
            2),
        new Lie("the word of another party", r -> r, 3),
        new Lie("the same party twice", r -> r.setParty(1), 1),
        new Lie("a stranger", r -> r.setParty(4), 4));
  }

  @ParameterizedTest
  @MethodSource
  void lies(Lie lie) {
    coordinator.never = Set.of(1, 2, 3);
    coordinator.aboutSignings =
        honest -> {
          Receipt told = Receipts.read(honest.getReceipts(1)).orElseThrow();
          Receipt changed = lie.change().apply(told.toBuilder()).build();
          SignedReceipt receipt =
              Receipts.signed(changed, TestFiles.sign(lie.signer(), Receipts.statement(changed)));
          return honest.toBuilder().setReceipts(1, receipt).build();
        };
    Run run = cancel();
    assertThat(run.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).contains("keys/hot has no such signing");
  }

  @Test
  void the_answer_about_another_request_is_not_believed() {
    coordinator.never = Set.of(1, 2, 3);
    coordinator.aboutSignings = honest -> honest.toBuilder().setRequestId(RequestId.next()).build();
    assertThat(cancel().exitCode()).isEqualTo(ExitCode.REFUSED);
    coordinator.aboutSignings =
        honest -> honest.toBuilder().setName("keys/moved/signings/1").build();
    assertThat(cancel().exitCode()).isEqualTo(ExitCode.REFUSED);
  }

  @Test
  void a_signature_is_verified_if_the_intent_is_given() throws Exception {
    Path intent = intent("hot", fingerprint("hot"), 0, "--request-id", id);
    Run done = coterie("sign", "--intent", "" + intent);
    assertThat(done.exitCode()).as(done.err()).isZero();
    Signing answer = coordinator.lastSigned;
    coordinator.aboutSignings = honest -> answer;
    Run said = cancel();
    assertThat(said.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(said.out())
        .contains("SIGNED by the word of the coordinator")
        .doesNotContain("public key", "payload  ", "signed by", hex(answer.getSignature()));
    Run json = cancel("-o", "json");
    assertThat(json.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(json.out())
        .contains("\"state\": \"SIGNED\"")
        .doesNotContain("\"signature\"", "publicKey", "decoded", "digest", "signingSet");
    Run verified = coterie("cancel", "--intent", "" + intent);
    assertThat(verified.exitCode()).as(verified.err()).isEqualTo(ExitCode.NO);
    assertThat(verified.out()).contains("SIGNED: the signature is valid");
    coordinator.aboutSignings =
        honest -> answer.toBuilder().setSignature(ByteString.copyFrom(new byte[64])).build();
    assertThat(coterie("cancel", "--intent", "" + intent).exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(Files.size(intent)).isPositive();
  }

  @Test
  void an_old_request_is_not_asked_about() {
    id = RequestId.at(Instant.now().minus(Duration.ofHours(25)));
    Run run = cancel();
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).contains("more than a day old");
    id = "1";
    assertThat(cancel().exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(coordinator.calls).doesNotContain("cancelSigning");
  }

  @Test
  void a_signing_that_ends_without_a_signature_says_what_its_receipts_prove() {
    coordinator.aboutSignings =
        honest ->
            honest.toBuilder()
                .setState(Signing.State.UNKNOWN)
                .clearSignature()
                .setError(Status.newBuilder().setMessage("the intent's not_after has passed"))
                .build();
    Run run = coterie("sign", "hot", "-m", "hello", "--scheme", "ed25519");
    assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
    assertThat(run.err()).contains("Whether it was signed is not known");
    coordinator.aboutSignings =
        honest -> coordinator.cancelled(honest.getRequestId(), "keys/hot", 0, Set.of(1, 2, 3));
    Run never = coterie("sign", "hot", "-m", "hello", "--scheme", "ed25519");
    assertThat(never.exitCode()).isEqualTo(ExitCode.NOT_SIGNED);
    assertThat(never.out()).contains("NOT_SIGNED");
    coordinator.aboutSignings =
        honest -> coordinator.cancelled(honest.getRequestId(), "keys/hot", 0, Set.of(1, 2));
    assertThat(coterie("sign", "hot", "-m", "hello", "--scheme", "ed25519").exitCode())
        .isEqualTo(ExitCode.UNAVAILABLE);
  }

  /** A coordinator that has the signature can say any of it. */
  @ParameterizedTest
  @EnumSource(
      value = ErrorReason.class,
      names = {
        "PAYLOAD_INVALID",
        "REQUEST_FENCED",
        "REQUEST_ID_REUSED",
        "FORBIDDEN",
        "ON_HOLD",
        "KEY_CREATION_FAILED",
        "QUORUM_UNAVAILABLE"
      })
  void no_error_is_taken_for_an_end(ErrorReason reason) {
    coordinator.aboutSignings =
        honest -> {
          throw StatusErrors.of(reason);
        };
    Run run = coterie("sign", "hot", "-m", "hello", "--scheme", "ed25519");
    assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
    assertThat(run.out()).isEmpty();
    assertThat(run.err())
        .contains("UNKNOWN. Whether it was signed is not known", "proves nothing: " + reason.name())
        .doesNotContain(reason.advice());
    assertThat(coordinator.lastSigned.getSignature().isEmpty()).isFalse();
  }

  /**
   * With the reshare epoch of its day a repeated line would send a second intent under one id, and
   * a proof that this one is not signed says nothing about the first.
   */
  @Test
  void a_request_that_is_repeated_with_its_id_is_the_same_intent() {
    create("between");
    List<String> line =
        List.of("sign", "between", "--request-id", id, "-m", "hello", "--scheme", "ed25519");
    List<String> whole = new ArrayList<>(line);
    whole.addAll(List.of("--reshare-epoch", "0"));
    Run first = coterie(whole.toArray(String[]::new));
    assertThat(first.exitCode()).as(first.err()).isZero();
    SignedIntent sent = coordinator.intents.getLast();
    reshare("between");
    requireNoEpochTaken(line);
    Run again = coterie(whole.toArray(String[]::new));
    assertThat(again.exitCode()).as(again.err()).isZero();
    assertThat(coordinator.intents.getLast().getPayload()).isEqualTo(sent.getPayload());
    requireNoEpochTaken(
        List.of("sign", "hot", "--request-id", id, "-m", "hello", "--scheme", "ed25519"));
  }

  private static void requireNoEpochTaken(List<String> line) {
    coordinator.calls.clear();
    Run run = coterie(line.toArray(String[]::new));
    assertThat(coordinator.calls).as("%s", run).isEmpty();
    assertThat(run.exitCode()).as("%s", run).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(run.err()).contains("--reshare-epoch", "or --intent FILE alone");
  }

  @Test
  void an_intent_to_send_has_the_only_request_id() {
    Path intent = intent("hot", fingerprint("hot"), 0);
    coordinator.calls.clear();
    Run run = coterie("sign", "--intent", "" + intent, "--request-id", id);
    assertThat(run.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(coordinator.calls).isEmpty();
  }

  @Test
  void a_stored_end_is_asked_for_after_the_intent_and_the_shares_have_ended() {
    id = RequestId.at(Instant.now().minus(Duration.ofHours(3)));
    List<String> line =
        new ArrayList<>(List.of("sign", "hot", "-m", "hello", "--scheme", "ed25519"));
    line.addAll(List.of("--request-id", id, "--reshare-epoch", "0"));
    Run expired = coterie(line.toArray(String[]::new));
    assertThat(expired.exitCode()).as(expired.err()).isZero();
    Path old = intent("moved", fingerprint("moved"), 0);
    Run reshared = coterie("sign", "--intent", "" + old);
    assertThat(reshared.exitCode()).as(reshared.err()).isZero();
    assertThat(reshared.out()).contains("SIGNED");
  }
}
