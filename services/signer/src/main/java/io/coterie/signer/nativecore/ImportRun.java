package io.coterie.signer.nativecore;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.ExactProtocol;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Dropped;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The import of a key at one party: it sets up with each of the others, and each pair makes the
 * owner's test signature. Done when all of its pairs have.
 */
final class ImportRun implements ProtocolCore.Run {
  private static final int ROUND = 1;

  private final SessionConfig session;
  private final ByteString sealedShare;
  private final ExactPairs pairs;
  private final SortedMap<Integer, ProtocolCore.Run> running = new TreeMap<>();

  /** Room for each pair that has not made the test signature. */
  private final Map<Integer, CircuitRoom.Place> rooms = new TreeMap<>();

  /** The set-ups that this session has made, by peer. */
  private final Map<Integer, ByteString> made = new TreeMap<>();

  private final Step firstStep;
  private boolean over;

  /** Whether every pair has made the test signature. */
  private boolean done;

  private ImportRun(SessionConfig session, ByteString sealedShare, ExactPairs pairs)
      throws RefusedException {
    this.session = session;
    this.sealedShare = sealedShare;
    this.pairs = pairs;
    try {
      for (int peer : ExactPairs.peers(session)) {
        rooms.put(peer, pairs.room(peer, 1, CircuitRoom.Use.PREPARES));
        SessionConfig step = ExactPairs.step(session, peer, ExactProtocol.PAIR).build();
        running.put(peer, pairs.start(step, sealedShare));
      }
    } catch (RefusedException e) {
      close();
      throw e;
    }
    Step.Builder first = Step.newBuilder();
    running.forEach((peer, run) -> say(first, run.firstStep(), peer));
    this.firstStep = waiting(first);
  }

  /** Starts with every other party of the session. */
  static ProtocolCore.Run start(SessionConfig session, ByteString sealedShare, ExactPairs pairs)
      throws RefusedException {
    return new ImportRun(session, sealedShare, pairs);
  }

  @Override
  public boolean computesLong() {
    return true;
  }

  @Override
  public Step firstStep() {
    return firstStep;
  }

  @Override
  public Step handle(int sender, byte[] envelope) {
    ProtocolCore.Run run = running.get(sender);
    if (over || run == null) {
      return Step.newBuilder()
          .setDropped(Dropped.newBuilder().setReason(RejectReason.REJECT_REASON_ROUND_PAST))
          .build();
    }
    Step step = pairs.pair(session, sender, sealedShare, run, envelope);
    Step.Builder next = Step.newBuilder();
    say(next, step, sender);
    if (step.hasAbort()) {
      over = true;
      close();
      return next.setAbort(step.getAbort().toBuilder().setRound(ROUND)).build();
    }
    if (step.hasDropped()) {
      return next.setRound(ROUND).setDropped(step.getDropped()).build();
    }
    if (step.hasDone()) {
      running.remove(sender);
      run.close();
      giveRoomBack(sender);
      made.put(sender, pairs.setUp(session, sender, sealedShare));
      if (running.isEmpty()) {
        over = true;
        done = true;
        return next.setDone(
                Done.newBuilder()
                    .setSealedShare(sealedShare)
                    .setKeyPublic(step.getDone().getKeyPublic()))
            .build();
      }
    }
    return waiting(next);
  }

  /** Adds the messages of a pair, which concern the two of it alone. */
  private static void say(Step.Builder next, Step step, int peer) {
    step.getOutgoingList()
        .forEach(said -> next.addOutgoing(said.toBuilder().setRecipient(peer).setRound(ROUND)));
  }

  private void giveRoomBack(int peer) {
    CircuitRoom.Place place = rooms.remove(peer);
    if (place != null) {
      place.close();
    }
  }

  private Step waiting(Step.Builder step) {
    return step.setRound(ROUND)
        .setWaiting(Waiting.newBuilder().addAllMissing(running.keySet()))
        .build();
  }

  @Override
  public void close() {
    running.values().forEach(ProtocolCore.Run::close);
    running.clear();
    List.copyOf(rooms.keySet()).forEach(this::giveRoomBack);
    if (!done) {
      // There is no such key, so nothing made with its shares stays in memory.
      made.forEach((peer, setUp) -> pairs.drop(session, peer, setUp));
    }
  }
}
