package io.coterie.mpc;

import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.ImportReply;
import io.coterie.proto.core.v1.SessionConfig;

/**
 * The data key inside the native core, which opens and seals a party's shares. Thread-safe.
 *
 * <p>It also has, for each presignature that its sessions made, a random one-time key, which never
 * leaves the core: {@link #start} of a session that is to use the presignature destroys that key
 * before anything else, so that a sealed presignature opens once at most, in this vault only, and
 * never after it was closed.
 */
public interface Vault extends AutoCloseable {
  /** Most presignatures that one vault can have, counting those being made. */
  int MAX_PRESIGNATURES = 65_536;

  /** Longest statement that {@link #signStatement} signs, bytes. */
  int MAX_STATEMENT = 65_536;

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
   * Signs a statement in this party's name: Ed25519 with its evidence key over {@code
   * coterie/statement-signature/1} and the SHA-256 of the statement. Never a valid signature of an
   * envelope; the same for the same statement.
   *
   * @param sealedIdentity of {@link #createIdentity}
   * @param statement at most {@link #MAX_STATEMENT} bytes
   * @return 64 bytes
   * @throws MpcException with UNSEAL_FAILED
   */
  byte[] signStatement(byte[] sealedIdentity, byte[] statement);

  /**
   * Makes a presignature useless without using it. One that the vault does not have is no error.
   *
   * @param id 32 bytes, {@code Presignature.id} of a {@code Done}
   */
  void dropPresignature(byte[] id);

  /**
   * Starts a session as a party.
   *
   * @param sealedIdentity for key generation, refresh, reshare and a join; not looked at otherwise
   * @param sealedShare the key share; empty for key generation, for signing with a presignature,
   *     for a party that only receives in a reshare, and for the member in a join
   * @throws MpcException with SETUP_REFUSED or UNSEAL_FAILED
   */
  MpcSession start(SessionConfig config, byte[] sealedIdentity, byte[] sealedShare);

  /**
   * Does a call about a group of anonymous approvers as one of its issuers, openers or members. A
   * record in the reply is stored before anything else that the reply has is sent or begun.
   *
   * <p>A run of a join that was ordered or counted stays in this vault until {@link #start} of its
   * session takes it out, once, or {@code DropRun} does. After a restart there is none, and the
   * member orders another.
   *
   * @param sealedIdentity of {@link #createIdentity}, for calls that sign; not looked at otherwise
   * @return the reply that belongs to the call, or {@code GroupRefused} with the reason, and the
   *     party or the approval whose contribution it was
   * @throws MpcException with INVALID_ARGUMENT, SETUP_REFUSED or UNSEAL_FAILED: the caller's own
   *     arguments, never those of others
   */
  GroupReply call(GroupCall call, byte[] sealedIdentity);

  /**
   * Does a call about an imported key as one of its parties: takes the share that the owner has
   * made for it, or forgets a peer.
   *
   * <p>Set-ups of pairs, prepared signatures and open nonces of exact Ed25519 stay in this vault
   * under the ids of their sessions. {@link #start} of the session that uses one takes it out,
   * once. After a restart there is none, and the pair sets up anew.
   *
   * @param sealedIdentity of {@link #createIdentity}, to take a share; not looked at otherwise
   * @return the reply that belongs to the call, or {@code ShareRefused} if the bytes are not a
   *     share that was made for this party and key
   * @throws MpcException with INVALID_ARGUMENT, SETUP_REFUSED or UNSEAL_FAILED: the caller's own
   *     arguments, never those of others
   */
  ImportReply call(ImportCall call, byte[] sealedIdentity);

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
