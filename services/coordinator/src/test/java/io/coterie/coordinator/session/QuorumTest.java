package io.coterie.coordinator.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.coordinator.session.QuorumChooser.Choice;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The choice of parties, and how long to wait for them. */
class QuorumTest {
  private final AtomicLong now = new AtomicLong(-1_000);
  private final PartyHealth health = new PartyHealth(now::get);

  /** Remembers what it chose last. */
  private final QuorumChooser chooser = new QuorumChooser(health);

  private final List<Member> members =
      IntStream.rangeClosed(1, 5)
          .mapToObj(
              i ->
                  new Member(
                      "p" + i,
                      Member.Role.PARTY,
                      i,
                      "local",
                      new UUID(0, i),
                      1,
                      new byte[33],
                      new byte[32]))
          .toList();

  private List<Integer> chosen(Set<Member> reachable, Map<Integer, Integer> failures) {
    return chosen(new QuorumChooser(health), reachable, failures);
  }

  private List<Integer> chosen(
      QuorumChooser chooser, Set<Member> reachable, Map<Integer, Integer> failures) {
    return chooser.choose(2, members, reachable, failures) instanceof Choice.Chosen c
        ? c.parties().stream().map(Member::partyId).toList()
        : List.of();
  }

  private List<Integer> chosen() {
    return chosen(Set.copyOf(members), Map.of());
  }

  @Test
  void the_fastest_are_asked_in_ascending_order_of_their_ids() {
    for (int i = 1; i <= 5; i++) {
      health.answered(i, (10 - i) * 1_000_000L);
    }
    assertThat(chosen()).containsExactly(4, 5);
  }

  @Test
  void parties_never_heard_of_are_tried_first() {
    health.answered(1, 1);
    health.answered(2, 1);
    assertThat(chosen()).containsExactly(3, 4);
  }

  @Test
  void suspects_come_last_and_only_for_a_while() {
    health.disappointed(1);
    assertThat(chosen()).containsExactly(2, 3);
    now.addAndGet(PartyHealth.FIRST_SUSPICION.toNanos());
    assertThat(chosen()).containsExactly(1, 2);
    health.disappointed(1);
    now.addAndGet(PartyHealth.FIRST_SUSPICION.toNanos());
    assertThat(health.isSuspect(1)).as("a second silence weighs more").isTrue();
    health.answered(1, 5);
    assertThat(health.isSuspect(1)).isFalse();
  }

  @Test
  void suspicion_has_an_upper_bound_and_parallel_silences_count_once() {
    for (int i = 0; i < 100; i++) {
      health.disappointed(1);
    }
    now.addAndGet(PartyHealth.FIRST_SUSPICION.toNanos());
    assertThat(health.isSuspect(1)).isFalse();
    for (int i = 0; i < 100; i++) {
      health.disappointed(1);
      now.addAndGet(PartyHealth.LONGEST_SUSPICION.toNanos());
      assertThat(health.isSuspect(1)).isFalse();
    }
  }

  @Test
  void a_party_that_runs_sessions_twice_too_often_comes_last_although_it_answers() {
    members.forEach(m -> health.answered(m.partyId(), m.partyId()));
    for (int i = 1; i < PartyHealth.MAX_RESTARTS; i++) {
      health.restarted(1);
      health.answered(1, 1);
    }
    assertThat(health.isSuspect(1)).as("a repair explains it").isFalse();
    assertThat(chosen()).containsExactly(1, 2);
    now.addAndGet(PartyHealth.RESTART_TIME.toNanos() - 1);
    health.restarted(1);
    health.answered(1, 1);
    health.heard(1);
    assertThat(health.isSuspect(1)).isTrue();
    assertThat(chosen()).containsExactly(2, 3);
    assertThat(chosen(Set.copyOf(members.subList(0, 2)), Map.of())).containsExactly(1, 2);
    now.incrementAndGet();
    assertThat(health.isSuspect(1)).as("the first of them was long ago").isFalse();
  }

  private List<Integer> chosenAgain() {
    return chosen(chooser, Set.copyOf(members), Map.of());
  }

  @Test
  void a_quorum_is_kept_while_it_does_well() {
    members.forEach(m -> health.answered(m.partyId(), m.partyId() * 1_000_000L));
    assertThat(chosenAgain()).containsExactly(1, 2);
    for (int i = 0; i < 100; i++) {
      health.answered(1, 300_000_000);
      health.answered(2, 200_000_000);
      assertThat(chosenAgain()).as("both take longer, as under load").containsExactly(1, 2);
    }
    for (int i = 0; i < 100; i++) {
      health.answered(2, 20_000_000);
    }
    assertThat(chosenAgain()).as("one is slow").containsExactly(3, 4);
    health.disappointed(3);
    assertThat(chosenAgain()).as("one is a suspect").containsExactly(4, 5);
    assertThat(chosen(chooser, Set.copyOf(members.subList(0, 4)), Map.of()))
        .as("one is out of reach")
        .containsExactly(2, 4);
  }

  /** A party that delays makes the later answers of its partner late, too. */
  @Test
  void a_quorum_is_chosen_anew_after_a_while() {
    members.forEach(m -> health.answered(m.partyId(), m.partyId() * 1_000_000L));
    assertThat(chosenAgain()).containsExactly(1, 2);
    for (int i = 0; i < 100; i++) {
      health.answered(1, 500_000_000);
      health.answered(2, 300_000_000);
    }
    assertThat(chosenAgain()).containsExactly(1, 2);
    now.addAndGet(QuorumChooser.KEPT_NANOS);
    assertThat(chosenAgain()).containsExactly(3, 4);
  }

  @Test
  void a_request_that_somebody_failed_leaves_the_quorum_and_changes_nothing_for_others() {
    members.forEach(m -> health.answered(m.partyId(), m.partyId() * 1_000_000L));
    assertThat(chosenAgain()).containsExactly(1, 2);
    assertThat(chosen(chooser, Set.copyOf(members), Map.of(1, 1))).containsExactly(2, 3);
    assertThat(chosenAgain()).containsExactly(1, 2);
  }

  @Test
  void a_quorum_that_is_kept_makes_room_for_parties_never_heard_of() {
    assertThat(chosenAgain()).containsExactly(1, 2);
    health.answered(1, 1_000_000);
    health.answered(2, 1_000_000);
    assertThat(chosenAgain()).containsExactly(3, 4);
  }

  @Test
  void those_that_failed_this_request_come_after_suspects() {
    health.disappointed(3);
    assertThat(chosen(Set.copyOf(members.subList(0, 3)), Map.of(1, 1))).containsExactly(2, 3);
  }

  @Test
  void a_quorum_with_a_party_that_failed_before_is_not_fresh() {
    assertThat(chooser.choose(5, members, Set.copyOf(members), Map.of(2, 1)))
        .isInstanceOfSatisfying(Choice.Chosen.class, c -> assertThat(c.fresh()).isFalse());
  }

  @Test
  void too_few_in_reach_and_too_few_at_all_are_different() {
    assertThat(chooser.choose(2, members, Set.of(members.getFirst()), Map.of()))
        .isInstanceOfSatisfying(
            Choice.OutOfReach.class,
            o -> assertThat(o.unreachable()).containsAll(members.subList(1, 5)));
    assertThat(chooser.choose(6, members, Set.copyOf(members), Map.of()))
        .isInstanceOf(Choice.Exhausted.class);
  }

  @Test
  void the_timeout_follows_what_sessions_take_within_its_bounds() {
    AdaptiveTimeout timeout =
        new AdaptiveTimeout(Duration.ofMillis(100), Duration.ofSeconds(1), Duration.ofSeconds(2));
    assertThat(timeout.next(0)).isEqualTo(Duration.ofSeconds(1));
    assertThat(timeout.next(1)).isEqualTo(Duration.ofMillis(1500));
    assertThat(timeout.next(9)).isEqualTo(Duration.ofSeconds(2));
    for (int i = 0; i < 200; i++) {
      timeout.succeeded(Duration.ofMillis(200).toNanos());
    }
    assertThat(timeout.next(0)).isBetween(Duration.ofMillis(200), Duration.ofMillis(220));
    for (int i = 0; i < 200; i++) {
      timeout.succeeded(1000);
    }
    assertThat(timeout.next(0)).isEqualTo(Duration.ofMillis(100));
    timeout.succeeded(Duration.ofSeconds(10).toNanos());
    assertThat(timeout.next(0)).isEqualTo(Duration.ofSeconds(2));
    assertThatThrownBy(
            () -> new AdaptiveTimeout(Duration.ZERO, Duration.ofSeconds(1), Duration.ofSeconds(2)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void a_session_that_computes_long_gets_more_time_when_it_begins_anew() {
    Duration least = Duration.ofSeconds(20);
    assertThat(AdaptiveTimeout.grown(least, 0)).isEqualTo(least);
    assertThat(AdaptiveTimeout.grown(least, 1)).isEqualTo(Duration.ofSeconds(30));
    assertThat(AdaptiveTimeout.grown(least, 50)).isEqualTo(AdaptiveTimeout.LONGEST);
    assertThat(AdaptiveTimeout.grown(Duration.ZERO, 50)).isZero();
  }

  private List<Integer> pair(Map<Integer, Integer> failures) {
    return chooser.choose(2, true, members, Set.copyOf(members), failures)
            instanceof Choice.Chosen chosen
        ? chosen.parties().stream().map(Member::partyId).toList()
        : List.of();
  }

  /** One of the two is silent, and nobody can tell which: the other one has done nothing. */
  @Test
  void a_pair_that_nothing_comes_of_is_asked_last_and_each_of_the_two_with_others_as_before() {
    assertThat(pair(Map.of())).containsExactly(1, 2);
    health.pairFailed(Set.of(1, 2));
    assertThat(health.isSuspect(1) || health.isSuspect(2)).isFalse();
    assertThat(chosen()).as("who does not talk alone is seen").containsExactly(1, 2);
    assertThat(pair(Map.of())).as("nobody is in fewer suspect pairs").containsExactly(3, 4);
    health.pairFailed(Set.of(3, 4));
    health.pairFailed(Set.of(3, 5));
    assertThat(pair(Map.of())).as("three is in two of them").containsExactly(1, 4);
    assertThat(pair(Map.of(1, 1))).as("this request failed with one").containsExactly(2, 4);
    health.pairSucceeded(Set.of(3, 4));
    assertThat(chooser.isSuspectPair(List.of(3, 4))).isFalse();
    now.addAndGet(PartyHealth.FIRST_SUSPICION.toNanos());
    assertThat(chooser.isSuspectPair(List.of(1, 2))).isFalse();
    health.pairFailed(Set.of(1, 2));
    now.addAndGet(PartyHealth.FIRST_SUSPICION.toNanos());
    assertThat(chooser.isSuspectPair(List.of(2, 1))).as("a second time weighs more").isTrue();
  }

  @Test
  void a_suspect_pair_is_asked_where_there_is_no_other() {
    Set<Member> two = Set.copyOf(members.subList(0, 2));
    health.pairFailed(Set.of(1, 2));
    assertThat(chooser.choose(2, true, members, two, Map.of()))
        .isInstanceOfSatisfying(
            Choice.Chosen.class,
            chosen ->
                assertThat(chosen.parties()).containsExactlyElementsOf(members.subList(0, 2)));
  }
}
