package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.InstallationCa;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.cli.Coterie;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** {@code coterie} against a real installation. */
@ExtendWith(SharedCluster.class)
class CommandLineTest {
  private static final String SOMEONE_ON_SOLANA = "J3dxNj7nDRRqRRXuEMynDG57DkZK4jYRuv3Garmb1i99";

  /** Commands that ask before they sign an intent. */
  private static final Set<String> SIGNING = Set.of("sign", "intent", "cancel", "load");

  private static final Set<String> SIGNING_WITH_KEYS =
      Set.of("create", "import", "refresh", "reshare");

  @TempDir Path folder;

  private record Run(int exitCode, String out, String err) {
    String value(String label) {
      Matcher row = Pattern.compile("(?m)^" + label + " +(.*)$").matcher(out + err);
      assertThat(row.find()).as("%s in %s", label, out + err).isTrue();
      return row.group(1);
    }
  }

  private static Run coterie(Running shared, String... args) {
    List<String> all = new ArrayList<>(List.of(args));
    if (SIGNING.contains(args[0])
        || args[0].startsWith("key") && SIGNING_WITH_KEYS.contains(args[1])) {
      all.add("--yes");
    }
    all.add("--profile");
    all.add(shared.cluster().writeProfile(Cluster.WALLET).toString());
    CommandLine line = Coterie.commandLine();
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    line.setOut(new PrintWriter(out, true));
    line.setErr(new PrintWriter(err, true));
    return new Run(line.execute(all.toArray(String[]::new)), out.toString(), err.toString());
  }

  private static Run succeeds(Running shared, String... args) {
    Run run = coterie(shared, args);
    assertThat(run.exitCode()).as(run.out() + run.err()).isZero();
    return run;
  }

  @Test
  void aKeyIsMadeUsedAndVerified(Running shared) {
    Run created =
        succeeds(
            shared,
            "keys",
            "create",
            "by-hand",
            "--threshold",
            "2",
            "--parties",
            "party-1,party-2,party-3");
    assertThat(created.value("state")).isEqualTo("ACTIVE");
    assertThat(coterie(shared, "keys", "list").out()).contains("keys/by-hand", "2 of 3");
    assertThat(coterie(shared, "keys", "get", "by-hand", "-o", "json").out())
        .contains("\"name\": \"keys/by-hand\"");

    Run signed = succeeds(shared, "sign", "by-hand", "-m", "hello");
    String signature = signed.value("signature");
    assertThat(
            coterie(shared, "verify", "by-hand", "-m", "hello", "--signature", signature)
                .exitCode())
        .isZero();
    assertThat(
            coterie(shared, "verify", "by-hand", "-m", "other", "--signature", signature)
                .exitCode())
        .isEqualTo(1);
  }

  @Test
  void loadVerifiesEverySignature(Running shared) {
    Run load =
        coterie(
            shared, "load", SharedCluster.KEY, "--rate", "5", "--seconds", "2", "--timeout", "120");
    assertThat(load.exitCode()).as(load.out() + load.err()).isZero();
    assertThat(load.out())
        .contains("requests 10, signed and verified 10, failed 0", "latency ms: p50 ");
    Run unknown = coterie(shared, "load", "nobody-made-this", "--rate", "5", "--seconds", "1");
    assertThat(unknown.exitCode()).isEqualTo(3);
    assertThat(coterie(shared, "load", SharedCluster.KEY, "--rate", "0").exitCode()).isEqualTo(2);
  }

  @Test
  void anEcdsaKeyIsMadeItsAddressesSpentFromAndItsSharesRenewed(Running shared) throws Exception {
    Run created = create(shared, "by-hand-ecdsa", "ecdsa-secp256k1");
    assertThat(created.value("scheme")).isEqualTo("ecdsa-secp256k1");
    String xpub = created.value("xpub");
    Run shown = coterie(shared, "key", "show", "by-hand-ecdsa");
    assertThat(shown.value("xpub")).isEqualTo(xpub);
    assertThat(shown.value("current")).matches("[23] of 3 parties say so");
    String address = address(shared, "ethereum", "m/0/1");
    assertThat(shared.outside().ethereumAddress(xpub, List.of(0, 1)).value()).isEqualTo(address);

    ByteString draft = shared.outside().ethereumDraft(1, 0, address, "1");
    Path transaction = Files.writeString(folder.resolve("tx"), hex(draft));
    Run sent =
        succeeds(
            shared,
            "sign",
            "by-hand-ecdsa",
            "--path",
            "m/0/1",
            "--ethereum-transaction",
            "" + transaction);
    assertThat(sent.out()).contains("to: " + address, "value: 1\n");
    ByteString raw = ByteString.fromHex(sent.value("result").substring(2));
    assertThat(shared.outside().ethereumTransaction(raw).value()).isEqualTo(address);
    String[] verify = {
      "verify",
      "by-hand-ecdsa",
      "--path",
      "m/0/1",
      "--ethereum-transaction",
      "" + transaction,
      "--signature",
      sent.value("signature")
    };
    succeeds(shared, verify);
    verify[3] = "m/0/2";
    assertThat(coterie(shared, verify).exitCode()).isEqualTo(1);

    ByteString publicKey =
        ByteString.fromHex(
            coterie(shared, "key", "show", "by-hand-ecdsa", "--path", "m/1").out().strip());
    ByteString unsigned =
        shared.outside().bitcoinDraft(publicKey, 1, 9_000, address(shared, "bitcoin", "m/2"), 500);
    Path psbt =
        Files.writeString(
            folder.resolve("psbt"), Base64.getEncoder().encodeToString(unsigned.toByteArray()));
    Run spent =
        succeeds(
            shared, "sign", "by-hand-ecdsa", "--path", "m/1", "--psbt", "" + psbt, "--input", "0");
    assertThat(
            shared
                .outside()
                .bitcoinPsbt(ByteString.copyFrom(Base64.getDecoder().decode(spent.value("result"))))
                .valid())
        .isTrue();
    Run stranger = coterie(shared, "sign", "by-hand-ecdsa", "--path", "m/3", "--psbt", "" + psbt);
    assertThat(stranger.exitCode()).isEqualTo(3);
    assertThat(stranger.err()).contains("PSBT_UTXO_NOT_OF_KEY");

    Run refreshed = succeeds(shared, "key", "refresh", "by-hand-ecdsa");
    assertThat(refreshed.value("epoch")).isEqualTo("2");
    assertThat(refreshed.value("xpub")).isEqualTo(xpub);
    assertThat(coterie(shared, "key", "show", "by-hand-ecdsa", "-o", "json").out())
        .contains("\"epoch\": 2", "\"holds\": true");
    Run digest =
        succeeds(shared, "sign", "by-hand-ecdsa", "--digest", "ab".repeat(32), "--output", "json");
    assertThat(digest.out()).contains("\"derSignature\"", "\"kind\": \"digest\"");

    Run reshared =
        succeeds(
            shared,
            "key",
            "reshare",
            "by-hand-ecdsa",
            "--threshold",
            "2",
            "--parties",
            "party-1,party-2");
    assertThat(reshared.value("epoch")).isEqualTo("3");
    assertThat(reshared.value("xpub")).isEqualTo(xpub);
    assertThat(reshared.value("threshold")).isEqualTo("2 of 2: party-1, party-2");
    succeeds(shared, "sign", "by-hand-ecdsa", "--digest", "ac".repeat(32));
    Run late =
        coterie(
            shared,
            "key",
            "reshare",
            "by-hand-ecdsa",
            "--threshold",
            "2",
            "--parties",
            "party-1,party-3",
            "--epoch",
            "2");
    assertThat(late.exitCode()).isEqualTo(3);
    assertThat(late.err()).contains("EPOCH_MISMATCH");
    Matcher request = Pattern.compile("request id (\\S+),").matcher(reshared.err());
    assertThat(request.find()).as(reshared.err()).isTrue();
    Run ended = coterie(shared, "key", "cancel", "by-hand-ecdsa", "--request-id", request.group(1));
    assertThat(ended.exitCode()).isEqualTo(3);
    assertThat(ended.err()).contains("OPERATION_DECIDED");
  }

  /** TEST 2 of RFC 8032. */
  @Test
  void anImportedKeySignsExactlyAsItsOwnerDid(Running shared) throws Exception {
    byte[] seed =
        ByteString.fromHex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
            .toByteArray();
    Path file = Files.write(folder.resolve("seed"), seed);
    // A pair computes for seconds, and for longer on a busy machine: a session whose time is over
    // begins anew with more. Here is one pair; ExactTest has three.
    String[] imported = {
      "keys",
      "import",
      "owned",
      "--seed",
      "" + file,
      "--parties",
      "party-1,party-2",
      "--timeout",
      "600"
    };
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
    assertThat(coterie(shared, imported).err()).contains("chmod 600");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    Run key = succeeds(shared, imported);
    assertThat(key.value("origin")).isEqualTo("imported");
    String publicKey = key.value("public key");
    assertThat(publicKey)
        .isEqualTo("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");

    String[] sign = {"sign", "owned", "--scheme", "ed25519-exact", "-m", "r", "--timeout", "600"};
    String signature = succeeds(shared, sign).value("signature");
    assertThat(signature)
        .isEqualTo(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
    assertThat(succeeds(shared, sign).value("signature")).isEqualTo(signature);
    ByteString message = ByteString.copyFromUtf8("r");
    byte[] bytes = ByteString.fromHex(signature).toByteArray();
    assertThat(
            Ed25519.verify(
                bytes,
                0,
                ByteString.fromHex(publicKey).toByteArray(),
                0,
                message.toByteArray(),
                0,
                message.size()))
        .isTrue();
    assertThat(
            shared
                .outside()
                .ed25519(ByteString.fromHex(publicKey), message, ByteString.copyFrom(bytes))
                .valid())
        .isTrue();

    Run refresh = coterie(shared, "keys", "refresh", "owned");
    assertThat(refresh.exitCode()).isEqualTo(3);
    assertThat(refresh.err()).contains("UNSUPPORTED_SCHEME");
    Run generated =
        coterie(
            shared,
            "keys",
            "create",
            "made",
            "--scheme",
            "ed25519-exact",
            "--threshold",
            "2",
            "--parties",
            "party-1,party-2");
    assertThat(generated.err()).contains("UNSUPPORTED_SCHEME");
  }

  private static Run create(Running shared, String key, String scheme) {
    return succeeds(
        shared,
        "key",
        "create",
        key,
        "--scheme",
        scheme,
        "--threshold",
        "2",
        "--parties",
        "party-1,party-2,party-3");
  }

  private Path base64(String name, ByteString content) throws Exception {
    return Files.writeString(
        folder.resolve(name), Base64.getEncoder().encodeToString(content.toByteArray()));
  }

  private static ByteString result(Run run) {
    assertThat(run.exitCode()).as(run.err()).isZero();
    return ByteString.copyFrom(Base64.getDecoder().decode(run.value("result")));
  }

  @Test
  void aSolanaTransferIsSignedAndNothingElseIsTakenForOne(Running shared) throws Exception {
    String key = "by-hand-solana";
    assertThat(create(shared, key, "ed25519").value("scheme")).isEqualTo("ed25519");
    String sender = coterie(shared, "key", "show", key, "--address", "solana").out().strip();
    for (String version : List.of("legacy", "0")) {
      ByteString draft = shared.outside().solanaDraft(version, sender, SOMEONE_ON_SOLANA, 5_000);
      Path transaction = base64("solana-" + version, draft);
      Run sent = coterie(shared, "sign", key, "--solana-transaction", "" + transaction);
      OutsideVerifier.Verdict verdict = shared.outside().solanaTransaction(result(sent));
      assertThat(verdict.valid()).as("%s", verdict).isTrue();
      assertThat(verdict.value()).isEqualTo(sender);
      assertThat(sent.out())
          .contains("instruction 0: system program: transfer", "0 lamports: 5000")
          .contains("0 to: " + SOMEONE_ON_SOLANA);
      String[] verify = {
        "verify",
        key,
        "--solana-transaction",
        "" + transaction,
        "--signature",
        sent.value("signature")
      };
      succeeds(shared, verify);
    }

    ByteString others = shared.outside().solanaDraft("0", SOMEONE_ON_SOLANA, sender, 5_000);
    Run stranger =
        coterie(shared, "sign", key, "--solana-transaction", "" + base64("others", others));
    assertThat(stranger.exitCode()).isEqualTo(3);
    assertThat(stranger.err()).contains("SOLANA_SIGNER_MISSING");

    Run text = succeeds(shared, "sign", key, "-m", "hello", "--scheme", "ed25519");
    String[] verify = {
      "verify", key, "-m", "hello", "--scheme", "ed25519", "--signature", text.value("signature")
    };
    succeeds(shared, verify);
    verify[3] = "hallo";
    assertThat(coterie(shared, verify).exitCode()).isEqualTo(1);

    for (String chain : List.of("bitcoin", "ethereum")) {
      Run none = coterie(shared, "key", "show", key, "--address", chain);
      assertThat(none.exitCode()).isEqualTo(5);
      assertThat(none.err()).hasLineCount(1).contains("has no " + chain + " addresses");
    }
  }

  @Test
  void aTaprootAddressIsSpentFrom(Running shared) throws Exception {
    String key = "by-hand-taproot";
    String xpub = create(shared, key, "bip340").value("xpub");
    String[] show = {"key", "show", key, "--address", "bitcoin", "--path", "m/86/1"};
    String address = coterie(shared, show).out().strip();
    assertThat(address)
        .startsWith("bc1p")
        .isEqualTo(shared.outside().taprootAddress(xpub, List.of(86, 1)).value());

    // Without scripts, and with one that could spend too
    for (ByteString script : List.of(ByteString.EMPTY, ByteString.fromHex("51"))) {
      ByteString psbt =
          shared.outside().taprootDraft(xpub, List.of(86, 1), script, 2, 40_000, address, 700);
      for (String input : List.of("0", "1")) {
        Run spent =
            coterie(
                shared,
                "sign",
                key,
                "--path",
                "m/86/1",
                "--psbt",
                "" + base64("taproot-" + script.size() + "-" + input, psbt),
                "--input",
                input);
        psbt = result(spent);
        assertThat(spent.out()).contains("fee: 700", "79300 to " + address);
      }
      OutsideVerifier.Verdict finalised = shared.outside().bitcoinPsbt(psbt);
      assertThat(finalised.valid()).as("%s", finalised).isTrue();
      assertThat(finalised.value()).startsWith("02000000000102");
    }

    ByteString draft =
        shared
            .outside()
            .taprootDraft(xpub, List.of(86, 1), ByteString.EMPTY, 1, 40_000, address, 700);
    Run stranger =
        coterie(shared, "sign", key, "--path", "m/86/2", "--psbt", "" + base64("stranger", draft));
    assertThat(stranger.exitCode()).isEqualTo(3);
    assertThat(stranger.err()).contains("PSBT_UTXO_NOT_OF_KEY");
  }

  private static String address(Running shared, String chain, String path) {
    return succeeds(shared, "key", "show", "by-hand-ecdsa", "--address", chain, "--path", path)
        .out()
        .strip();
  }

  private static String hex(ByteString bytes) {
    return HexFormat.of().formatHex(bytes.toByteArray());
  }

  @Test
  void anIntentSignedOfflineIsSentLaterAndAgain(Running shared) {
    Path intent = folder.resolve("intent");
    String fingerprint = succeeds(shared, "keys", "get", SharedCluster.KEY).value("fingerprint");
    succeeds(
        shared,
        "intent",
        "sign",
        SharedCluster.KEY,
        "-m",
        "offline",
        "--fingerprint",
        fingerprint,
        "--out",
        "" + intent);
    Run first = succeeds(shared, "sign", "--intent", "" + intent);
    assertThat(coterie(shared, "sign", "--intent", "" + intent).value("signature"))
        .isEqualTo(first.value("signature"));
  }

  @Test
  void theDoctorFindsEverythingWell(Running shared) {
    Run doctor = coterie(shared, "doctor");
    assertThat(doctor.exitCode()).as(doctor.out()).isZero();
    assertThat(doctor.out()).contains("health", "clock").doesNotContain("FAIL");
  }

  @Test
  void whatCannotBeReachedOrIsRefusedIsOneLineAndAnExitCode(Running shared) {
    Run nobody = coterie(shared, "keys", "list", "--endpoint", "localhost:1");
    assertThat(nobody.exitCode()).isEqualTo(4);
    assertThat(nobody.err()).hasLineCount(1).contains("doctor");

    Run absent = coterie(shared, "keys", "get", "absent");
    assertThat(absent.exitCode()).isEqualTo(3);
    assertThat(absent.err()).hasLineCount(1).contains("KEY_NOT_FOUND");

    Run wrongCa =
        coterie(
            shared,
            "keys",
            "list",
            "--ca",
            "" + InstallationCa.create(folder.resolve("other")).certificateFile());
    assertThat(wrongCa.exitCode()).as("what is wrong is a file here").isEqualTo(5);
    assertThat(wrongCa.err()).hasLineCount(1).contains("certificate");

    Run doctor = coterie(shared, "doctor", "--endpoint", "localhost:1");
    assertThat(doctor.exitCode()).isEqualTo(1);
    assertThat(doctor.out()).contains("FAIL");
  }
}
