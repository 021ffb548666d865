package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SendMode;
import io.coterie.channel.telemetry.ChannelMetrics;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Many messages at once, large ones, and what the metrics say. */
class LoadTest extends ServerFixture {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final int THREADS = 4;
  private static final int MESSAGES = 200;

  @Test
  void fourThreadsLoseNothingAndKeepOrder() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3)) {
      List<CompletableFuture<Void>> sent = Collections.synchronizedList(new ArrayList<>());
      List<Thread> threads = new ArrayList<>();
      for (int t = 0; t < THREADS; t++) {
        int thread = t;
        threads.add(
            Thread.ofPlatform()
                .start(
                    () -> {
                      for (int i = 0; i < MESSAGES; i++) {
                        sent.add(
                            group
                                .member(0)
                                .channel
                                .broadcast(
                                    group.roster.members(),
                                    (thread + ":" + i).getBytes(StandardCharsets.UTF_8),
                                    SecureChannel.SendOptions.online(null))
                                .toCompletableFuture());
                        if (i % 4 == 0) {
                          sent.add(
                              group
                                  .member(1)
                                  .channel
                                  .send(
                                      group.member(0).entry(),
                                      (thread + ":" + i).getBytes(StandardCharsets.UTF_8),
                                      SecureChannel.SendOptions.online(null))
                                  .toCompletableFuture());
                        }
                      }
                    }));
      }
      for (Thread thread : threads) {
        thread.join();
      }
      CompletableFuture.allOf(sent.toArray(CompletableFuture[]::new)).get(60, TimeUnit.SECONDS);
      for (int n = 1; n <= 2; n++) {
        TestGroup.TestMember each = group.member(n);
        await().atMost(PATIENCE).until(() -> each.received.size() == THREADS * MESSAGES);
        assertOrdered(each, MESSAGES, 1);
      }
      await()
          .atMost(PATIENCE)
          .until(() -> group.member(0).received.size() == THREADS * MESSAGES / 4);
      assertOrdered(group.member(0), MESSAGES, 4);
    }
  }

  private static void assertOrdered(TestGroup.TestMember each, int messages, int step) {
    List<String> texts = each.texts();
    for (int t = 0; t < THREADS; t++) {
      String prefix = t + ":";
      List<String> expected = new ArrayList<>();
      for (int i = 0; i < messages; i += step) {
        expected.add(prefix + i);
      }
      assertThat(texts.stream().filter(text -> text.startsWith(prefix)).toList())
          .isEqualTo(expected);
    }
  }

  @ParameterizedTest
  @CsvSource({"GROUP", "PAIRWISE_SEQUENTIAL", "PAIRWISE_PARALLEL"})
  void bodiesOfAllSizesArrive(SendMode mode) throws Exception {
    try (TestGroup group = TestGroup.started(server, 3, config -> config.withSendMode(mode))) {
      int chunk = ChannelConfig.Limits.DEFAULT.chunk();
      int[] sizes = {0, 1, 160, chunk - 1, chunk, chunk + 1, 100_000, 1 << 20, 4 << 20};
      for (int size : sizes) {
        byte[] body = new byte[size];
        new Random(size).nextBytes(body);
        byte[] given = body.clone();
        CompletableFuture<Void> sent =
            group
                .member(0)
                .channel
                .broadcast(group.roster.members(), given, SecureChannel.SendOptions.online(null))
                .toCompletableFuture();
        java.util.Arrays.fill(given, (byte) 0); // the caller may use its array again at once
        sent.get(60, TimeUnit.SECONDS);
        for (int n = 1; n <= 2; n++) {
          TestGroup.TestMember each = group.member(n);
          await().atMost(PATIENCE).until(() -> each.received.size() == 1);
          assertThat(each.received.getFirst().body()).isEqualTo(body);
          assertThat(each.received.getFirst().broadcast()).isTrue();
          each.received.clear();
        }
      }
      assertThat(
              group
                  .member(0)
                  .channel
                  .broadcast(
                      group.roster.members(),
                      new byte[(4 << 20) + 1],
                      SecureChannel.SendOptions.online(null))
                  .toCompletableFuture())
          .failsWithin(PATIENCE)
          .withThrowableThat()
          .havingRootCause()
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.TOO_LARGE));
    }
  }

  @ParameterizedTest
  @EnumSource(SendMode.class)
  void metricsCountRequestsAndBytes(SendMode mode) throws Exception {
    try (TestGroup group = TestGroup.started(server, 5, config -> config.withSendMode(mode))) {
      String trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
      group
          .member(0)
          .channel
          .broadcast(group.roster.members(), new byte[256], SecureChannel.SendOptions.online(trace))
          .toCompletableFuture()
          .get(30, TimeUnit.SECONDS);
      await().atMost(PATIENCE).until(() -> group.member(3).received.size() == 1);
      assertThat(group.member(3).received.getFirst().traceparent()).isEqualTo(trace);
      String label = ChannelMetrics.Mode.of(mode).label();
      var registry = group.member(0).registry;
      assertThat(registry.counter(ChannelMetrics.REQUESTS, "mode", label).count())
          .isEqualTo(mode == SendMode.GROUP ? 1 : 4);
      double bytes =
          registry.counter(ChannelMetrics.BYTES, "mode", label, "direction", "out").count();
      assertThat(bytes).isBetween(mode == SendMode.GROUP ? 900.0 : 1600.0, 9000.0);
      assertThat(registry.counter(ChannelMetrics.SENDS, "mode", label, "outcome", "ok").count())
          .isEqualTo(1);
      assertThat(registry.timer(ChannelMetrics.SEND, "mode", label).count()).isEqualTo(1);
      assertThat(registry.get(ChannelMetrics.REACHABLE).gauge().value()).isEqualTo(4);
    }
  }

  @Test
  void closedChannelRefusesAndFinishesWhatIsUnderWay() throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      server.intercept =
          request ->
              request.is("PUT", "/v1/messages/")
                  ? java.util.Optional.of(TestServer.Answer.of(0))
                  : java.util.Optional.empty();
      CompletableFuture<Void> waiting =
          group
              .member(0)
              .channel
              .broadcast(
                  group.roster.members(), new byte[1], SecureChannel.SendOptions.online(null))
              .toCompletableFuture();
      CompletableFuture<Void> never =
          group.member(0).channel.established(group.roster.members()).toCompletableFuture();
      assertThat(never).isCompleted();
      group.member(0).channel.close();
      group.member(0).channel.close();
      assertThat(waiting)
          .failsWithin(PATIENCE)
          .withThrowableThat()
          .havingRootCause()
          .isInstanceOfSatisfying(
              ChannelException.class,
              e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.CLOSED));
      assertThat(
              group
                  .member(0)
                  .channel
                  .send(
                      group.member(1).entry(), new byte[1], SecureChannel.SendOptions.online(null))
                  .toCompletableFuture())
          .isCompletedExceptionally();
    }
  }
}
