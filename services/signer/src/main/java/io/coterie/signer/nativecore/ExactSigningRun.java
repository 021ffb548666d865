package io.coterie.signer.nativecore;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.ExactProtocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Dropped;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A signature of a pair at one party, one step of the core after another. First each tells the
 * other which set-up it has, since one of them may have started again: without a common one they
 * set up anew. Between nonce and answer the caller stores the nonce point.
 *
 * <p>An envelope is a byte that says the step, and what the core has said in it.
 */
final class ExactSigningRun implements ProtocolCore.Run {
  private static final Logger log = LoggerFactory.getLogger(ExactSigningRun.class);

  /** Bytes that a block of SHA-512 has, and those of prefix and padding. */
  private static final int BLOCK_BYTES = 128;

  private static final int PREFIX_AND_PADDING_BYTES = 32 + 1 + 16;

  /** The steps, in order. Each is a round of the session. */
  private enum Stage {
    OFFER,
    PAIR,
    PREPARE,
    NONCE,
    /** The nonce is open, and its point on the way to the disk. */
    RECORD,
    ANSWER,
    OVER;

    int round() {
      return ordinal() + 1;
    }
  }

  private final SessionConfig session;
  private final ByteString sealedShare;
  private final ExactPairs pairs;
  private final int peer;

  /** The set-up that this party has told of; empty for none. */
  private final ByteString offered;

  private Stage stage = Stage.OFFER;
  private ProtocolCore.@Nullable Run run;
  private ByteString noncePoint = ByteString.EMPTY;

  /** A message of the next step, if the peer was faster. */
  private byte @Nullable [] early;

  private ExactSigningRun(
      SessionConfig session, ByteString sealedShare, ExactPairs pairs, int peer) {
    this.session = session;
    this.sealedShare = sealedShare;
    this.pairs = pairs;
    this.peer = peer;
    this.offered = pairs.setUp(session, peer).orElse(ByteString.EMPTY);
  }

  /** Starts with the other party of the session. */
  static ProtocolCore.Run start(SessionConfig session, ByteString sealedShare, ExactPairs pairs) {
    return new ExactSigningRun(session, sealedShare, pairs, ExactPairs.peers(session).getFirst());
  }

  @Override
  public Step firstStep() {
    return waiting(Step.newBuilder().addOutgoing(outgoing(offered)));
  }

  @Override
  public Step handle(int sender, byte[] envelope) {
    if (sender != peer) {
      return dropped(RejectReason.REJECT_REASON_SENDER);
    }
    int said = envelope.length == 0 ? -1 : envelope[0];
    if (said == stage.ordinal() && stage != Stage.RECORD && stage != Stage.OVER) {
      return hear(Step.newBuilder(), Arrays.copyOfRange(envelope, 1, envelope.length));
    }
    if (said > stage.ordinal() && said < Stage.OVER.ordinal() && early == null) {
      early = envelope.clone();
      return waiting(Step.newBuilder());
    }
    return dropped(
        said >= 0 && said < stage.ordinal()
            ? RejectReason.REJECT_REASON_ROUND_PAST
            : RejectReason.REJECT_REASON_ROUND_FUTURE);
  }

  @Override
  public Step recorded(ByteString recorded) {
    if (stage != Stage.RECORD) {
      throw new IllegalStateException("no nonce is open");
    }
    if (recorded.equals(noncePoint)) {
      return enter(Step.newBuilder(), Stage.ANSWER);
    }
    // The core ends the set-up.
    useNonceUp(recorded);
    pairs.drop(session, peer);
    return over(
        Step.newBuilder(),
        Abort.newBuilder()
            .setCause(AbortCause.ABORT_CAUSE_OTHER_NONCE)
            .setAdvice(Advice.ADVICE_EXCLUDE_PARTY)
            .addSuspects(peer));
  }

  /** A body of the peer for the present step. */
  private Step hear(Step.Builder out, byte[] body) {
    if (stage == Stage.OFFER) {
      boolean common = !offered.isEmpty() && offered.equals(ByteString.copyFrom(body));
      return enter(out, common ? Stage.PREPARE : Stage.PAIR);
    }
    ProtocolCore.Run current = run;
    if (current == null) {
      throw new IllegalStateException("a step that does not run");
    }
    return follow(out, current.handle(peer, body));
  }

  /** Takes over what the core says in the present step. */
  private Step follow(Step.Builder out, Step step) {
    step.getOutgoingList().forEach(each -> out.addOutgoing(outgoing(each.getEnvelope())));
    return switch (step.getProgressCase()) {
      case DROPPED -> out.setRound(stage.round()).setDropped(step.getDropped()).build();
      case ABORT -> {
        pairs.drop(session, peer);
        yield over(out, step.getAbort().toBuilder());
      }
      case DONE -> done(out, step.getDone());
      case WAITING, PROGRESS_NOT_SET -> waiting(out);
    };
  }

  private Step done(Step.Builder out, Done done) {
    closeStep();
    return switch (stage) {
      case PAIR -> {
        pairs.settled(session, peer);
        yield enter(out, Stage.PREPARE);
      }
      case PREPARE -> enter(out, Stage.NONCE);
      case NONCE -> {
        stage = Stage.RECORD;
        noncePoint = done.getNoncePoint();
        yield out.setRound(stage.round())
            .setDone(Done.newBuilder().setNoncePoint(noncePoint))
            .build();
      }
      case ANSWER -> {
        stage = Stage.OVER;
        yield out.setRound(stage.round())
            .setDone(Done.newBuilder().setSignature(done.getSignature()))
            .build();
      }
      case OFFER, RECORD, OVER -> throw new IllegalStateException("the core did " + stage);
    };
  }

  /** Begins a step, and hears what the peer has said of it already. */
  private Step enter(Step.Builder out, Stage next) {
    stage = next;
    Step first;
    try {
      ProtocolCore.Run started =
          switch (next) {
            case PAIR -> pairs.start(step(ExactProtocol.PAIR).build(), sealedShare);
            case PREPARE ->
                pairs.start(
                    step(ExactProtocol.PREPARE)
                        .setMessageBlocks(blocks(session.getPayload().size()))
                        .build(),
                    ByteString.EMPTY);
            case NONCE ->
                pairs.start(
                    step(ExactProtocol.NONCE)
                        .setPayload(session.getPayload())
                        .setPresignatureId(id(ExactProtocol.PREPARE))
                        .build(),
                    ByteString.EMPTY);
            case ANSWER -> answer(noncePoint);
            case OFFER, RECORD, OVER -> throw new IllegalStateException(next + " has no session");
          };
      run = started;
      first = started.firstStep();
    } catch (RefusedException e) {
      // Another session of the pair has set up anew meanwhile, or the vault is full.
      log.warn("a step of a pair could not start: {} {}", next, e.detail());
      pairs.doubt(session, peer);
      return over(
          out,
          Abort.newBuilder()
              .setCause(AbortCause.ABORT_CAUSE_INTERNAL)
              .setAdvice(Advice.ADVICE_RETRY)
              .setDetail("a step of the pair could not start"));
    }
    Step entered = follow(out, first);
    byte[] heard = early;
    if (heard == null || !entered.hasWaiting() || heard[0] != stage.ordinal()) {
      return entered;
    }
    early = null;
    return hear(
        Step.newBuilder().addAllOutgoing(entered.getOutgoingList()),
        Arrays.copyOfRange(heard, 1, heard.length));
  }

  private ProtocolCore.Run answer(ByteString recorded) throws RefusedException {
    return pairs.start(
        step(ExactProtocol.ANSWER)
            .setPayload(session.getPayload())
            .setPresignatureId(id(ExactProtocol.NONCE))
            .setRecordedNonce(recorded)
            .build(),
        ByteString.EMPTY);
  }

  /** Blocks of SHA-512 that prefix, message and padding take. */
  static int blocks(int messageBytes) {
    return Math.ceilDiv(messageBytes + PREFIX_AND_PADDING_BYTES, BLOCK_BYTES);
  }

  private SessionConfig.Builder step(ExactProtocol protocol) {
    return ExactPairs.step(session, peer, protocol);
  }

  private ByteString id(ExactProtocol protocol) {
    return ExactPairs.stepId(session, peer, protocol);
  }

  private Outgoing outgoing(ByteString body) {
    return Outgoing.newBuilder()
        .setRecipient(peer)
        .setRound(stage.round())
        .setEnvelope(ByteString.copyFrom(new byte[] {(byte) stage.ordinal()}).concat(body))
        .build();
  }

  private Step waiting(Step.Builder out) {
    return out.setRound(stage.round()).setWaiting(Waiting.newBuilder().addMissing(peer)).build();
  }

  private Step dropped(RejectReason reason) {
    return Step.newBuilder()
        .setRound(stage.round())
        .setDropped(Dropped.newBuilder().setReason(reason))
        .build();
  }

  private Step over(Step.Builder out, Abort.Builder abort) {
    closeStep();
    int round = stage.round();
    stage = Stage.OVER;
    return out.setRound(round).setAbort(abort.setRound(round)).build();
  }

  /** An open nonce is answered in no session: its place in the vault is given back. */
  private void useNonceUp(ByteString recorded) {
    try {
      answer(recorded).close();
    } catch (RefusedException e) {
      log.debug("an open nonce is gone already: {}", e.detail());
    }
  }

  private void closeStep() {
    ProtocolCore.Run current = run;
    run = null;
    if (current != null) {
      current.close();
    }
  }

  @Override
  public void close() {
    if (stage != Stage.OFFER && stage != Stage.OVER) {
      pairs.doubt(session, peer);
    }
    if (stage == Stage.RECORD) {
      stage = Stage.OVER;
      useNonceUp(noncePoint);
    }
    closeStep();
    byte[] heard = early;
    early = null;
    if (heard != null) {
      Arrays.fill(heard, (byte) 0);
    }
  }
}
