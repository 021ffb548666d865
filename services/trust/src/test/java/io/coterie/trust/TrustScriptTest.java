package io.coterie.trust;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPairGenerator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code deploy/trust}, with a kubectl that knows the files of three pods and nothing else. */
class TrustScriptTest {
  private static final String SCRIPT =
      Path.of("../../deploy/trust").toAbsolutePath().normalize().toString();

  private static final String KUBECTL =
      """
      #!/bin/bash
      cd "$(dirname "$0")/../pods" || exit 1
      case $1 in
        get) cat "$4/$5/kind" ;;
        exec) [ "$5 $6" = '-- cat' ] && cat "$3/$4$7" ;;
      esac
      """;

  private static final Member COORDINATOR =
      new Member(
          "coordinator",
          Member.Role.COORDINATOR,
          0,
          "eu",
          new UUID(9, 9),
          1,
          filled(33, 9),
          new byte[0]);

  @TempDir Path folder;
  private byte[] wallet = {};
  private byte[] keeper = {};

  private record Run(int status, String output, String problem) {}

  @BeforeAll
  static void need_jq() throws Exception {
    assumeTrue(
        new ProcessBuilder("sh", "-c", "command -v jq").start().waitFor() == 0,
        "jq is not there: deploy/trust needs it");
  }

  @BeforeEach
  void installation() throws Exception {
    Path kubectl = Files.createDirectories(folder.resolve("bin")).resolve("kubectl");
    Files.writeString(kubectl, KUBECTL);
    assertThat(kubectl.toFile().setExecutable(true)).isTrue();
    pod("control/coordinator-0", "coterie-coordinator", "data", COORDINATOR);
    pod("p1/signer-0", "coterie-signer", "data/party", party(1, 1));
    pod("p2/signer-0", "coterie-signer", "data/party", party(2, 2));
    TrustFile.writeEntry(folder.resolve("p3.json"), party(3, 3));
    wallet = publicKey("wallet.pem.pub");
    keeper = publicKey("keeper.pem.pub");
  }

  private static Member party(int id, int secret) {
    return new Member(
        "p" + id,
        Member.Role.PARTY,
        id,
        "eu",
        new UUID(1, secret),
        1,
        filled(33, secret),
        filled(32, secret));
  }

  private static byte[] filled(int size, int value) {
    byte[] bytes = new byte[size];
    Arrays.fill(bytes, (byte) value);
    return bytes;
  }

  private void pod(String pod, String kind, String data, Member member) throws IOException {
    Path files = folder.resolve("pods").resolve(pod);
    Files.createDirectories(files.resolve(data));
    Files.writeString(files.resolve("kind"), kind);
    TrustFile.writeEntry(files.resolve(data).resolve("roster-entry.json"), member);
  }

  private byte[] publicKey(String file) throws Exception {
    byte[] key = KeyPairGenerator.getInstance("EC").generateKeyPair().getPublic().getEncoded();
    String base64 =
        Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII)).encodeToString(key);
    Files.writeString(
        folder.resolve(file),
        "-----BEGIN PUBLIC KEY-----\n" + base64 + "\n-----END PUBLIC KEY-----\n");
    return key;
  }

  private Run run(String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of(SCRIPT));
    command.addAll(List.of(arguments));
    Path output = folder.resolve("output");
    Path problem = folder.resolve("problem");
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectOutput(output.toFile())
            .redirectError(problem.toFile());
    builder.environment().merge("PATH", "", (path, none) -> folder.resolve("bin") + ":" + path);
    Process process = builder.start();
    assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
    return new Run(process.exitValue(), Files.readString(output), Files.readString(problem));
  }

  private static final String KEEPER =
      "keeper=keeper.pem.pub,may=reshare,may=refresh,may=reshare,min-threshold=3,min-parties=4";

  private Trust printed(String... arguments) throws Exception {
    Run run = run(arguments);
    assertThat(run.problem()).isEmpty();
    assertThat(run.status()).isZero();
    return TrustFile.parse(run.output().getBytes(StandardCharsets.UTF_8));
  }

  private Trust first() throws Exception {
    return printed(
        "--installation",
        "prod-eu-1",
        "--requester",
        "wallet=wallet.pem.pub,keeper.pem.pub,may=create,min-threshold=2,min-parties=3,"
            + "keys=keys/hot-*,keys=keys/cold",
        "--requester",
        KEEPER,
        "control/coordinator-0",
        "p1/signer-0",
        "p2/signer-0",
        "p3.json");
  }

  @Test
  void first_trust_file_has_the_members_and_requesters_that_were_given() throws Exception {
    assertThat(first())
        .isEqualTo(
            new Trust(
                new Roster(
                    "prod-eu-1", 1, List.of(COORDINATOR, party(1, 1), party(2, 2), party(3, 3))),
                List.of(
                    new Trust.Requester(
                        "wallet",
                        List.of(wallet, keeper),
                        List.of(new Glob("keys/hot-*"), new Glob("keys/cold")),
                        Set.of(KeyRight.CREATE),
                        2,
                        3),
                    new Trust.Requester(
                        "keeper",
                        List.of(keeper),
                        List.of(new Glob("keys/*")),
                        Set.of(KeyRight.REFRESH, KeyRight.RESHARE),
                        3,
                        4))));
  }

  @Test
  void next_trust_file_remembers_the_parties_that_left_and_those_that_enrolled_anew()
      throws Exception {
    Trust first = first();
    TrustFile.write(folder.resolve("first.json"), first);
    pod("p2/signer-0", "coterie-signer", "data/party", party(2, 7));
    Trust second =
        printed(
            "--previous",
            "first.json",
            "--left",
            "p2=4",
            "--left",
            "p3=6",
            "p1/signer-0",
            "p2/signer-0");
    List<FormerParty> former =
        List.of(
            new FormerParty("p2", 2, filled(32, 2), 4), new FormerParty("p3", 3, filled(32, 3), 6));
    assertThat(second)
        .isEqualTo(
            new Trust(
                new Roster("prod-eu-1", 2, List.of(party(1, 1), party(2, 7)), former),
                first.requesters()));
    TrustFile.write(folder.resolve("second.json"), second);
    assertThat(
            printed(
                "--previous",
                "second.json",
                "--requester",
                KEEPER,
                "p1/signer-0",
                "p2/signer-0",
                "p3.json"))
        .isEqualTo(
            new Trust(
                new Roster("prod-eu-1", 3, List.of(party(1, 1), party(2, 7), party(3, 3)), former),
                List.of(first.requester("keeper").orElseThrow())));
  }

  /** The text behind the line end would be left out: here a bound. */
  @Test
  void a_requester_of_two_lines_is_refused() throws Exception {
    Run run =
        run(
            "--installation",
            "x",
            "--requester",
            "wallet=wallet.pem.pub\n,min-parties=3",
            "control/coordinator-0",
            "p3.json");
    assertThat(run.status()).isNotZero();
    assertThat(run.output()).isEmpty();
    assertThat(run.problem())
        .hasLineCount(1)
        .contains("--requester wallet=wallet.pem.pub ,min-parties=3 is not NAME=FILE");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--installation Prod R p3.json | --installation NAME is 1 to 63 of [a-z0-9-]",
        "R p3.json | --installation NAME is 1 to 63",
        "--installation x p3.json | no requester is given",
        "--installation x R --requester | --requester needs a value",
        "--installation x R --former p3.json | unknown option --former",
        "--installation x R p3.json p3.json | member p3 is given twice",
        "--installation x R p3.json other.json | two members have the party id 3",
        "--installation x R R p3.json | requester wallet is given twice",
        "--installation x R nobody | nobody is neither a file nor NAMESPACE/POD",
        "--installation x R p9/signer-0 | p9/signer-0/kind: No such file",
        "--installation x R wallet.pem.pub | wallet.pem.pub gives something else than the entry",
        "--installation x R two.json | two.json gives something else than the entry of one member",
        "--installation x R first.json | first.json gives something else than the entry",
        "--installation x --requester wallet p3.json | --requester wallet is not NAME=FILE",
        "--installation x --requester wallet=none p3.json | there is no file none",
        "--installation x --requester wallet=p3.json p3.json | p3.json is not one PEM block",
        "--installation x --requester wallet=private.pem p3.json | private.pem is not one PEM block",
        "--installation x --requester wallet=two.pem p3.json | two.pem is not one PEM block",
        "--installation x --requester wallet=bad.pem p3.json | the PEM block of bad.pem is not base64",
        "--installation x --requester wallet=keys=keys/* p3.json | wallet has no file",
        "--installation x --requester wallet=wallet.pem.pub,keys=hot-* p3.json | keys=hot-* of",
        "--installation x --requester wallet=wallet.pem.pub,min-threshold=0 p3.json | min-threshold=0",
        "--installation x --requester wallet=wallet.pem.pub,may=create,min-threshold=3,min-parties=2 p3.json | above",
        "--installation x --requester wallet=wallet.pem.pub,may=create,min-parties=2 p3.json | give min-threshold=N",
        "--installation x --requester wallet=wallet.pem.pub,may=create,min-threshold=2 p3.json | and min-parties=N",
        "--installation x --requester wallet=wallet.pem.pub,F p3.json | say with may=create",
        "--installation x --requester wallet=wallet.pem.pub,may=sign,F p3.json | may=sign of requester wallet is not",
        "--previous p3.json p3.json | p3.json is not a trust file",
        "--previous first.json --installation x p3.json | leave --installation out",
        "--previous first.json p3.json p1/signer-0 | party p2 has left or has another key",
        "--previous first.json --left p2=0 p3.json | --left p2=0 is not PARTY=EPOCH",
        "--previous first.json --left p2=1 --left p1=1 p1/signer-0 p3.json | --left p1: the previous",
        "--previous first.json --left p2=1 --left p2=2 p1/signer-0 p3.json | --left names p2 twice",
        "--previous first.json --left p3=1 p1/signer-0 p2/signer-0 new.json | party id 3 was another party's",
      })
  void wrong_arguments_are_refused_in_one_line(String arguments, String problem) throws Exception {
    TrustFile.write(
        folder.resolve("first.json"),
        new Trust(
            new Roster("x", 1, List.of(party(1, 1), party(2, 2), party(3, 3))),
            List.of(
                new Trust.Requester(
                    "wallet",
                    List.of(wallet),
                    List.of(new Glob("*")),
                    Set.of(KeyRight.CREATE),
                    2,
                    2))));
    Files.writeString(folder.resolve("two.json"), "{} {}");
    Files.writeString(
        folder.resolve("other.json"),
        Files.readString(folder.resolve("p3.json")).replace("\"p3\"", "\"other\""));
    TrustFile.writeEntry(
        folder.resolve("new.json"),
        new Member(
            "new", Member.Role.PARTY, 3, "eu", new UUID(1, 8), 1, filled(33, 8), filled(32, 8)));
    String pem = Files.readString(folder.resolve("wallet.pem.pub"));
    Files.writeString(folder.resolve("private.pem"), pem.replace("PUBLIC", "PRIVATE"));
    Files.writeString(folder.resolve("two.pem"), pem + pem);
    Files.writeString(folder.resolve("bad.pem"), pem.replaceFirst("M", ""));
    Run run =
        run(
            arguments
                .replace("R ", "--requester wallet=wallet.pem.pub,may=create,F ")
                .replace(",F ", ",min-threshold=2,min-parties=2 ")
                .split(" "));
    assertThat(run.status()).isNotZero();
    assertThat(run.output()).isEmpty();
    assertThat(run.problem()).contains(problem).hasLineCount(1);
  }
}
