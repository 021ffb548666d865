package io.coterie.signer.session;

import io.coterie.signer.claim.ClaimWitnesses;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.share.KeyActivation;
import io.coterie.signer.share.KeyShareStore;

/** The means of sessions, grouped by purpose. */
final class SessionMeans {
  private SessionMeans() {}

  /**
   * The sessions that are known, and the room and messages that they hold.
   *
   * @param sessions that have not ended
   * @param listening runs that answer after the end of their session
   * @param inbox envelopes on their way to a run
   * @param leases places of sessions among those that may run
   */
  record Running(Sessions sessions, ListeningRuns listening, Inbox inbox, Leases leases) {}

  /**
   * The shares of keys, and the limits of their use.
   *
   * @param shares on disk
   * @param activation makes provisional shares active
   * @param exclusions parties that a key is not used with
   */
  record Keys(KeyShareStore shares, KeyActivation activation, Exclusions exclusions) {}

  /**
   * The right to run a session, and to contribute to a request's signature.
   *
   * @param sessions claims each once
   * @param bindings of requests to sessions
   * @param witnesses remember how far the ledger of claims has come
   */
  record Claims(SessionClaims sessions, RequestBindings bindings, ClaimWitnesses witnesses) {}

  /**
   * The accounts that a session gives of itself.
   *
   * @param reports to the coordinator and the parties
   * @param refusals of orders
   * @param records in the audit trail and the log
   * @param telemetry measurements
   */
  record Accounts(
      SessionReports reports,
      Refusals refusals,
      SessionRecords records,
      SessionTelemetry telemetry) {}
}
