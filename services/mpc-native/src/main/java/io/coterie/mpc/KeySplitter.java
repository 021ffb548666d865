package io.coterie.mpc;

import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.ImportReply;

/**
 * Splits an Ed25519 key where its owner is, each share encrypted to the evidence key of its party.
 * Nobody but the owner sees the key, and it is kept nowhere.
 */
@FunctionalInterface
public interface KeySplitter {

  /**
   * Does {@code SplitKey}, which holds the key: the caller lets go of it as soon as this returns.
   *
   * @throws MpcException with INVALID_ARGUMENT if there is no call, or SETUP_REFUSED if it is not
   *     one that can be done without a vault
   */
  ImportReply call(ImportCall call);
}
