package io.coterie.signer.party;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.ClockStatement;
import io.coterie.proto.party.v1.ClockAnswer;
import io.coterie.proto.party.v1.ClockQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.TestEvidence;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A party compares its clock with those of its peers. */
class PeerClocksTest {
  private static final Instant HERE = Instant.parse("2026-11-26T08:00:00Z");

  private final Member alpha = member("alpha", Member.Role.PARTY, 1);
  private final Member coordinator = member("coordinator", Member.Role.COORDINATOR, 0);
  private final List<Member> peers =
      new ArrayList<>(
          List.of(
              member("bravo", Member.Role.PARTY, 2),
              member("carol", Member.Role.PARTY, 3),
              member("delta", Member.Role.PARTY, 4)));
  private final List<PartyMessage> sent = new ArrayList<>();
  private final List<Collection<Member>> to = new ArrayList<>();
  private Duration passed = Duration.ZERO;
  private boolean inLane;
  private Runnable everySecond = () -> {};
  private final PeerClocks clocks =
      new PeerClocks(
          new Net(),
          this::signed,
          new Pool(),
          (InstantSource) () -> HERE.plus(passed),
          new Random(1));

  private ByteString signed(ByteString statement) {
    assertThat(inLane).as("the channel's thread signs nothing").isTrue();
    return TestEvidence.sign(1, statement);
  }

  private static Member member(String name, Member.Role role, int id) {
    return new Member(
        name,
        role,
        id,
        "here",
        new UUID(1, id),
        1,
        new byte[33],
        role == Member.Role.PARTY ? TestEvidence.publicKey(id) : new byte[0]);
  }

  private final class Net implements PartyNetwork {
    @Override
    public Roster roster() {
      List<Member> all = new ArrayList<>(peers);
      all.addAll(List.of(alpha, coordinator));
      return new Roster("test", 1, all);
    }

    @Override
    public Member self() {
      return alpha;
    }

    @Override
    public Set<Member> reachable() {
      Set<Member> all = new HashSet<>(peers);
      all.add(coordinator);
      return all;
    }

    @Override
    public void broadcast(
        Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
      to.add(recipients);
      sent.add(message);
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      broadcast(List.of(recipient), message, traceparent);
    }
  }

  /** Time passes when the test says so. */
  private final class Pool implements WorkPool {
    @Override
    public Lane lane() {
      return new Lane() {
        @Override
        public void execute(Runnable task) {
          inLane = true;
          task.run();
          inLane = false;
        }

        @Override
        public void priority(Priority now) {
          throw new AssertionError("clocks are urgent: an answer that lies is a wrong reading");
        }
      };
    }

    @Override
    public Future<?> after(Duration delay, Runnable task) {
      throw new AssertionError("clocks only ask every so often");
    }

    @Override
    public Future<?> every(Duration period, Runnable task) {
      assertThat(period).isEqualTo(Duration.ofSeconds(1));
      everySecond = task;
      return new CompletableFuture<>();
    }

    @Override
    public long nanos() {
      return passed.toNanos();
    }

    @Override
    public void close() {}
  }

  @Test
  void the_slowest_of_some_clocks_is_known_by_its_last_word_and_not_without_end() {
    assertThat(clocks.behind(List.of(1, 2, 3, 4)))
        .as("nobody has answered since the start")
        .isEqualTo(PeerClocks.TOLERANCE);
    assertThat(clocks.behind(List.of(1))).as("this party's own").isZero();
    answer(5, -7);
    assertThat(clocks.behind(List.of(1, 2, 3))).isEqualTo(Duration.ofSeconds(7));
    assertThat(clocks.behind(List.of(2, 4))).as("one is not heard").hasSeconds(30);
    answer(5, -7, -12);
    assertThat(clocks.behind(List.of(1, 2, 3))).isEqualTo(Duration.ofSeconds(7));
    assertThat(clocks.behind(List.of(1, 2, 3, 4))).isEqualTo(Duration.ofSeconds(12));
    assertThat(clocks.behind(List.of(1, 2))).as("ahead of this one").isZero();
    pass(Duration.ofMinutes(6));
    assertThat(clocks.behind(List.of(3))).isEqualTo(Duration.ofSeconds(7));
    answer(0, 0, -1_000_000);
    assertThat(clocks.behind(List.of(4))).isEqualTo(PeerClocks.TOLERANCE);
  }

  private void pass(Duration time) {
    passed = passed.plus(time);
  }

  /** A peer whose clock is ahead by so many seconds answers the last question at once. */
  private void answers(int peer, long aheadSeconds) {
    says(peer, lastChallenge(), HERE.plus(passed).plusSeconds(aheadSeconds).toEpochMilli());
  }

  private ByteString lastChallenge() {
    return sent.getLast().getClockQuestion().getChallenge();
  }

  private void says(int peer, ByteString challenge, long unixMs) {
    clocks.answered(peers.get(peer), signed(peer, "test", 1, challenge, unixMs));
  }

  private ClockAnswer signed(
      int peer, String installation, int asker, ByteString challenge, long unixMs) {
    int party = peers.get(peer).partyId();
    ClockStatement says = new ClockStatement(installation, party, asker, challenge, unixMs);
    return ClockAnswer.newBuilder()
        .setChallenge(challenge)
        .setUnixMs(unixMs)
        .setSignature(TestEvidence.sign(party, says.statement()))
        .build();
  }

  private void answer(long... aheadSeconds) {
    clocks.ask();
    for (int peer = 0; peer < aheadSeconds.length; peer++) {
      answers(peer, aheadSeconds[peer]);
    }
  }

  /** Until then a session that lapses waits for the slowest clock that is tolerated. */
  @Test
  void a_peer_is_asked_soon_after_the_start_and_again_until_it_is_heard() {
    assertThat(askedAt(0, 70)).containsExactly(1, 3, 7, 15, 31, 51);
  }

  @Test
  void peers_that_were_all_heard_are_asked_now_and_then() {
    assertThat(askedAt(0, 1)).containsExactly(1);
    for (int peer = 0; peer < 3; peer++) {
      answers(peer, 0);
    }
    assertThat(askedAt(1, 70)).containsExactly(21, 41, 61);
  }

  /** The seconds of a time at which the peers are asked. */
  private List<Integer> askedAt(int from, int to) {
    List<Integer> asked = new ArrayList<>();
    for (int second = from + 1; second <= to; second++) {
      pass(Duration.ofSeconds(1));
      int before = sent.size();
      everySecond.run();
      if (sent.size() > before) {
        asked.add(second);
      }
    }
    return asked;
  }

  @Test
  void the_parties_are_asked_and_nobody_else() {
    clocks.ask();
    assertThat(to.getFirst()).containsExactlyInAnyOrderElementsOf(peers);
    ByteString first = lastChallenge();
    assertThat(first.size()).isEqualTo(ClockStatement.CHALLENGE_BYTES);
    clocks.ask();
    assertThat(lastChallenge()).isNotEqualTo(first);
  }

  @Test
  void the_median_counts_and_one_liar_changes_nothing() {
    assertThat(clocks.isApart()).as("nobody has answered").isFalse();
    answer(0, 1, 1_000_000);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(1));
    assertThat(clocks.isApart()).isFalse();
    answer(31, 40, -1_000_000);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(31));
    assertThat(clocks.isApart()).isTrue();
    answer(-31, -40, 0);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(-31));
    assertThat(clocks.isApart()).isTrue();
    answer(30, 40, 30);
    assertThat(clocks.isApart()).as("to the second").isFalse();
  }

  /** Else one that lies, while others are away, puts this party out of service. */
  @Test
  void who_is_away_counts_as_in_step() {
    answer(1_000_000);
    assertThat(clocks.ahead()).as("one of three").isEqualTo(Duration.ZERO);
    answer(100, 50);
    assertThat(clocks.ahead()).as("two of three").isEqualTo(Duration.ofSeconds(50));
    answer(-100, -50);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(-50));
    answer(100, -100);
    assertThat(clocks.ahead()).isEqualTo(Duration.ZERO);
    pass(Duration.ofMinutes(6));
    answer(100);
    assertThat(clocks.isApart()).as("the others have left").isFalse();
  }

  /** Of an even number the one that speaks for this party counts; a single peer decides alone. */
  @Test
  void half_of_the_peers_do_not_judge_a_clock() {
    peers.removeLast();
    answer(100, 0);
    assertThat(clocks.ahead()).isEqualTo(Duration.ZERO);
    answer(100, 50);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(50));
    peers.removeLast();
    answer(100);
    assertThat(clocks.ahead()).as("with one peer nothing else is known").hasSeconds(100);
  }

  @Test
  void an_answer_counts_from_half_way_and_not_if_it_took_long_or_is_another_ones() {
    peers.subList(1, 3).clear();
    clocks.ask();
    pass(Duration.ofSeconds(8));
    answers(0, 36);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(40));
    pass(Duration.ofMinutes(6));
    assertThat(clocks.ahead()).as("it is forgotten").isEqualTo(Duration.ZERO);

    ByteString old = lastChallenge();
    clocks.ask();
    pass(Duration.ofSeconds(11));
    answers(0, 100);
    clocks.ask();
    says(0, old, 5);
    says(0, ByteString.EMPTY, 5);
    clocks.answered(coordinator, signed(0, "test", 1, lastChallenge(), 5));
    assertThat(clocks.ahead()).isEqualTo(Duration.ZERO);
  }

  @Test
  void an_answer_without_the_signature_of_its_party_over_this_very_question_is_none() {
    peers.subList(1, 3).clear();
    clocks.ask();
    ClockAnswer good = signed(0, "test", 1, lastChallenge(), 5);
    clocks.answered(peers.getFirst(), good.toBuilder().setUnixMs(6).build());
    clocks.answered(peers.getFirst(), good.toBuilder().clearSignature().build());
    clocks.answered(peers.getFirst(), signed(0, "staging", 1, lastChallenge(), 5));
    clocks.answered(peers.getFirst(), signed(0, "test", 3, lastChallenge(), 5));
    assertThat(clocks.ahead()).isEqualTo(Duration.ZERO);
    clocks.answered(peers.getFirst(), good);
    assertThat(clocks.isApart()).isTrue();
  }

  @Test
  void a_peer_that_floods_with_answers_has_only_some_verified_and_keeps_no_other_from_it() {
    peers.removeLast();
    clocks.ask();
    ClockAnswer good = signed(0, "test", 1, lastChallenge(), 5);
    for (int i = 0; i < 100; i++) {
      clocks.answered(peers.getFirst(), good.toBuilder().setUnixMs(6).build());
    }
    clocks.answered(peers.getFirst(), good);
    says(1, lastChallenge(), 5);
    assertThat(clocks.isApart()).as("one of two says so").isFalse();
    pass(Duration.ofSeconds(1));
    clocks.answered(peers.getFirst(), good);
    assertThat(clocks.isApart()).isTrue();
  }

  @Test
  void a_time_at_the_end_of_the_world_is_only_wrong() {
    peers.subList(1, 3).clear();
    clocks.ask();
    for (long time : new long[] {Long.MAX_VALUE, Long.MIN_VALUE}) {
      says(0, lastChallenge(), time);
      assertThat(clocks.isApart()).isTrue();
    }
  }

  @Test
  void a_peer_is_told_the_time_but_not_without_end() {
    ClockQuestion question =
        ClockQuestion.newBuilder()
            .setChallenge(ByteString.copyFrom(new byte[ClockStatement.CHALLENGE_BYTES]))
            .build();
    for (int i = 0; i < 100; i++) {
      clocks.asked(peers.get(0), question);
    }
    assertThat(sent).hasSize(4);
    ClockAnswer answer = sent.getFirst().getClockAnswer();
    assertThat(answer.getUnixMs()).isEqualTo(HERE.toEpochMilli());
    ClockStatement says =
        new ClockStatement("test", 1, 2, question.getChallenge(), HERE.toEpochMilli());
    assertThat(says.isSigned(answer.getSignature(), TestEvidence.publicKey(1))).isTrue();
    clocks.asked(peers.get(1), ClockQuestion.getDefaultInstance());
    assertThat(sent).as("no question").hasSize(4);
    clocks.asked(peers.get(1), question);
    assertThat(sent).as("another one is").hasSize(5);
    pass(Duration.ofSeconds(1));
    clocks.asked(peers.get(0), question);
    assertThat(sent).hasSize(6);
    clocks.asked(coordinator, question);
    assertThat(sent).hasSize(6);
  }
}
