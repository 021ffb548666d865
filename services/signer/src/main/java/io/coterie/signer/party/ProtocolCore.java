package io.coterie.signer.party;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.StatementSignature;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.ShareTaken;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.TakeShare;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import java.util.Optional;

/** The cryptography: given the past, it says what to send and when the run is over. */
public interface ProtocolCore {
  /**
   * Starts a run as this party.
   *
   * @param sealedShare empty for key generation, and for signing with a presignature
   * @throws RefusedException if the configuration contradicts itself or the share
   */
  Run start(SessionConfig config, ByteString sealedShare) throws RefusedException;

  /**
   * Forgets a presignature that {@link Run} has made and nobody will use. Unknown ids are ignored.
   */
  default void discardPresignature(ByteString id) {}

  /**
   * Takes the share that the owner of an imported key has made for this party.
   *
   * @return empty if those bytes are no share for this party and key
   */
  default Optional<ShareTaken> takeShare(TakeShare call) throws RefusedException {
    throw new RefusedException(
        RefusalReason.REFUSAL_REASON_FORBIDDEN, "this party imports no keys");
  }

  /** Ends what pairs have set up with the shares of a key, which the operator has had destroyed. */
  default void forgetPairs(String key) {}

  /**
   * Signs a statement with this party's evidence key.
   *
   * @return {@link StatementSignature#BYTES} bytes, which {@link StatementSignature#verifies}
   *     accepts
   */
  ByteString signStatement(ByteString statement);

  /** One run; used by one thread at a time. */
  interface Run extends AutoCloseable {
    Step firstStep();

    /** Whether what it does with the next message may take long: it garbles or opens circuits. */
    default boolean computesLong() {
      return false;
    }

    /**
     * @param sender the party that the channel proved
     * @param envelope hostile until the core has checked it
     */
    Step handle(int sender, byte[] envelope);

    /**
     * Goes on after a step that is done with a nonce point.
     *
     * @param recorded the point that this party has stored for key and message
     */
    default Step recorded(ByteString recorded) {
      throw new IllegalStateException("the run has opened no nonce");
    }

    @Override
    void close();
  }
}
