package io.coterie.signer.claim;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.FakeCore;
import io.coterie.signer.TestEvidence;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.share.MemoryShares;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The parties that one waits for before it multiplies, and the cost of the statements of others.
 * Time is the test's; alpha's peer bravo always answers at once, as do coordinators, and charlie is
 * outside its sessions. These three hold the key; delta does not.
 */
class ClaimWitnessesTest {
  private static final long MILLI = 1_000_000;
  private static final long STEP = 50 * MILLI;

  /** It overflows on the way. */
  private static final long BEGIN = Long.MAX_VALUE - 5_000 * MILLI;

  private static final Instant STARTED = Instant.parse("2026-11-26T08:00:00Z");

  /** Steps from one tick to the next: as often as the driver. */
  private static final int TICK = 10;

  private final Member alpha = member("alpha", 1);
  private final Member bravo = member("bravo", 2);
  private final Member charlie = member("charlie", 3);
  private final Member delta = member("delta", 4);
  private final Member ordering = member("coordinator", 0);
  private final Member replica = member("replica", 0);
  private final Net net = new Net();
  private final Ledger ledger = new Ledger();
  private final MemoryShownClaims memory = new MemoryShownClaims(ledger, new MemoryShares());
  private final Queue<Runnable> lane = new ArrayDeque<>();

  /** When each session was let go, milliseconds after it had begun to wait. */
  private final Map<SessionId, Long> waited = new HashMap<>();

  private long now = BEGIN;
  private int steps;
  private int sessions;
  private int drawn;
  private final ClaimWitnesses witnesses =
      new ClaimWitnesses(
          net,
          ledger,
          memory,
          new FakeCore().of(1),
          lane::add,
          () -> {},
          () -> STARTED.plusNanos(now - BEGIN),
          () -> now);

  private static Member member(String name, int id) {
    return new Member(
        name,
        id == 0 ? Member.Role.COORDINATOR : Member.Role.PARTY,
        id,
        "here",
        UUID.nameUUIDFromBytes(name.getBytes(java.nio.charset.StandardCharsets.UTF_8)),
        1,
        new byte[33],
        id == 0 ? new byte[0] : TestEvidence.publicKey(id));
  }

  private final class Net implements PartyNetwork {
    Roster roster = new Roster("test", 1, List.of(alpha, bravo, charlie, ordering, replica));
    final Map<Member, Queue<ClaimCount>> statements = new HashMap<>();
    final Map<Member, ClaimCount> last = new HashMap<>();
    final Set<Member> reachable = new HashSet<>(Set.of(bravo, charlie));

    /** Coordinators that do not answer. */
    final Set<Member> mute = new HashSet<>();

    final List<Member> answered = new ArrayList<>();
    int sent;

    @Override
    public Roster roster() {
      return roster;
    }

    @Override
    public Member self() {
      return alpha;
    }

    @Override
    public Set<Member> reachable() {
      return reachable;
    }

    @Override
    public void broadcast(
        Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
      throw new AssertionError(message);
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      if (message.hasClaimMemory()) {
        answered.add(recipient);
        return;
      }
      if (recipient.role() == Member.Role.COORDINATOR && !mute.contains(recipient)) {
        witnesses.answered(
            recipient, ClaimMemory.newBuilder().addRemembered(message.getClaimCount()).build());
        return;
      }
      sent++;
      last.put(recipient, message.getClaimCount());
      statements.computeIfAbsent(recipient, _ -> new ArrayDeque<>()).add(message.getClaimCount());
    }

    @Nullable ClaimCount next(Member to) {
      Queue<ClaimCount> queue = statements.get(to);
      return queue == null ? null : queue.poll();
    }
  }

  private static final class Ledger extends MemoryLedger {
    int reads;

    /** Happens whenever the disk is read. */
    Runnable reading = () -> {};

    @Override
    public boolean remembers(LedgerPosition told) {
      reads++;
      reading.run();
      return super.remembers(told);
    }
  }

  private byte[] random() {
    return ByteBuffer.allocate(LedgerPosition.HASH_BYTES).putInt(++drawn).array();
  }

  private void run() {
    for (Runnable task = lane.poll(); task != null; task = lane.poll()) {
      task.run();
    }
  }

  /** A session that multiplies begins: it is claimed, and waits. */
  private SessionId begin(Integer... peers) {
    SessionId id =
        new SessionId(
            ByteString.copyFrom(ByteBuffer.allocate(SessionId.LENGTH).putInt(++sessions).rewind()));
    ledger.countClaim();
    long from = now;
    witnesses.await(
        id, List.of(peers), List.of(1, 2, 3), ordering, () -> waited.put(id, (now - from) / MILLI));
    run();
    return id;
  }

  private boolean answer(Member witness) {
    ClaimCount statement = net.next(witness);
    if (statement != null) {
      tell(witness, statement);
    }
    return statement != null;
  }

  private void tell(Member witness, ClaimCount... remembered) {
    witnesses.answered(
        witness, ClaimMemory.newBuilder().addAllRemembered(List.of(remembered)).build());
    run();
  }

  private void pass(Duration time) {
    for (long left = time.toNanos(); left > 0; left -= STEP) {
      step();
    }
  }

  private void step() {
    now += STEP;
    if (++steps % TICK == 0) {
      witnesses.tick();
    }
    run();
    answer(bravo);
  }

  /** The start is over: everybody has answered. */
  private void meet() {
    SessionId first = begin(2);
    assertThat(answer(bravo)).isTrue();
    assertThat(waited).as("at a start all are waited for").doesNotContainKey(first);
    assertThat(answer(charlie)).isTrue();
    assertThat(waited).containsKey(first);
  }

  // ---- an outsider that does not answer --------------------------------------------------------

  /** The ways in which charlie wastes time. */
  private enum Charlie {
    DEAD,
    /** Just before it would count as silent. */
    ANSWERS_LATE,
    /** Lets one statement wait until it is abandoned, and answers the next one. */
    ANSWERS_EVERY_OTHER
  }

  /** Sessions one after another for three minutes. */
  @ParameterizedTest
  @EnumSource
  void an_outsider_holds_up_sessions_for_a_second_and_a_hundredth_of_the_time(Charlie does) {
    meet();
    long over = 0;
    long elapsed = 0;
    int released = 0;
    while (elapsed < Duration.ofMinutes(3).toMillis()) {
      SessionId session = begin(2);
      answer(bravo);
      for (int i = 0; !waited.containsKey(session); i++) {
        step();
        elapsed += STEP / MILLI;
        if (does == Charlie.ANSWERS_LATE && i == 38) {
          answer(charlie);
        }
        assertThat(i).as("the session is let go").isLessThan(60);
      }
      over += Math.max(0, waited.get(session) - 250);
      released++;
      if (does == Charlie.ANSWERS_EVERY_OTHER && released % 2 == 0
          || does == Charlie.ANSWERS_LATE) {
        while (answer(charlie)) {
          // whatever lies there
        }
      }
      step();
      elapsed += STEP / MILLI;
    }
    assertThat(over).as("milliseconds").isLessThanOrEqualTo(1_000 + 500 + elapsed / 100);
    assertThat(released).isGreaterThan(1_000);
  }

  @Test
  void whoever_has_held_up_sessions_is_asked_and_not_waited_for_until_it_answers_again() {
    meet();
    SessionId held = begin(2);
    answer(bravo);
    pass(Duration.ofSeconds(3));
    assertThat(waited.get(held)).isBetween(1_250L, 2_000L);
    int before = net.sent;
    assertThat(answer(charlie)).isTrue();
    SessionId next = begin(2);
    answer(bravo);
    assertThat(waited).as("its answer alone gives it no new time to waste").containsKey(next);
    assertThat(net.sent).as("it is asked like bravo").isGreaterThan(before + 1);

    pass(Duration.ofMinutes(3));
    SessionId silent = begin(2);
    answer(bravo);
    assertThat(waited).as("time alone does not either").containsKey(silent);

    for (int second = 0; second < 3; second++) {
      while (answer(charlie)) {
        // all that it was asked since, and then the claims that nobody waits for
      }
      pass(Duration.ofSeconds(1));
    }
    pass(Duration.ofMinutes(3));
    SessionId again = begin(2);
    answer(bravo);
    assertThat(waited).doesNotContainKey(again);
    assertThat(answer(charlie)).isTrue();
    assertThat(waited).containsKey(again);
  }

  /** Safety: peers of the session, and all peers at a start, are waited for all the same. */
  @Test
  void a_peer_of_the_session_and_everybody_at_a_start_is_waited_for_on_probation_too() {
    meet();
    begin(2);
    answer(bravo);
    pass(Duration.ofSeconds(3));
    while (answer(charlie)) {
      // it is not silent now
    }
    SessionId free = begin(2);
    answer(bravo);
    assertThat(waited).containsKey(free);
    while (answer(charlie)) {
      // what the last one has asked
    }

    SessionId both = begin(2, 3);
    answer(bravo);
    pass(Duration.ofSeconds(1));
    assertThat(waited).doesNotContainKey(both);
    while (answer(charlie)) {
      // the claim of this session
    }
    assertThat(waited).containsKey(both);

    ledger.start(random());
    SessionId fresh = begin(2);
    answer(bravo);
    assertThat(waited).doesNotContainKey(fresh);
    answer(charlie);
    assertThat(waited).containsKey(fresh);
  }

  /**
   * Fewer holders of the key than its threshold are corrupt, and any number of other parties: the
   * key's own parties outside the set are honest if all in it are not.
   */
  @Test
  void a_party_without_a_share_of_the_key_is_waited_for_only_if_nobody_else_is() {
    net.roster = new Roster("test", 1, List.of(alpha, bravo, charlie, delta, ordering, replica));
    net.reachable.add(delta);
    SessionId first = begin(2);
    assertThat(answer(bravo) & answer(charlie)).isTrue();
    assertThat(waited).doesNotContainKey(first);
    assertThat(answer(delta)).isTrue();
    assertThat(waited).containsKey(first);
    SessionId session = begin(2);
    answer(bravo);
    assertThat(answer(delta)).as("its word would not be enough").isFalse();
    pass(Duration.ofMillis(500));
    assertThat(answer(delta)).as("charlie is late").isTrue();
    assertThat(waited).as("charlie does not know of it").doesNotContainKey(session);
    assertThat(answer(charlie)).isTrue();
    assertThat(waited).containsKey(session);

    SessionId held = begin(2);
    answer(bravo);
    pass(Duration.ofMillis(750));
    while (answer(delta)) {
      // it is asked while charlie is late, and not waited for
    }
    assertThat(waited).doesNotContainKey(held);
    pass(Duration.ofSeconds(2));
    assertThat(waited.get(held)).as("charlie is dead, and was late once").isBetween(900L, 1_250L);
    while (answer(delta)) {
      // what it was told since
    }
    assertWaitsForDelta("delta has paid for nothing");
  }

  private void assertWaitsForDelta(String because) {
    SessionId session = begin(2);
    answer(bravo);
    assertThat(waited).as(because).doesNotContainKey(session);
    assertThat(answer(delta)).isTrue();
    assertThat(waited).containsKey(session);
  }

  /** As far away as the other side of the earth, for as long as it lives. */
  @Test
  void an_honest_outsider_is_waited_for_however_many_sessions_there_are() {
    meet();
    for (int i = 0; i < 200; i++) {
      SessionId session = begin(2);
      answer(bravo);
      pass(Duration.ofMillis(200));
      assertThat(waited).doesNotContainKey(session);
      assertThat(answer(charlie)).isTrue();
      assertThat(waited).containsKey(session);
    }
  }

  /** A burst shares one statement to each, and what waits for an outsider does not pile up. */
  @Test
  void a_hundred_sessions_a_second_fill_no_queue() {
    meet();
    int before = net.sent;
    for (int i = 0; i < 1_000; i++) {
      begin(2);
    }
    assertThat(net.sent).as("statements while none is answered").isEqualTo(before + 2);
    while (answer(bravo) | answer(charlie)) {
      // the second one says all that came after the first
    }
    assertThat(net.sent).isEqualTo(before + 4);
    assertThat(waited).hasSize(sessions);

    int most = 0;
    for (int i = 0; i < 400; i++) {
      for (int session = 0; session < 5; session++) {
        begin(2);
        answer(bravo);
      }
      step();
      most = Math.max(most, sessions - waited.size());
    }
    // The messages of that many first rounds of a sender fit into the memory for them.
    assertThat(most).isLessThanOrEqualTo(SessionLimits.MAX_QUEUED_BYTES / (43 * 1024));
  }

  /** bravo and the coordinator order and answer before charlie can be reached again. */
  @Test
  void a_start_waits_for_whoever_cannot_be_reached_yet_also_if_it_was_never_heard() {
    net.reachable.remove(charlie);
    SessionId first = begin(2);
    answer(bravo);
    pass(Duration.ofSeconds(1));
    assertThat(waited).doesNotContainKey(first);
    net.reachable.add(charlie);
    pass(Duration.ofSeconds(1));
    assertThat(waited).as("its answer is waited for").doesNotContainKey(first);
    assertThat(answer(charlie)).isTrue();
    assertThat(waited).containsKey(first);
  }

  @Test
  void a_start_waits_for_two_seconds_for_whoever_is_gone() {
    net.reachable.remove(charlie);
    SessionId first = begin(2);
    answer(bravo);
    pass(Duration.ofSeconds(3));
    assertThat(waited.get(first)).isBetween(2_000L, 2_500L);
    SessionId second = begin(2);
    answer(bravo);
    assertThat(waited.get(second)).isZero();
  }

  /** One after another they can be reached, and none answers: nobody keeps a start for ever. */
  @Test
  void a_start_takes_five_seconds_whoever_turns_up() {
    List<Member> silent = new ArrayList<>();
    for (int party = 4; party <= 7; party++) {
      silent.add(
          new Member(
              "p" + party,
              Member.Role.PARTY,
              party,
              "here",
              new UUID(2, party),
              1,
              new byte[33],
              new byte[32]));
    }
    List<Member> all = new ArrayList<>(silent);
    all.addAll(List.of(alpha, bravo, charlie, ordering, replica));
    net.roster = new Roster("test", 1, all);
    SessionId first = begin(2);
    answer(charlie);
    for (Member member : silent) {
      pass(Duration.ofSeconds(1));
      answer(bravo);
      net.reachable.add(member);
      assertThat(waited).doesNotContainKey(first);
    }
    pass(Duration.ofSeconds(1));
    assertThat(waited.get(first)).isBetween(4_500L, 5_500L);
  }

  // ---- requests of before the start -----------------------------------------------------------

  @Test
  void a_request_of_before_the_start_is_not_known_until_everybody_was_asked() {
    String before = RequestId.at(STARTED.minusMillis(1));
    assertThat(witnesses.mayHaveForgotten(before)).isTrue();
    assertThat(witnesses.mayHaveForgotten(null)).isTrue();
    assertThat(witnesses.mayHaveForgotten(RequestId.at(STARTED))).isFalse();
    List<String> met = new ArrayList<>();
    witnesses.whenMet(() -> met.add("met"));
    run();
    assertThat(answer(bravo)).isTrue();
    run();
    assertThat(met).isEmpty();
    assertThat(answer(charlie)).isTrue();
    assertThat(met).containsExactly("met");
    assertThat(witnesses.mayHaveForgotten(before)).isFalse();
    assertThat(witnesses.mayHaveForgotten(null)).isFalse();
    witnesses.whenMet(() -> met.add("at once"));
    run();
    assertThat(met).hasSize(2);
  }

  /** However long the disk takes: a claim in between would be one without the fence. */
  @Test
  void a_start_is_not_over_while_what_was_forgotten_is_not_on_disk() {
    CompletableFuture<List<String>> written = new CompletableFuture<>();
    memory.heldBack = written;
    witnesses.whenMet(() -> {});
    run();
    LedgerPosition forgotten = ledger.position().next(random());
    tell(charlie, count(alpha, forgotten));
    pass(Duration.ofSeconds(10));
    assertThat(witnesses.mayHaveForgotten(null)).isTrue();
    written.completeExceptionally(new IllegalStateException("full"));
    run();
    pass(Duration.ofSeconds(10));
    assertThat(witnesses.mayHaveForgotten(null)).as("the write has failed").isTrue();
    memory.heldBack = null;
    tell(charlie, count(alpha, forgotten));
    pass(Duration.ofSeconds(6));
    assertThat(witnesses.mayHaveForgotten(null)).isFalse();
    assertThat(ledger.position().log().number()).isEqualTo(2);
  }

  /** The store writes again by itself what it could not write, and tells nobody. */
  @Test
  void a_start_is_over_when_the_store_has_written_later_what_was_forgotten() {
    CompletableFuture<List<String>> written = new CompletableFuture<>();
    memory.heldBack = written;
    witnesses.whenMet(() -> {});
    run();
    LedgerPosition forgotten = ledger.position().next(random());
    tell(charlie, count(alpha, forgotten));
    written.completeExceptionally(new IllegalStateException("full"));
    run();
    pass(Duration.ofSeconds(10));
    assertThat(witnesses.mayHaveForgotten(null)).isTrue();
    ledger.learn(forgotten);
    pass(Duration.ofSeconds(6));
    assertThat(witnesses.mayHaveForgotten(null)).isFalse();
  }

  @Test
  void a_forgotten_head_of_an_earlier_log_moves_the_fence_before_the_start_is_over() {
    LedgerPosition first = ledger.position().next(random());
    LedgerPosition second = first.claimed(ByteString.copyFrom(random()));
    ledger.learn(first);
    ledger.lost.add(second);
    CompletableFuture<List<String>> written = new CompletableFuture<>();
    memory.heldBack = written;
    witnesses.whenMet(() -> {});
    run();
    tell(charlie, count(alpha, second));
    pass(Duration.ofSeconds(10));
    assertThat(memory.earlier).hasSize(1);
    assertThat(memory.selfBack).as("it began another log already").isEmpty();
    assertThat(witnesses.mayHaveForgotten(null)).isTrue();
    written.complete(List.of());
    pass(Duration.ofSeconds(1));
    assertThat(witnesses.mayHaveForgotten(null)).isFalse();
    tell(charlie, count(alpha, second));
    assertThat(memory.earlier).as("said once").hasSize(1);
  }

  // ---- claims that nobody waits for ------------------------------------------------------------

  /** Of any scheme: others remember it soon, and a burst of them costs a statement each. */
  @Test
  void every_claim_is_told_soon_and_not_each_by_itself() {
    meet();
    while (answer(bravo) | answer(charlie)) {
      // all that was asked
    }
    int before = net.sent;
    for (int i = 0; i < 100; i++) {
      ledger.countClaim();
      step();
      answer(charlie);
    }
    assertThat(net.sent - before).as("in five seconds, to two").isBetween(4, 6);
    pass(Duration.ofSeconds(3));
    assertThat(net.last.get(charlie).getCount()).isEqualTo(ledger.position().claims());
    int after = net.sent;
    answer(charlie);
    pass(Duration.ofSeconds(10));
    assertThat(net.sent).as("there is nothing new").isEqualTo(after);
  }

  /** In an installation of many parties a session is the matter of those of its key. */
  @Test
  void a_session_tells_those_at_once_whose_word_it_needs_and_the_others_soon() {
    net.roster = new Roster("test", 1, List.of(alpha, bravo, charlie, delta, ordering, replica));
    net.reachable.add(delta);
    begin(2);
    assertThat(answer(bravo) & answer(charlie) & answer(delta)).as("a start").isTrue();
    for (int i = 0; i < 50; i++) {
      SessionId session = begin(2);
      assertThat(answer(bravo) & answer(charlie)).isTrue();
      assertThat(waited).containsKey(session);
      assertThat(net.next(delta)).isNull();
    }
    pass(Duration.ofMillis(2_500));
    assertThat(net.last.get(delta).getCount()).isEqualTo(ledger.position().claims());
    answer(delta);

    net.reachable.remove(charlie);
    SessionId without = begin(2);
    answer(bravo);
    assertThat(waited).doesNotContainKey(without);
    assertThat(answer(delta)).as("no other holder can be reached").isTrue();
    assertThat(waited).containsKey(without);
  }

  // ---- parties that are told later than others -------------------------------------------------

  private void meetWithDelta() {
    net.roster = new Roster("test", 1, List.of(alpha, bravo, charlie, delta, ordering, replica));
    net.reachable.add(delta);
    begin(2);
    assertThat(answer(bravo) & answer(charlie) & answer(delta)).as("a start").isTrue();
    assertThat(waited).hasSize(1);
  }

  /** More than may be overdue; bravo has answered all of them. */
  private @Nullable ClaimCount burst() {
    now += 1_000 * MILLI;
    ClaimCount last = null;
    for (int i = 0; i < 33; i++) {
      begin(2);
    }
    while (answer(bravo)) {
      last = net.last.get(bravo);
    }
    assertThat(waited).hasSize(1);
    assertThat(net.next(delta)).as("charlie is waited for").isNull();
    return last;
  }

  private void isToldAndLetsAllGo(Member witness) {
    assertThat(waited).as("nobody outside remembers them").hasSize(1);
    assertThat(answer(witness)).as("it was told").isTrue();
    assertThat(waited).hasSize(sessions);
  }

  /** Else a burst and a silent holder would let all go, and a rollback would show nowhere. */
  @Test
  void a_burst_waits_for_those_it_tells_when_a_holder_is_late() {
    meetWithDelta();
    ClaimCount last = burst();
    now += 251 * MILLI;
    tell(bravo, last);
    isToldAndLetsAllGo(delta);
  }

  @Test
  void a_burst_waits_for_those_it_tells_when_a_tick_finds_a_holder_late() {
    meetWithDelta();
    burst();
    now += 251 * MILLI;
    witnesses.tick();
    run();
    isToldAndLetsAllGo(delta);
  }

  /** Another quarter of a second, and no longer than that: they may be dead too. */
  @Test
  void a_burst_waits_for_them_for_a_quarter_of_a_second() {
    meetWithDelta();
    ClaimCount last = burst();
    now += 251 * MILLI;
    tell(bravo, last);
    now += 250 * MILLI;
    tell(bravo, last);
    assertThat(waited).hasSize(1);
    now += MILLI;
    tell(bravo, last);
    assertThat(waited).hasSize(sessions);
  }

  /** Told at half the time, it has answered before charlie is overdue. */
  @Test
  void the_others_are_told_before_a_holder_is_overdue() {
    meetWithDelta();
    ClaimCount last = burst();
    now += 126 * MILLI;
    tell(bravo, last);
    assertThat(answer(delta)).isTrue();
    assertThat(waited).as("charlie is waited for").hasSize(1);
    now += 125 * MILLI;
    tell(bravo, last);
    assertThat(waited).hasSize(sessions);
  }

  /** Its time begins when it is told, however long this party stood still before. */
  @Test
  void the_time_in_which_the_disk_was_read_is_not_held_against_those_told_after_it() {
    meetWithDelta();
    LedgerPosition before = LedgerPosition.NONE.next(random());
    ledger.wasAt(before);
    ClaimCount last = burst();
    now += 251 * MILLI;
    ledger.reading = () -> now += 1_900 * MILLI;
    tell(bravo, count(alpha, before));
    ledger.reading = () -> {};
    now += 249 * MILLI;
    tell(bravo, last);
    witnesses.tick();
    run();
    isToldAndLetsAllGo(delta);
  }

  /** It answers within a fifth of a second, as soon as it is told. */
  @Test
  void whoever_takes_the_place_of_a_holder_pays_for_no_time_before_it_was_told() {
    meetWithDelta();
    for (int time = 0; time < 2; time++) {
      now += 1_000 * MILLI;
      SessionId ends = begin(2, 3);
      SessionId held = begin(2);
      while (answer(bravo)) {
        // both claims
      }
      now += 300 * MILLI;
      net.reachable.remove(charlie);
      witnesses.forget(ends);
      run();
      assertThat(waited).doesNotContainKey(held);
      ClaimCount told = net.next(delta);
      now += 200 * MILLI;
      if (told != null) {
        tell(delta, told);
      }
      now += 300 * MILLI;
      witnesses.tick();
      run();
      now += 200 * MILLI;
      while (answer(delta)) {
        // whatever it was told at the tick
      }
      assertThat(waited).containsKey(held);
      while (answer(bravo) | answer(charlie)) {
        // what they were told meanwhile
      }
      net.reachable.add(charlie);
    }
    net.reachable.remove(charlie);
    assertWaitsForDelta("delta has credit");
  }

  /** Neither charlie nor delta answers any more. */
  @Test
  void sessions_that_wait_for_one_after_another_fill_no_queue() {
    meetWithDelta();
    int most = 0;
    for (int i = 0; i < 200; i++) {
      begin(2);
      answer(bravo);
      now += 10 * MILLI;
      if (i % 50 == 0) {
        witnesses.tick();
        run();
      }
      most = Math.max(most, sessions - waited.size());
    }
    assertThat(most).isBetween(50, SessionLimits.MAX_QUEUED_BYTES / (43 * 1024));
    assertThat(sessions - waited.size()).as("both are on probation").isZero();
  }

  @Test
  void a_head_says_when_it_was_signed_and_of_which_installation() {
    meet();
    ClaimCount said = net.last.get(charlie);
    LedgerHead head = LedgerHead.of("test", said).orElseThrow();
    assertThat(head.time()).isBetween(STARTED, STARTED.plusSeconds(5));
    assertThat(head.isSigned(said.getSignature(), alpha.evidenceKey())).isTrue();
    LedgerHead elsewhere = LedgerHead.of("staging", said).orElseThrow();
    assertThat(elsewhere.isSigned(said.getSignature(), alpha.evidenceKey())).isFalse();
  }

  // ---- a disk that fails or stands still ------------------------------------------------------

  /** Else a disk that fails once takes charlie's word away, and charlie's place at the start. */
  @Test
  void an_answer_that_cannot_be_looked_up_is_not_taken_for_silence() {
    ledger.reading =
        () -> {
          throw new IllegalStateException("the disk cannot be read");
        };
    LedgerPosition forgotten = ledger.position().next(random());
    SessionId session = begin(2);
    answer(bravo);
    tell(charlie, count(alpha, forgotten));
    assertThat(waited).doesNotContainKey(session);
    assertThat(memory.selfBack).as("the store decides").containsExactly(forgotten);
  }

  /** Its answer came in time and lies here: charlie was not silent. */
  @Test
  void whoever_has_answered_while_this_party_stood_still_is_heard_at_a_start() {
    SessionId session = begin(2);
    answer(bravo);
    LedgerPosition forgotten = ledger.position().next(random());
    witnesses.tick();
    now += 3_000 * MILLI;
    witnesses.answered(
        charlie, ClaimMemory.newBuilder().addRemembered(count(alpha, forgotten)).build());
    run();
    assertThat(waited).doesNotContainKey(session);
    assertThat(memory.selfBack).containsExactly(forgotten);
  }

  @Test
  void an_answer_that_came_while_the_disk_was_read_costs_its_sender_no_credit() {
    meet();
    LedgerPosition before = LedgerPosition.NONE.next(random());
    ledger.wasAt(before);
    SessionId session = begin(2);
    answer(bravo);
    ClaimCount asked = net.next(charlie);
    ledger.reading =
        () -> {
          witnesses.answered(charlie, ClaimMemory.newBuilder().addRemembered(asked).build());
          now += 1_900 * MILLI;
        };
    tell(bravo, count(alpha, before));
    ledger.reading = () -> {};
    assertThat(waited).containsKey(session);
    SessionId next = begin(2);
    answer(bravo);
    assertThat(waited).as("charlie is not on probation").doesNotContainKey(next);
  }

  // ---- coordinators ----------------------------------------------------------------------------

  /** However long: in a set whose other parties are corrupt it is the only honest one. */
  @Test
  void the_coordinator_that_ordered_the_session_is_waited_for_like_a_peer() {
    meet();
    net.mute.add(ordering);
    SessionId session = begin(2);
    answer(bravo);
    assertThat(answer(charlie)).isTrue();
    pass(Duration.ofSeconds(30));
    assertThat(waited).doesNotContainKey(session);
    assertThat(witnesses.lacking(session)).as("no party is missing").isEmpty();
    ClaimCount latest = net.next(ordering);
    for (ClaimCount next = latest; next != null; next = net.next(ordering)) {
      latest = next;
    }
    tell(ordering, latest);
    assertThat(waited).containsKey(session);

    net.mute.clear();
    SessionId outsider = begin(2);
    answer(bravo);
    assertThat(answer(charlie)).as("charlie has paid for nothing").isTrue();
    assertThat(waited).containsKey(outsider);
  }

  @Test
  void a_start_waits_for_every_coordinator_that_can_be_reached_and_answers() {
    net.reachable.add(replica);
    net.mute.add(replica);
    SessionId first = begin(2);
    answer(bravo);
    answer(charlie);
    assertThat(waited).doesNotContainKey(first);
    assertThat(answer(replica)).isTrue();
    assertThat(waited).containsKey(first);

    SessionId next = begin(2);
    answer(bravo);
    answer(charlie);
    assertThat(waited).containsKey(next);
    assertThat(net.next(replica)).as("it is asked at a start only").isNull();

    ledger.start(random());
    SessionId again = begin(2);
    answer(bravo);
    answer(charlie);
    assertThat(waited).doesNotContainKey(again);
    pass(Duration.ofSeconds(3));
    assertThat(waited).as("it is silent").containsKey(again);
  }

  @Test
  void a_coordinator_that_answers_an_old_position_shows_that_the_store_went_back() {
    net.mute.add(ordering);
    LedgerPosition forgotten = ledger.position().next(random());
    SessionId session = begin(2);
    answer(bravo);
    answer(charlie);
    LedgerHead head = new LedgerHead("test", 1, forgotten, 0);
    tell(ordering, head.count(TestEvidence.sign(2, head.statement())));
    assertThat(memory.selfBack).as("it cannot sign for this party").isEmpty();
    tell(ordering, count(alpha, forgotten));
    assertThat(memory.selfBack).containsExactly(forgotten);
    assertThat(waited).doesNotContainKey(session);
  }

  /** A position that it had been told before is no receipt for the claim of the session. */
  @Test
  void an_old_position_from_a_coordinator_lets_no_session_go() {
    meet();
    ClaimCount before = count(alpha, ledger.position());
    net.mute.add(ordering);
    SessionId session = begin(2);
    answer(bravo);
    answer(charlie);
    tell(ordering, before);
    assertThat(memory.selfBack).isEmpty();
    assertThat(waited).doesNotContainKey(session);
    assertThat(answer(ordering)).isTrue();
    assertThat(waited).containsKey(session);
  }

  @Test
  void a_coordinator_has_no_ledger_to_state() {
    LedgerPosition position = LedgerPosition.NONE.next(random());
    LedgerHead head = new LedgerHead("test", 0, position, 0);
    witnesses.stated(ordering, head.count(TestEvidence.sign(1, head.statement())));
    run();
    assertThat(net.answered).isEmpty();
  }

  /** However often it is told of while the disk stands still. */
  @Test
  void what_was_forgotten_is_on_its_way_to_the_disk_once() {
    LedgerPosition forgotten = ledger.position().next(random());
    CompletableFuture<List<String>> written = new CompletableFuture<>();
    memory.heldBack = written;
    SessionId session = begin(2);
    for (int i = 0; i < 100; i++) {
      tell(charlie, count(alpha, forgotten));
    }
    assertThat(memory.selfBack).containsExactly(forgotten);
    int before = net.sent;
    pass(Duration.ofSeconds(5));
    assertThat(net.sent).as("its position is about to be another one").isEqualTo(before);
    assertThat(waited).doesNotContainKey(session);
    written.completeExceptionally(new IllegalStateException("full"));
    run();
    tell(charlie, count(alpha, forgotten));
    assertThat(memory.selfBack).containsExactly(forgotten, forgotten);
  }

  // ---- statements of others --------------------------------------------------------------------

  private ClaimCount count(Member of, LedgerPosition position) {
    return TestEvidence.head(of.partyId(), position);
  }

  @Test
  void contradictions_of_one_peer_are_written_down_once_in_a_while() {
    LedgerPosition copy = LedgerPosition.NONE.next(random());
    LedgerPosition first = copy.next(random());
    witnesses.stated(charlie, count(charlie, first));
    run();
    assertThat(net.answered).containsExactly(charlie);
    for (int i = 0; i < 100; i++) {
      witnesses.stated(charlie, count(charlie, copy.next(random())));
      run();
    }
    assertThat(memory.peersBack).containsExactly(3);
    assertThat(net.answered).as("each is told of what contradicts it").hasSize(101);
    // A statement of another party is looked at, and charlie's when it has caught up.
    LedgerPosition other = copy.next(random());
    witnesses.stated(bravo, count(bravo, other));
    run();
    witnesses.stated(bravo, count(bravo, copy.next(random())));
    run();
    assertThat(memory.peersBack).containsExactly(3, 2);
    LedgerPosition later = first.next(random());
    witnesses.stated(charlie, count(charlie, later));
    run();
    pass(Duration.ofSeconds(10));
    witnesses.stated(charlie, count(charlie, first.next(random())));
    run();
    assertThat(memory.peersBack).as("a new one, later").containsExactly(3, 2, 3);
  }

  @Test
  void a_statement_is_remembered_without_what_nobody_knows() {
    LedgerPosition first = LedgerPosition.NONE.next(random());
    ClaimCount count = count(charlie, first);
    UnknownFieldSet.Field much =
        UnknownFieldSet.Field.newBuilder()
            .addLengthDelimited(ByteString.copyFrom(new byte[100_000]))
            .build();
    witnesses.stated(
        charlie,
        count.toBuilder()
            .setUnknownFields(UnknownFieldSet.newBuilder().addField(1000, much).build())
            .build());
    run();
    assertThat(memory.shown()).hasSize(1);
    assertThat(memory.shown().getFirst().statement()).isEqualTo(count.toByteString());
  }

  @Test
  void an_answer_costs_no_look_at_the_disk_before_its_signature_is_checked() {
    meet();
    LedgerPosition other = LedgerPosition.NONE.next(random());
    LedgerHead head = new LedgerHead("test", 1, other, 0);
    ClaimCount forged = head.count(TestEvidence.sign(3, head.statement()));
    for (int i = 0; i < 10; i++) {
      tell(charlie, forged);
    }
    assertThat(ledger.reads).isZero();
    assertThat(memory.selfBack).isEmpty();

    LedgerPosition before = LedgerPosition.NONE.next(random());
    ledger.wasAt(before);
    for (int i = 0; i < 10; i++) {
      tell(charlie, count(alpha, before));
    }
    assertThat(ledger.reads).as("what is known once is known").isEqualTo(1);
    assertThat(memory.selfBack).isEmpty();
    tell(charlie, count(alpha, other));
    assertThat(memory.selfBack).containsExactly(other);
  }
}
