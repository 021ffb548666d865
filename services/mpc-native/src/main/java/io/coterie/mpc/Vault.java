package io.coterie.mpc;

import io.coterie.proto.core.v1.SessionConfig;

/** The data key inside the native core: what opens and seals a party's shares. Thread-safe. */
public interface Vault extends AutoCloseable {

  /**
   * Seals a secret of the service. {@code label} is authenticated and must be given again to open
   * it.
   */
  byte[] seal(String label, byte[] plaintext);

  /**
   * Opens what {@link #seal} made. The caller zeroes the result after use.
   *
   * @throws MpcException with UNSEAL_FAILED
   */
  byte[] unseal(String label, byte[] sealed);

  /**
   * Makes the Ed25519 key pair with which this party signs envelopes that may serve as evidence.
   */
  SealedIdentity createIdentity(String partyName);

  /**
   * Starts a session as a party.
   *
   * @param sealedShare the key share; empty for key generation
   * @throws MpcException with SETUP_REFUSED or UNSEAL_FAILED
   */
  MpcSession start(SessionConfig config, byte[] sealedIdentity, byte[] sealedShare);

  /**
   * An evidence key.
   *
   * @param sealed the private half, sealed
   * @param evidenceKey the public half, 32 bytes
   */
  record SealedIdentity(byte[] sealed, byte[] evidenceKey) {}

  /** Wipes the data key. Sessions already started go on. Idempotent. */
  @Override
  void close();
}
