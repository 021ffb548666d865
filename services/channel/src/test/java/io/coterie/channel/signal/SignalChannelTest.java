package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.coterie.channel.ChannelException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.SendMode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Members exchange messages through a messaging service. */
class SignalChannelTest extends ServerFixture {
  @ParameterizedTest
  @CsvSource({
    "2, GROUP",
    "5, GROUP",
    "20, GROUP",
    "2, PAIRWISE_SEQUENTIAL",
    "5, PAIRWISE_SEQUENTIAL",
    "2, PAIRWISE_PARALLEL",
    "5, PAIRWISE_PARALLEL",
    "5, NAMED_STORED"
  })
  void everyoneHearsEveryone(int size, SendMode mode) throws Exception {
    try (TestGroup group = TestGroup.started(server, size, config -> config.withSendMode(mode))) {
      for (TestGroup.TestMember each : group.all) {
        each.broadcast("from " + each.index);
      }
      for (TestGroup.TestMember each : group.all) {
        await()
            .atMost(Duration.ofSeconds(TestGroup.PATIENCE_SECONDS))
            .until(() -> each.received.size() == size - 1);
        assertThat(each.received).allMatch(InboundMessage::broadcast);
        assertThat(each.received)
            .allSatisfy(
                m ->
                    assertThat(new String(m.body()))
                        .isEqualTo("from " + (m.sender().partyId() - 1)));
      }
    }
  }

  /** A request inside a WebSocket has no credentials of its own. */
  @Test
  void namedMessagesAreStoredAndGoByRest() throws Exception {
    try (TestGroup group =
        TestGroup.started(server, 3, config -> config.withSendMode(SendMode.NAMED_STORED))) {
      List<TestServer.Request> sent = new CopyOnWriteArrayList<>();
      server.intercept =
          request -> {
            if (request.is("PUT", "/v1/messages/")
                && request.headers().containsKey("authorization")) {
              sent.add(request);
            }
            return Optional.empty();
          };
      group.member(0).broadcast("named");
      assertThat(sent).hasSize(2);
      for (TestServer.Request request : sent) {
        assertThat(request.account()).contains(group.member(0).entry().aci());
        assertThat(request.headers()).doesNotContainKey("unidentified-access-key");
        assertThat(new String(request.body(), StandardCharsets.US_ASCII))
            .contains("\"online\":false");
      }
      await().until(() -> group.member(2).texts().equals(List.of("named")));
    }
  }

  @Test
  void pairwiseMessageReachesOneMember() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3)) {
      group.member(0).send(group.member(2), "for you alone");
      await().until(() -> group.member(2).received.size() == 1);
      assertThat(group.member(2).received.getFirst().broadcast()).isFalse();
      assertThat(group.member(2).received.getFirst().sender()).isEqualTo(group.member(0).entry());
      assertThat(group.member(1).received).isEmpty();
    }
  }

  /** Bodies leave together here; nothing is lost, doubled or overtaken by that. */
  @ParameterizedTest
  @EnumSource(names = {"GROUP", "PAIRWISE_PARALLEL"}) // The others wait for answers in between.
  void manyBodiesAtOnceArriveOnceAndInOrder(SendMode mode) throws Exception {
    try (TestGroup group = TestGroup.started(server, 3, config -> config.withSendMode(mode))) {
      SignalChannel channel = group.member(0).channel;
      List<String> given = new ArrayList<>();
      List<CompletableFuture<Void>> sent = new ArrayList<>();
      for (int i = 0; i < 300; i++) {
        String text = i % 50 == 7 ? i + "x".repeat(100_000) : "body " + i;
        given.add(text);
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        sent.add(
            channel
                .broadcast(group.roster.members(), body, SendOptions.online(null))
                .toCompletableFuture());
        Arrays.fill(body, (byte) 0); // Its owner has it back.
      }
      CompletableFuture.allOf(sent.toArray(CompletableFuture[]::new))
          .get(TestGroup.PATIENCE_SECONDS, TimeUnit.SECONDS);
      for (int i = 1; i < 3; i++) {
        TestGroup.TestMember member = group.member(i);
        await()
            .atMost(Duration.ofSeconds(TestGroup.PATIENCE_SECONDS))
            .until(() -> member.received.size() >= given.size());
        assertThat(member.texts()).isEqualTo(given);
        assertThat(member.received).allMatch(InboundMessage::broadcast);
      }
    }
  }

  @Test
  void aClosedChannelLetsNobodyWaitForItsPeers() throws Exception {
    try (TestGroup group = new TestGroup(server, 2, config -> config)) {
      group.member(0).start();
      SignalChannel channel = group.member(0).channel;
      CompletionStage<Void> before = channel.established(group.roster.members());
      channel.close();
      CompletionStage<Void> after = channel.established(group.roster.members());
      for (CompletionStage<Void> waiting : List.of(before, after)) {
        assertThat(waiting.toCompletableFuture())
            .failsWithin(Duration.ofSeconds(TestGroup.PATIENCE_SECONDS))
            .withThrowableThat()
            .havingCause()
            .isInstanceOfSatisfying(
                ChannelException.class,
                e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.CLOSED));
      }
    }
  }
}
