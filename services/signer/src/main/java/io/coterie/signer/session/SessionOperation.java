package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One kind of work that a session does. It decides from the order, the key and the core's answer;
 * the driver carries out what it returns. Called in the session's lane.
 */
sealed interface SessionOperation permits Signing, Presigning, KeyGeneration, NextEpoch {
  /**
   * Judges an order against the key.
   *
   * @throws RefusedException if this party takes no part
   */
  Beginning begin(Session session) throws RefusedException;

  /** Judges the end of a run that the core completed. */
  Ending complete(Session session, Done done);

  /** Ids of the parties with which this party will not use the active key any more. */
  Set<Integer> exclusions(Abort abort);

  /** How a session goes on whose order was judged. */
  sealed interface Beginning {
    /**
     * Its right to run is claimed, then the core starts.
     *
     * @param sealedShare that the core opens; empty if the session uses none
     * @param payload that the core signs; null if the session signs nothing
     */
    record Claim(ByteString sealedShare, @Nullable DecodedPayload payload) implements Beginning {}

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

  /** How a session ends that the core completed. */
  sealed interface Ending {
    /** With a signature. */
    record Signed(ByteString signature) implements Ending {}

    /**
     * With presignatures in the pool.
     *
     * @param ids of 32 bytes each
     */
    record Presigned(List<ByteString> ids) implements Ending {}

    /** With a refusal, because the key changed while the session ran. */
    record Refused(RefusedException reason) implements Ending {}

    /**
     * With a share that is to be stored first.
     *
     * @param replaces whether it takes the place of a share of an older epoch
     */
    record Store(KeyShare share, boolean replaces) implements Ending {}
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
