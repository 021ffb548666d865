package io.coterie.signer.group;

import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.DiskShares;
import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * Claims of orders about groups: a request id stands for one intent, and an order runs once, on the
 * disk before anything of it is told.
 */
record GroupClaims(GroupPorts.Memory memory) {

  /**
   * Claims an order.
   *
   * @return the refusal, if the ledger does not let it run; completes once the claim is on the disk
   */
  CompletionStage<Optional<NotDoneException>> claim(GroupRun run) {
    GroupPlan plan = run.plan();
    String account = DiskShares.ofCoordinator(run.coordinator.name());
    return memory
        .claims()
        .claimOnce(
            new ClaimLedger.Claim(
                plan.id(),
                plan.intent().requester(),
                plan.intent().requestId(),
                plan.intent().digest(),
                null,
                null,
                null,
                plan.intent().envelope().toByteString(),
                memory.disk().mayTake(account) ? account : null),
            GroupAudit.accepted(plan, run.coordinator))
        .thenApply(
            outcome ->
                outcome == ClaimLedger.Outcome.CLAIMED
                    ? Optional.empty()
                    : Optional.of(NotDoneException.of(outcome)));
  }
}
