package io.coterie.signer.party;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.party.v1.ClockAnswer;
import io.coterie.proto.party.v1.ClockQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
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
      List.of(
          member("bravo", Member.Role.PARTY, 2),
          member("carol", Member.Role.PARTY, 3),
          member("delta", Member.Role.PARTY, 4));
  private final List<PartyMessage> sent = new ArrayList<>();
  private final List<Collection<Member>> to = new ArrayList<>();
  private Duration passed = Duration.ZERO;
  private final PeerClocks clocks =
      new PeerClocks(new Net(), new Pool(), (InstantSource) () -> HERE.plus(passed));

  private static Member member(String name, Member.Role role, int id) {
    return new Member(
        name,
        role,
        id,
        "here",
        new UUID(1, id),
        1,
        new byte[33],
        role == Member.Role.PARTY ? new byte[32] : new byte[0]);
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
      throw new AssertionError("clocks only ask every so often");
    }

    @Override
    public Future<?> after(Duration delay, Runnable task) {
      throw new AssertionError("clocks only ask every so often");
    }

    @Override
    public Future<?> every(Duration period, Runnable task) {
      return new CompletableFuture<>();
    }

    @Override
    public long nanos() {
      return passed.toNanos();
    }

    @Override
    public void close() {}
  }

  private void pass(Duration time) {
    passed = passed.plus(time);
  }

  /** A peer whose clock is ahead by so many seconds answers the last question at once. */
  private void answers(int peer, long aheadSeconds) {
    clocks.answered(
        peers.get(peer),
        ClockAnswer.newBuilder()
            .setNumber(sent.getLast().getClockQuestion().getNumber())
            .setUnixMs(HERE.plus(passed).plusSeconds(aheadSeconds).toEpochMilli())
            .build());
  }

  private void answer(long... aheadSeconds) {
    clocks.ask();
    for (int peer = 0; peer < aheadSeconds.length; peer++) {
      answers(peer, aheadSeconds[peer]);
    }
  }

  @Test
  void the_parties_are_asked_and_nobody_else() {
    clocks.ask();
    assertThat(to.getFirst()).containsExactlyInAnyOrderElementsOf(peers);
    assertThat(sent.getFirst().getClockQuestion().getNumber()).isEqualTo(1);
    clocks.ask();
    assertThat(sent.getLast().getClockQuestion().getNumber()).isEqualTo(2);
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

  @Test
  void of_two_the_one_that_speaks_for_this_party_counts() {
    answer(100, 0);
    assertThat(clocks.ahead()).isEqualTo(Duration.ZERO);
    answer(100, -100);
    assertThat(clocks.ahead()).isEqualTo(Duration.ZERO);
    answer(100, 50);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(50));
    answer(-100, -50);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(-50));
  }

  @Test
  void an_answer_counts_from_half_way_and_not_if_it_took_long_or_is_another_ones() {
    clocks.ask();
    pass(Duration.ofSeconds(8));
    answers(0, 36);
    assertThat(clocks.ahead()).isEqualTo(Duration.ofSeconds(40));
    pass(Duration.ofMinutes(6));
    assertThat(clocks.ahead()).as("it is forgotten").isEqualTo(Duration.ZERO);

    clocks.ask();
    pass(Duration.ofSeconds(11));
    answers(0, 100);
    clocks.answered(peers.get(1), ClockAnswer.newBuilder().setNumber(1).setUnixMs(5).build());
    clocks.answered(peers.get(1), ClockAnswer.getDefaultInstance());
    clocks.ask();
    clocks.answered(coordinator, ClockAnswer.newBuilder().setNumber(3).setUnixMs(5).build());
    assertThat(clocks.ahead()).isEqualTo(Duration.ZERO);
  }

  @Test
  void a_time_at_the_end_of_the_world_is_only_wrong() {
    clocks.ask();
    for (long time : new long[] {Long.MAX_VALUE, Long.MIN_VALUE}) {
      clocks.answered(peers.get(0), ClockAnswer.newBuilder().setNumber(1).setUnixMs(time).build());
      assertThat(clocks.isApart()).isTrue();
    }
  }

  @Test
  void a_peer_is_told_the_time_but_not_without_end() {
    for (int i = 0; i < 100; i++) {
      clocks.asked(peers.get(0), ClockQuestion.newBuilder().setNumber(7).build());
    }
    assertThat(sent).hasSize(4);
    assertThat(sent.getFirst().getClockAnswer())
        .isEqualTo(ClockAnswer.newBuilder().setNumber(7).setUnixMs(HERE.toEpochMilli()).build());
    clocks.asked(peers.get(1), ClockQuestion.getDefaultInstance());
    assertThat(sent).as("another one is").hasSize(5);
    pass(Duration.ofSeconds(1));
    clocks.asked(peers.get(0), ClockQuestion.getDefaultInstance());
    assertThat(sent).hasSize(6);
    clocks.asked(coordinator, ClockQuestion.getDefaultInstance());
    assertThat(sent).hasSize(6);
  }
}
