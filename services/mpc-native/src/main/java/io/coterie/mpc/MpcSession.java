package io.coterie.mpc;

import io.coterie.proto.core.v1.Step;

/**
 * One run of one protocol in the native core. Confined to one thread at a time: a second concurrent
 * call, and any call after {@link #close}, throws {@link IllegalStateException}.
 */
public interface MpcSession extends AutoCloseable {

  /** The first step: usually the envelopes of the first round. */
  Step firstStep();

  /**
   * Gives the session one envelope from a peer.
   *
   * @param authenticatedSender the party the channel proved as the sender
   * @param envelope as received; hostile until the core has checked it
   */
  Step handle(int authenticatedSender, byte[] envelope);

  /** Wipes the session. Idempotent. */
  @Override
  void close();
}
