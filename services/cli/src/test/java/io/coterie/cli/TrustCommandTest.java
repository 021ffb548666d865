package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.cli.terminal.ExitCode;
import io.coterie.trust.Fingerprint;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Glob;
import io.coterie.trust.KeyRight;
import io.coterie.trust.Member;
import io.coterie.trust.MemberEntry;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code coterie trust}: from root keys and members' entries to signed versions. */
class TrustCommandTest {
  private static final String KEEPER =
      "keeper=@keeper.pem.pub,may=reshare,may=refresh,may=reshare,min-threshold=3,min-parties=4";
  private static final String WALLET =
      "wallet=@wallet.pem.pub,may=create,min-threshold=2,min-parties=2";

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

  /** Keys, entries and version 1, made once: tests work on copies. */
  @TempDir static Path made;

  @TempDir Path folder;

  @BeforeAll
  static void make() throws Exception {
    entry(made.resolve("coordinator.json"), COORDINATOR);
    for (int id = 1; id <= 3; id++) {
      entry(made.resolve("p" + id + ".json"), party("p" + id, id, id));
    }
    for (String root : List.of("a.pem", "b.pem", "c.pem", "d.pem")) {
      assertThat(run(made, "trust new-root @" + root).exitCode()).isZero();
    }
    run(made, "intent new-requester @wallet.pem");
    run(made, "intent new-requester @keeper.pem --algorithm p256");
    Run init =
        run(
            made,
            "trust init --installation prod-eu-1 --roots @a.pem.pub @b.pem.pub @c.pem.pub"
                + " --root-threshold 2 --member @coordinator.json @p1.json --member @p2.json @p3.json"
                + " --requester wallet=@wallet.pem.pub,@keeper.pem.pub,may=create,min-threshold=2,"
                + "min-parties=3,keys=keys/hot-*,keys=keys/cold --requester "
                + KEEPER
                + " --out @1.json");
    assertThat(init.exitCode()).as(init.err()).isZero();
    for (String root : List.of("a.pem", "b.pem")) {
      assertThat(run(made, "trust sign @1.json --root-key @" + root).exitCode()).isZero();
    }
  }

  @BeforeEach
  void copy() throws Exception {
    try (var files = Files.list(made)) {
      for (Path file : files.toList()) {
        Files.copy(file, folder.resolve(file.getFileName()), StandardCopyOption.COPY_ATTRIBUTES);
      }
    }
  }

  private static Member party(String name, int id, int secret) {
    return new Member(
        name,
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

  private static void entry(Path file, Member member) throws Exception {
    MemberEntry.write(file, member);
  }

  /** Runs words; {@code @} stands for a folder. */
  private static Run run(Path folder, String words) {
    return Run.of(
        Arrays.stream(words.split(" "))
            .map(word -> word.replace("@", folder + "/"))
            .toArray(String[]::new));
  }

  private Run run(String words) {
    return run(folder, words);
  }

  private Run good(String words) {
    Run run = run(words);
    assertThat(run.err()).as(words).isEmpty();
    assertThat(run.exitCode()).isZero();
    return run;
  }

  private void sign(String file, String... keys) {
    for (String key : keys) {
      good("trust sign @" + file + " --root-key @" + key);
    }
  }

  private TrustFile file(String name) throws Exception {
    return TrustFile.read(folder.resolve(name));
  }

  private SignedTrust signed(String name) throws Exception {
    return file(name).verified();
  }

  private byte[] publicKey(String file) throws Exception {
    String pem = Files.readString(folder.resolve(file));
    return Base64.getMimeDecoder().decode(pem.replaceAll("-----[A-Z ]+-----", ""));
  }

  @Test
  void first_version_has_the_members_requesters_and_root_keys_that_were_given() throws Exception {
    Trust.Requester keeper =
        new Trust.Requester(
            "keeper",
            List.of(publicKey("keeper.pem.pub")),
            List.of(new Glob("keys/*")),
            Set.of(KeyRight.REFRESH, KeyRight.RESHARE),
            3,
            4);
    Trust.Requester wallet =
        new Trust.Requester(
            "wallet",
            List.of(publicKey("wallet.pem.pub"), publicKey("keeper.pem.pub")),
            List.of(new Glob("keys/hot-*"), new Glob("keys/cold")),
            Set.of(KeyRight.CREATE),
            2,
            3);
    SignedTrust first = signed("1.json");
    assertThat(first.trust())
        .isEqualTo(
            new Trust(
                new Roster(
                    "prod-eu-1",
                    1,
                    List.of(COORDINATOR, party("p1", 1, 1), party("p2", 2, 2), party("p3", 3, 3))),
                List.of(wallet, keeper)));
    assertThat(first.roots().threshold()).isEqualTo(2);
    assertThat(first.roots().keys()).hasSize(3);
  }

  @Test
  void later_versions_remember_the_parties_that_left_and_those_that_enrolled_anew()
      throws Exception {
    entry(folder.resolve("p2.json"), party("p2", 2, 7));
    good("trust add @1.json --member @p2.json --retire p2=4 --out @2.json");
    sign("2.json", "b.pem", "c.pem");
    assertThat(signed("2.json").requireNotBefore(signed("1.json"))).isTrue();
    good("trust retire @2.json --party p3=6 --requester wallet --out @3.json");
    sign("3.json", "a.pem", "c.pem");
    SignedTrust third = signed("3.json");
    assertThat(third.trust().roster())
        .isEqualTo(
            new Roster(
                "prod-eu-1",
                3,
                List.of(COORDINATOR, party("p1", 1, 1), party("p2", 2, 7)),
                List.of(
                    new FormerParty("p2", 2, filled(32, 2), 4),
                    new FormerParty("p3", 3, filled(32, 3), 6))));
    assertThat(third.trust().requesters())
        .extracting(Trust.Requester::name)
        .containsExactly("keeper");

    good("trust retire @3.json --correct p2=5 --coordinator coordinator --out @4.json");
    sign("4.json", "a.pem", "c.pem");
    Roster fourth = signed("4.json").trust().roster();
    assertThat(fourth.former().getFirst()).isEqualTo(new FormerParty("p2", 2, filled(32, 2), 5));
    assertThat(fourth.coordinators()).isEmpty();
    // It comes back as the same party.
    good(
        "trust add @4.json --member @p3.json @coordinator.json --requester "
            + WALLET
            + " --out @5.json");
    sign("5.json", "a.pem", "b.pem");
    assertThat(signed("5.json").trust().roster().members()).hasSize(4);
    assertThat(signed("5.json").requireNotBefore(signed("1.json"))).isTrue();
  }

  @Test
  void root_keys_are_replaced_by_themselves_and_the_new_ones() throws Exception {
    good("trust add @1.json --roots @c.pem.pub @d.pem.pub --root-threshold 2 --out @2.json");
    Run sign = good("trust sign @2.json --root-key @d.pem");
    assertThat(sign.out()).startsWith("NOT SIGNED: ").contains("of the version before it");
    Run shown = run("trust show @2.json");
    assertThat(shown.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(shown.out()).contains("roots before 2 of 3: ").contains("NOT SIGNED");
    sign("2.json", "c.pem");
    assertThat(file("2.json").current().signatures()).hasSize(2);
    Run enough = good("trust sign @2.json --root-key @a.pem");
    assertThat(enough.out()).isEqualTo("version 2 is signed\n");
    assertThat(signed("2.json").requireNotBefore(signed("1.json"))).isTrue();
    good("trust retire @2.json --requester wallet --out @3.json");
    Run old = run("trust sign @3.json --root-key @a.pem");
    assertThat(old.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(old.err()).hasLineCount(1).contains("is no root key of trust file version 3");
  }

  @Test
  void shows_everything_with_fingerprints_and_the_state_of_each_signature() throws Exception {
    good("trust retire @1.json --party p3=6 --out @2.json");
    sign("2.json", "b.pem");
    Run shown = run("trust show @2.json");
    assertThat(shown.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(shown.out())
        .contains("installation prod-eu-1\n")
        .contains("version     2\n")
        .contains("roots       2 of 3: " + signed("1.json").roots().fingerprint())
        .contains("previous    " + HexFormat.of().formatHex(signed("1.json").digest()))
        .contains(entry("p1 (party 1, eu)", party("p1", 1, 1)))
        .contains("member coordinator (coordinator, eu)\n")
        .contains(
            "former p3 (party 3), believed up to epoch 6\n  evidence "
                + Fingerprint.ofEvidenceKey(filled(32, 3))
                + "\n")
        .contains("requester wallet may create: keys/hot-*, keys/cold; at least 2 of 3 parties\n")
        .contains("  key      " + Fingerprint.ofRequesterKey(publicKey("keeper.pem.pub")))
        .endsWith(
            "NOT SIGNED: trust file version 2 has 1 of the 2 signatures that it needs of the root"
                + " keys of the version before it: collect them with 'coterie trust sign'\n");
    assertThat(shown.out().lines().filter(line -> line.contains("root key ")).toList())
        .hasSize(3)
        .filteredOn(line -> line.endsWith("  signed"))
        .hasSize(1);
    Run first = good("trust show @1.json");
    assertThat(first.out()).endsWith("version 1 is signed\n");
    assertThat(good("trust show @p1.json").out())
        .isEqualTo(entry("p1 (party 1, eu)", party("p1", 1, 1)));
  }

  @Test
  void a_requester_that_only_signs_is_named_without_rights_or_bounds() throws Exception {
    good(
        "trust add @1.json --requester backend=@wallet.pem.pub,may=sign,keys=keys/hot-* --out @2.json");
    Trust.Requester added =
        file("2.json").current().content().trust().requester("backend").orElseThrow();
    assertThat(added.rights()).isEmpty();
    assertThat(run("trust show @2.json").out())
        .contains("requester backend may sign alone: keys/hot-*\n");
  }

  /** Parties obey the first of them alone, so another order makes an old one count again. */
  @Test
  void the_present_key_of_a_requester_is_told_from_its_former_ones() throws Exception {
    String wallet = Fingerprint.ofRequesterKey(publicKey("wallet.pem.pub"));
    String keeper = Fingerprint.ofRequesterKey(publicKey("keeper.pem.pub"));
    good(
        "trust add @1.json --requester backend=@wallet.pem.pub,@keeper.pem.pub,may=sign"
            + " --out @2.json");
    assertThat(run("trust show @2.json").out())
        .contains("  key      " + wallet + "\n  former   " + keeper + "\n");
    good(
        "trust add @1.json --requester backend=@keeper.pem.pub,@wallet.pem.pub,may=sign"
            + " --out @turned.json");
    assertThat(run("trust show @turned.json").out())
        .contains("  key      " + keeper + "\n  former   " + wallet + "\n");
  }

  private static String entry(String title, Member member) {
    return "member %s\n  entry    %s\n  evidence %s\n"
        .formatted(
            title,
            MemberEntry.fingerprint(member),
            Fingerprint.ofEvidenceKey(member.evidenceKey()));
  }

  @Test
  void shows_what_a_version_changes_of_an_earlier_one_and_nothing_else() throws Exception {
    entry(folder.resolve("p2.json"), party("p2", 2, 7));
    entry(folder.resolve("p4.json"), party("p4", 4, 4));
    good(
        "trust add @1.json --member @p2.json @p4.json --retire p2=4 --requester "
            + WALLET
            + " --out @2.json");
    Run draft = run("trust show @2.json --since @1.json");
    assertThat(draft.exitCode()).isEqualTo(ExitCode.NO);
    String gone = "- " + entry("p2 (party 2, eu)", party("p2", 2, 2)).strip().replace("\n", "\n- ");
    String come = "+ " + entry("p2 (party 2, eu)", party("p2", 2, 7)).strip().replace("\n", "\n+ ");
    assertThat(draft.out())
        .startsWith(
            "from version 1, digest " + HexFormat.of().formatHex(file("1.json").current().digest()))
        .contains("to version  2, digest ")
        .contains(gone + "\n" + come + "\n")
        .contains("+ member p4 (party 4, eu)\n")
        .contains("+ former p2 (party 2), believed up to epoch 4\n")
        .contains("- requester wallet may create: keys/hot-*, keys/cold; at least 2 of 3 parties\n")
        .contains("+ requester wallet may create: keys/*; at least 2 of 2 parties\n")
        .doesNotContain("p1", "keeper", "roots", "SUCCESSOR")
        .contains("NOT SIGNED");
    sign("2.json", "a.pem", "b.pem");
    assertThat(good("trust show @2.json --since @1.json").out()).endsWith("version 2 is signed\n");

    good("trust add @2.json --roots @c.pem.pub @d.pem.pub --root-threshold 2 --out @3.json");
    sign("3.json", "a.pem", "c.pem", "d.pem");
    String roots = good("trust show @3.json --since @1.json").out();
    assertThat(roots)
        .contains("- roots 2 of 3: " + signed("1.json").roots().fingerprint())
        .contains("+ roots 2 of 2: " + signed("3.json").roots().fingerprint())
        .contains("+   root key ");
    assertThat(good("trust show @1.json --since @1.json").out().lines()).hasSize(3);

    good("trust retire @1.json --party p2=6 --out @fork.json");
    sign("fork.json", "a.pem", "c.pem");
    good("trust retire @fork.json --party p3=6 --out @fork3.json");
    sign("fork3.json", "a.pem", "c.pem");
    for (String fork : List.of("@fork3.json --since @2.json", "@1.json --since @2.json")) {
      Run other = run("trust show " + fork);
      assertThat(other.exitCode()).isEqualTo(ExitCode.NO);
      assertThat(other.out()).contains("NO SUCCESSOR: ").contains(" is signed");
    }
  }

  @Test
  void root_keys_that_are_no_majority_are_warned_of() {
    String init =
        "trust init --installation x --roots @a.pem.pub @b.pem.pub @c.pem.pub @d.pem.pub --member"
            + " @p1.json --requester "
            + WALLET;
    String warning = "WARNING: 2 of 4 root keys are not more than half";
    assertThat(good(init + " --root-threshold 2 --out @weak.json").out())
        .contains(warning)
        .contains("--root-threshold of 3 or more");
    for (String root : List.of("a.pem", "b.pem")) {
      assertThat(good("trust sign @weak.json --root-key @" + root).out()).contains(warning);
    }
    assertThat(good("trust show @weak.json").out()).contains(warning);
    assertThat(good(init + " --root-threshold 3 --out @good.json").out()).doesNotContain("WARNING");
    assertThat(good("trust show @1.json").out()).doesNotContain("WARNING");
  }

  @Test
  void a_signature_leaves_the_file_readable_for_whom_it_was() throws Exception {
    good("trust retire @1.json --party p3=6 --out @2.json");
    Path file = folder.resolve("2.json");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
    sign("2.json", "a.pem");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-r--r--");
  }

  @Test
  void two_commands_at_once_do_not_put_the_accepted_version_back() throws Exception {
    good("trust retire @1.json --party p3=6 --out @2.json");
    sign("2.json", "a.pem", "c.pem");
    assertThat(use("1.json").exitCode()).isZero();
    try (FileChannel other =
            FileChannel.open(
                folder.resolve("trust.accepted.lock"),
                StandardOpenOption.CREATE,
                StandardOpenOption.WRITE);
        FileLock lock = other.lock()) {
      assertThat(lock.isValid()).isTrue();
      refused(use("2.json"), "another command is accepting a trust file");
      assertThat(signed("trust.accepted").version()).isEqualTo(1);
      assertThat(use("1.json").exitCode()).as("nothing to write").isZero();
    }
    assertThat(use("2.json").exitCode()).isZero();
    assertThat(signed("trust.accepted").version()).isEqualTo(2);
  }

  @Test
  void a_root_key_signs_what_was_looked_at_and_nothing_else() throws Exception {
    good("trust retire @1.json --party p3=6 --out @2.json");
    String looked = HexFormat.of().formatHex(file("2.json").current().digest());
    good("trust retire @1.json --party p2=6 --out @other.json");
    Files.move(
        folder.resolve("other.json"),
        folder.resolve("2.json"),
        StandardCopyOption.REPLACE_EXISTING);
    refused(
        run("trust sign @2.json --root-key @b.pem --digest " + looked),
        "look at it again with 'show'");
    assertThat(file("2.json").current().signatures()).isEmpty();
    String now = HexFormat.of().formatHex(file("2.json").current().digest());
    good("trust sign @2.json --root-key @b.pem --digest " + now);
    assertThat(file("2.json").current().signatures()).hasSize(1);
  }

  @Test
  void a_forged_signature_is_shown_as_one() throws Exception {
    String json = Files.readString(folder.resolve("1.json"));
    good(
        "trust init --installation prod-eu-1 --roots @a.pem.pub @b.pem.pub @c.pem.pub --root-threshold 2"
            + " --member @p1.json --requester "
            + WALLET
            + " --out @other.json");
    String other = Files.readString(folder.resolve("other.json"));
    String payload = other.replaceAll("(?s).*\"payload\" : \"([^\"]*)\".*", "$1");
    Files.writeString(
        folder.resolve("forged.json"),
        json.replaceFirst("\"payload\" : \"[^\"]*\"", "\"payload\" : \"" + payload + "\""));
    Run shown = run("trust show @forged.json");
    assertThat(shown.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(shown.out().lines().filter(line -> line.endsWith("  NOT VALID"))).hasSize(2);
    assertThat(shown.out()).contains("NOT SIGNED").contains("is not valid");
  }

  @Test
  void a_root_key_is_readable_by_its_owner_alone() throws Exception {
    Path key = folder.resolve("root.pem");
    Run made = good("trust new-root @root.pem");
    assertThat(made.out()).containsPattern("fingerprint ([0-9a-f]{4} ){15}[0-9a-f]{4}\n");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(key)))
        .isEqualTo("rw-------");
    Files.setPosixFilePermissions(
        folder.resolve("c.pem"), PosixFilePermissions.fromString("rw-r--r--"));
    Run sign = run("trust sign @1.json --root-key @c.pem");
    assertThat(sign.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(sign.err()).hasLineCount(1).contains("chmod 600");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "init --installation Prod A M R | installation 'Prod' is not 1 to 63 of [a-z0-9-]",
        "init --installation x A M | no requester is given",
        "init --installation x A R | a roster has 1 to 100 members, not 0",
        "init --installation x M R | --roots and --root-threshold are missing",
        "init --installation x --roots @a.pem.pub M R | belong together",
        "init --installation x --root-threshold 1 M R | belong together",
        "init --installation x --roots @a.pem.pub --root-threshold 2 M R | is not 1 to 1 but 2",
        "init --installation x --roots @a.pem.pub @a.pem.pub --root-threshold 2 M R | a root key occurs twice",
        "init --installation x --roots @a.pem --root-threshold 1 M R | a.pem: not exactly one PEM block",
        "init --installation x --roots @keeper.pem.pub --root-threshold 1 M R | not an Ed25519 public key",
        "init --installation x A M M R | member p3 is given twice",
        "init --installation x A M --member @other.json R | partyId occurs twice",
        "init --installation x A M R R | requester wallet is given twice",
        "init --installation x A --member @nobody.json R | nobody.json cannot be read",
        "init --installation x A --member @a.pem.pub R | a.pem.pub is not the entry of one member",
        "init --installation x A --member @two.json R | two.json is not the entry of one member",
        "init --installation x A --member @1.json R | 1.json is not the entry of one member",
        "init --installation x A M --requester wallet | --requester wallet is not NAME=FILE",
        "init --installation x A M --requester wallet= | --requester wallet= is not NAME=FILE",
        "init --installation x A M --requester Wallet=@wallet.pem.pub | is not NAME=FILE",
        "init --installation x A M --requester wallet=@none | none with a public key",
        "init --installation x A M --requester wallet=@p3.json | p3.json: not exactly one PEM block",
        "init --installation x A M --requester wallet=@wallet.pem | wallet.pem: not exactly one PEM block",
        "init --installation x A M --requester wallet=@two.pem | two.pem: the PEM block",
        "init --installation x A M --requester wallet=keys=keys/* | wallet has no file",
        "init --installation x A M --requester wallet=@wallet.pem.pub,keys=hot-* | keys=hot-* of",
        "init --installation x A M --requester wallet=@wallet.pem.pub,min-threshold=0 | min-threshold=0",
        "init --installation x A M --requester wallet=@wallet.pem.pub,may=create,min-threshold=3,min-parties=2 | above",
        "init --installation x A M --requester wallet=@wallet.pem.pub,may=create,min-parties=2 | give min-threshold=N",
        "init --installation x A M --requester wallet=@wallet.pem.pub,may=create,min-threshold=2 | and min-parties=N",
        "init --installation x A M --requester wallet=@wallet.pem.pub,min-threshold=2,min-parties=2 | say with may=create",
        "init --installation x A M --requester wallet=@wallet.pem.pub,may=pay | may=pay of requester wallet is not",
        "add @p3.json M | p3.json is no trust file",
        "add @unsigned.json M | unsigned.json: trust file version 1 has 0 of the 2 signatures",
        "add @1.json M | this changes nothing",
        "add @1.json --member @changed.json | party p2 has another key: say with --retire p2=EPOCH",
        "add @1.json --member @changed.json --retire p2=0 | --retire p2=0 is not PARTY=EPOCH",
        "add @1.json --member @changed.json --retire p2=1 --retire p2=2 | --retire names p2 twice",
        "add @1.json M --retire p3=2 | party p3: the previous version has no such party, or it is unchanged",
        "add @1.json --member @changed.json --retire p2=1 --retire p9=1 | --retire p9: give its new entry",
        "add @1.json --member @new.json --retire p3=1 | --retire p3: give its new entry with --member",
        "retire @1.json --party p9=1 | party p9: the previous version has no such party",
        "retire @1.json --coordinator p1 | --coordinator p1: the previous version has no such coordinator",
        "retire @1.json --requester nobody | --requester nobody: the previous version has no such requester",
        "retire @1.json --requester wallet --requester keeper | no requester is given",
        "retire @1.json --correct p1=4 | --correct p1: no party of that name was retired",
        "retire @1.json | this changes nothing",
      })
  void wrong_arguments_are_refused_in_one_line(String arguments, String problem) throws Exception {
    String signed = Files.readString(folder.resolve("1.json"));
    Files.writeString(
        folder.resolve("unsigned.json"),
        signed.replaceFirst("(?s)\"signatures\" : .*?\\]", "\"signatures\" : []"));
    Files.writeString(folder.resolve("two.json"), "{} {}");
    entry(folder.resolve("other.json"), party("other", 3, 8));
    entry(folder.resolve("changed.json"), party("p2", 2, 7));
    entry(folder.resolve("new.json"), party("new", 3, 8));
    String pem = Files.readString(folder.resolve("wallet.pem.pub"));
    Files.writeString(folder.resolve("two.pem"), pem + pem);
    List<String> words = new ArrayList<>();
    for (String word : arguments.split(" ")) {
      words.add(
          switch (word) {
            case "A" -> "--roots @a.pem.pub --root-threshold 1";
            case "M" -> "--member @p3.json";
            case "R" -> "--requester " + WALLET;
            default -> word;
          });
    }
    Run run = run("trust " + String.join(" ", words) + " --out @out.json");
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).contains(problem).hasLineCount(1);
    assertThat(folder.resolve("out.json")).doesNotExist();
  }

  /** The text behind the line end would be left out: here a bound. */
  @Test
  void a_requester_of_two_lines_is_refused() {
    Run run =
        Run.of(
            "trust",
            "init",
            "--installation",
            "x",
            "--roots",
            folder + "/a.pem.pub",
            "--root-threshold",
            "1",
            "--member",
            folder + "/p3.json",
            "--requester",
            "wallet=wallet.pem.pub\n,min-parties=3",
            "--out",
            folder + "/out.json");
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err())
        .hasLineCount(1)
        .contains("--requester wallet=wallet.pem.pub ,min-parties=3 is not NAME=FILE");
  }

  @Test
  void a_file_is_never_overwritten() throws Exception {
    byte[] before = Files.readAllBytes(folder.resolve("1.json"));
    Run again = run("trust retire @1.json --party p3=1 --out @1.json");
    assertThat(again.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(again.err()).hasLineCount(1).contains("exists already");
    assertThat(Files.readAllBytes(folder.resolve("1.json"))).isEqualTo(before);
  }

  @Test
  void clients_can_pin_the_root_keys() throws Exception {
    String fingerprint = signed("1.json").roots().fingerprint();
    Files.writeString(
        folder.resolve("profile.properties"),
        "trust=1.json\nrequester=wallet\nrequester-key=wallet.pem\ntrust-roots="
            + fingerprint
            + "\n");
    String command =
        "intent sign treasury -m hello --profile @profile.properties --yes --fingerprint "
            + TestFiles.FINGERPRINT.replace(" ", "")
            + " --out @intent";
    assertThat(run(command).exitCode()).isZero();
    Run other = run(command + " --trust-roots " + "0".repeat(32));
    assertThat(other.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(other.err())
        .hasLineCount(1)
        .contains("none of its versions has the expected ones")
        .contains(fingerprint);
  }

  /** A command that needs the trust file and no installation. */
  private Run use(String trustFile, String... more) {
    return run(
        "intent sign treasury -m hello --requester wallet --requester-key @wallet.pem --yes --fingerprint "
            + TestFiles.FINGERPRINT.replace(" ", "")
            + " --out @intent --trust @"
            + trustFile
            + String.join("", more));
  }

  private void refused(Run run, String because) {
    assertThat(run.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(run.err()).hasLineCount(1).contains(because);
  }

  @Test
  void clients_keep_the_highest_version_and_do_not_go_back() throws Exception {
    good("trust retire @1.json --party p3=6 --out @2.json");
    sign("2.json", "a.pem", "c.pem");
    good("trust retire @1.json --party p2=6 --out @fork.json");
    sign("fork.json", "a.pem", "c.pem");
    good("trust retire @2.json --party p2=6 --out @3.json");
    sign("3.json", "a.pem", "c.pem");
    good(
        "trust init --installation prod-eu-1 --roots @d.pem.pub --root-threshold 1 --member @p1.json"
            + " --requester "
            + WALLET
            + " --out @theirs1.json");
    sign("theirs1.json", "d.pem");
    for (int version = 2; version <= 3; version++) {
      good(
          "trust add @theirs%d.json --member @p%d.json --out @theirs%d.json"
              .formatted(version - 1, version, version));
      sign("theirs" + version + ".json", "d.pem");
    }

    assertThat(use("1.json").exitCode()).isZero();
    assertThat(use("2.json").exitCode()).isZero();
    assertThat(use("2.json").exitCode()).isZero();
    refused(use("1.json"), "version 1, and version 2 was used before: get the newest file");
    refused(use("fork.json"), "another content than the version 2");
    refused(use("theirs3.json"), "not signed by the root keys of version 2");
    good(
        "trust init --installation prod-eu-2 --roots @d.pem.pub --root-threshold 1 --member @p1.json"
            + " --requester "
            + WALLET
            + " --out @another.json");
    sign("another.json", "d.pem");
    refused(
        use("another.json"), "is of installation prod-eu-2, and the one before was of prod-eu-1");
    assertThat(use("3.json").exitCode()).isZero();
    refused(use("2.json"), "version 2, and version 3 was used before");

    Path elsewhere = Files.createDirectory(folder.resolve("state"));
    assertThat(use("1.json", " --trust-state @state").exitCode()).isZero();
    assertThat(signed("state/trust.accepted").version()).isEqualTo(1);
    Files.writeString(elsewhere.resolve("trust.accepted"), "{");
    refused(use("1.json", " --trust-state @state"), "trust.accepted, the trust file that");
    refused(use("1.json", " --trust-state @nowhere"), "let trust-state name a folder");
  }
}
