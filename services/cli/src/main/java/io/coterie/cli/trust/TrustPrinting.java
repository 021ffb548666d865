package io.coterie.cli.trust;

import io.coterie.cli.terminal.Output;
import io.coterie.trust.Fingerprint;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Glob;
import io.coterie.trust.Member;
import io.coterie.trust.MemberEntry;
import io.coterie.trust.RootKey;
import io.coterie.trust.Roots;
import io.coterie.trust.Roster;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustContent;
import io.coterie.trust.TrustFile;
import io.coterie.trust.TrustVersion;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** The trust file as people read it. */
final class TrustPrinting {
  private TrustPrinting() {}

  /** Prints everything that the root keys vouch for, and which of them have signed. */
  static void file(PrintWriter out, TrustFile file) {
    TrustContent content = file.current().content();
    Output.row(out, "installation", content.installation());
    Output.row(out, "version", Long.toString(content.version()));
    Output.row(out, "digest", digest(file.current()));
    Output.row(out, "previous", HexFormat.of().formatHex(content.previous()));
    List<Roots> signers = file.signers();
    roots(out, "roots", signers.getLast(), file.current());
    if (signers.size() > 1) {
      roots(out, "roots before", signers.getFirst(), file.current());
    }
    Output.row(out, "corrupt", corrupt(content.trust()));
    entries(content.trust()).values().forEach(out::print);
    state(out, file);
  }

  /**
   * Prints what one version changes of an earlier one: an entry that goes with {@code -}, one that
   * comes with {@code +}, one that is another with both.
   */
  static void changes(PrintWriter out, TrustFile before, TrustFile now) {
    Output.row(out, "from version", number(before));
    Output.row(out, "to version", number(now));
    difference(out, everything(before), everything(now));
    problem(before, now).ifPresent(out::println);
    state(out, now);
  }

  private static String number(TrustFile file) {
    return file.current().content().version() + ", digest " + digest(file.current());
  }

  private static void difference(
      PrintWriter out, Map<String, String> old, Map<String, String> now) {
    old.forEach(
        (name, text) -> {
          if (!text.equals(now.get(name))) {
            out.print(marked("- ", text));
            if (now.containsKey(name)) {
              out.print(marked("+ ", now.get(name)));
            }
          }
        });
    now.forEach(
        (name, text) -> {
          if (!old.containsKey(name)) {
            out.print(marked("+ ", text));
          }
        });
  }

  private static String marked(String mark, String text) {
    return text.lines().map(line -> mark + line + "\n").collect(Collectors.joining());
  }

  /**
   * Why a version is no successor of another one, as far as that can be told without signatures.
   */
  static Optional<String> problem(TrustFile before, TrustFile now) {
    TrustContent old = before.current().content();
    TrustContent content = now.current().content();
    if (content.version() == old.version() + 1
        && content.installation().equals(old.installation())
        && Arrays.equals(content.previous(), before.current().digest())) {
      return Optional.empty();
    }
    try {
      now.verified().requireNotBefore(before.verified());
      return Optional.empty();
    } catch (IllegalArgumentException e) {
      return Optional.of("NO SUCCESSOR: " + Output.oneLine(String.valueOf(e.getMessage())));
    }
  }

  private static Map<String, String> everything(TrustFile file) {
    TrustContent content = file.current().content();
    Map<String, String> all = new LinkedHashMap<>();
    all.put("installation", "installation " + content.installation() + "\n");
    Roots roots = content.roots();
    StringBuilder keys = new StringBuilder("roots " + summary(roots) + "\n");
    roots.keys().forEach(key -> keys.append("  root key %s%n".formatted(key.fingerprint())));
    all.put("roots", keys.toString());
    all.put("corrupt", "corrupt " + corrupt(content.trust()) + "\n");
    all.putAll(entries(content.trust()));
    return all;
  }

  private static String corrupt(Trust trust) {
    return trust.corrupt() + " of a key's parties may lie about a request at once";
  }

  /** The entries of members, former parties and requesters, by what identifies them. */
  private static Map<String, String> entries(Trust trust) {
    Roster roster = trust.roster();
    Map<String, String> entries = new LinkedHashMap<>();
    roster.members().forEach(each -> entries.put("member " + each.name(), member(each)));
    roster
        .former()
        .forEach(
            each ->
                // A party can have left several evidence keys behind, and one key twice.
                entries.merge(
                    "former %s %s"
                        .formatted(each.name(), Fingerprint.ofEvidenceKey(each.evidenceKey())),
                    former(each),
                    String::concat));
    trust.requesters().forEach(each -> entries.put("requester " + each.name(), requester(each)));
    return entries;
  }

  private static void roots(PrintWriter out, String label, Roots roots, TrustVersion version) {
    Output.row(out, label, summary(roots));
    for (RootKey key : roots.keys()) {
      out.printf("  root key %s  %s%n", key.fingerprint(), state(key, version));
    }
  }

  private static String summary(Roots roots) {
    return "%d of %d: %s".formatted(roots.threshold(), roots.keys().size(), roots.fingerprint());
  }

  private static String state(RootKey key, TrustVersion version) {
    return version.signatures().stream()
        .filter(signature -> signature.key().equals(key))
        .findFirst()
        .map(signature -> version.isValid(signature) ? "signed" : "NOT VALID")
        .orElse("not signed");
  }

  /** A member's entry with its fingerprint. */
  static String member(Member member) {
    String role =
        switch (member.role()) {
          case PARTY -> "party " + member.partyId();
          case COORDINATOR -> "coordinator";
        };
    return "member %s (%s, %s)%n  entry    %s%n  evidence %s%n"
        .formatted(
            member.name(),
            role,
            Output.oneLine(member.region()),
            MemberEntry.fingerprint(member),
            Fingerprint.ofEvidenceKey(member.evidenceKey()));
  }

  private static String former(FormerParty party) {
    return "former %s (party %d), believed up to epoch %d%n  evidence %s%n"
        .formatted(
            party.name(),
            party.partyId(),
            party.lastEpoch(),
            Fingerprint.ofEvidenceKey(party.evidenceKey()));
  }

  private static String requester(Trust.Requester requester) {
    String rights =
        requester.rights().stream()
            .sorted()
            .map(right -> right.name().toLowerCase(Locale.ROOT))
            .collect(Collectors.joining(", "));
    String keys = requester.keys().stream().map(Glob::pattern).collect(Collectors.joining(", "));
    // Parties obey the first one alone, so their order says whom.
    StringBuilder publicKeys = new StringBuilder();
    for (byte[] key : requester.publicKeys()) {
      publicKeys.append(
          "  %-8s %s%n"
              .formatted(publicKeys.isEmpty() ? "key" : "former", Fingerprint.ofRequesterKey(key)));
    }
    String title =
        rights.isEmpty()
            ? "requester %s may sign alone: %s%n".formatted(requester.name(), keys)
            : "requester %s may %s: %s; at least %d of %d parties%n"
                .formatted(
                    requester.name(),
                    rights,
                    keys,
                    requester.minThreshold(),
                    requester.minParties());
    return title + publicKeys;
  }

  static boolean isComplete(TrustFile file) {
    try {
      file.verified();
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /**
   * Prints in one line whether members and clients accept the file, and if not, why; and before it
   * what owners should know about their number.
   */
  static void state(PrintWriter out, TrustFile file) {
    Roots roots = file.current().content().roots();
    if (!roots.isMajority()) {
      out.printf(
          "WARNING: %d of %d root keys are not more than half: owners who do not know of each other"
              + " can sign two next versions, and members that took one refuse the other for ever."
              + " Give the next version a --root-threshold of %d or more.%n",
          roots.threshold(), roots.keys().size(), roots.keys().size() / 2 + 1);
    }
    out.println(signatures(file));
  }

  private static String signatures(TrustFile file) {
    try {
      file.verified();
      return "version %d is signed".formatted(file.current().content().version());
    } catch (IllegalArgumentException e) {
      return "NOT SIGNED: " + Output.oneLine(String.valueOf(e.getMessage()));
    }
  }

  private static String digest(TrustVersion version) {
    return HexFormat.of().formatHex(version.digest());
  }
}
