package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.order.ApprovalGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The work of one session. It decides from the order, the key and the core's answer; the driver
 * carries out what it returns. Called in the session's lane.
 */
public sealed interface Operation
    permits Signing, BoundSigning, ExactSigning, Presigning, KeyGeneration, KeyImport, NextEpoch {
  /**
   * Judges the order against the key. Called again after {@link Beginning.AwaitKey} and {@link
   * Beginning.Await}.
   *
   * @throws RefusedException if this party takes no part
   */
  Beginning begin() throws RefusedException;

  /**
   * The session that the claim binds the request to; empty if a second signature of the request
   * would be the same one, or the session signs nothing.
   *
   * @param first the core's first step, if it was started before the claim
   */
  default Optional<ClaimLedger.Binding> binding(@Nullable Step first) {
    return Optional.empty();
  }

  /** The session that the request was bound to and that failed; null if there was none. */
  default @Nullable SessionId instead() {
    return null;
  }

  /** The claim with its binding is on disk. */
  default void bound(ClaimLedger.Binding binding) {}

  /** The run has started. */
  default void started() {}

  /** Whether a message of the core may still leave. */
  default boolean maySend(Outgoing message, Instant now) {
    return true;
  }

  /**
   * How long from now the session waits for its result once this party has sent its last message;
   * empty if to its deadline.
   */
  default Optional<Duration> lapse(SessionLimits limits, Instant now) {
    return Optional.empty();
  }

  /**
   * The session ran out of time.
   *
   * @param missing ids of the parties that were waited for
   */
  default void timedOut(List<Integer> missing) {}

  /** Whether nobody waits for it, so that the work of others comes first. */
  default boolean background() {
    return false;
  }

  /** Judges the end of a run that the core completed. */
  Ending complete(Done done);

  /** Ids of the parties with which this party will not use the active key any more. */
  Set<Integer> exclusions(Abort abort);

  /** The session has ended and gives back everything that it took and did not use. */
  default void ended() {}

  /** How a session goes on whose order was judged. */
  sealed interface Beginning {
    /**
     * Its right to run is claimed, then the core starts.
     *
     * @param share the session that made the share which this one uses; this one if it uses none
     * @param sealedShare that the core opens; empty if it opens none
     * @param payload that the core signs; null if the session signs nothing
     * @param approvals that the request has; null if this party needs none
     * @param presignature that the session uses up; null if it uses none
     */
    record Claim(
        SessionId share,
        ByteString sealedShare,
        @Nullable DecodedPayload payload,
        ApprovalGate.@Nullable Counted approvals,
        @Nullable Presignature presignature)
        implements Beginning {

      /** The same with the approvals of its request. */
      Claim with(ApprovalGate.Counted counted) {
        return new Claim(share, sealedShare, payload, counted, presignature);
      }

      /**
       * The same with a presignature: its use was fixed when it was made, so no share is opened.
       */
      Claim with(Presignature used) {
        return new Claim(share, ByteString.EMPTY, payload, approvals, used);
      }

      /**
       * The configuration that the core is started with.
       *
       * @param self id of this party
       */
      public SessionConfig config(SessionPlan plan, int self) {
        SessionConfig.Builder config =
            plan.config(self).setPayload(payload == null ? ByteString.EMPTY : payload.toSign());
        if (presignature != null) {
          config.setPresignatureId(presignature.id()).setSealedPresignature(presignature.sealed());
        }
        return config.build();
      }
    }

    /** It waits until its key is active in the ordered epoch. */
    record AwaitKey() implements Beginning {}

    /**
     * It goes on when another session of its request has ended.
     *
     * @param older id of that session
     */
    record Await(SessionId older) implements Beginning {}

    /**
     * It is refused while an earlier refresh or reshare may still succeed.
     *
     * @param earlier share of that refresh or reshare
     */
    record Undecided(KeyShare earlier) implements Beginning {}
  }

  /** How a session ends that the core completed, or goes on if that was one part of it. */
  sealed interface Ending {
    /** The session ends with a signature. */
    record Signed(ByteString signature) implements Ending {}

    /**
     * The session goes on when the nonce point of its message is on disk.
     *
     * @param publicKey 32 bytes
     * @param messageDigest SHA-512 of the message
     * @param noncePoint that the pair has opened
     * @param account for whose disk it counts
     */
    record NonceOpened(
        ByteString publicKey, ByteString messageDigest, ByteString noncePoint, String account)
        implements Ending {}

    /**
     * The session ends with presignatures in the pool.
     *
     * @param ids of 32 bytes each
     */
    record Presigned(List<ByteString> ids) implements Ending {}

    /** The session ends with a refusal, because the key changed while it ran. */
    record Refused(RefusedException reason) implements Ending {}

    /**
     * The session ends with a share that is to be stored first.
     *
     * @param replaces whether it takes the place of a share of an older epoch
     * @param otherwise the refusal if the store does not take it
     */
    record Store(KeyShare share, boolean replaces, RefusedException otherwise) implements Ending {}
  }

  /** The exclusions after an abort of a session that used the active key. */
  static Set<Integer> ofUse(Abort abort) {
    return abort.getAdvice() == Advice.ADVICE_EXCLUDE_PARTY
        ? Set.copyOf(abort.getCulpritsList())
        : frozen(abort);
  }

  /** Every party, if the core advises to freeze the key; nobody otherwise. */
  static Set<Integer> frozen(Abort abort) {
    return abort.getAdvice() == Advice.ADVICE_FREEZE_KEY
        ? Set.of(KeyShareStore.EVERY_PARTY)
        : Set.of();
  }
}
