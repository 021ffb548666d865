package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.coterie.channel.ChannelException;
import io.coterie.trust.Roster;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Members reach each other with access keys that nobody else has, whatever becomes of them. */
class AccessKeysTest extends ServerFixture {
  private static final Duration PATIENCE = Duration.ofSeconds(TestGroup.PATIENCE_SECONDS);

  private byte[] key(TestGroup.TestMember each) {
    return account(each).accessKey;
  }

  private static Roster without(TestGroup group, int index) {
    return new Roster(
        "test",
        2,
        group.roster.members().stream()
            .filter(member -> !member.equals(group.member(index).entry()))
            .toList());
  }

  @Test
  void messages_between_members_that_know_each_other_do_not_name_their_sender() throws Exception {
    List<TestServer.Request> named = new CopyOnWriteArrayList<>();
    server.intercept =
        request -> {
          if (request.account().isPresent()
              && (request.is("PUT", "/v1/messages/") || request.is("GET", "/v2/keys/"))) {
            named.add(request);
          }
          return Optional.empty();
        };
    try (TestGroup group = TestGroup.started(server, 3)) {
      assertThat(named).as("first contacts").isNotEmpty();
      named.clear();
      group.member(0).broadcast("to all");
      group.member(1).send(group.member(0), "to one");
      await().atMost(PATIENCE).until(() -> group.member(0).texts().equals(List.of("to one")));
      await().atMost(PATIENCE).until(() -> group.member(2).texts().equals(List.of("to all")));
      assertThat(named).isEmpty();
    }
  }

  @Test
  void each_member_has_a_key_of_its_own_and_keeps_it_over_restarts() throws Exception {
    try (TestGroup group = new TestGroup(server, 2, config -> config)) {
      byte[] enrolled = key(group.member(0));
      group.all.forEach(TestGroup.TestMember::start);
      group.awaitEstablished();
      byte[] before = key(group.member(0));
      assertThat(before).hasSize(16).isNotEqualTo(enrolled).isNotEqualTo(key(group.member(1)));
      group.member(0).stop();
      group.member(0).start();
      group.awaitEstablished();
      assertThat(key(group.member(0))).isEqualTo(before);
    }
  }

  @Test
  void a_member_that_was_retired_does_not_know_the_keys_of_those_who_stay() throws Exception {
    try (TestGroup group = TestGroup.started(server, 3)) {
      byte[] first = key(group.member(0));
      byte[] second = key(group.member(1));
      Roster smaller = without(group, 2);
      group.member(0).channel.updateRoster(smaller);
      group.member(1).channel.updateRoster(smaller);
      await().atMost(PATIENCE).until(() -> !Arrays.equals(first, key(group.member(0))));
      await().atMost(PATIENCE).until(() -> !Arrays.equals(second, key(group.member(1))));
      group.member(0).broadcast(smaller.members(), "broadcast");
      group.member(0).send(group.member(1), "pair");
      await()
          .atMost(PATIENCE)
          .until(() -> group.member(1).texts().containsAll(List.of("broadcast", "pair")));
    }
  }

  /** The hello with the new key is lost: the next message is refused, and asks for it. */
  @Test
  void a_message_under_an_old_key_arrives_once_the_new_one_was_asked_for() throws Exception {
    try (TestGroup group =
        TestGroup.started(
            server, 3, config -> config.withTiming(Timings.heartbeat(Duration.ofMinutes(1))))) {
      TestGroup.TestMember changed = group.member(1);
      String toSender = "/v1/messages/" + group.member(0).entry().aci();
      for (boolean pairwise : new boolean[] {true, false}) {
        byte[] before = key(changed);
        Roster now = changed.channel.roster();
        Roster next =
            now.members().size() == 3
                ? without(group, 2)
                : new Roster("test", now.version() + 1, group.roster.members());
        AtomicInteger lost = new AtomicInteger();
        AtomicBoolean armed = new AtomicBoolean();
        AtomicBoolean sent = new AtomicBoolean();
        server.intercept =
            request -> {
              if (request.is("PUT", toSender) && !sent.get()) {
                lost.incrementAndGet();
                return Optional.of(TestServer.Answer.json(200, TestServer.JSON.createObjectNode()));
              }
              sent.compareAndSet(false, armed.get() && request.is("PUT", "/v1/messages/"));
              return Optional.empty();
            };
        changed.channel.updateRoster(next);
        await().atMost(PATIENCE).until(() -> !Arrays.equals(before, key(changed)));
        await().atMost(PATIENCE).until(() -> lost.get() > 0);
        armed.set(true);
        if (pairwise) {
          group.member(0).send(changed, "pair");
          await().atMost(PATIENCE).until(() -> changed.texts().contains("pair"));
        } else {
          group.member(0).broadcast("broadcast");
          await().atMost(PATIENCE).until(() -> changed.texts().contains("broadcast"));
        }
      }
      assertThat(changed.texts()).containsExactly("pair", "broadcast");
    }
  }

  @Test
  void a_key_that_the_service_has_lost_is_set_again_with_the_next_connection() throws Exception {
    try (TestGroup group = TestGroup.started(server, 2)) {
      TestServer.Account account = account(group.member(1));
      byte[] right = account.accessKey;
      account.accessKey = new byte[16];
      account.connection.close();
      await().atMost(PATIENCE).until(() -> Arrays.equals(right, account.accessKey));
      group.member(0).broadcast("again");
      await().atMost(PATIENCE).until(() -> group.member(1).texts().equals(List.of("again")));
    }
  }

  /** A service that refuses access keys would like to know who sends. */
  @Test
  void a_refused_key_makes_nobody_send_bodies_by_name() throws Exception {
    try (TestGroup group =
        TestGroup.started(server, 2, config -> config.withTiming(Timings.impatient()))) {
      List<Integer> named = new CopyOnWriteArrayList<>();
      server.intercept =
          request -> {
            if (!request.is("PUT", "/v1/messages/")) {
              return Optional.empty();
            }
            request.account().ifPresent(sender -> named.add(request.body().length));
            // Those with a name are accepted and go nowhere.
            return Optional.of(
                request.account().isPresent()
                    ? TestServer.Answer.json(200, TestServer.JSON.createObjectNode())
                    : TestServer.Answer.of(401));
          };
      String body = "never".repeat(10_000);
      for (int i = 0; i < 3; i++) {
        assertThatThrownBy(() -> group.member(0).broadcast(body))
            .cause()
            .isInstanceOfSatisfying(
                ChannelException.class,
                e -> assertThat(e.reason()).isEqualTo(ChannelException.Cause.UNAUTHENTICATED));
        assertThatThrownBy(() -> group.member(0).send(group.member(1), body))
            .hasCauseInstanceOf(ChannelException.class);
      }
      // Hellos alone.
      assertThat(named).isNotEmpty().allMatch(bytes -> bytes < body.length());
    }
  }

  @Test
  void a_broadcast_reaches_those_who_are_there_although_another_was_never_heard_of()
      throws Exception {
    try (TestGroup group = new TestGroup(server, 3, config -> config)) {
      group.member(0).start();
      group.member(1).start();
      group.awaitEstablished(group.all.subList(0, 2));
      group.member(0).broadcast("to all");
      await().atMost(PATIENCE).until(() -> group.member(1).texts().equals(List.of("to all")));
    }
  }
}
