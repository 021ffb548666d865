package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.claim.ExactNonces;
import io.coterie.signer.operation.Operation.Ending;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has the nonce point of a message on disk before its session goes on. A session that has ended
 * meanwhile answers nothing.
 *
 * @param nonces of all messages, on disk
 */
record NonceRecording(ExactNonces nonces) {
  private static final Logger log = LoggerFactory.getLogger(NonceRecording.class);

  /**
   * Stores a nonce point.
   *
   * @param next takes the step that follows, in the session's lane
   * @param refuse takes the reason if nothing follows
   */
  void record(
      Session session,
      Ending.NonceOpened opened,
      Consumer<Step> next,
      Consumer<RefusedException> refuse) {
    nonces
        .settle(opened.publicKey(), opened.messageDigest(), opened.noncePoint(), opened.account())
        .whenComplete(
            (recorded, failure) ->
                session.run(() -> goOn(session, recorded, failure, next, refuse)));
  }

  private static void goOn(
      Session session,
      @Nullable ByteString recorded,
      @Nullable Throwable failure,
      Consumer<Step> next,
      Consumer<RefusedException> refuse) {
    ProtocolCore.Run run = session.run;
    if (session.state != SessionLifecycle.State.RUNNING || run == null) {
      return;
    }
    if (failure == null && recorded != null) {
      next.accept(run.recorded(recorded));
      return;
    }
    log.error("the nonce point of a message could not be recorded", failure);
    refuse.accept(
        new RefusedException(
            RefusalReason.REFUSAL_REASON_INTERNAL, "the nonce point could not be recorded"));
  }
}
