package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.ListMembers;
import io.coterie.proto.party.v1.MembersListed;
import io.coterie.proto.party.v1.OpenApproval;
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
   * [R7] has an issuer tell its registry, a page of it.
   *
   * @param issuer id
   * @param after digest of the last ticket of the page before; empty for the first
   * @throws io.coterie.platform.error.CustodyException if it does not answer, or is no issuer
   */
  public MembersListed members(
      VerifiedIntent.Opening opening, int issuer, ByteString after, Caller caller)
      throws InterruptedException {
    GroupSteps.Step step = steps.of(opening, GroupRecord::issuers).of(issuer);
    return step.byEnough(
            1,
            step.order().setListMembers(ListMembers.newBuilder().setAfter(after)),
            caller,
            GroupReport::hasMembersListed)
        .values()
        .iterator()
        .next()
        .getMembersListed();
  }
}
