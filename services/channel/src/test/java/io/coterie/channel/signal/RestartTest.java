package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SendMode;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.trust.Roster;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Processes come and go; nobody helps. */
class RestartTest extends ServerFixture {
  private static final Duration PATIENCE = Duration.ofSeconds(TestGroup.PATIENCE_SECONDS);

  /** Bytes; the bound by which a socket that takes nothing is noticed. */
  private static final int SMALL_QUEUE = 1 << 20;

  @Test
  void restartedMemberTalksAndHears() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3)) {
      TestGroup.TestMember restarted = group.member(1);
      for (int i = 0; i < 3; i++) {
        restarted.stop();
        restarted.start();
        restarted
            .channel
            .established(group.roster.members())
            .toCompletableFuture()
            .get(30, java.util.concurrent.TimeUnit.SECONDS);
        String round = "round " + i;
        restarted.broadcast(round);
        group.member(0).broadcast(round);
        group.member(0).send(restarted, "pair " + i);
        restarted.send(group.member(2), "pair " + i);
        await().atMost(PATIENCE).until(() -> restarted.texts().contains("pair " + round.charAt(6)));
        await().atMost(PATIENCE).until(() -> restarted.texts().contains(round));
        await().atMost(PATIENCE).until(() -> group.member(0).texts().contains(round));
        await().atMost(PATIENCE).until(() -> group.member(2).texts().contains(round));
      }
      await().atMost(PATIENCE).until(() -> group.member(2).received.size() == 9);
    }
  }

  /**
   * The others believe the old process is there still: their broadcasts are held until the key
   * comes.
   */
  @Test
  void broadcastToAMemberThatRestartedUnnoticedArrives() throws Exception {
    AtomicBoolean blocked = new AtomicBoolean();
    try (TestGroup group = TestGroup.started(server, 3)) {
      TestGroup.TestMember restarted = group.member(1);
      // Its hellos do not get through for a while.
      server.intercept =
          request ->
              blocked.get()
                      && request.is("PUT", "/v1/messages/")
                      && !request.path().contains("multi_recipient")
                  ? Optional.of(TestServer.Answer.of(503))
                  : Optional.empty();
      blocked.set(true);
      restarted.stop();
      restarted.start();
      await().atMost(PATIENCE).until(restarted.channel::connected);
      group.member(0).broadcast("early");
      assertThat(restarted.received).isEmpty();
      blocked.set(false);
      await().atMost(PATIENCE).until(() -> restarted.texts().equals(List.of("early")));
    }
  }

  @Test
  void allRestartAtOnce() throws Exception {
    try (TestGroup group = TestGroup.started(server, 5)) {
      group.all.forEach(TestGroup.TestMember::stop);
      group.all.forEach(TestGroup.TestMember::start);
      group.awaitEstablished();
      for (TestGroup.TestMember each : group.all) {
        each.broadcast("again " + each.index);
      }
      for (TestGroup.TestMember each : group.all) {
        await().atMost(PATIENCE).until(() -> each.received.size() == 4);
      }
    }
  }

  @Test
  void memberThatComesLaterIsGreeted() throws Exception {
    try (TestGroup group = new TestGroup(server, 3, config -> config)) {
      group.member(0).start();
      group.member(1).start();
      group.awaitEstablished(group.all.subList(0, 2));
      assertThat(group.member(0).channel.reachable()).containsExactly(group.member(1).entry());
      CompletionStage<Void> waiting = group.member(0).channel.established(group.roster.members());
      assertThat(waiting.toCompletableFuture()).isNotDone();
      group.member(2).start();
      group.awaitEstablished();
      // Told on a thread of the channel, which may come after what is asked anew.
      assertThat(waiting).succeedsWithin(PATIENCE);
      group.member(2).broadcast("late");
      await().atMost(PATIENCE).until(() -> group.member(0).texts().contains("late"));
    }
  }

  @Test
  void messagesFlowAgainWhenTheServiceComesBack() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3)) {
      server.stop();
      await().atMost(PATIENCE).until(() -> !group.member(0).channel.connected());
      // Sent while nobody listens: waits for the connection and is then delivered once.
      CompletionStage<Void> sent =
          group
              .member(0)
              .channel
              .broadcast(
                  group.roster.members(),
                  "meanwhile".getBytes(StandardCharsets.UTF_8),
                  SecureChannel.SendOptions.stored(null));
      server.restart();
      sent.toCompletableFuture().get(30, java.util.concurrent.TimeUnit.SECONDS);
      await().atMost(PATIENCE).until(() -> group.member(1).texts().contains("meanwhile"));
      await().atMost(PATIENCE).until(() -> group.member(2).channel.connected());
      group.member(2).broadcast("after");
      await().atMost(PATIENCE).until(() -> group.member(0).texts().contains("after"));
      await().atMost(PATIENCE).until(() -> group.member(1).texts().contains("after"));
      assertThat(group.member(1).texts()).containsExactly("meanwhile", "after");
    }
  }

  /** More waits for the connection than may wait for a socket that is taken for alive. */
  @Test
  void moreThanASocketsQueueFlowsWhenTheServiceComesBack() throws Exception {
    byte[] body = new byte[50 << 10];
    int bodies = 2 * SMALL_QUEUE / body.length;
    try (TestGroup group =
        TestGroup.started(
            server,
            2,
            config ->
                config.withLimits(limits(SMALL_QUEUE, config.limits().senderKeyMessages())))) {
      server.stop();
      await().atMost(PATIENCE).until(() -> !group.member(0).channel.connected());
      List<CompletableFuture<Void>> sent = new ArrayList<>();
      for (int i = 0; i < bodies; i++) {
        sent.add(
            group
                .member(0)
                .channel
                .broadcast(
                    group.roster.members(), body.clone(), SecureChannel.SendOptions.online(null))
                .toCompletableFuture());
      }
      server.restart();
      assertThat(sent).allSatisfy(each -> assertThat(each).succeedsWithin(PATIENCE));
      await().atMost(PATIENCE).until(() -> group.member(1).received.size() == bodies);
    }
  }

  @Test
  void silentMemberIsNotReachable() throws Exception {
    try (TestGroup group =
        TestGroup.started(
            server, 2, config -> config.withTiming(Timings.heartbeat(Duration.ofMillis(100))))) {
      await()
          .atMost(PATIENCE)
          .until(() -> group.member(0).channel.reachable().contains(group.member(1).entry()));
      // Neither heartbeats nor farewells come through: it might as well have been killed.
      server.intercept =
          request ->
              request.is("PUT", "/v1/messages/multi_recipient")
                  ? Optional.of(TestServer.Answer.of(503))
                  : Optional.empty();
      group.member(1).stop();
      await().atMost(PATIENCE).until(() -> group.member(0).channel.reachable().isEmpty());
      server.intercept = request -> Optional.empty();
      group.member(1).start();
      await().atMost(PATIENCE).until(() -> !group.member(0).channel.reachable().isEmpty());
    }
  }

  /**
   * A member that closes its channel says so: it is out of reach long before it is missed, and what
   * is meant for it waits for its next process, in every mode.
   */
  @ParameterizedTest
  @EnumSource(SendMode.class)
  void memberThatLeavesSaysSo(SendMode mode) throws Exception {
    try (TestGroup group =
        TestGroup.started(
            server,
            3,
            config ->
                config
                    .withSendMode(mode)
                    .withTiming(Timings.heartbeat(Duration.ofMinutes(1), PATIENCE)))) {
      TestGroup.TestMember sender = group.member(0);
      TestGroup.TestMember leaving = group.member(1);
      leaving.stop();
      await()
          .atMost(PATIENCE)
          .until(() -> sender.channel.reachable().equals(Set.of(group.member(2).entry())));

      CompletionStage<Void> order =
          sender.channel.broadcast(
              group.roster.members(),
              "order".getBytes(StandardCharsets.US_ASCII),
              SecureChannel.SendOptions.online(null));
      CompletionStage<Void> part =
          sender.channel.send(
              leaving.entry(),
              "part".getBytes(StandardCharsets.US_ASCII),
              SecureChannel.SendOptions.online(null));
      assertThat(part.toCompletableFuture()).isNotDone();
      leaving.start();
      assertThat(order).succeedsWithin(PATIENCE);
      assertThat(part).succeedsWithin(PATIENCE);
      await().atMost(PATIENCE).until(() -> leaving.received.size() == 2);
      assertThat(leaving.texts()).containsExactlyInAnyOrder("order", "part");
      await().atMost(PATIENCE).until(() -> sender.channel.reachable().size() == 2);
    }
  }

  @Test
  void senderKeyIsReplacedWhileMessagesFlow() throws Exception {
    ChannelConfig.Limits rotating = limits(ChannelConfig.Limits.DEFAULT.maxQueued(), 20);
    try (TestGroup group = TestGroup.started(server, 3, config -> config.withLimits(rotating))) {
      java.util.UUID first = group.member(0).channel.senderKey();
      int sent = 0;
      long deadline = System.nanoTime() + PATIENCE.toNanos();
      java.util.Set<java.util.UUID> keys = new java.util.HashSet<>();
      while (keys.size() < 4 && System.nanoTime() < deadline) {
        group.member(0).broadcast("m" + sent++);
        keys.add(group.member(0).channel.senderKey());
      }
      assertThat(keys).hasSizeGreaterThanOrEqualTo(4).contains(first);
      int all = sent;
      await().atMost(PATIENCE).until(() -> group.member(1).received.size() == all);
      await().atMost(PATIENCE).until(() -> group.member(2).received.size() == all);
      assertThat(group.member(1).texts())
          .isEqualTo(java.util.stream.IntStream.range(0, all).mapToObj(i -> "m" + i).toList());
    }
  }

  @Test
  void memberThatLeavesTheRosterIsCutOff() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3)) {
      java.util.UUID before = group.member(0).channel.senderKey();
      TestServer.Account first = server.accounts.get(group.member(0).entry().aci());
      byte[] known = first.accessKey;
      Roster smaller =
          new Roster("test", 2, List.of(group.member(0).entry(), group.member(1).entry()));
      group.member(0).channel.updateRoster(smaller);
      group.member(1).channel.updateRoster(smaller);
      await().atMost(PATIENCE).until(() -> !group.member(0).channel.senderKey().equals(before));
      await().atMost(PATIENCE).until(() -> !Arrays.equals(known, first.accessKey));
      assertThatThrownBy(
              () -> group.member(2).broadcast(List.of(group.member(0).entry()), "from outside"))
          .cause()
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNAUTHENTICATED));
      group.member(1).broadcast(smaller.members(), "from inside");
      await().atMost(PATIENCE).until(() -> group.member(0).texts().contains("from inside"));
      await()
          .atMost(PATIENCE)
          .until(() -> group.member(0).rejected(ChannelMetrics.Rejection.STRANGER) > 0);
      assertThat(group.member(0).texts()).doesNotContain("from outside");
      assertThat(
              group
                  .member(0)
                  .channel
                  .send(
                      group.member(2).entry(), new byte[1], SecureChannel.SendOptions.online(null))
                  .toCompletableFuture())
          .failsWithin(PATIENCE)
          .withThrowableThat()
          .havingRootCause()
          .withMessageContaining("not in the roster");
      // And back again.
      group.member(0).channel.updateRoster(new Roster("test", 3, group.roster.members()));
      group.member(1).channel.updateRoster(new Roster("test", 3, group.roster.members()));
      group.awaitEstablished(group.all.subList(0, 2));
      group
          .member(0)
          .channel
          .established(group.roster.members())
          .toCompletableFuture()
          .get(30, java.util.concurrent.TimeUnit.SECONDS);
      group.member(0).broadcast("welcome back");
      await().atMost(PATIENCE).until(() -> group.member(2).texts().contains("welcome back"));
    }
  }

  @Test
  void callerWhoWaitsForMemberThatLeavesIsToldUnderNoLockOfTheChannel() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3)) {
      SignalChannel channel = group.member(0).channel;
      group.member(2).channel.close();
      await()
          .atMost(PATIENCE)
          .until(() -> !channel.established(group.roster.members()).toCompletableFuture().isDone());
      CompletableFuture<Boolean> locked =
          channel
              .established(group.roster.members())
              .handle(
                  (done, failure) -> {
                    assertThat(failure).hasMessageContaining("left the roster");
                    return Thread.holdsLock(channel);
                  })
              .toCompletableFuture();
      channel.updateRoster(
          new Roster("test", 2, List.of(group.member(0).entry(), group.member(1).entry())));
      assertThat(locked).succeedsWithin(PATIENCE).isEqualTo(false);
    }
  }
}
