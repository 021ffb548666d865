package io.coterie.coordinator.custody.group;

import io.coterie.coordinator.custody.request.Failure;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.SessionFailures;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.GroupRefused;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.GroupStepRefused;
import io.coterie.trust.Member;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;

/** Reads the reports of parties on an order about a group, for its request. Pure functions. */
final class GroupFailures {
  private GroupFailures() {}

  /** Whether a party has done its order. */
  static boolean isDone(GroupReport report) {
    return switch (report.getOutcomeCase()) {
      case OPENERS_KEY_MADE,
          ISSUING_KEY_MADE,
          GROUP_PUBLISHED,
          GROUP_KEPT,
          TICKET_RESERVED,
          MEMBER_REGISTERED,
          MEMBER_JOINED,
          APPROVAL_OPENED,
          MEMBERS_LISTED ->
          true;
      case ABORTED, TIMED_OUT, REFUSED, OUTCOME_NOT_SET -> false;
    };
  }

  /**
   * Why an order was not done by all; empty if it was. A culprit comes before a refusal, and that
   * before a party that is late. The word of a party convicts nobody: without evidence it is as
   * much a suspect as the one that it names.
   *
   * @param reports by party; those that have not reported are missing
   * @param proven whether the evidence of an abort convicts the party that it names
   */
  static Optional<Failure> of(
      String resource,
      Collection<Member> parties,
      Map<Integer, GroupReport> reports,
      Predicate<Abort> proven) {
    return misbehaved(resource, parties, reports, proven)
        .or(() -> refused(resource, parties, reports))
        .or(() -> aborted(resource, parties, reports))
        .or(() -> late(resource, parties, reports));
  }

  /** The failure of what the core says of bytes that parties have given. */
  static Failure of(String resource, Collection<Member> parties, GroupRefused refused) {
    List<Integer> culprits = refused.getParty() == 0 ? List.of() : List.of(refused.getParty());
    return Failure.parties(
        culprits.isEmpty() ? ErrorReason.SESSION_FAILED : ErrorReason.PARTY_MISBEHAVED,
        resource,
        names(parties, culprits),
        0,
        refused.getReason().name());
  }

  private static Optional<Failure> misbehaved(
      String resource,
      Collection<Member> parties,
      Map<Integer, GroupReport> reports,
      Predicate<Abort> proven) {
    return reports.values().stream()
        .filter(report -> report.getAborted().getCulpritsCount() > 0)
        .map(GroupReport::getAborted)
        .filter(proven)
        .findFirst()
        .map(
            abort ->
                Failure.parties(
                    ErrorReason.PARTY_MISBEHAVED,
                    resource,
                    names(parties, abort.getCulpritsList()),
                    abort.getRound(),
                    abort.getCause().name()));
  }

  private static Optional<Failure> refused(
      String resource, Collection<Member> parties, Map<Integer, GroupReport> reports) {
    return reports.entrySet().stream()
        .filter(entry -> entry.getValue().hasRefused())
        .findFirst()
        .map(
            entry -> {
              GroupStepRefused refused = entry.getValue().getRefused();
              return Failure.parties(
                      SessionFailures.reason(refused.getReason()),
                      resource,
                      names(parties, List.of(entry.getKey())),
                      0,
                      refused.getReason().name())
                  .detailed(refused.getDetail());
            });
  }

  private static Optional<Failure> aborted(
      String resource, Collection<Member> parties, Map<Integer, GroupReport> reports) {
    return reports.entrySet().stream()
        .filter(entry -> entry.getValue().hasAborted())
        .findFirst()
        .map(
            entry -> {
              Abort abort = entry.getValue().getAborted();
              Set<Integer> suspects = new TreeSet<>(abort.getSuspectsList());
              suspects.addAll(abort.getCulpritsList());
              if (abort.getCulpritsCount() > 0) {
                suspects.add(entry.getKey());
              }
              return Failure.parties(
                  ErrorReason.SESSION_FAILED,
                  resource,
                  names(parties, suspects),
                  abort.getRound(),
                  abort.getCause().name());
            });
  }

  private static Optional<Failure> late(
      String resource, Collection<Member> parties, Map<Integer, GroupReport> reports) {
    if (parties.stream().allMatch(party -> done(reports, party))) {
      return Optional.empty();
    }
    List<Integer> silent =
        parties.stream().map(Member::partyId).filter(id -> !reports.containsKey(id)).toList();
    List<Integer> missing =
        reports.values().stream()
            .flatMap(report -> report.getTimedOut().getMissingList().stream())
            .distinct()
            .toList();
    int round = reports.values().stream().mapToInt(r -> r.getTimedOut().getRound()).max().orElse(0);
    return Optional.of(
        Failure.parties(
            ErrorReason.PARTY_UNRESPONSIVE,
            resource,
            names(parties, missing.isEmpty() ? silent : missing),
            round,
            "timed_out"));
  }

  private static boolean done(Map<Integer, GroupReport> reports, Member party) {
    GroupReport report = reports.get(party.partyId());
    return report != null && isDone(report);
  }

  private static List<String> names(Collection<Member> parties, Collection<Integer> ids) {
    return parties.stream()
        .filter(party -> ids.contains(party.partyId()))
        .map(Member::name)
        .toList();
  }
}
