package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.bip32.ExtendedPublicKey;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.io.IOException;
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
  void makeRequester() throws IOException {
    TestFiles.trust(folder);
    requester = folder.resolve("requester.pem");
    assertThat(Run.of("intent", "new-requester", "" + requester).exitCode()).isZero();
  }

  /** A key as if it were attested: the tests here are about its use. */
  static AttestedKey attested(Scheme scheme, ByteString publicKey) {
    return attested(scheme, KeyPublic.newBuilder().setPublicKey(publicKey));
  }

  static AttestedKey attested(Scheme scheme, ExtendedPublicKey key) {
    return attested(
        scheme, KeyPublic.newBuilder().setPublicKey(key.publicKey()).setChainCode(key.chainCode()));
  }

  private static AttestedKey attested(Scheme scheme, KeyPublic.Builder key) {
    return new AttestedKey(
        "keys/hot",
        scheme,
        2,
        List.of("p1", "p2"),
        1,
        key.build(),
        ByteString.EMPTY,
        List.of(),
        List.of());
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
            "--trust",
            "" + folder.resolve("trust.json"),
            "--fingerprint",
            TestFiles.FINGERPRINT,
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
