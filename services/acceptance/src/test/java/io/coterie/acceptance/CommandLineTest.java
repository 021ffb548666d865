package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.cli.Coterie;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** {@code coterie} against a real installation. */
@ExtendWith(SharedCluster.class)
class CommandLineTest {
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
    all.add("--profile");
    all.add(shared.cluster().writeProfile(Cluster.WALLET).toString());
    CommandLine line = Coterie.commandLine();
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    line.setOut(new PrintWriter(out, true));
    line.setErr(new PrintWriter(err, true));
    return new Run(line.execute(all.toArray(String[]::new)), out.toString(), err.toString());
  }

  @Test
  void aKeyIsMadeUsedAndVerified(Running shared) {
    Run created =
        coterie(
            shared,
            "keys",
            "create",
            "by-hand",
            "--threshold",
            "2",
            "--parties",
            "party-1,party-2,party-3");
    assertThat(created.exitCode()).as(created.err()).isZero();
    assertThat(created.value("state")).isEqualTo("ACTIVE");
    assertThat(coterie(shared, "keys", "list").out()).contains("keys/by-hand", "2 of 3");
    assertThat(coterie(shared, "keys", "get", "by-hand", "-o", "json").out())
        .contains("\"name\": \"keys/by-hand\"");

    Run signed = coterie(shared, "sign", "by-hand", "-m", "hello");
    assertThat(signed.exitCode()).as(signed.err()).isZero();
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
  void anIntentSignedOfflineIsSentLaterAndAgain(Running shared) {
    Path intent = folder.resolve("intent");
    Run prepared =
        coterie(shared, "intent", "sign", SharedCluster.KEY, "-m", "offline", "--out", "" + intent);
    assertThat(prepared.exitCode()).as(prepared.err()).isZero();
    Run first = coterie(shared, "sign", "--intent", "" + intent);
    assertThat(first.exitCode()).as(first.err()).isZero();
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
    assertThat(wrongCa.exitCode()).isEqualTo(4);
    assertThat(wrongCa.err()).hasLineCount(1);

    Run doctor = coterie(shared, "doctor", "--endpoint", "localhost:1");
    assertThat(doctor.exitCode()).isEqualTo(1);
    assertThat(doctor.out()).contains("FAIL");
  }
}
