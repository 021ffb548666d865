package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.cli.Coterie;
import io.coterie.member.Approvals;
import io.coterie.member.AttestedGroups;
import io.coterie.member.Joining;
import io.coterie.member.MemberException;
import io.coterie.member.MemberFolder;
import io.coterie.member.Membership;
import io.coterie.member.Ticket;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import io.grpc.Channel;
import io.grpc.StatusRuntimeException;
import java.io.PrintWriter;
import java.io.Reader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Members join a group from the command line, over the real channel. */
@ExtendWith(SharedCluster.class)
class GroupJoinTest {
  @TempDir Path folder;
  private Path passphrase;

  @BeforeEach
  void passphrase() throws Exception {
    passphrase = Files.writeString(folder.resolve("passphrase"), "a passphrase of a member\n");
  }

  private record Ended(int exitCode, String out, String err) {
    /** The value of a row that the command prints. */
    String value(String row) {
      return out.lines()
          .filter(line -> line.startsWith(row + " "))
          .map(line -> line.substring(row.length()).strip())
          .findFirst()
          .orElseThrow(() -> new AssertionError("no " + row + " in " + out));
    }
  }

  private static Ended coterie(String... args) {
    CommandLine line = Coterie.commandLine();
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    line.setOut(new PrintWriter(out, true));
    line.setErr(new PrintWriter(err, true));
    return new Ended(line.execute(args), out.toString(), err.toString());
  }

  private static Ended succeeds(String... args) {
    Ended ended = coterie(args);
    assertThat(ended.exitCode()).as(ended.out() + ended.err()).isZero();
    return ended;
  }

  private static String[] at(Running shared, String... args) {
    return as(Cluster.WALLET, shared, args);
  }

  private static String[] as(String requester, Running shared, String... args) {
    List<String> all = new ArrayList<>(List.of(args));
    all.add("--profile");
    all.add(shared.cluster().writeProfile(requester).toString());
    return all.toArray(String[]::new);
  }

  private String[] member(String name, String... args) {
    List<String> all = new ArrayList<>(List.of(args));
    all.addAll(List.of("--member", folder.resolve(name).toString()));
    all.addAll(List.of("--passphrase-file", passphrase.toString()));
    return all.toArray(String[]::new);
  }

  private Path ticket(Running shared, String group, String name) {
    String identity = succeeds(member(name, "group", "identity")).out().strip();
    Path ticket = folder.resolve(name + "-" + System.nanoTime() + ".ticket");
    succeeds(
        at(
            shared,
            "group",
            "ticket",
            group,
            "--identity",
            identity,
            "--yes",
            "--purpose",
            "a test",
            "--out",
            ticket.toString()));
    return ticket;
  }

  private String[] join(Running shared, String name, Path ticket) {
    return at(shared, member(name, "group", "join", ticket.toString()));
  }

  private static void create(Running shared, String group) {
    String parties = String.join(",", shared.cluster().partyNames());
    succeeds(
        at(
            shared,
            "group",
            "create",
            group,
            "--issuers",
            parties,
            "--issuer-threshold",
            "2",
            "--openers",
            parties,
            "--opener-threshold",
            "2",
            "--yes",
            "--purpose",
            "a test"));
  }

  @Test
  void members_join_once_with_their_own_tickets(Running shared) throws Exception {
    create(shared, "joined");
    Path ticket = ticket(shared, "joined", "one");
    Ended joined = succeeds(join(shared, "one", ticket));
    assertThat(joined.value("member of")).isEqualTo("groups/joined");
    assertThat(succeeds(join(shared, "one", ticket)).value("point"))
        .as("again, without another run")
        .isEqualTo(joined.value("point"));
    String stored = Files.readString(folder.resolve("one").resolve("member.properties"));
    assertThat(stored).contains("runs=1", "membership-sealed=");

    assertThat(succeeds(join(shared, "two", ticket(shared, "joined", "two"))).value("point"))
        .isNotEqualTo(joined.value("point"));

    // The ticket of somebody else, and a second ticket of one identity in a folder of its own.
    Ended foreign = coterie(join(shared, "three", ticket));
    assertThat(foreign.exitCode()).isEqualTo(5);
    assertThat(foreign.err()).contains("another identity");
    Path second = ticket(shared, "joined", "one");
    assertThat(coterie(join(shared, "one", second)).err()).contains("another ticket");
    Path copy = Files.createDirectory(folder.resolve("copy"));
    Files.copy(folder.resolve("one").resolve("data-key"), copy.resolve("data-key"));
    Files.writeString(
        copy.resolve("member.properties"),
        stored
            .lines()
            .filter(line -> line.startsWith("identity"))
            .reduce("", (text, line) -> text + line + "\n"));
    Ended twice = coterie(join(shared, "copy", second));
    assertThat(twice.exitCode()).isEqualTo(3);
    assertThat(twice.err()).contains("TICKET_BOUND");

    approvalsOfTwoCount(shared);

    // Nobody opens the folder without its passphrase.
    passphrase = Files.writeString(folder.resolve("other"), "another passphrase\n");
    Ended locked = coterie(member("one", "group", "identity"));
    assertThat(locked.exitCode()).isEqualTo(5);
    assertThat(locked.err()).contains("wrong passphrase");
  }

  /** Two members approve an intent; the same one twice, or another intent, does not count. */
  private void approvalsOfTwoCount(Running shared) {
    Path intent = intent(shared, "a withdrawal");
    String one = approval(shared, "one", intent);
    String two = approval(shared, "two", intent);
    assertThat(succeeds(count(shared, intent, "2", one, two)).value("approvals")).isEqualTo("2");
    Ended twice = coterie(count(shared, intent, "2", one, approval(shared, "one", intent)));
    assertThat(twice.exitCode()).isEqualTo(1);
    assertThat(twice.err()).contains("approval 2");
    assertThat(coterie(count(shared, intent, "3", one, two)).exitCode()).isEqualTo(1);
    Ended other = coterie(count(shared, intent(shared, "another"), "1", one));
    assertThat(other.exitCode()).isEqualTo(1);
    assertThat(other.err()).contains("approval 1");
    String rejection = approval(shared, "two", intent, "--reject");
    assertThat(coterie(count(shared, intent, "1", rejection)).exitCode()).isEqualTo(1);
    assertThat(
            succeeds(
                    at(
                        shared,
                        "group",
                        "count",
                        "joined",
                        intent.toString(),
                        rejection,
                        "--needed",
                        "1",
                        "--rejections"))
                .value("rejections"))
        .isEqualTo("1");
    // The auditor names the member of each, and nobody by an approval of another request.
    String identity = succeeds(member("two", "group", "identity")).out().strip();
    assertThat(succeeds(opening(shared, "joined", intent, two)).value("identity"))
        .isEqualTo(identity);
    assertThat(
            succeeds(opening(shared, "joined", intent, rejection, "--rejection")).value("identity"))
        .isEqualTo(identity);
    Ended unopened = coterie(opening(shared, "joined", intent(shared, "a third"), one));
    assertThat(unopened.exitCode()).isEqualTo(3);
    assertThat(unopened.err()).contains("APPROVAL_INVALID");
    // A folder that has not joined has nothing to approve with.
    succeeds(member("none", "group", "identity"));
    Ended none = coterie(approving(shared, "none", intent, folder.resolve("no-approval")));
    assertThat(none.exitCode()).isEqualTo(5);
    assertThat(none.err()).contains("join first");
  }

  /** The example of docs/protocols/wbb.md, line by line. */
  private static int example(
      Path folder,
      byte[] passphrase,
      Trust trust,
      Channel channel,
      Duration patience,
      SignedIntent signedTicket,
      SignedIntent signedIntent,
      Consumer<Joining.Milestone> progress,
      Function<VerifiedIntent.Signing, Approvals.Decision> ask)
      throws Exception {
    try (MemberFolder member = MemberFolder.open(folder, passphrase)) {
      Ticket ticket = Ticket.of(signedTicket);
      var groups = new AttestedGroups(trust);
      var group = groups.fetch(channel, ticket.group(), ticket.epoch(), patience);
      new Joining(member, group, ticket, channel, patience, progress).join();
      var request = (VerifiedIntent.Signing) Approvals.verified(trust, signedIntent);
      Approvals.Decision said = ask.apply(request);
      ByteString approval = Approvals.approve(member, trust, request, said);
      return Approvals.count(group, request, said, List.of(approval), 1);
    }
  }

  private static String withoutIndentation(String text) {
    return text.lines().map(String::strip).collect(Collectors.joining("\n"));
  }

  @Test
  void the_example_of_the_docs_is_the_one_that_is_run() throws Exception {
    String page = Files.readString(ProjectRoot.PATH.resolve("docs/protocols/wbb.md"));
    String shown = page.substring(page.indexOf("```java\n") + 8);
    assertThat(
            withoutIndentation(
                Files.readString(
                    ProjectRoot.PATH.resolve(
                        "services/acceptance/src/test/java/io/coterie/acceptance/GroupJoinTest.java"))))
        .contains(withoutIndentation(shown.substring(0, shown.indexOf("```"))));
  }

  private byte[] secret() {
    return "a passphrase of a member".getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void a_client_without_terminal_joins_and_approves(Running shared) throws Exception {
    create(shared, "clients");
    Properties profile = new Properties();
    try (Reader in = Files.newBufferedReader(shared.cluster().writeProfile(Cluster.WALLET))) {
      profile.load(in);
    }
    Trust trust = TrustFile.read(Path.of(profile.getProperty("trust"))).verified().trust();
    Channel channel = shared.wallet().channel();
    Duration patience = Duration.ofSeconds(60);
    Path file = intent(shared, "a request of a client");
    SignedIntent intent = SignedIntent.parseFrom(Files.readAllBytes(file));
    SignedIntent ticket =
        SignedIntent.parseFrom(Files.readAllBytes(ticket(shared, "clients", "dora")));
    byte[] passphrase = secret();
    List<Joining.Milestone> reached = new ArrayList<>();
    assertThat(
            example(
                folder.resolve("dora"),
                passphrase,
                trust,
                channel,
                patience,
                ticket,
                intent,
                reached::add,
                request -> {
                  assertThat(request.key()).isEqualTo("keys/" + SharedCluster.KEY);
                  return Approvals.Decision.REJECT;
                }))
        .isEqualTo(1);
    assertThat(passphrase).containsOnly(0);
    assertThat(reached).containsExactly(Joining.Milestone.values());

    // An outside count, which has the approval alone; the command writes it from the same folder.
    AttestedGroups groups = new AttestedGroups(trust);
    AttestedGroups.Believed group = groups.fetch(channel, "groups/clients", 1, patience);
    var request = (VerifiedIntent.Signing) Approvals.verified(trust, intent);
    ByteString approval =
        ByteString.copyFrom(Files.readAllBytes(Path.of(approval(shared, "dora", file))));
    assertThat(Approvals.count(group, request, Approvals.Decision.APPROVE, List.of(approval), 1))
        .isEqualTo(1);
    byte[] altered = approval.toByteArray();
    altered[altered.length - 1] ^= 1;
    notApproved(
        OptionalInt.of(1),
        () ->
            Approvals.count(
                group,
                request,
                Approvals.Decision.APPROVE,
                List.of(approval, ByteString.copyFrom(altered)),
                1));
    notApproved(
        OptionalInt.of(0),
        () -> Approvals.count(group, request, Approvals.Decision.REJECT, List.of(approval), 1));
    notApproved(
        OptionalInt.empty(),
        () -> Approvals.count(group, request, Approvals.Decision.APPROVE, List.of(approval), 2));

    // The folder says where it belongs, goes on where it was, and takes the ticket of nobody else.
    SignedIntent foreign =
        SignedIntent.parseFrom(Files.readAllBytes(ticket(shared, "clients", "emil")));
    reached.clear();
    try (MemberFolder member = MemberFolder.open(folder.resolve("dora"), secret())) {
      Membership membership = member.membership().orElseThrow();
      assertThat(membership.group()).isEqualTo("groups/clients");
      assertThat(membership.epoch()).isEqualTo(1);
      assertThat(
              new Joining(member, group, Ticket.of(ticket), channel, patience, reached::add).join())
          .isEqualTo(membership);
      assertThat(reached).isEmpty();
      assertThatThrownBy(
              () -> new Joining(member, group, Ticket.of(foreign), channel, patience, reached::add))
          .isInstanceOf(MemberException.Unfit.class);
    }
    assertThatThrownBy(() -> groups.fetch(channel, "groups/nowhere", 1, patience))
        .isInstanceOf(StatusRuntimeException.class)
        .satisfies(e -> assertThat(StatusErrors.reason(e)).contains(ErrorReason.GROUP_NOT_FOUND));
  }

  private static void notApproved(OptionalInt place, ThrowingCallable count) {
    assertThatThrownBy(count)
        .isInstanceOfSatisfying(
            MemberException.NotApproved.class, e -> assertThat(e.place()).isEqualTo(place));
  }

  @Test
  void two_of_three_members_release_a_signature_and_the_auditor_names_one(Running shared) {
    create(shared, Cluster.APPROVERS);
    for (String name : List.of("ann", "ben", "cleo")) {
      succeeds(join(shared, name, ticket(shared, Cluster.APPROVERS, name)));
    }
    Path intent = folder.resolve("withdrawal.intent");
    String digest = succeeds(at(shared, "group", "show", Cluster.APPROVERS)).value("digest");
    succeeds(
        as(
            Cluster.TREASURY,
            shared,
            "intent",
            "sign",
            SharedCluster.KEY,
            "-m",
            "a withdrawal",
            "--fingerprint",
            succeeds(at(shared, "keys", "get", SharedCluster.KEY)).value("fingerprint"),
            "--approvers",
            Cluster.APPROVERS,
            "--approvers-epoch",
            "1",
            "--approvers-digest",
            digest,
            "--yes",
            "--out",
            intent.toString()));
    String ann = approval(shared, "ann", intent);
    String cleo = approval(shared, "cleo", intent);

    Ended one = coterie(signing(shared, intent, ann));
    assertThat(one.exitCode()).as(one.out()).isEqualTo(4);
    assertThat(one.err())
        .contains("APPROVALS_MISSING", "there are 1 approvals; needed are 2 of groups/treasurers");
    Ended twice = coterie(signing(shared, intent, ann, approval(shared, "ann", intent)));
    assertThat(twice.exitCode()).as(twice.out()).isEqualTo(4);
    assertThat(twice.err()).contains("approval 2 of 2 does not count: counted twice");
    Ended two = succeeds(signing(shared, intent, ann, cleo));
    assertThat(two.value("state")).isEqualTo("SIGNED");
    assertThat(succeeds(signing(shared, intent, cleo, approval(shared, "ben", intent))).out())
        .as("other approvals, and the same signature")
        .isEqualTo(two.out());

    String identity = succeeds(member("cleo", "group", "identity")).out().strip();
    assertThat(succeeds(opening(shared, Cluster.APPROVERS, intent, cleo)).value("identity"))
        .isEqualTo(identity);
  }

  private static String[] signing(Running shared, Path intent, String... approvals) {
    List<String> all = new ArrayList<>(List.of("sign", "--intent", intent.toString(), "--yes"));
    for (String approval : approvals) {
      all.addAll(List.of("--approval", approval));
    }
    return as(Cluster.TREASURY, shared, all.toArray(String[]::new));
  }

  private Path intent(Running shared, String message) {
    Path intent = folder.resolve(message.replace(' ', '-') + ".intent");
    succeeds(
        at(
            shared,
            "intent",
            "sign",
            SharedCluster.KEY,
            "-m",
            message,
            "--fingerprint",
            "00".repeat(16),
            "--yes",
            "--out",
            intent.toString()));
    return intent;
  }

  private String approval(Running shared, String name, Path intent, String... more) {
    Path approval = folder.resolve(name + "-" + System.nanoTime() + ".approval");
    succeeds(approving(shared, name, intent, approval, more));
    assertThat(approval).hasSize(416);
    return approval.toString();
  }

  private String[] approving(
      Running shared, String name, Path intent, Path approval, String... more) {
    List<String> all =
        new ArrayList<>(
            List.of("group", "approve", intent.toString(), "--yes", "--out", approval.toString()));
    all.addAll(List.of(more));
    return at(shared, member(name, all.toArray(String[]::new)));
  }

  private static String[] count(Running shared, Path intent, String needed, String... approvals) {
    List<String> all = new ArrayList<>(List.of("group", "count", "joined", intent.toString()));
    all.addAll(List.of(approvals));
    all.addAll(List.of("--needed", needed));
    return at(shared, all.toArray(String[]::new));
  }

  private static String[] opening(
      Running shared, String group, Path intent, String approval, String... more) {
    List<String> all =
        new ArrayList<>(List.of("group", "open", group, intent.toString(), approval, "--yes"));
    all.addAll(List.of(more));
    return at(shared, all.toArray(String[]::new));
  }
}
