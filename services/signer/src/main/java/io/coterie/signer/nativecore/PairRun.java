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
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The work of a pair in one session at one party, one step of the core after another: it prepares a
 * signature, or signs with one that it has prepared, or does both. Before it prepares, each tells
 * the other which set-up it has, since one of them may have started again: without a common one
 * they set up anew. Between nonce and answer the caller stores the nonce point.
 *
 * <p>With a prepared signature the party with the higher number speaks first: it says which set-up
 * it uses, and its part of the nonce with it.
 *
 * <p>An envelope is a byte that says the step, and what the core has said in it.
 */
final class PairRun implements ProtocolCore.Run, ExactPairs.SetsUp {
  private static final Logger log = LoggerFactory.getLogger(PairRun.class);

  /**
   * Longest message of a later step that is kept. A peer is faster only while the nonce point is on
   * its way to the disk, and then says a number of 32 bytes.
   */
  private static final int MAX_EARLY_BYTES = 4096;

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

  /** The work that the order names. */
  private final ExactProtocol work;

  /** The set-up of this party with its peer that the session uses; empty for none. */
  private ByteString setUp;

  /** Until the nonce is open: the circuit is used up then. */
  private final CircuitRoom.Place room;

  private final Step firstStep;

  private Stage stage;
  private ProtocolCore.@Nullable Run run;

  /** The core's first step with a prepared signature, until the peer is there. */
  private @Nullable Step held;

  private ByteString noncePoint = ByteString.EMPTY;

  /** A message of the next step, if the peer was faster. */
  private byte @Nullable [] early;

  /** Set if a signature sets the pair up meanwhile, so that this run need not. */
  private volatile boolean givesWay;

  private PairRun(SessionConfig session, ByteString sealedShare, ExactPairs pairs, int peer)
      throws RefusedException {
    this.session = session;
    this.sealedShare = sealedShare;
    this.pairs = pairs;
    this.peer = peer;
    this.work = ExactProtocol.of(session.getProtocol()).orElseThrow();
    this.setUp = presentSetUp();
    this.room = pairs.room(peer, messageBlocks(), use());
    this.stage = Stage.OFFER;
    Step.Builder first = Step.newBuilder();
    if (work != ExactProtocol.NONCE) {
      this.firstStep = waiting(first.addOutgoing(outgoing(setUp)));
    } else if (session.getSelf() < peer) {
      this.held = usePrepared();
      this.firstStep = waiting(first);
    } else {
      // One envelope, since the peer may hear two in another order.
      Step used = usePrepared();
      first.addOutgoing(outgoing(setUp.concat(used.getOutgoing(0).getEnvelope())));
      this.stage = Stage.NONCE;
      this.firstStep = waiting(first);
    }
  }

  private CircuitRoom.Use use() {
    return switch (work) {
      case PREPARE -> CircuitRoom.Use.BACKGROUND;
      case NONCE -> CircuitRoom.Use.PREPARED;
      case PAIR, ANSWER -> CircuitRoom.Use.PREPARES;
    };
  }

  /**
   * Starts with the other party of the session.
   *
   * @throws RefusedException if the core does not have the prepared signature, or there is no room
   */
  static ProtocolCore.Run start(SessionConfig session, ByteString sealedShare, ExactPairs pairs)
      throws RefusedException {
    return new PairRun(session, sealedShare, pairs, ExactPairs.peers(session).getFirst());
  }

  /** Takes the prepared signature out of the vault, whatever comes of the session. */
  private Step usePrepared() throws RefusedException {
    try {
      ProtocolCore.Run started = pairs.start(nonce(session.getPresignatureId()), ByteString.EMPTY);
      run = started;
      return started.firstStep();
    } catch (RefusedException e) {
      room.close();
      throw new RefusedException(
          RefusalReason.REFUSAL_REASON_PRESIGNATURE_UNKNOWN,
          "this party's set-up with its peer is not the one that it was prepared under");
    }
  }

  @Override
  public boolean isBackground() {
    return work == ExactProtocol.PREPARE;
  }

  @Override
  public void giveWay() {
    givesWay = true;
  }

  @Override
  public boolean computesLong() {
    // With the answer to its offer it begins one of them, and compiles the circuit.
    boolean begins = stage == Stage.OFFER && work != ExactProtocol.NONCE;
    return begins || stage == Stage.PAIR || stage == Stage.PREPARE;
  }

  @Override
  public Step firstStep() {
    return firstStep;
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
    if (said > stage.ordinal()
        && said < Stage.OVER.ordinal()
        && envelope.length <= MAX_EARLY_BYTES
        && early == null) {
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
    pairs.drop(session, peer, setUp);
    return end(
        Step.newBuilder(),
        Abort.newBuilder()
            .setCause(AbortCause.ABORT_CAUSE_OTHER_NONCE)
            .setAdvice(Advice.ADVICE_EXCLUDE_PARTY)
            .addSuspects(peer));
  }

  /** A body of the peer for the present step. */
  private Step hear(Step.Builder out, byte[] body) {
    if (stage == Stage.OFFER) {
      ByteString said = ByteString.copyFrom(body);
      Step first = held;
      if (first == null) {
        boolean common = !setUp.isEmpty() && setUp.equals(said);
        return enter(out, common ? Stage.PREPARE : Stage.PAIR);
      }
      held = null;
      stage = Stage.NONCE;
      return said.startsWith(setUp)
          ? hear(
              follow(out, first).toBuilder(), Arrays.copyOfRange(body, setUp.size(), body.length))
          : mismatch(out);
    }
    ProtocolCore.Run current = run;
    if (current == null) {
      throw new IllegalStateException("a step that does not run");
    }
    if (stage == Stage.PAIR && givesWay) {
      return overtaken(out);
    }
    return follow(
        out,
        stage == Stage.PAIR
            ? pairs.pair(session, peer, sealedShare, current, body)
            : current.handle(peer, body));
  }

  /** Takes over what the core says in the present step. */
  private Step follow(Step.Builder out, Step step) {
    step.getOutgoingList().forEach(each -> out.addOutgoing(outgoing(each.getEnvelope())));
    return switch (step.getProgressCase()) {
      case DROPPED ->
          // The channel has proved the peer, so it has started with something else in its place.
          step.getDropped().getReason() == RejectReason.REJECT_REASON_SESSION
              ? mismatch(out)
              : out.setRound(stage.round()).setDropped(step.getDropped()).build();
      case ABORT -> {
        // The core cannot tell why a set-up has gone that it was in the middle of using.
        boolean byAnother =
            step.getAbort().getCause() == AbortCause.ABORT_CAUSE_INTERNAL
                && stage != Stage.PAIR
                && !usesOwnSetUp();
        if (byAnother) {
          yield overtaken(out);
        }
        pairs.drop(session, peer, setUp);
        yield end(out, step.getAbort().toBuilder());
      }
      case DONE -> done(out, step.getDone());
      case WAITING, PROGRESS_NOT_SET -> waiting(out);
    };
  }

  private Step done(Step.Builder out, Done done) {
    closeStep();
    return switch (stage) {
      case PAIR -> {
        pairs.endSetUp(session, peer, this);
        setUp = pairs.setUp(session, peer, sealedShare);
        yield enter(out, Stage.PREPARE);
      }
      case PREPARE -> isBackground() ? over(out, done) : enter(out, Stage.NONCE);
      case NONCE -> {
        room.close();
        stage = Stage.RECORD;
        noncePoint = done.getNoncePoint();
        yield out.setRound(stage.round())
            .setDone(Done.newBuilder().setNoncePoint(noncePoint))
            .build();
      }
      case ANSWER -> over(out, Done.newBuilder().setSignature(done.getSignature()).build());
      case OFFER, RECORD, OVER -> throw new IllegalStateException("the core did " + stage);
    };
  }

  /** A set-up that was made meanwhile stays, unless a signature waits for another one. */
  private boolean mayBeginSetUp() {
    boolean latest = !isBackground() || pairs.setUp(session, peer, sealedShare).equals(setUp);
    return latest && pairs.beginSetUp(session, peer, this);
  }

  /** Begins a step, and hears what the peer has said of it already. */
  private Step enter(Step.Builder out, Stage next) {
    stage = next;
    if (next == Stage.PAIR && !mayBeginSetUp()) {
      return overtaken(out);
    }
    Step first;
    try {
      ProtocolCore.Run started =
          switch (next) {
            case PAIR -> pairs.start(step(ExactProtocol.PAIR).build(), sealedShare);
            case PREPARE ->
                pairs.start(
                    step(ExactProtocol.PREPARE).setMessageBlocks(messageBlocks()).build(),
                    ByteString.EMPTY);
            case NONCE -> pairs.start(nonce(id(ExactProtocol.PREPARE)), ByteString.EMPTY);
            case ANSWER -> answer(noncePoint);
            case OFFER, RECORD, OVER -> throw new IllegalStateException(next + " has no session");
          };
      run = started;
      first = started.firstStep();
      if (next == Stage.PREPARE && !usesOwnSetUp()) {
        return overtaken(out);
      }
    } catch (RefusedException e) {
      if (next != Stage.PAIR && !usesOwnSetUp()) {
        return overtaken(out);
      }
      log.warn("a step of a pair could not start: {} {}", next, e.detail());
      return end(
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

  /** Whether the vault has had this session's set-up all the while. */
  private boolean usesOwnSetUp() {
    return !setUp.isEmpty() && setUp.equals(presentSetUp());
  }

  /** A prepared signature is bound to its set-up, and through it to a share. */
  private ByteString presentSetUp() {
    return work == ExactProtocol.NONCE
        ? pairs.setUp(session, peer)
        : pairs.setUp(session, peer, sealedShare);
  }

  private int messageBlocks() {
    return isBackground()
        ? session.getMessageBlocks()
        : ExactProtocol.blocks(session.getPayload().size());
  }

  private SessionConfig nonce(ByteString prepared) {
    return step(ExactProtocol.NONCE)
        .setPayload(session.getPayload())
        .setPresignatureId(prepared)
        .build();
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

  private Step over(Step.Builder out, Done done) {
    room.close();
    stage = Stage.OVER;
    return out.setRound(stage.round()).setDone(done).build();
  }

  private Step end(Step.Builder out, Abort.Builder abort) {
    closeStep();
    room.close();
    pairs.endSetUp(session, peer, this);
    int round = stage.round();
    stage = Stage.OVER;
    return out.setRound(round).setAbort(abort.setRound(round)).build();
  }

  private Step mismatch(Step.Builder out) {
    return end(
        out,
        Abort.newBuilder()
            .setCause(AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH)
            .setAdvice(Advice.ADVICE_RETRY)
            .setDetail("the parties of the pair use two different preparations")
            .addSuspects(peer));
  }

  /**
   * Another session of the pair has set it up, does so now, or has ended its set-up: neither party
   * is to blame, and no suspect is named.
   */
  private Step overtaken(Step.Builder out) {
    return end(
        out,
        Abort.newBuilder()
            .setCause(AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH)
            .setAdvice(Advice.ADVICE_RETRY)
            .setDetail(
                "another session of the pair has changed its set-up meanwhile: the coordinator"
                    + " tries again"));
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
    room.close();
    pairs.endSetUp(session, peer, this);
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
