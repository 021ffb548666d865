package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.TakeShare;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.ProtocolCore;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Runs of pairs as a corrupt peer and a corrupt coordinator have them, without sessions around. */
@Timeout(300)
class ExactRunsTest extends ExactFixture {
  private static final ProtocolId PAIR = ProtocolId.PROTOCOL_ID_ED25519_EXACT_PAIR;
  private static final ProtocolId PREPARE = ProtocolId.PROTOCOL_ID_ED25519_EXACT_PREPARE;
  private static final ProtocolId SIGN = ProtocolId.PROTOCOL_ID_ED25519_EXACT_ANSWER;

  private static final int PREPARE_ROUND = 3;

  /** In which a prepared circuit is evaluated. */
  private static final int NONCE_ROUND = 4;

  private final List<ProtocolCore.Run> runs = new ArrayList<>();
  private int sessions;

  @AfterEach
  void closeRuns() {
    runs.forEach(ProtocolCore.Run::close);
  }

  /** The shares of a split as the parties keep them, in the order of their ids. */
  private List<ByteString> taken(byte[] seed) throws RefusedException {
    List<ByteString> sealed = new ArrayList<>();
    for (ByteString share : split(seed, KEY)) {
      int party = sealed.size() + 1;
      TakeShare call = TakeShare.newBuilder().setKeyId(KEY).setParty(party).setShare(share).build();
      sealed.add(cores.core(name(party)).takeShare(call).orElseThrow().getSealedShare());
    }
    return sealed;
  }

  private SessionConfig.Builder session(ProtocolId protocol, int... set) {
    sessions++;
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(protocol)
            .setSessionId(ByteString.copyFrom(ByteBuffer.allocate(32).putInt(sessions).array()))
            .setThreshold(2)
            .setKeyId(KEY)
            .setEpoch(1);
    for (int party : set) {
      config.addParties(NativeParties.party(i, party));
    }
    return config;
  }

  private SessionConfig.Builder signing(String message, int... set) {
    return session(SIGN, set).setPayload(ByteString.copyFromUtf8(message));
  }

  private ProtocolCore.Run start(SessionConfig.Builder config, int party, ByteString share)
      throws RefusedException {
    ProtocolCore.Run run =
        cores.core(name(party)).start(config.build().toBuilder().setSelf(party).build(), share);
    runs.add(run);
    return run;
  }

  /** Lets the parties of a session talk to its end. The last step of each. */
  private Map<Integer, Step> talk(SessionConfig.Builder config, List<ByteString> shares)
      throws RefusedException {
    Map<Integer, Step> ends = talk(config, shares, Integer.MAX_VALUE);
    assertDone(ends);
    return ends;
  }

  /** The same until one of them has come to a round: all stop there. */
  private Map<Integer, Step> talk(SessionConfig.Builder config, List<ByteString> shares, int stopAt)
      throws RefusedException {
    Talk talk = new Talk(config, shares);
    talk.goOn(stopAt);
    return talk.last;
  }

  /** Another session of the same parties. */
  private interface Interruption {
    void happen() throws RefusedException;
  }

  /** A session whose messages arrive when this test says so. */
  private final class Talk {
    private record Said(int from, Outgoing message) {}

    private final Map<Integer, ProtocolCore.Run> talking = new HashMap<>();
    private final Map<Integer, Step> last = new HashMap<>();
    private final Queue<Said> said = new ArrayDeque<>();

    /** Happens while the first nonce point is on its way to the disk. */
    Interruption beforeRecord = () -> {};

    Talk(SessionConfig.Builder config, List<ByteString> shares) throws RefusedException {
      for (var party : config.getPartiesList()) {
        int id = party.getId();
        ProtocolCore.Run run = start(config, id, shares.get(id - 1));
        talking.put(id, run);
        last.put(id, run.firstStep());
        run.firstStep().getOutgoingList().forEach(message -> said.add(new Said(id, message)));
      }
    }

    /** Goes on until one of them has come to a round, or to its end. */
    void goOn(int stopAt) throws RefusedException {
      while (last.values().stream().allMatch(step -> step.getRound() < stopAt) && hearNext()) {}
    }

    /** Whether there was a message on its way. */
    boolean hearNext() throws RefusedException {
      Said next = said.poll();
      if (next == null) {
        return false;
      }
      int to = next.message().getRecipient();
      ProtocolCore.Run run = talking.get(to);
      Step step = run.handle(next.from(), next.message().getEnvelope().toByteArray());
      while (true) {
        step.getOutgoingList().forEach(message -> said.add(new Said(to, message)));
        if (!step.hasDropped()) {
          last.put(to, step);
        }
        if (step.getDone().getNoncePoint().isEmpty()) {
          return true;
        }
        Interruption happening = beforeRecord;
        beforeRecord = () -> {};
        happening.happen();
        step = run.recorded(step.getDone().getNoncePoint());
      }
    }
  }

  private void assertDone(Map<Integer, Step> steps) {
    assertThat(steps.values()).as(steps.toString()).allMatch(Step::hasDone);
  }

  /**
   * The store has not taken the shares of a second import, since the key was in use by then. The
   * set-ups of their pairs have the name of the key, and are not used for it.
   */
  @Test
  void a_pair_signs_with_the_share_that_its_session_has_whatever_was_set_up_under_the_name()
      throws RefusedException {
    List<ByteString> kept = taken(SEED);
    talk(session(PAIR, 1, 2), kept);
    byte[] foreign = SEED.clone();
    foreign[0]++;
    talk(session(PAIR, 1, 2), taken(foreign));
    Map<Integer, Step> ends = talk(signing(MESSAGE, 1, 2), kept);
    assertThat(ends.values())
        .allSatisfy(end -> assertThat(end.getDone().getSignature()).isEqualTo(SIGNATURE));
    // The set-up of this session is used from now on.
    talk(session(PREPARE, 1, 2).setMessageBlocks(1), kept);
  }

  /** Both of the pair have it, and in the middle of one session another one takes its place. */
  @Test
  void a_session_whose_set_up_another_one_replaces_ends_and_nobody_is_blamed()
      throws RefusedException {
    List<ByteString> kept = taken(SEED);
    talk(session(PAIR, 1, 2), kept);
    for (int round : new int[] {PREPARE_ROUND, NONCE_ROUND}) {
      Talk overtaken = new Talk(signing(MESSAGE, 1, 2), kept);
      overtaken.goOn(round);
      talk(session(PAIR, 1, 2), kept);
      overtaken.goOn(Integer.MAX_VALUE);
      assertOvertaken(overtaken);
    }
    Talk recording = new Talk(signing(MESSAGE, 1, 2), kept);
    recording.beforeRecord = () -> talk(session(PAIR, 1, 2), kept);
    recording.goOn(Integer.MAX_VALUE);
    assertOvertaken(recording);
  }

  private void assertOvertaken(Talk talk) {
    List<Step> ends = talk.last.values().stream().filter(step -> !step.hasWaiting()).toList();
    assertThat(ends).as(talk.last.toString()).isNotEmpty();
    assertThat(ends)
        .allSatisfy(
            end -> {
              Abort abort = end.getAbort();
              assertThat(abort.getCause()).isEqualTo(AbortCause.ABORT_CAUSE_CIRCUIT_MISMATCH);
              assertThat(abort.getCulpritsList()).isEmpty();
              assertThat(abort.getSuspectsList()).isEmpty();
              assertThat(abort.getDetail()).contains("the coordinator tries again");
            });
  }

  /** They have offered the set-up that they have, and another share's takes its place. */
  @Test
  void a_session_prepares_with_the_set_up_that_it_has_offered_and_no_later_one()
      throws RefusedException {
    List<ByteString> kept = taken(SEED);
    talk(session(PAIR, 1, 2), kept);
    Talk offered = new Talk(signing(MESSAGE, 1, 2), kept);
    byte[] foreign = SEED.clone();
    foreign[0]++;
    talk(session(PAIR, 1, 2), taken(foreign));
    offered.goOn(Integer.MAX_VALUE);
    assertOvertaken(offered);
  }

  /** Neither has a set-up when they begin, so that each session makes one. */
  @Test
  void of_two_sessions_that_set_up_at_a_time_the_earlier_one_ends_and_nobody_is_blamed()
      throws RefusedException {
    List<ByteString> kept = taken(SEED);
    Talk first = new Talk(signing("first", 1, 2), kept);
    Talk second = new Talk(signing(MESSAGE, 1, 2), kept);
    while (first.hearNext() | second.hearNext()) {}
    assertOvertaken(first);
    assertThat(second.last.values())
        .as(second.last.toString())
        .allSatisfy(end -> assertThat(end.getDone().getSignature()).isEqualTo(SIGNATURE));
  }

  private void assertNoRoom(SessionConfig.Builder config, int party, ByteString share) {
    assertThatExceptionOfType(RefusedException.class)
        .isThrownBy(() -> start(config, party, share))
        .satisfies(
            refused ->
                assertThat(refused.reason()).isEqualTo(RefusalReason.REFUSAL_REASON_OVERLOADED));
  }

  /** Each of the peer's sessions would hold a set-up in the making, of some 50 MB. */
  @Test
  void a_peer_that_stops_in_every_session_leaves_room_to_others() throws RefusedException {
    List<ByteString> shares = taken(SEED);
    ByteString own = shares.getFirst();
    ProtocolCore.Run first = start(signing(MESSAGE, 1, 2), 1, own);
    for (int stopped = 1; stopped < 8; stopped++) {
      start(signing(MESSAGE, 1, 2), 1, own);
    }
    assertNoRoom(signing(MESSAGE, 1, 2), 1, own);
    assertNoRoom(session(PAIR, 1, 2, 3), 1, own);
    assertNoRoom(session(PREPARE, 1, 2).setMessageBlocks(1), 1, own);
    assertThat(talk(signing(MESSAGE, 1, 3), shares).get(1).getDone().getSignature())
        .isEqualTo(SIGNATURE);
    first.close();
    assertThat(talk(signing(MESSAGE, 1, 2), shares).get(1).getDone().getSignature())
        .isEqualTo(SIGNATURE);
    start(session(PAIR, 1, 2, 3), 1, own);
  }

  /** Until the nonce is open a circuit is in the vault, where others need the room. */
  @Test
  void a_peer_that_stops_after_the_preparation_has_not_given_its_room_back()
      throws RefusedException {
    List<ByteString> shares = taken(SEED);
    String half = "x".repeat(6 * 128 - 49);
    assertThat(talk(signing(half, 1, 2), shares, NONCE_ROUND).values())
        .anyMatch(step -> step.getRound() == NONCE_ROUND);
    assertNoRoom(signing(half + "y", 1, 2), 1, shares.getFirst());
    runs.forEach(ProtocolCore.Run::close);
    start(signing(half + "y", 1, 2), 1, shares.getFirst());
  }

  @Test
  void a_long_message_of_a_later_step_is_not_kept() throws RefusedException {
    ProtocolCore.Run run = start(signing(MESSAGE, 1, 2), 1, taken(SEED).getFirst());
    byte[] frame = new byte[1 << 20];
    frame[0] = 5;
    assertThat(run.handle(2, frame).getDropped().getReason())
        .isEqualTo(RejectReason.REJECT_REASON_ROUND_FUTURE);
    assertThat(run.handle(2, new byte[] {5, 0}).hasWaiting()).isTrue();
    assertThat(run.handle(2, new byte[] {5, 1}).hasDropped()).as("one is kept").isTrue();
  }
}
