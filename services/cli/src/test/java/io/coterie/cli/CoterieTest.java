package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Struct;
import com.google.protobuf.util.JsonFormat;
import io.coterie.cli.profile.RequesterKeyFile;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import picocli.CommandLine;

/** The command without an installation; the acceptance module tests it with one. */
class CoterieTest {
  /**
   * Made by an implementation that is not ours (py_ecc's ciphersuite tests): private key 1,
   * empty-suite message.
   */
  @TempDir Path folder;

  @ParameterizedTest
  @EnumSource(RequesterKeyFile.Algorithm.class)
  void anIntentSignedOfflineVerifiesWithThePublicHalf(RequesterKeyFile.Algorithm algorithm)
      throws Exception {
    Path key = folder.resolve("requester.pem");
    assertThat(
            Run.of("intent", "new-requester", "" + key, "--algorithm", algorithm.name()).exitCode())
        .isZero();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(key)))
        .isEqualTo("rw-------");

    TestFiles.trust(folder);
    Path intent = folder.resolve("intent");
    Run signed =
        Run.of(
            "intent",
            "sign",
            "treasury",
            "-m",
            "hello",
            "--requester",
            "wallet",
            "--requester-key",
            "" + key,
            "--trust",
            "" + folder.resolve("trust.json"),
            "--fingerprint",
            TestFiles.FINGERPRINT.replace(" ", ""),
            "--out",
            "" + intent,
            "--purpose",
            "test",
            "--yes");
    assertThat(signed.exitCode()).as(signed.err()).isZero();

    SignedIntent envelope = SignedIntent.parseFrom(Files.readAllBytes(intent));
    SigningIntent content = SigningIntent.parseFrom(envelope.getPayload());
    assertThat(content.getKey()).isEqualTo("keys/treasury");
    assertThat(content.getMessage().toStringUtf8()).isEqualTo("hello");
    assertThat(content.getInstallation()).isEqualTo(TestFiles.INSTALLATION);
    assertThat(KeyFingerprint.text(content.getKeyFingerprint())).isEqualTo(TestFiles.FINGERPRINT);
    assertThat(envelope.getSignatures(0).getKeyid()).isEqualTo("wallet");

    Signature verifier =
        Signature.getInstance(
            algorithm == RequesterKeyFile.Algorithm.P256 ? "SHA256withECDSA" : "Ed25519");
    verifier.initVerify(publicKey(RequesterKeyFile.publicFile(key), algorithm));
    String type = "application/vnd.coterie.signing-intent.v1+protobuf";
    verifier.update(
        ("DSSEv1 50 " + type + " " + envelope.getPayload().size() + " ")
            .getBytes(StandardCharsets.UTF_8));
    verifier.update(envelope.getPayload().toByteArray());
    assertThat(type).hasSize(50);
    assertThat(verifier.verify(envelope.getSignatures(0).getSig().toByteArray())).isTrue();
  }

  private static PublicKey publicKey(Path pem, RequesterKeyFile.Algorithm algorithm)
      throws Exception {
    String body = Files.readString(pem).replaceAll("-----[A-Z ]+-----|\\s", "");
    return KeyFactory.getInstance(algorithm == RequesterKeyFile.Algorithm.P256 ? "EC" : "Ed25519")
        .generatePublic(new X509EncodedKeySpec(Base64.getDecoder().decode(body)));
  }

  @Test
  void aKeyFileIsNeverOverwritten() throws Exception {
    Path key = folder.resolve("requester.pem");
    Run.of("intent", "new-requester", "" + key);
    byte[] before = Files.readAllBytes(key);
    Run again = Run.of("intent", "new-requester", "" + key);
    assertThat(again.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(again.err()).hasLineCount(1).contains("exists already");
    assertThat(Files.readAllBytes(key)).isEqualTo(before);
  }

  @Test
  void verifiesWithoutAnInstallation() {
    // Ethereum's published vector: private key 263dbd79...; message 32 zero bytes.
    String publicKey =
        "a491d1b0ecd9bb917989f0e74f0dea0422eac4a873e5e2644f368dffb9a6e20fd6e10c1b77654d067c0618f6e5a7f79a";
    String signature =
        "b6ed936746e01f8ecf281f020953fbf1f01debd5657c4a383940b020b26507f6076334f91e2366c96e9ab279fb5158090352ea1c5b0c9274504f4f0e7053af24802e51e4568d164fe986834f41e55c8e850ce1f98458c0cfc9ab380b55285a55";
    String zeros = "00".repeat(32);
    assertThat(
            Run.of(
                "verify",
                "--public-key",
                publicKey,
                "--message-hex",
                zeros,
                "--signature",
                signature))
        .isEqualTo(new Run(0, "valid\n", ""));
    Run other =
        Run.of(
            "verify",
            "--public-key",
            publicKey,
            "--message-hex",
            "01" + zeros.substring(2),
            "--signature",
            signature);
    assertThat(other).isEqualTo(new Run(ExitCode.NO, "NOT VALID\n", ""));
    // As 'keys get -o json' and 'sign -o json' print them.
    Run ofJson =
        Run.of(
            "verify",
            "--public-key",
            base64(publicKey),
            "--message-hex",
            zeros,
            "--signature",
            base64(signature));
    assertThat(ofJson).isEqualTo(new Run(0, "valid\n", ""));
    // Neither truncated nor off-curve input is more than "no".
    for (String bad : new String[] {"", "00".repeat(96), "ff".repeat(96), signature.substring(2)}) {
      assertThat(
              Run.of(
                      "verify",
                      "--public-key",
                      publicKey,
                      "--message-hex",
                      zeros,
                      "--signature",
                      bad)
                  .exitCode())
          .isEqualTo(ExitCode.NO);
    }
  }

  private static String base64(String hex) {
    return Base64.getEncoder().encodeToString(HexFormat.of().parseHex(hex));
  }

  @Test
  void aSignatureThatIsNeitherHexNorBase64IsAMistake() {
    Run run =
        Run.of("verify", "--public-key", "00", "--message-hex", "00", "--signature", "not base64");
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains("--signature is neither hex nor base64");
  }

  @Test
  void aFailureIsJsonWhereResultsAre() {
    String absent = "" + folder.resolve("absent");
    Run json = Run.of("keys", "list", "-o", "json", "--profile", absent);
    assertThat(json.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(json.err())
        .isEqualTo("{\"error\":\"profile %s does not exist\"}\n".formatted(absent));
  }

  @Test
  void jsonIsJsonWhateverTheTerminalMustNotSee() throws Exception {
    // Of a family that is one picture, of a text from right to left, of a terminal, and unseen.
    String scheme = "👨\u200d👩\u200d👧 \u202e \u009b1m \udb40\udc62";
    Run json = Run.of("sign", "treasury", "-m", "hello", "--scheme", scheme, "-o", "json");
    assertThat(json.err()).doesNotContain("\u200d", "\u202e", "\u009b", "\udb40");
    Struct.Builder parsed = Struct.newBuilder();
    JsonFormat.parser().merge(json.err(), parsed);
    assertThat(parsed.getFieldsOrThrow("error").getStringValue())
        .startsWith("scheme '" + scheme + "' is not known");
  }

  @Test
  void aPlanIsMadeOfTheRoundTripsOfOnesOwnRegions() throws Exception {
    Path own = Files.writeString(folder.resolve("own"), "region,a,b\na,0,40\nb,42,0\n");
    Run plan = Run.of("plan", "--regions", "a,b,b", "--round-trips", "" + own);
    assertThat(plan.exitCode()).as(plan.err()).isZero();
    assertThat(plan.out()).containsPattern("messaging +b\n");
    for (String wrong : List.of("", "region,a\na,-1\n", "region,a\na,x\n")) {
      Files.writeString(own, wrong);
      Run refused = Run.of("plan", "--regions", "a", "--round-trips", "" + own);
      assertThat(refused.exitCode()).isEqualTo(ExitCode.LOCAL);
      assertThat(refused.err()).hasLineCount(1).contains("" + own);
    }
  }

  @Test
  void errorsAreOneLineThatSaysWhatToDo() {
    Run noEndpoint = Run.of("keys", "list", "--profile", "" + folder.resolve("absent"));
    assertThat(noEndpoint.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(noEndpoint.err()).hasLineCount(1).contains("does not exist");

    Run wrong = Run.of("sign", "treasury");
    assertThat(wrong.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(wrong.err()).hasLineCount(1).contains("--help");

    Run unknown = Run.of("frobnicate");
    assertThat(unknown.exitCode()).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(unknown.err()).hasLineCount(1);
  }

  @Test
  void helpNamesExitCodesAndSettings() {
    Run help = Run.of("--help");
    assertThat(help.exitCode()).isZero();
    assertThat(help.out()).contains("Exit codes", "doctor", "COTERIE_");
  }
}
