package io.coterie.signer.storage;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.signer.order.Hold;
import io.coterie.signer.storage.OperatorRequests.Request;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/**
 * Does in the party's file what its operator asks for; the audit trail has each with its reason.
 */
final class OperatorActions {
  private final PartyFile file;
  private final SqliteExclusions exclusions;
  private final SqliteHolds holds;
  private final AcceptedTrust trust;
  private final SqliteShares shares;
  private final SqliteAudit.Chain audit;

  OperatorActions(
      PartyFile file,
      SqliteExclusions exclusions,
      SqliteHolds holds,
      AcceptedTrust trust,
      SqliteShares shares,
      SqliteAudit.Chain audit) {
    this.file = file;
    this.exclusions = exclusions;
    this.holds = holds;
    this.trust = trust;
    this.shares = shares;
    this.audit = audit;
  }

  /** Completes with what came of it, for the log, once that is on disk. */
  CompletionStage<String> perform(Request request) {
    String about = request.argument();
    return switch (request.kind()) {
      case UNFREEZE ->
          exclusions
              .unfreeze(about)
              .thenApply(
                  lifted -> about + (lifted ? " is not frozen any more" : " was not frozen"));
      case FENCE -> moveFence(OperatorRequests.time(about), request.reason());
      case PERMIT_TRUST ->
          trust
              .permit(about, request.reason())
              .thenApply(_ -> "trust file " + about + " may follow the present one");
      case FORGET_KEY -> {
        KeyToForget key = KeyToForget.parse(about);
        yield shares
            .forget(key, request.reason())
            .thenApply(
                gone -> gone ? "the shares of " + key + " are gone" : "there are none of " + key);
      }
      case HOLD ->
          holds.hold(new Hold.Scope(about), request.reason()).thenApply(_ -> about + " is on hold");
      case LIFT ->
          holds
              .lift(new Hold.Scope(about), request.reason())
              .thenApply(
                  lifted -> about + (lifted ? " is not on hold any more" : " was not on hold"));
    };
  }

  /**
   * Moves the fence, also back: it is what a clock said that may have been wrong. Never to a time
   * of which requests are forgotten.
   */
  private CompletionStage<String> moveFence(Instant to, String reason) {
    return file.writer()
        .submitVital(
            db -> {
              Instant from = SqliteLedger.fence(db);
              boolean moved = !to.isBefore(SqliteClaims.forgottenBefore(db));
              if (moved) {
                db.update("UPDATE ledger SET fence_ms = ?", to.toEpochMilli());
              }
              audit.append(
                  db,
                  AuditEvent.of(
                      "operator",
                      "fence.move",
                      moved ? "ok" : "refused",
                      Map.of("from", from.toString(), "to", to.toString(), "reason", reason)));
              return moved
                  ? "the fence is at " + to + " and no longer at " + from
                  : "the fence stays at "
                      + from
                      + ": this party has forgotten requests from before "
                      + to;
            });
  }
}
