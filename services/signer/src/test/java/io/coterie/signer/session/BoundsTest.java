package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.EarlyEnvelopes;
import io.coterie.signer.party.EarlyEnvelopes.Arrived;
import io.coterie.signer.party.ThreadWorkPool;
import io.coterie.signer.party.WorkPool;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Everything that a peer could make grow has an end. */
class BoundsTest {
  private final EarlyEnvelopes early = new EarlyEnvelopes();

  private static SessionId session(int number) {
    byte[] id = new byte[32];
    id[0] = (byte) number;
    id[1] = (byte) (number >> 8);
    return new SessionId(ByteString.copyFrom(id));
  }

  private static Arrived from(int sender, int bytes, long nanos) {
    return new Arrived(sender, new byte[bytes], nanos);
  }

  @Test
  void early_envelopes_come_back_in_order_once() {
    Arrived first = from(1, 10, 0);
    Arrived second = from(2, 10, 1);
    assertThat(early.add(session(1), first)).isTrue();
    assertThat(early.add(session(1), second)).isTrue();
    assertThat(early.take(session(1))).containsExactly(first, second);
    assertThat(early.take(session(1))).isEmpty();
    assertThat(early.isEmpty()).isTrue();
  }

  @Test
  void early_envelopes_of_a_session_are_bounded() {
    assertThat(early.add(session(1), from(1, 40_000, 0))).isTrue();
    assertThat(early.add(session(1), from(1, 40_000, 0))).isFalse();
    assertThat(early.add(session(2), from(1, 40_000, 0))).isTrue();
  }

  /** The second round of an ECDSA signature of 20 parties, and the first before it. */
  @Test
  void early_envelopes_hold_a_large_round_of_all_peers() {
    for (int peer = 1; peer <= 19; peer++) {
      assertThat(early.add(session(1), from(peer, 3_000, 0))).isTrue();
      assertThat(early.add(session(1), from(peer, 45_000, 0))).isTrue();
    }
    assertThat(early.take(session(1))).hasSize(38);
  }

  @Test
  void queued_envelopes_hold_a_large_round_of_all_peers_in_many_sessions() {
    QueuedBytes queued = new QueuedBytes();
    for (int number = 0; number < 32; number++) {
      for (int peer = 1; peer <= 19; peer++) {
        assertThat(queued.add(session(number), peer, new byte[45_000])).isTrue();
      }
    }
  }

  @Test
  void queued_envelopes_of_a_sender_are_bounded_and_leave_room_for_others() {
    QueuedBytes queued = new QueuedBytes();
    byte[] envelope = new byte[60_000];
    int ofSession = 0;
    while (queued.add(session(0), 1, envelope)) {
      ofSession++;
    }
    assertThat(ofSession).isEqualTo(QueuedBytes.MAX_SESSION_SENDER_BYTES / 60_064);
    int number = 0;
    while (queued.add(session(++number), 1, envelope)) {
      assertThat(number).isLessThan(100);
    }
    assertThat(queued.add(session(0), 2, envelope)).as("another's share").isTrue();
    queued.remove(session(0), 1, envelope);
    assertThat(queued.add(session(number), 1, envelope)).as("room again").isTrue();
    int empty = 0;
    while (queued.add(session(9999), 3, new byte[0])) {
      empty++;
    }
    assertThat(empty).as("an empty one costs, too").isLessThan(10_000);
  }

  @Test
  void frames_of_pairs_take_no_room_of_other_messages() {
    QueuedBytes queued = new QueuedBytes();
    byte[] frame = new byte[SessionLimits.MAX_PAIR_ENVELOPE_BYTES];
    int frames = 0;
    while (queued.add(session(frames), 1, frame)) {
      frames++;
    }
    assertThat(frames).isEqualTo(8);
    byte[] usual = new byte[SessionLimits.MAX_ENVELOPE_BYTES];
    int number = 0;
    while (queued.add(session(number), 1, usual)) {
      number++;
    }
    assertThat(number).isEqualTo(SessionLimits.MAX_QUEUED_BYTES / (usual.length + 64));
    queued.remove(session(0), 1, frame);
    assertThat(queued.add(session(number), 1, usual)).as("room of a frame").isFalse();
    assertThat(queued.add(session(frames), 1, frame)).as("room again").isTrue();
  }

  @Test
  void envelopes_of_a_session_whose_order_has_come_do_not_expire() {
    early.add(session(1), from(1, 10, 0));
    early.expect(session(1));
    early.add(session(1), from(2, 10, 0));
    early.expire(EarlyEnvelopes.WAIT_NANOS);
    assertThat(early.take(session(1))).hasSize(2);
    Arrived secret = new Arrived(1, new byte[] {1}, 0);
    early.expect(session(2));
    early.add(session(2), secret);
    early.drop(session(2));
    assertThat(secret.envelope()).containsOnly(0);
    assertThat(early.isEmpty()).isTrue();
  }

  @Test
  void early_envelopes_of_a_sender_are_bounded_and_leave_room_for_others() {
    int accepted = 0;
    while (early.add(session(accepted), from(1, 60_000, 0))) {
      accepted++;
    }
    assertThat(accepted).isEqualTo(EarlyEnvelopes.MAX_SENDER_BYTES / 60_064);
    assertThat(early.add(session(999), from(2, 60_000, 0))).isTrue();
    early.take(session(0));
    assertThat(early.add(session(1000), from(1, 60_000, 0))).as("room again").isTrue();
  }

  @Test
  void early_envelopes_without_content_are_bounded_too() {
    int accepted = 0;
    while (early.add(session(accepted), from(1, 0, 0))) {
      accepted++;
    }
    assertThat(accepted).isEqualTo(EarlyEnvelopes.MAX_SESSIONS);
  }

  @Test
  void early_envelopes_expire_and_are_wiped() {
    Arrived secret = new Arrived(1, new byte[] {1, 2, 3}, 0);
    early.add(session(1), secret);
    early.expire(EarlyEnvelopes.WAIT_NANOS - 1);
    assertThat(early.isEmpty()).isFalse();
    early.expire(EarlyEnvelopes.WAIT_NANOS);
    assertThat(early.isEmpty()).isTrue();
    assertThat(secret.envelope()).containsOnly(0);
    assertThat(early.add(session(2), from(1, 60_000, EarlyEnvelopes.WAIT_NANOS))).isTrue();
  }

  @Test
  void refusals_are_recorded_up_to_a_rate_and_counted_beyond() {
    RefusalRate rate = new RefusalRate(0);
    for (int n = 0; n < RefusalRate.BURST; n++) {
      assertThat(rate.next(0)).isZero();
    }
    assertThat(rate.next(0)).isEqualTo(-1);
    assertThat(rate.next(0)).isEqualTo(-1);
    long second = TimeUnit.SECONDS.toNanos(1);
    assertThat(rate.next(second)).as("the next record says how many are missing").isEqualTo(2);
    int recorded = 1;
    while (rate.next(second) >= 0) {
      recorded++;
    }
    assertThat(recorded).isEqualTo(RefusalRate.PER_SECOND);
  }

  @Test
  void tasks_of_a_lane_run_in_order_and_background_gives_way() throws Exception {
    try (WorkPool pool = new ThreadWorkPool("test", 1, java.time.Duration.ZERO)) {
      List<String> ran = new ArrayList<>();
      CountDownLatch gate = new CountDownLatch(1);
      CountDownLatch done = new CountDownLatch(3);
      pool.lane()
          .execute(
              () -> {
                try {
                  gate.await();
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              });
      WorkPool.Lane late = pool.lane();
      late.priority(WorkPool.Priority.BACKGROUND);
      late.execute(() -> ran.add("late 1"));
      late.execute(
          () -> {
            ran.add("late 2");
            done.countDown();
          });
      for (String name : List.of("first", "second")) {
        pool.lane()
            .execute(
                () -> {
                  ran.add(name);
                  done.countDown();
                });
      }
      gate.countDown();
      assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
      assertThat(ran).containsExactly("first", "second", "late 1", "late 2");
    }
  }

  @Test
  void task_that_throws_does_not_stop_its_lane() throws Exception {
    try (WorkPool pool = new ThreadWorkPool("test", 1, java.time.Duration.ZERO)) {
      CountDownLatch done = new CountDownLatch(1);
      WorkPool.Lane lane = pool.lane();
      lane.execute(
          () -> {
            throw new IllegalStateException("as told");
          });
      lane.execute(done::countDown);
      assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
    }
  }
}
