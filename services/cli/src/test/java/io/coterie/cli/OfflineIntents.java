package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A requester that signs what it is given, without an installation. */
abstract class OfflineIntents {
  @TempDir Path folder;
  private Path requester;

  @BeforeEach
  void makeRequester() {
    requester = folder.resolve("requester.pem");
    assertThat(Run.of("intent", "new-requester", "" + requester).exitCode()).isZero();
  }

  Path file(String name, byte[] content) throws Exception {
    return Files.write(folder.resolve(name), content);
  }

  Path file(String name, String content) throws Exception {
    return file(name, content.getBytes(StandardCharsets.UTF_8));
  }

  private Run sign(String... payload) {
    List<String> args = new ArrayList<>(List.of("intent", "sign", "treasury"));
    args.addAll(List.of(payload));
    args.addAll(
        List.of(
            "--requester",
            "wallet",
            "--requester-key",
            "" + requester,
            "--out",
            "" + folder.resolve("intent"),
            "--yes"));
    return Run.of(args.toArray(String[]::new));
  }

  SigningIntent signed(String... payload) throws Exception {
    Run run = sign(payload);
    assertThat(run.exitCode()).as(run.err()).isZero();
    return SigningIntent.parseFrom(
        SignedIntent.parseFrom(Files.readAllBytes(folder.resolve("intent"))).getPayload());
  }

  void assertRefused(int exitCode, String text, String... payload) {
    Run run = sign(payload);
    assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
    assertThat(run.err()).hasLineCount(1).contains(text);
    assertThat(folder.resolve("intent")).doesNotExist();
  }
}
