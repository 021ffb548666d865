package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel;
import io.coterie.trust.Member;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The service has room for a broadcast in the queues of some of its recipients. */
class FullQueuesTest extends ServerFixture {
  /** Beside other work some may be given up before there is no room left. */
  private static final String REFUSED = "too much waits";

  private static final Duration PATIENCE = Duration.ofSeconds(TestGroup.PATIENCE_SECONDS);

  /** Bytes that may wait for full queues, where a test sets them. */
  private static final int ROOM = 1 << 20;

  private static final ChannelConfig.Limits LIMITS =
      limits(ROOM, ChannelConfig.Limits.DEFAULT.senderKeyMessages());

  private static final int BODY_BYTES = 50 << 10;

  @Test
  void those_whose_queues_are_full_get_it_later_and_the_others_once() throws Exception {
    try (TestGroup group =
        TestGroup.started(
            server, 4, config -> config.withTiming(Timings.heartbeat(Duration.ofMinutes(1))))) {
      account(group.member(2)).full.set(1);
      account(group.member(3)).full.set(3);
      int before = server.count("PUT messages/many");
      group.member(0).broadcast("first");
      for (TestGroup.TestMember each : group.all.subList(1, 4)) {
        await().atMost(PATIENCE).until(() -> each.texts().equals(List.of("first")));
      }
      // To all, to two, and twice to the last, for whom alone the service answers 429.
      assertThat(server.count("PUT messages/many")).isEqualTo(before + 4);
      group.member(0).broadcast("second");
      for (TestGroup.TestMember each : group.all.subList(1, 4)) {
        await().atMost(PATIENCE).until(() -> each.texts().equals(List.of("first", "second")));
      }
    }
  }

  @Test
  void a_queue_that_stays_full_fails_the_broadcast_in_the_end_and_keeps_nobody_else_from_it()
      throws Exception {
    try (TestGroup group =
        TestGroup.started(server, 3, config -> config.withTiming(Timings.impatient()))) {
      account(group.member(2)).full.set(Integer.MAX_VALUE);
      assertThatThrownBy(() -> group.member(0).broadcast("to all"))
          .cause()
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.RATE_LIMITED))
          .hasMessageContaining("p3");
      await().atMost(PATIENCE).until(() -> group.member(1).texts().equals(List.of("to all")));
      assertThat(group.member(2).received).isEmpty();
    }
  }

  @Test
  void what_waits_for_full_queues_has_a_bound_in_bytes() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3, config -> config.withLimits(LIMITS))) {
      account(group.member(2)).full.set(Integer.MAX_VALUE);
      List<CompletableFuture<Void>> sent = fillRoom(group, group.roster.members());
      await().atMost(PATIENCE).until(() -> failures(sent).contains(REFUSED));
      account(group.member(2)).full.set(0);
      await().atMost(PATIENCE).until(() -> sent.stream().allMatch(CompletableFuture::isDone));
      assertThat(sent).anyMatch(each -> !each.isCompletedExceptionally());
      // Bodies that have waited take no room any more.
      for (int i = 0; i < ROOM / BODY_BYTES + 2; i++) {
        account(group.member(2)).full.set(1);
        group.member(0).broadcast("after " + i);
      }
    }
  }

  @Test
  void a_recipient_whose_queue_is_full_leaves_room_for_what_waits_for_others() throws Exception {
    try (TestGroup group = TestGroup.started(server, 4, config -> config.withLimits(LIMITS))) {
      account(group.member(2)).full.set(Integer.MAX_VALUE);
      List<CompletableFuture<Void>> sent = fillRoom(group, List.of(group.member(2).entry()));
      // Its room is taken; another one, whose queue is full for a moment, has its own.
      for (int i = 0; i < 5; i++) {
        account(group.member(3)).full.set(1);
        group
            .member(0)
            .channel
            .broadcast(
                List.of(group.member(2).entry(), group.member(3).entry()),
                ("to both " + i + " ".repeat(BODY_BYTES)).getBytes(StandardCharsets.UTF_8),
                SecureChannel.SendOptions.online(null));
        int number = i;
        await().atMost(PATIENCE).until(() -> group.member(3).texts().size() == number + 1);
      }
      assertThat(group.member(2).received).isEmpty();
      account(group.member(2)).full.set(0);
      await().atMost(PATIENCE).until(() -> sent.stream().allMatch(CompletableFuture::isDone));
    }
  }

  /** The first member sends twice as much as there is room for, until some of it is refused. */
  private static List<CompletableFuture<Void>> fillRoom(TestGroup group, List<Member> to) {
    List<CompletableFuture<Void>> sent = new ArrayList<>();
    for (int i = 0; i < 2 * ROOM / BODY_BYTES; i++) {
      sent.add(
          group
              .member(0)
              .channel
              .broadcast(to, new byte[BODY_BYTES], SecureChannel.SendOptions.online(null))
              .toCompletableFuture());
    }
    await()
        .atMost(PATIENCE)
        .until(() -> sent.stream().anyMatch(CompletableFuture::isCompletedExceptionally));
    return sent;
  }

  private static String failures(List<CompletableFuture<Void>> sent) {
    return sent.stream()
        .filter(CompletableFuture::isCompletedExceptionally)
        .map(each -> each.exceptionNow().getMessage())
        .collect(Collectors.joining("; "));
  }
}
