package io.coterie.platform.attestation;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.Party;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * The issuers and openers of one epoch of a group: the parties that its intent names, with the keys
 * that the reader's own roster has of them. Nobody else says who they are.
 *
 * @param issuers in ascending order of their ids
 * @param issuerThreshold issuers that it takes to admit a member
 * @param openers in ascending order of their ids
 * @param openerThreshold openers that it takes to open an approval
 */
public record GroupMembers(
    String installation,
    List<Member> issuers,
    int issuerThreshold,
    List<Member> openers,
    int openerThreshold) {

  public GroupMembers {
    issuers = List.copyOf(issuers);
    openers = List.copyOf(openers);
  }

  /**
   * The members that an intent names.
   *
   * @return empty if the roster lacks one of them: {@link #unknown} says which
   */
  public static Optional<GroupMembers> of(VerifiedIntent.GroupCreation intent, Roster roster) {
    return unknown(intent, roster).isPresent()
        ? Optional.empty()
        : Optional.of(
            new GroupMembers(
                roster.installation(),
                members(intent.issuers(), roster),
                intent.issuerThreshold(),
                members(intent.openers(), roster),
                intent.openerThreshold()));
  }

  /**
   * The members of an epoch as they are kept with it.
   *
   * @return empty if the roster has one of them no more, or with another key
   */
  public static Optional<GroupMembers> of(GroupParties kept, Roster roster) {
    List<Member> issuers = members(kept.getIssuersList(), roster);
    List<Member> openers = members(kept.getOpenersList(), roster);
    GroupMembers members =
        new GroupMembers(
            kept.getInstallation(),
            issuers,
            kept.getIssuerThreshold(),
            openers,
            kept.getOpenerThreshold());
    return members.parties().equals(kept) ? Optional.of(members) : Optional.empty();
  }

  private static List<Member> members(Collection<Party> parties, Roster roster) {
    return parties.stream().flatMap(party -> roster.byPartyId(party.getId()).stream()).toList();
  }

  /** The name under which the openers of an intent generate their key: one for each epoch. */
  public static String openersKeyName(VerifiedIntent.OfGroup intent) {
    return intent.key() + "/" + intent.epoch() + "/openers";
  }

  /** The first name in an intent that is none of a party in the roster. */
  public static Optional<String> unknown(VerifiedIntent.GroupCreation intent, Roster roster) {
    List<String> names = new ArrayList<>(intent.issuers());
    names.addAll(intent.openers());
    return names.stream().filter(name -> party(name, roster).isEmpty()).findFirst();
  }

  private static List<Member> members(List<String> names, Roster roster) {
    return names.stream()
        .flatMap(name -> party(name, roster).stream())
        .sorted(Comparator.comparingInt(Member::partyId))
        .toList();
  }

  private static Optional<Member> party(String name, Roster roster) {
    return roster.byName(name).filter(member -> member.role() == Member.Role.PARTY);
  }

  /** Issuers and openers, each once, in ascending order of their ids. */
  public List<Member> all() {
    List<Member> all = new ArrayList<>(issuers);
    openers.stream().filter(opener -> !issuers.contains(opener)).forEach(all::add);
    all.sort(Comparator.comparingInt(Member::partyId));
    return Collections.unmodifiableList(all);
  }

  /** How many issuers have to bind a ticket: two sets of so many have an honest one in common. */
  public int quorum() {
    return quorum(issuers.size(), issuerThreshold);
  }

  /** The same for so many issuers. */
  public static int quorum(int issuers, int threshold) {
    return (issuers + threshold + 1) / 2;
  }

  /** The number of the member in a join: the largest that no issuer has. */
  public int memberNumber() {
    int number = Member.MAX_PARTY_ID;
    while (isIssuer(number)) {
      number--;
    }
    return number;
  }

  private boolean isIssuer(int id) {
    return issuers.stream().anyMatch(issuer -> issuer.partyId() == id);
  }

  /** As the core takes them. */
  public GroupParties parties() {
    return GroupParties.newBuilder()
        .setInstallation(installation)
        .addAllIssuers(issuers.stream().map(GroupMembers::party).toList())
        .setIssuerThreshold(issuerThreshold)
        .addAllOpeners(openers.stream().map(GroupMembers::party).toList())
        .setOpenerThreshold(openerThreshold)
        .build();
  }

  /** A party as the core takes it. */
  public static Party party(Member member) {
    return Party.newBuilder()
        .setId(member.partyId())
        .setEvidenceKey(ByteString.copyFrom(member.evidenceKey()))
        .build();
  }
}
