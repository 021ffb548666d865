package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.Approvers;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An intent for approvers is made without the installation, and goes with their approvals. */
class ApproversTest {
  private static final String DIGEST = "ab".repeat(32);
  private static final List<String> FOR_TREASURERS =
      List.of("--approvers", "treasurers", "--approvers-epoch", "3", "--approvers-digest", DIGEST);

  @TempDir Path folder;

  @BeforeEach
  void trust() throws IOException {
    TestFiles.trust(folder);
  }

  private Run coterie(List<String> command, List<String> more) {
    List<String> line = new ArrayList<>(command);
    line.addAll(more);
    line.addAll(List.of("--trust", "" + folder.resolve("trust.json")));
    return Run.of(line.toArray(String[]::new));
  }

  private Run sign(List<String> more) {
    List<String> line = new ArrayList<>(List.of("intent", "sign", "treasury", "-m", "hello"));
    line.addAll(List.of("--requester", "wallet", "--yes"));
    line.addAll(List.of("--requester-key", "" + folder.resolve("wallet-intents.pem")));
    line.addAll(List.of("--fingerprint", TestFiles.FINGERPRINT));
    line.addAll(List.of("--out", "" + folder.resolve("intent")));
    return coterie(line, more);
  }

  private void refused(String why, List<String> approvers) {
    Run run = sign(approvers);
    assertThat(run.exitCode()).as(run.err()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains(why);
    assertThat(folder.resolve("intent")).doesNotExist();
  }

  private void notSent(String why, List<Path> approvals) {
    List<String> given = new ArrayList<>();
    approvals.forEach(approval -> given.addAll(List.of("--approval", "" + approval)));
    Run run = coterie(List.of("sign", "--yes", "--intent", "" + folder.resolve("intent")), given);
    assertThat(run.exitCode()).as(run.err()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains(why);
  }

  @Test
  void it_names_group_epoch_and_digest_and_shows_them() throws Exception {
    assertThat(sign(FOR_TREASURERS).exitCode()).isZero();
    SignedIntent signed = SignedIntent.parseFrom(Files.readAllBytes(folder.resolve("intent")));
    Approvers approvers = SigningIntent.parseFrom(signed.getPayload()).getApprovers();
    assertThat(approvers.getGroup()).isEqualTo("groups/treasurers");
    assertThat(approvers.getEpoch()).isEqualTo(3);
    assertThat(HexFormat.of().formatHex(approvers.getDigest().toByteArray())).isEqualTo(DIGEST);
    Run shown = coterie(List.of("intent", "show", "" + folder.resolve("intent")), List.of());
    assertThat(shown.out())
        .contains("approvers   groups/treasurers, epoch 3\n", "digest of the group: abab");
  }

  @Test
  void half_of_a_group_is_refused() {
    refused("go together", FOR_TREASURERS.subList(0, 2));
    refused("go together", FOR_TREASURERS.subList(2, 6));
    refused(
        "--approvers-digest does not have 32 bytes",
        List.of("--approvers", "a", "--approvers-epoch", "3", "--approvers-digest", "ab"));
    refused(
        "--approvers-epoch is not a positive number",
        List.of("--approvers", "a", "--approvers-epoch", "0", "--approvers-digest", DIGEST));
  }

  @Test
  void approvals_go_with_the_intent_that_was_approved() throws Exception {
    Path approval =
        Files.write(folder.resolve("approval"), new byte[IntentVerifier.APPROVAL_BYTES]);
    Run alone =
        coterie(List.of("sign", "treasury", "-m", "hello"), List.of("--approval", "" + approval));
    assertThat(alone.exitCode()).isEqualTo(2);
    assertThat(alone.err()).contains("Give --approval beside the --intent FILE");
    sign(List.of());
    notSent("the intent names no approvers", List.of(approval));
    sign(FOR_TREASURERS);
    notSent("a request has at most 32 approvals", Collections.nCopies(33, approval));
    Path part = Files.write(folder.resolve("part"), new byte[IntentVerifier.APPROVAL_BYTES - 1]);
    notSent("is no approval: it does not have 416 bytes", List.of(approval, part));
  }
}
