package io.coterie.signer.session;

import io.coterie.signer.claim.ClaimWitnesses;
import io.coterie.signer.claim.RequestBindings;
import io.coterie.signer.share.KeyActivation;
import io.coterie.signer.share.KeyShareStore;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

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
   * @param nonces of exact signatures, stored before they are answered
   */
  record Claims(
      SessionClaims sessions,
      RequestBindings bindings,
      ClaimWitnesses witnesses,
      NonceRecording nonces) {

    /**
     * The parties that a session waits for. While the core hears nobody it misses everybody, also
     * those whose message lies here.
     */
    List<Integer> missing(Session session) {
      if (!session.unwitnessed) {
        return session.missing;
      }
      Set<Integer> missing = new TreeSet<>(session.missing);
      session.unheard.forEach(arrived -> missing.remove(arrived.sender()));
      missing.addAll(witnesses.lacking(session.id));
      return List.copyOf(missing);
    }
  }

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
