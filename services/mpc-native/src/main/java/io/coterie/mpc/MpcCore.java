package io.coterie.mpc;

import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.VerifyCall;

/** The entry to the native core. */
public interface MpcCore extends EvidenceJudge {

  /**
   * Opens a vault.
   *
   * @param dataKey 32 bytes; copied into the core and zeroed here before this method returns
   */
  Vault openVault(byte[] dataKey);

  /**
   * Starts a session as an observer: no share, only public data (the coordinator combining a
   * signature).
   */
  MpcSession observe(SessionConfig config);

  /**
   * Verifies signatures of several sessions at once, for less than one by one.
   *
   * @return whether every claim is true; a list with one that is not passes with a chance of 2^-128
   * @throws MpcException with SETUP_REFUSED if the protocol is none that this can verify, or there
   *     are too many claims
   */
  boolean verify(VerifyCall call);
}
