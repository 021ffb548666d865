package io.coterie.cli.group;

import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.protobuf.ByteString;
import io.coterie.cli.intent.Approval;
import io.coterie.cli.intent.ApprovalFile;
import io.coterie.cli.intent.IntentFile;
import io.coterie.cli.intent.IntentOptions;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.cli.terminal.Printing;
import io.coterie.cli.terminal.Spelling;
import io.coterie.member.Approvals;
import io.coterie.member.AttestedGroups;
import io.coterie.member.Joining;
import io.coterie.member.MemberException;
import io.coterie.member.MemberFolder;
import io.coterie.member.Membership;
import io.coterie.member.OpenedApproval;
import io.coterie.member.Ticket;
import io.coterie.mpc.NativeMpcCore;
import io.coterie.platform.intent.ApprovedRequest;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.opening.ShareSeal;
import io.coterie.proto.custody.v1.CreateGroupRequest;
import io.coterie.proto.custody.v1.Group;
import io.coterie.proto.custody.v1.GroupIntent;
import io.coterie.proto.custody.v1.GroupServiceGrpc;
import io.coterie.proto.custody.v1.ListGroupsRequest;
import io.coterie.proto.custody.v1.ListGroupsResponse;
import io.coterie.proto.custody.v1.OpeningIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.TicketIntent;
import io.coterie.trust.Member;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code coterie group}. */
@Command(
    name = "group",
    addMethodSubcommands = false,
    aliases = "groups",
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    description = "Have groups of anonymous approvers made, and look them up.")
public final class GroupCommand {
  private static final int PAGE = 50;

  /** A coordinator that lies could go on for ever. */
  private static final int MAX_GROUPS = 100_000;

  private static final String ROW = "%-24s %-7s %-13s %-13s %s%n";

  @Spec @Nullable CommandSpec spec;

  @Command(
      name = "create",
      mixinStandardHelpOptions = true,
      description =
          "Have an epoch of a group made and wait for it. A later epoch takes the place of an earlier"
              + " one, whose members are not members of it.")
  int create(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin IntentOptions common,
      @Mixin Approval approval,
      @Parameters(paramLabel = "GROUP", description = "1 to 63 of [a-z0-9-], a letter first.")
          String group,
      @Option(
              names = "--issuers",
              required = true,
              split = ",",
              paramLabel = "NAME",
              description = "Parties that admit members, in the roster's spelling.")
          List<String> issuers,
      @Option(
              names = "--issuer-threshold",
              required = true,
              description = "Parties needed to admit a member, at least 2.")
          int issuerThreshold,
      @Option(
              names = "--openers",
              required = true,
              split = ",",
              paramLabel = "NAME",
              description = "Parties that can name who made an approval.")
          List<String> openers,
      @Option(
              names = "--opener-threshold",
              required = true,
              description = "Parties needed to name somebody.")
          int openerThreshold,
      @Option(
              names = "--epoch",
              defaultValue = "1",
              description = "Above every epoch of the group so far; default ${DEFAULT-VALUE}.")
          int epoch) {
    GroupIntent intent =
        GroupIntent.newBuilder()
            .setRequestId(common.requestId())
            .setGroup(Spelling.groupName(group))
            .setEpoch(epoch)
            .setIssuerThreshold(issuerThreshold)
            .addAllIssuers(issuers)
            .setOpenerThreshold(openerThreshold)
            .addAllOpeners(openers)
            .setInstallation(profile.trust().roster().installation())
            .setPurpose(common.purpose())
            .setNotAfter(common.notAfter())
            .build();
    IntentSigner signer = profile.requesterKey();
    approval.require(spec, profile.requester(), intent);
    SignedIntent signed = signer.sign(intent);
    try (Profile.Connection connection = profile.connect()) {
      AttestedGroups groups = new AttestedGroups(profile.trust());
      Printing.err(spec).println("request id " + intent.getRequestId());
      Group answer =
          stub(profile, connection)
              .createGroup(CreateGroupRequest.newBuilder().setSignedIntent(signed).build());
      AttestedGroups.Believed made = groups.require(intent.getGroup(), epoch, answer);
      if (!made.trusted().intentDigest().equals(IntentVerifier.digest(signed.getPayload()))) {
        throw AttestedGroups.refused(intent.getGroup(), "was made by another intent than this one");
      }
      show(output, made);
      return 0;
    }
  }

  @Command(
      name = "show",
      aliases = "get",
      mixinStandardHelpOptions = true,
      description = "Show an epoch of a group, if its parties have signed it.")
  int show(
      @Mixin Profile profile,
      @Mixin Output output,
      @Parameters(paramLabel = "GROUP") String group,
      @Option(names = "--epoch", defaultValue = "1", description = "Default ${DEFAULT-VALUE}.")
          int epoch) {
    String name = Spelling.groupName(group);
    try (Profile.Connection connection = profile.connect()) {
      show(
          output,
          new AttestedGroups(profile.trust())
              .fetch(connection.channel(), name, epoch, profile.timeout()));
      return 0;
    }
  }

  @Command(
      name = "list",
      mixinStandardHelpOptions = true,
      description = "Show all groups; exit code 3 if one of them is not signed by its parties.")
  int list(@Mixin Profile profile, @Mixin Output output) {
    ListGroupsResponse.Builder believed = ListGroupsResponse.newBuilder();
    boolean refused = false;
    int count = 0;
    try (Profile.Connection connection = profile.connect()) {
      AttestedGroups groups = new AttestedGroups(profile.trust());
      row(output, "GROUP", "EPOCH", "STATE", "ISSUERS", "OPENERS");
      String page = "";
      do {
        ListGroupsResponse next =
            stub(profile, connection)
                .listGroups(
                    ListGroupsRequest.newBuilder().setPageSize(PAGE).setPageToken(page).build());
        count += next.getGroupsCount();
        if (count > MAX_GROUPS
            || (next.getGroupsCount() == 0 && !next.getNextPageToken().isEmpty())) {
          throw AttestedGroups.refused("", "is in a list that has no end");
        }
        for (Group answer : next.getGroupsList()) {
          refused |= !listed(groups, output, answer, believed);
        }
        page = next.getNextPageToken();
      } while (!page.isEmpty());
    }
    output.json(out(), believed);
    out().flush();
    return refused ? ExitCode.REFUSED : 0;
  }

  /** Prints one of a list; false if it is not believed. */
  private boolean listed(
      AttestedGroups groups, Output output, Group answer, ListGroupsResponse.Builder believed) {
    String name = answer.getGroup();
    boolean named = IntentVerifier.isGroupName(name);
    if (named && answer.getState() != Group.State.ACTIVE) {
      // Only the coordinator says so; nothing that parties could have signed is shown.
      row(output, name, answer.getEpoch(), answer.getState().name(), "", "");
      believed.addGroups(
          Group.newBuilder()
              .setGroup(name)
              .setEpoch(answer.getEpoch())
              .setStateValue(answer.getStateValue()));
      return true;
    }
    try {
      AttestedGroups.Believed group = groups.require(name, answer.getEpoch(), answer);
      row(
          output,
          name,
          answer.getEpoch(),
          answer.getState().name(),
          issuers(group),
          openers(group));
      believed.addGroups(answer);
      return true;
    } catch (MemberException.NotBelieved e) {
      row(output, named ? name : "?", "", "NOT ATTESTED", "", "");
      Printing.err(spec).println(output.failure(CliException.of(e)));
      return false;
    }
  }

  @Command(
      name = "identity",
      mixinStandardHelpOptions = true,
      description =
          "Print the key that tickets of a member are for; makes the member's folder if there is"
              + " none.")
  int identity(@Mixin MemberOptions member) {
    try (MemberFolder folder = member.open()) {
      out().println(HexFormat.of().formatHex(folder.identity().toByteArray()));
      out().flush();
      return 0;
    }
  }

  @Command(
      name = "ticket",
      mixinStandardHelpOptions = true,
      description =
          "Sign a ticket: the holder of the identity may become a member of an epoch of a group.")
  int ticket(
      @Mixin Profile profile,
      @Mixin IntentOptions common,
      @Mixin Approval approval,
      @Parameters(paramLabel = "GROUP") String group,
      @Option(
              names = "--identity",
              required = true,
              paramLabel = "HEX",
              description = "As 'coterie group identity' prints it at the member's.")
          String identity,
      @Option(names = "--epoch", defaultValue = "1", description = "Default ${DEFAULT-VALUE}.")
          int epoch,
      @Option(names = "--out", required = true, paramLabel = "FILE") Path out) {
    TicketIntent intent =
        TicketIntent.newBuilder()
            .setRequestId(common.requestId())
            .setGroup(Spelling.groupName(group))
            .setEpoch(epoch)
            .setIdentity(ByteString.copyFrom(Spelling.parseHex("--identity", identity)))
            .setInstallation(profile.trust().roster().installation())
            .setPurpose(common.purpose())
            .setNotAfter(common.notAfter())
            .build();
    if (intent.getIdentity().size() != IntentVerifier.IDENTITY_BYTES) {
      throw CliException.local("--identity does not have 32 bytes");
    }
    IntentSigner signer = profile.requesterKey();
    approval.require(spec, profile.requester(), intent);
    try {
      Files.write(out, signer.sign(intent).toByteArray());
    } catch (IOException e) {
      throw CliException.local("cannot write " + out);
    }
    out().printf("request id %s%nticket     %s%n", intent.getRequestId(), out);
    out().flush();
    return 0;
  }

  @Command(
      name = "join",
      mixinStandardHelpOptions = true,
      description =
          "Become a member with a ticket. A command that was interrupted goes on where it was; a"
              + " ticket pays for 8 runs.")
  int join(
      @Mixin Profile profile,
      @Mixin Output output,
      @Mixin MemberOptions member,
      @Parameters(paramLabel = "TICKET", description = "As 'coterie group ticket' writes it.")
          Path ticket)
      throws InterruptedException {
    Ticket read = MemberOptions.ticket(ticket);
    try (MemberFolder folder = member.open();
        Profile.Connection connection = profile.connect()) {
      if (!read.isFor(folder)) {
        throw CliException.local(ticket + " is for another identity than that of this folder");
      }
      AttestedGroups.Believed group =
          new AttestedGroups(profile.trust())
              .fetch(connection.channel(), read.group(), read.epoch(), profile.timeout());
      Membership joined =
          new Joining(folder, group, read, connection.channel(), profile.timeout(), _ -> {}).join();
      if (!output.json(out(), group.answer())) {
        Output.row(out(), "member of", joined.group());
        Output.row(out(), "epoch", Integer.toString(joined.epoch()));
        Output.row(out(), "point", HexFormat.of().formatHex(joined.point().toByteArray()));
        out().flush();
      }
      return 0;
    }
  }

  @Command(
      name = "approve",
      mixinStandardHelpOptions = true,
      description =
          "Approve a signed intent as a member of a group, or reject it. The approval says that one of"
              + " them does, and names nobody; nothing is sent.")
  int approve(
      @Mixin Profile profile,
      @Mixin MemberOptions member,
      @Mixin Approval approval,
      @Parameters(paramLabel = "INTENT", description = "As 'coterie intent sign' writes it.")
          Path intent,
      @Option(names = "--reject", description = "Say that it must not be done.") boolean reject,
      @Option(names = "--out", required = true, paramLabel = "FILE") Path out) {
    VerifiedIntent.Signing signing =
        IntentFile.verified(profile.trust(), intent, IntentFile.read(intent));
    try (MemberFolder folder = member.open()) {
      Printing.err(spec).println(reject ? "to be rejected:" : "to be approved:");
      approval.require(spec, signing, ByteString.EMPTY);
      ByteString made = Approvals.approve(folder, profile.trust(), signing, decision(reject));
      Files.write(out, made.toByteArray());
    } catch (IOException e) {
      throw CliException.local("cannot write " + out);
    }
    Output.row(out(), "approval", out.toString());
    out().flush();
    return 0;
  }

  @Command(
      name = "count",
      mixinStandardHelpOptions = true,
      description =
          "Count the members of a group that approve a signed intent; exit code 1 if an approval does"
              + " not hold, or they are fewer than needed.")
  int count(
      @Mixin Profile profile,
      @Parameters(index = "0", paramLabel = "GROUP") String group,
      @Parameters(index = "1", paramLabel = "INTENT") Path intent,
      @Parameters(index = "2..*", arity = "1..*", paramLabel = "APPROVAL") List<Path> approvals,
      @Option(names = "--needed", required = true, description = "As many have to approve.")
          int needed,
      @Option(names = "--rejections", description = "Count those that reject it.")
          boolean rejections,
      @Option(names = "--epoch", defaultValue = "1", description = "Default ${DEFAULT-VALUE}.")
          int epoch) {
    VerifiedIntent.Signing signing =
        IntentFile.verified(profile.trust(), intent, IntentFile.read(intent));
    List<ByteString> read = approvals.stream().map(ApprovalFile::read).toList();
    String name = Spelling.groupName(group);
    try (Profile.Connection connection = profile.connect()) {
      AttestedGroups.Believed believed =
          new AttestedGroups(profile.trust())
              .fetch(connection.channel(), name, epoch, profile.timeout());
      int counted = Approvals.count(believed, signing, decision(rejections), read, needed);
      Output.row(out(), rejections ? "rejections" : "approvals", Integer.toString(counted));
      out().flush();
      return 0;
    }
  }

  @Command(
      name = "open",
      mixinStandardHelpOptions = true,
      description =
          "Have enough openers name the member that made an approval. The coordinator does not learn"
              + " it.")
  int open(
      @Mixin Profile profile,
      @Mixin IntentOptions common,
      @Mixin Approval consent,
      @Parameters(index = "0", paramLabel = "GROUP") String group,
      @Parameters(index = "1", paramLabel = "INTENT") Path intent,
      @Parameters(index = "2", paramLabel = "APPROVAL") Path approval,
      @Option(names = "--rejection", description = "The approval says that it must not be done.")
          boolean rejection,
      @Option(names = "--epoch", defaultValue = "1", description = "Default ${DEFAULT-VALUE}.")
          int epoch) {
    VerifiedIntent.Signing signing =
        IntentFile.verified(profile.trust(), intent, IntentFile.read(intent));
    ByteString made = ApprovalFile.read(approval);
    ShareSeal.Recipient recipient = new ShareSeal.Recipient(new SecureRandom());
    OpeningIntent opening =
        OpeningIntent.newBuilder()
            .setRequestId(common.requestId())
            .setGroup(Spelling.groupName(group))
            .setEpoch(epoch)
            .setRequest(ApprovedRequest.digest(signing))
            .setRejection(rejection)
            .setApproval(made)
            .setRecipient(recipient.publicKey())
            .setInstallation(profile.trust().roster().installation())
            .setPurpose(common.purpose())
            .setNotAfter(common.notAfter())
            .build();
    IntentSigner signer = profile.requesterKey();
    consent.require(spec, profile.requester(), opening);
    try (Profile.Connection connection = profile.connect()) {
      AttestedGroups.Believed believed =
          new AttestedGroups(profile.trust())
              .fetch(connection.channel(), opening.getGroup(), epoch, profile.timeout());
      VerifiedIntent.Ticket member =
          new OpenedApproval(
                  NativeMpcCore.load(),
                  believed.trusted(),
                  believed.inCore(),
                  profile.trust(),
                  () -> stub(profile, connection))
              .open(
                  signer.sign(opening),
                  Approvals.request(signing, decision(rejection)),
                  made,
                  recipient);
      HexFormat hex = HexFormat.of();
      Output.row(out(), "identity", hex.formatHex(member.identity().toByteArray()));
      Output.row(out(), "ticket", hex.formatHex(member.digest().toByteArray()));
      Output.row(out(), "of", member.requester() + ": " + member.purpose());
      out().flush();
      return 0;
    }
  }

  private static Approvals.Decision decision(boolean rejection) {
    return rejection ? Approvals.Decision.REJECT : Approvals.Decision.APPROVE;
  }

  private void row(Output output, Object... columns) {
    if (output.isText()) {
      out().print(String.format(ROW, columns).stripTrailing() + System.lineSeparator());
    }
  }

  private void show(Output output, AttestedGroups.Believed group) {
    if (output.json(out(), group.answer())) {
      return;
    }
    Output.row(out(), "name", group.trusted().group());
    Output.row(out(), "epoch", Integer.toString(group.trusted().epoch()));
    Output.row(
        out(), "issuers", issuers(group) + ": " + names(group.trusted().members().issuers()));
    Output.row(
        out(), "openers", openers(group) + ": " + names(group.trusted().members().openers()));
    Output.row(out(), "digest", HexFormat.of().formatHex(group.digest().toByteArray()));
    out().flush();
  }

  private static String issuers(AttestedGroups.Believed group) {
    var members = group.trusted().members();
    return members.issuerThreshold() + " of " + members.issuers().size();
  }

  private static String openers(AttestedGroups.Believed group) {
    var members = group.trusted().members();
    return members.openerThreshold() + " of " + members.openers().size();
  }

  private static String names(List<Member> members) {
    return members.stream().map(Member::name).collect(Collectors.joining(", "));
  }

  private static GroupServiceGrpc.GroupServiceBlockingStub stub(
      Profile profile, Profile.Connection connection) {
    return GroupServiceGrpc.newBlockingStub(connection.channel())
        .withDeadlineAfter(profile.timeout().toSeconds(), SECONDS);
  }

  private PrintWriter out() {
    return Printing.out(spec);
  }
}
