package io.coterie.acceptance.demo;

import io.coterie.acceptance.cluster.Cluster;
import io.coterie.cli.Coterie;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;

/** A withdrawal that anonymous approvers release, and an auditor who names one of them. */
final class Approvers {
  private static final List<String> MEMBERS = List.of("ann", "ben", "cleo");
  private static final String WITHDRAWAL = "withdrawal 4712: 9.5 BTC to the cold wallet";

  private final Page page;
  private final Cluster cluster;
  private final Path folder;
  private final Path passphrase;

  /** The end of a command. */
  private record Ended(int exitCode, String out, String err) {
    String value(String row) {
      return out.lines()
          .filter(line -> line.startsWith(row + " "))
          .map(line -> line.substring(row.length()).strip())
          .findFirst()
          .orElseThrow(() -> new IllegalStateException("no " + row + " in " + out));
    }
  }

  Approvers(Page page, Cluster cluster) {
    this.page = page;
    this.cluster = cluster;
    try {
      this.folder = Files.createDirectories(cluster.folder().resolve("approvers"));
      this.passphrase =
          Files.writeString(folder.resolve("passphrase"), "a passphrase of the demo\n");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Whether one approval was refused, two released the signature, and the right one was named. */
  boolean release(String key) {
    page.title("A withdrawal that two of three anonymous approvers release");
    String parties = String.join(",", cluster.partyNames());
    done(
        Cluster.WALLET,
        List.of("group", "create", Cluster.APPROVERS, "--yes"),
        List.of("--issuers", parties, "--issuer-threshold", "2"),
        List.of("--openers", parties, "--opener-threshold", "2"));
    MEMBERS.forEach(this::join);
    page.row("group", Cluster.APPROVERS + ": " + String.join(", ", MEMBERS));
    Path intent = folder.resolve("withdrawal.intent");
    String fingerprint = done(Cluster.WALLET, List.of("keys", "get", key)).value("fingerprint");
    String digest =
        done(Cluster.WALLET, List.of("group", "show", Cluster.APPROVERS)).value("digest");
    done(
        Cluster.TREASURY,
        List.of("intent", "sign", key, "--message", WITHDRAWAL, "--yes"),
        List.of("--fingerprint", fingerprint, "--out", intent.toString()),
        List.of("--approvers", Cluster.APPROVERS, "--approvers-epoch", "1"),
        List.of("--approvers-digest", digest));
    page.row("asked for", WITHDRAWAL);
    String ann = approval("ann", intent);
    String cleo = approval("cleo", intent);
    Ended one = ended(Cluster.TREASURY, sending(intent, ann));
    boolean refused = one.exitCode() != 0 && one.err().contains("APPROVALS_MISSING");
    page.row("one approves", refused ? "every signer refuses" : "NOT REFUSED: " + one.err());
    Ended two = done(Cluster.TREASURY, sending(intent, ann, cleo));
    page.row("two approve", two.value("state") + " " + two.value("signature"));
    String named =
        done(
                Cluster.WALLET,
                List.of("group", "open", Cluster.APPROVERS, intent.toString(), cleo, "--yes"))
            .value("identity");
    boolean right = named.equals(identity("cleo"));
    page.row("the auditor", "opens one: " + (right ? "cleo, " : "NOT CLEO: ") + named);
    return refused && right;
  }

  private void join(String name) {
    Path ticket = folder.resolve(name + ".ticket");
    done(
        Cluster.WALLET,
        List.of("group", "ticket", Cluster.APPROVERS, "--yes"),
        List.of("--identity", identity(name), "--out", ticket.toString()));
    done(Cluster.WALLET, List.of("group", "join", ticket.toString()), member(name));
  }

  private String identity(String name) {
    List<String> line = new ArrayList<>(List.of("group", "identity"));
    line.addAll(member(name));
    return ended(line).out().strip();
  }

  private String approval(String name, Path intent) {
    Path approval = folder.resolve(name + ".approval");
    done(
        Cluster.WALLET,
        List.of("group", "approve", intent.toString(), "--yes", "--out", approval.toString()),
        member(name));
    return approval.toString();
  }

  private List<String> member(String name) {
    return List.of(
        "--member", folder.resolve(name).toString(), "--passphrase-file", passphrase.toString());
  }

  private static List<String> sending(Path intent, String... approvals) {
    List<String> line = new ArrayList<>(List.of("sign", "--intent", intent.toString(), "--yes"));
    for (String approval : approvals) {
      line.addAll(List.of("--approval", approval));
    }
    return line;
  }

  @SafeVarargs
  private Ended done(String requester, List<String>... parts) {
    Ended ended = ended(requester, parts);
    if (ended.exitCode() != 0) {
      throw new IllegalStateException(parts[0] + " failed: " + ended.err());
    }
    return ended;
  }

  @SafeVarargs
  private Ended ended(String requester, List<String>... parts) {
    List<String> line = new ArrayList<>();
    for (List<String> part : parts) {
      line.addAll(part);
    }
    line.addAll(List.of("--profile", cluster.writeProfile(requester).toString()));
    return ended(line);
  }

  private static Ended ended(List<String> line) {
    CommandLine command = Coterie.commandLine();
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    command.setOut(new PrintWriter(out, true));
    command.setErr(new PrintWriter(err, true));
    int exitCode = command.execute(line.toArray(String[]::new));
    return new Ended(exitCode, out.toString(), err.toString());
  }
}
