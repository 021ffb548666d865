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
import io.coterie.trust.TrustFile;
import io.coterie.trust.TrustVersion;
import java.io.PrintWriter;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** The trust file as people read it. */
final class TrustPrinting {
  private TrustPrinting() {}

  /** Prints everything that the root keys vouch for, and which of them have signed. */
  static void file(PrintWriter out, TrustFile file) {
    Trust trust = file.current().content().trust();
    Roster roster = trust.roster();
    Output.row(out, "installation", roster.installation());
    Output.row(out, "version", Long.toString(roster.version()));
    Output.row(out, "digest", HexFormat.of().formatHex(file.current().digest()));
    Output.row(out, "previous", HexFormat.of().formatHex(file.current().content().previous()));
    List<Roots> signers = file.signers();
    roots(out, "roots", signers.getLast(), file.current());
    if (signers.size() > 1) {
      roots(out, "roots before", signers.getFirst(), file.current());
    }
    roster.members().forEach(member -> member(out, member));
    roster.former().forEach(party -> former(out, party));
    trust.requesters().forEach(requester -> requester(out, requester));
    out.println(signatures(file));
  }

  private static void roots(PrintWriter out, String label, Roots roots, TrustVersion version) {
    Output.row(
        out,
        label,
        "%d of %d: %s".formatted(roots.threshold(), roots.keys().size(), roots.fingerprint()));
    for (RootKey key : roots.keys()) {
      out.printf("  root key %s  %s%n", key.fingerprint(), state(key, version));
    }
  }

  private static String state(RootKey key, TrustVersion version) {
    return version.signatures().stream()
        .filter(signature -> signature.key().equals(key))
        .findFirst()
        .map(signature -> version.isValid(signature) ? "signed" : "NOT VALID")
        .orElse("not signed");
  }

  /** Prints a member's entry with its fingerprint. */
  static void member(PrintWriter out, Member member) {
    String role =
        switch (member.role()) {
          case PARTY -> "party " + member.partyId();
          case COORDINATOR -> "coordinator";
        };
    out.printf(
        "member %s (%s, %s)%n  entry    %s%n  evidence %s%n",
        member.name(),
        role,
        Output.oneLine(member.region()),
        MemberEntry.fingerprint(member),
        Fingerprint.ofEvidenceKey(member.evidenceKey()));
  }

  private static void former(PrintWriter out, FormerParty party) {
    out.printf(
        "former %s (party %d), believed up to epoch %d%n  evidence %s%n",
        party.name(),
        party.partyId(),
        party.lastEpoch(),
        Fingerprint.ofEvidenceKey(party.evidenceKey()));
  }

  private static void requester(PrintWriter out, Trust.Requester requester) {
    String rights =
        requester.rights().stream()
            .sorted()
            .map(right -> right.name().toLowerCase(Locale.ROOT))
            .collect(Collectors.joining(", "));
    String keys = requester.keys().stream().map(Glob::pattern).collect(Collectors.joining(", "));
    out.printf(
        "requester %s may %s: %s; at least %d of %d parties%n",
        Output.oneLine(requester.name()),
        rights,
        Output.oneLine(keys),
        requester.minThreshold(),
        requester.minParties());
    requester
        .publicKeys()
        .forEach(key -> out.printf("  key      %s%n", Fingerprint.ofRequesterKey(key)));
  }

  static boolean isComplete(TrustFile file) {
    try {
      file.verified();
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  /** One line that says whether members and clients accept the file, and if not, why. */
  static String signatures(TrustFile file) {
    try {
      file.verified();
      return "version %d is signed".formatted(file.current().content().version());
    } catch (IllegalArgumentException e) {
      return "NOT SIGNED: " + Output.oneLine(String.valueOf(e.getMessage()));
    }
  }
}
