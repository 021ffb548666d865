package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.GroupMember;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.ListMembers;
import io.coterie.proto.party.v1.MembersListed;
import io.coterie.proto.party.v1.OpenApproval;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Carries the openings of approvals. The shares are sealed to the requester, so this coordinator
 * does not learn whose approval it was. Steps are cited as [O1] (docs/protocols/wbb.md).
 */
public final class ApprovalOpenings {
  private final GroupSteps steps;

  public ApprovalOpenings(GroupSteps steps) {
    this.steps = steps;
  }

  /**
   * [O1] has the openers share the opening of an approval.
   *
   * @return the sealed share of each, by id; of as many as it takes
   * @throws io.coterie.platform.error.CustodyException if they are fewer
   */
  public Map<Integer, ByteString> open(VerifiedIntent.Opening opening, Caller caller)
      throws InterruptedException {
    GroupSteps.Step step = steps.of(opening, GroupRecord::openers);
    Map<Integer, ByteString> shares = new TreeMap<>();
    step.byEnough(
            step.group().openerThreshold(),
            step.order().setOpenApproval(OpenApproval.getDefaultInstance()),
            caller,
            GroupReport::hasApprovalOpened)
        .forEach((id, report) -> shares.put(id, report.getApprovalOpened().getSealedShare()));
    return shares;
  }

  /**
   * A page of the registries.
   *
   * @param members in the order of their tickets, each that issuers agree on once
   * @param more whether there are others after these
   */
  public record Page(List<GroupMember> members, boolean more) {
    public Page {
      members = List.copyOf(members);
    }
  }

  /**
   * [R7] has the issuers tell their registries. Every member is in that of the issuers that it has
   * joined with, so more of them have to answer than could be without it.
   *
   * @param after ticket of the last member of the page before; empty for the first
   * @throws io.coterie.platform.error.CustodyException if too few answer
   */
  public Page members(VerifiedIntent.Opening opening, ByteString after, Caller caller)
      throws InterruptedException {
    GroupSteps.Step step = steps.of(opening, GroupRecord::issuers);
    int needed = step.group().issuers().size() - step.group().issuerThreshold() + 1;
    Map<Integer, GroupReport> reports =
        step.byEnough(
            needed,
            step.order().setListMembers(ListMembers.newBuilder().setAfter(after)),
            caller,
            GroupReport::hasMembersListed);
    List<MembersListed> pages =
        reports.values().stream().map(GroupReport::getMembersListed).toList();
    // Beyond the shortest page that is not the last one of its issuer, others may still have some.
    ByteString end =
        pages.stream()
            .filter(page -> page.getMore() && page.getMembersCount() > 0)
            .map(page -> page.getMembers(page.getMembersCount() - 1).getTicket())
            .min(ByteString.unsignedLexicographicalComparator())
            .orElse(ByteString.EMPTY);
    Comparator<ByteString> order = ByteString.unsignedLexicographicalComparator();
    List<GroupMember> members =
        pages.stream()
            .flatMap(page -> page.getMembersList().stream())
            .filter(member -> end.isEmpty() || order.compare(member.getTicket(), end) <= 0)
            .distinct()
            .sorted(Comparator.comparing(GroupMember::getTicket, order))
            .toList();
    return new Page(members, !end.isEmpty());
  }
}
