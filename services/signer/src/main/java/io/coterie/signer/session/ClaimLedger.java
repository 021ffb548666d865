package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import java.util.concurrent.CompletionStage;

/** The once-only right to run a session. What is claimed stays claimed for ever. */
public interface ClaimLedger {

  /**
   * Claims a session id and binds the request id to the intent.
   *
   * @return completes once the claim is on disk; {@link Outcome#CLAIMED} exactly once for a session
   *     id. Fails if the store did, and then nothing is claimed.
   */
  CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted);

  /** Claims a session id that serves no request; otherwise the same. */
  CompletionStage<Outcome> claimSession(SessionId session);

  /**
   * @param requestId unique for a requester; bound to one intent for ever
   */
  record Claim(SessionId session, String requester, String requestId, ByteString intentDigest) {}

  /** What the ledger says. */
  enum Outcome {
    CLAIMED,
    SESSION_REPLAYED,
    REQUEST_ID_REUSED
  }
}
