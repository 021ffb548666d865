package io.coterie.cli.trust;

import io.coterie.cli.profile.RequesterKeyFile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Printing;
import io.coterie.trust.Member;
import io.coterie.trust.MemberEntry;
import io.coterie.trust.RootKey;
import io.coterie.trust.Roots;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code coterie trust}: makes, signs and shows the trust file. It needs no installation. */
@Command(
    name = "trust",
    addMethodSubcommands = false,
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    description =
        "Make, sign and show the trust file, which says whom members and clients believe.")
public final class TrustCommand {
  private static final Pattern RETIRED = Pattern.compile("[a-z0-9-]+=[1-9][0-9]{0,8}");

  /** Bytes of a member's entry: every field has a bound. */
  private static final int MAX_ENTRY = 4096;

  @Spec @Nullable CommandSpec spec;

  /** The root keys, as options. */
  static final class RootOptions {
    @Option(
        names = "--roots",
        arity = "1..*",
        paramLabel = "FILE",
        description = "PEM files of the public halves of all root keys.")
    List<Path> files = List.of();

    @Option(
        names = "--root-threshold",
        paramLabel = "M",
        description = "How many of the root keys must sign.")
    int threshold;

    Optional<Roots> roots() {
      if (files.isEmpty() && threshold == 0) {
        return Optional.empty();
      }
      if (files.isEmpty() || threshold == 0) {
        throw CliException.local("--roots and --root-threshold belong together: give both");
      }
      List<RootKey> keys = new ArrayList<>();
      for (Path file : files) {
        try {
          keys.add(new RootKey(RequesterArgument.publicKey(file)));
        } catch (IllegalArgumentException e) {
          throw CliException.local(file + ": " + e.getMessage());
        }
      }
      try {
        return Optional.of(new Roots(threshold, keys));
      } catch (IllegalArgumentException e) {
        throw CliException.local("--roots: " + e.getMessage());
      }
    }
  }

  /** The members and requesters that a version gets, as options. */
  static final class Additions {
    @Option(
        names = "--member",
        arity = "1..*",
        paramLabel = "ENTRY",
        description = "Files roster-entry.json of members, each from the member that wrote it.")
    List<Path> entries = List.of();

    @Option(
        names = "--requester",
        paramLabel = "REQUESTER",
        description = {
          "NAME=FILE[,FILE]...,may=RIGHT[,may=RIGHT]...,min-threshold=N,min-parties=N[,keys=GLOB]...",
          "FILE is a public key of the requester (PEM): give the present one and those that signed the"
              + " intents of keys that still exist. RIGHT lets the requester ask for more than"
              + " signatures: create, refresh, reshare or open; give sign to one that asks for"
              + " signatures alone. min-threshold and min-parties bound the keys that it creates or"
              + " reshares. GLOB matches the names of its keys; keys/* unless given. Let"
              + " min-threshold be more than the parties that may be corrupt at once."
        })
    List<String> requesters = List.of();

    @Option(
        names = "--corrupt",
        paramLabel = "N",
        description = {
          "How many parties of a key may lie about a request at once, for 'coterie cancel' to be"
              + " right all the same that nothing was signed; less than the threshold of each key."
              + " A new trust file has 1. NOT_SIGNED needs the receipts of as many more parties."
        })
    @Nullable Integer corrupt;

    List<Member> members() {
      return entries.stream().map(TrustCommand::entry).toList();
    }

    List<Trust.Requester> believed() {
      return requesters.stream().map(RequesterArgument::parse).toList();
    }
  }

  @Command(
      name = "new-root",
      mixinStandardHelpOptions = true,
      description = "Make a root key pair: FILE is the private key, FILE.pub goes to 'init'.")
  int newRoot(@Parameters(paramLabel = "FILE") Path file) {
    RequesterKeyFile.create(RequesterKeyFile.Algorithm.ED25519, file);
    Path publicFile = RequesterKeyFile.publicFile(file);
    Printing.out(spec)
        .printf(
            "private key %s%npublic key  %s%nfingerprint %s%n",
            file, publicFile, new RootKey(RequesterArgument.publicKey(publicFile)).fingerprint());
    return 0;
  }

  @Command(
      name = "init",
      mixinStandardHelpOptions = true,
      description = "Write version 1 of an installation's trust file, for the root keys to sign.")
  int init(
      @Option(
              names = "--installation",
              required = true,
              paramLabel = "NAME",
              description = "1 to 63 of [a-z0-9-]; no other installation has it.")
          String installation,
      @Mixin RootOptions roots,
      @Mixin Additions additions,
      @Option(names = "--out", required = true, paramLabel = "FILE") Path out) {
    Roots signers =
        roots
            .roots()
            .orElseThrow(() -> CliException.local("--roots and --root-threshold are missing"));
    return write(
        TrustChange.first(
            installation,
            additions.members(),
            additions.believed(),
            signers,
            Optional.ofNullable(additions.corrupt)),
        out);
  }

  @Command(
      name = "add",
      mixinStandardHelpOptions = true,
      description =
          "Write the version after FILE: with more members and requesters, or others of their"
              + " names, or with other root keys.")
  int add(
      @Parameters(paramLabel = "FILE", description = "The present trust file.") Path file,
      @Mixin Additions additions,
      @Mixin RootOptions roots,
      @Option(
              names = "--retire",
              paramLabel = "PARTY=EPOCH",
              description =
                  "A party with another key in its entry: with the old one it has signed for no"
                      + " epoch of a key that is later than EPOCH.")
          @Nullable List<String> retired,
      @Option(names = "--out", required = true, paramLabel = "FILE") Path out) {
    Map<String, Integer> replaced = epochs("--retire", retired);
    List<Member> members = additions.members();
    for (String party : replaced.keySet()) {
      if (members.stream().noneMatch(member -> member.name().equals(party))) {
        throw CliException.local(
            "--retire "
                + party
                + ": give its new entry with --member; 'trust retire' takes out a party that leaves");
      }
    }
    return write(
        new TrustChange(
                members,
                additions.believed(),
                replaced,
                Map.of(),
                Set.of(),
                Set.of(),
                roots.roots(),
                Optional.ofNullable(additions.corrupt))
            .after(verified(file)),
        out);
  }

  @Command(
      name = "retire",
      mixinStandardHelpOptions = true,
      description =
          "Write the version after FILE: without some members and requesters. Evidence keys of"
              + " parties that leave stay believed about old epochs.")
  int retire(
      @Parameters(paramLabel = "FILE", description = "The present trust file.") Path file,
      @Option(
              names = "--party",
              paramLabel = "PARTY=EPOCH",
              description =
                  "A party that leaves. It has signed for no epoch of a key that is later than"
                      + " EPOCH.")
          @Nullable List<String> parties,
      @Option(
              names = "--correct",
              paramLabel = "PARTY=EPOCH",
              description = "The right epoch of a party that was retired before.")
          @Nullable List<String> corrected,
      @Option(
              names = "--coordinator",
              paramLabel = "NAME",
              description = "A coordinator that leaves.")
          @Nullable List<String> coordinators,
      @Option(
              names = "--requester",
              paramLabel = "NAME",
              description =
                  "A requester whose keys clients believe no more, and whom no party obeys.")
          @Nullable List<String> requesters,
      @Option(names = "--out", required = true, paramLabel = "FILE") Path out) {
    return write(
        new TrustChange(
                List.of(),
                List.of(),
                epochs("--retire", parties),
                epochs("--correct", corrected),
                names(coordinators),
                names(requesters),
                Optional.empty(),
                Optional.empty())
            .after(verified(file)),
        out);
  }

  @Command(
      name = "sign",
      mixinStandardHelpOptions = true,
      description =
          "Add a root key's signature to FILE. Look at it with 'show' first: the key vouches for"
              + " everything in it.")
  int sign(
      @Parameters(paramLabel = "FILE") Path file,
      @Option(
              names = "--root-key",
              required = true,
              paramLabel = "KEY",
              description = "PEM file (PKCS#8) of the root key.")
          Path key,
      @Option(
              names = "--digest",
              paramLabel = "HEX",
              description =
                  "The digest that 'show' printed when you looked: nothing else is signed then,"
                      + " whoever could change FILE since.")
          @Nullable String digest) {
    TrustFile read = read(file);
    String found = HexFormat.of().formatHex(read.current().digest());
    if (digest != null && !digest.equalsIgnoreCase(found)) {
      throw CliException.local(
          file + " has the digest " + found + " now: look at it again with 'show'");
    }
    TrustFile signed;
    try {
      signed = read.signed(RequesterKeyFile.privateKey("root key", key));
    } catch (IllegalArgumentException e) {
      throw CliException.local("root key " + key + ": " + e.getMessage());
    }
    try {
      signed.write(file);
    } catch (IOException e) {
      throw CliException.local("cannot write " + file);
    }
    TrustPrinting.state(Printing.out(spec), signed);
    return 0;
  }

  @Command(
      name = "show",
      mixinStandardHelpOptions = true,
      description =
          "Print a trust file, or the entry of a member, with fingerprints to read aloud; exit code"
              + " 1 if signatures are missing.")
  int show(
      @Parameters(paramLabel = "FILE") Path file,
      @Option(
              names = "--since",
              paramLabel = "FILE",
              description =
                  "An earlier version of the trust file: print only what changes, - what goes and +"
                      + " what comes; exit code 1 also if the one does not follow the other.")
          @Nullable Path since) {
    PrintWriter out = Printing.out(spec);
    if (since != null) {
      TrustFile before = read(since);
      TrustFile now = read(file);
      TrustPrinting.changes(out, before, now);
      return TrustPrinting.isComplete(now) && TrustPrinting.problem(before, now).isEmpty()
          ? 0
          : ExitCode.NO;
    }
    Member entry;
    try {
      entry = parsedEntry(file);
    } catch (IllegalArgumentException e) {
      TrustFile read = read(file);
      TrustPrinting.file(out, read);
      return TrustPrinting.isComplete(read) ? 0 : ExitCode.NO;
    }
    out.print(TrustPrinting.member(entry));
    return 0;
  }

  private int write(TrustFile file, Path out) {
    if (Files.exists(out)) {
      throw CliException.local(out + " exists already: choose another name");
    }
    try {
      file.write(out);
    } catch (IOException e) {
      throw CliException.local("cannot write " + out);
    } catch (IllegalArgumentException e) {
      throw CliException.local(CliException.firstLine(e.getMessage()));
    }
    TrustPrinting.state(Printing.out(spec), file);
    return 0;
  }

  private static TrustFile read(Path file) {
    try {
      return TrustFile.read(file);
    } catch (IOException e) {
      throw CliException.local(file + " cannot be read");
    } catch (IllegalArgumentException e) {
      throw CliException.local(
          file + " is no trust file: " + CliException.firstLine(e.getMessage()));
    }
  }

  private static SignedTrust verified(Path file) {
    try {
      return read(file).verified();
    } catch (IllegalArgumentException e) {
      throw CliException.local(file + ": " + CliException.firstLine(e.getMessage()));
    }
  }

  private static Member entry(Path file) {
    try {
      return parsedEntry(file);
    } catch (IllegalArgumentException e) {
      throw CliException.local(
          file + " is not the entry of one member: " + CliException.firstLine(e.getMessage()));
    }
  }

  private static Member parsedEntry(Path file) {
    try {
      if (Files.size(file) > MAX_ENTRY) {
        throw new IllegalArgumentException("it is above " + MAX_ENTRY + " bytes");
      }
      return MemberEntry.parse(Files.readAllBytes(file));
    } catch (IOException e) {
      throw CliException.local(file + " cannot be read");
    }
  }

  private static Map<String, Integer> epochs(String option, @Nullable List<String> arguments) {
    Map<String, Integer> epochs = new LinkedHashMap<>();
    for (String argument : arguments == null ? List.<String>of() : arguments) {
      if (!RETIRED.matcher(argument).matches()) {
        throw CliException.local(option + " " + argument + " is not PARTY=EPOCH");
      }
      int equals = argument.indexOf('=');
      String name = argument.substring(0, equals);
      if (epochs.put(name, Integer.parseInt(argument.substring(equals + 1))) != null) {
        throw CliException.local(option + " names " + name + " twice");
      }
    }
    return epochs;
  }

  private static Set<String> names(@Nullable List<String> names) {
    return names == null ? Set.of() : Set.copyOf(names);
  }
}
