package io.coterie.cli.trust;

import io.coterie.cli.terminal.CliException;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Member;
import io.coterie.trust.Roots;
import io.coterie.trust.Roster;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.Trust;
import io.coterie.trust.TrustFile;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/**
 * The difference between a version of the trust file and the next one.
 *
 * @param members new ones, or in the place of those of the same names
 * @param requesters new ones, or in the place of those of the same names
 * @param retired parties that leave or have another evidence key, each with the last epoch of a key
 *     that it may have signed for
 * @param corrected parties that were retired before, each with its right last epoch
 * @param leaving coordinators that leave
 * @param dropped requesters that clients believe no more
 * @param roots other root keys
 * @param corrupt another number of parties that may lie at once
 */
record TrustChange(
    List<Member> members,
    List<Trust.Requester> requesters,
    Map<String, Integer> retired,
    Map<String, Integer> corrected,
    Set<String> leaving,
    Set<String> dropped,
    Optional<Roots> roots,
    Optional<Integer> corrupt) {

  /**
   * The version after a signed one.
   *
   * @throws CliException saying why there is none
   */
  TrustFile after(SignedTrust previous) {
    Trust old = previous.trust();
    Map<String, Member> present = byName(old.roster().members(), Member::name);
    List<FormerParty> former = new ArrayList<>(old.roster().former());
    corrected.forEach((name, epoch) -> correct(former, name, epoch));

    Map<String, Member> given = named(members, Member::name, "member");
    Set<String> gone = new HashSet<>();
    for (Member member : old.roster().members()) {
      Member now = given.get(member.name());
      boolean leaves = now == null && isLeaving(member);
      if (leaves || (now != null && isOther(member, now))) {
        if (member.role() == Member.Role.PARTY) {
          gone.add(member.name());
          former.add(former(member));
        }
      }
      if (leaves) {
        present.remove(member.name());
      }
    }
    requireKnown(retired.keySet(), gone, "party", "has no such party, or it is unchanged");
    requireKnown(leaving, leavers(old), "--coordinator", "has no such coordinator");
    present.putAll(given);

    Map<String, Trust.Requester> believed = byName(old.requesters(), Trust.Requester::name);
    requireKnown(dropped, believed.keySet(), "--requester", "has no such requester");
    dropped.forEach(believed::remove);
    believed.putAll(named(requesters, Trust.Requester::name, "requester"));

    Trust next =
        trust(
            previous.installation(),
            previous.version() + 1,
            List.copyOf(present.values()),
            former,
            List.copyOf(believed.values()),
            corrupt.orElse(old.corrupt()));
    Roots signers = roots.orElse(previous.roots());
    if (signers.equals(previous.roots())
        && next.corrupt() == old.corrupt()
        && next.requesters().equals(old.requesters())
        && next.roster().members().equals(old.roster().members())
        && next.roster().former().equals(old.roster().former())) {
      throw CliException.local("this changes nothing: there is no need of another version");
    }
    return TrustFile.after(previous, next, signers);
  }

  /** Version 1 of an installation. */
  static TrustFile first(
      String installation,
      List<Member> members,
      List<Trust.Requester> requesters,
      Roots roots,
      Optional<Integer> corrupt) {
    Trust trust =
        trust(
            installation,
            1,
            List.copyOf(named(members, Member::name, "member").values()),
            List.of(),
            List.copyOf(named(requesters, Trust.Requester::name, "requester").values()),
            corrupt.orElse(Trust.DEFAULT_CORRUPT));
    return TrustFile.first(trust, roots);
  }

  private static Trust trust(
      String installation,
      long version,
      List<Member> members,
      List<FormerParty> former,
      List<Trust.Requester> requesters,
      int corrupt) {
    if (requesters.isEmpty()) {
      throw CliException.local("no requester is given: clients would believe no key");
    }
    try {
      return new Trust(new Roster(installation, version, members, former), requesters, corrupt);
    } catch (IllegalArgumentException e) {
      throw CliException.local(CliException.firstLine(e.getMessage()));
    }
  }

  /** A member that is not given again leaves only if it is named. */
  private boolean isLeaving(Member member) {
    return switch (member.role()) {
      case PARTY -> retired.containsKey(member.name());
      case COORDINATOR -> leaving.contains(member.name());
    };
  }

  private static Set<String> leavers(Trust old) {
    Set<String> names = new HashSet<>();
    old.roster().coordinators().forEach(member -> names.add(member.name()));
    return names;
  }

  /** Whether signatures of the old one are not signatures of the new one. */
  private static boolean isOther(Member old, Member now) {
    return old.partyId() != now.partyId() || !Arrays.equals(old.evidenceKey(), now.evidenceKey());
  }

  private FormerParty former(Member party) {
    Integer epoch = retired.get(party.name());
    if (epoch == null) {
      throw CliException.local(
          "party %1$s has another key: say with --retire %1$s=EPOCH for which epochs it may have"
                  .formatted(party.name())
              + " signed with the old one");
    }
    return new FormerParty(party.name(), party.partyId(), party.evidenceKey(), epoch);
  }

  private static void correct(List<FormerParty> former, String name, int epoch) {
    for (int i = former.size() - 1; i >= 0; i--) {
      FormerParty party = former.get(i);
      if (party.name().equals(name)) {
        former.set(i, new FormerParty(name, party.partyId(), party.evidenceKey(), epoch));
        return;
      }
    }
    throw CliException.local("--correct " + name + ": no party of that name was retired");
  }

  private static void requireKnown(
      Set<String> named, Set<String> known, String option, String problem) {
    for (String name : named) {
      if (!known.contains(name)) {
        throw CliException.local(option + " " + name + ": the previous version " + problem);
      }
    }
  }

  private static <T> Map<String, T> named(List<T> all, Function<T, String> name, String what) {
    Map<String, T> named = byName(all, name);
    if (named.size() < all.size()) {
      Set<String> seen = new HashSet<>();
      all.stream()
          .map(name)
          .filter(each -> !seen.add(each))
          .findFirst()
          .ifPresent(
              twice -> {
                throw CliException.local(what + " " + twice + " is given twice");
              });
    }
    return named;
  }

  private static <T> Map<String, T> byName(List<T> all, Function<T, String> name) {
    Map<String, T> named = new LinkedHashMap<>();
    all.forEach(each -> named.put(name.apply(each), each));
    return named;
  }
}
