package io.coterie.mpc;

import io.coterie.proto.core.v1.SessionConfig;

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
}
