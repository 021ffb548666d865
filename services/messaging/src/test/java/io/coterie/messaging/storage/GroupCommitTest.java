package io.coterie.messaging.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.Delivery;
import io.coterie.proto.signal.Envelope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.dao.DataIntegrityViolationException;

class GroupCommitTest {
  private static final Source GREEDY = new Source.OfNetwork("192.0.2.1");
  private static final Source MODEST = new Source.OfNetwork("192.0.2.2");
  private static final DeviceAddress DEVICE = new DeviceAddress(UUID.randomUUID(), 1);

  private final AtomicLong nanos = new AtomicLong();
  private final Semaphore turns = new Semaphore(0);
  private final Semaphore atWork = new Semaphore(0);
  private final List<List<Delivery>> stored = Collections.synchronizedList(new ArrayList<>());

  private static Delivery delivery(String text) {
    return new Delivery(
        false,
        null,
        List.of(
            new Delivery.Recipient(
                DEVICE,
                Envelope.newBuilder().setContent(ByteString.copyFromUtf8(text)).build(),
                null)),
        null);
  }

  private static String text(Delivery delivery) {
    return delivery.recipients().getFirst().envelope().getContent().toStringUtf8();
  }

  /** A database that commits when the test says so. */
  private List<Set<DeviceAddress>> store(List<Delivery> deliveries) {
    atWork.release();
    turns.acquireUninterruptibly();
    stored.add(deliveries);
    if (deliveries.stream().anyMatch(d -> text(d).equals("poison"))) {
      throw new DataIntegrityViolationException("not that one");
    }
    if (deliveries.stream().anyMatch(d -> text(d).equals("down"))) {
      throw new DataAccessResourceFailureException("no database");
    }
    return deliveries.stream().map(d -> Set.<DeviceAddress>of()).toList();
  }

  private GroupCommit commit() {
    return new GroupCommit(
        this::store, new GroupCommit.Limits(Duration.ofMillis(250), 10_000), nanos::get);
  }

  @Test
  void what_comes_during_a_commit_is_stored_together_with_the_next_and_in_order() {
    List<CompletableFuture<?>> answers = new ArrayList<>();
    try (GroupCommit commit = commit()) {
      answers.add(commit.add(delivery("0"), MODEST));
      atWork.acquireUninterruptibly();
      for (int i = 1; i < 10; i++) {
        answers.add(commit.add(delivery(Integer.toString(i)), MODEST));
      }
      assertThat(answers).noneMatch(CompletableFuture::isDone);
      turns.release(2);
      answers.forEach(CompletableFuture::join);
    }
    assertThat(stored).hasSize(2);
    assertThat(stored.get(1))
        .extracting(GroupCommitTest::text)
        .containsExactly("1", "2", "3", "4", "5", "6", "7", "8", "9");
  }

  @Test
  void a_sender_with_its_share_of_a_slow_line_is_refused_and_a_modest_one_is_not() {
    try (GroupCommit commit = commit()) {
      commit.add(delivery("first"), GREEDY);
      atWork.acquireUninterruptibly();
      for (int i = 0; i < 20; i++) {
        commit.add(delivery("x"), GREEDY);
      }
      nanos.addAndGet(Duration.ofMillis(251).toNanos());
      assertThatThrownBy(() -> commit.add(delivery("x"), GREEDY))
          .isInstanceOf(RateLimitedException.class);
      CompletableFuture<?> modest = commit.add(delivery("modest"), MODEST);
      turns.release(1_000);
      modest.join();
      commit.add(delivery("again"), GREEDY).join();
    }
  }

  @Test
  void the_line_holds_so_many_bytes() {
    try (GroupCommit commit = commit()) {
      commit.add(delivery("first"), GREEDY);
      atWork.acquireUninterruptibly();
      for (int i = 0; i < 9; i++) {
        commit.add(delivery("x".repeat(1_000)), GREEDY);
      }
      assertThatThrownBy(() -> commit.add(delivery("x".repeat(1_000)), GREEDY))
          .isInstanceOf(RateLimitedException.class);
      commit.add(delivery("x".repeat(1_000)), MODEST);
      assertThatThrownBy(() -> commit.add(delivery("x".repeat(15_000)), new Source.OfNetwork("3")))
          .as("twice the bound is nobody's")
          .isInstanceOf(RateLimitedException.class);
      turns.release(1_000);
    }
  }

  @Test
  void one_that_the_database_does_not_take_fails_alone() {
    try (GroupCommit commit = commit()) {
      CompletableFuture<?> first = commit.add(delivery("first"), MODEST);
      atWork.acquireUninterruptibly();
      CompletableFuture<?> good = commit.add(delivery("good"), MODEST);
      CompletableFuture<?> poison = commit.add(delivery("poison"), MODEST);
      turns.release(1_000);
      first.join();
      good.join();
      assertThatThrownBy(poison::join)
          .isInstanceOf(CompletionException.class)
          .hasCauseInstanceOf(DataIntegrityViolationException.class);
    }
  }

  @Test
  void without_a_database_all_that_wait_fail_and_later_ones_are_tried() {
    try (GroupCommit commit = commit()) {
      CompletableFuture<?> down = commit.add(delivery("down"), MODEST);
      turns.release(1_000);
      assertThatThrownBy(down::join).hasCauseInstanceOf(DataAccessResourceFailureException.class);
      commit.add(delivery("up"), MODEST).join();
    }
  }

  @Test
  void stores_what_it_has_taken_before_it_ends() {
    GroupCommit commit = commit();
    CompletableFuture<?> taken = commit.add(delivery("taken"), MODEST);
    turns.release(1_000);
    commit.close();
    taken.join();
    assertThatThrownBy(() -> commit.add(delivery("late"), MODEST)).isNotNull();
  }
}
