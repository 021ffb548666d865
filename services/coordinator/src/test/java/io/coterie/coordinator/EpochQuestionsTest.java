package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.keys;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.EpochQuestions;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import io.grpc.ManagedChannel;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A client asks through the coordinator which epoch of a key its parties use. */
class EpochQuestionsTest {
  private static final SecureRandom RANDOM = new SecureRandom();

  @TempDir static Path folder;
  static TestInstallation installation;
  static ManagedChannel client;

  /** A key of p1, p2 and p3, and its session. */
  static Key key;

  static Completion made;
  static KeyPublic keyPublic;

  @BeforeAll
  static void start() throws Exception {
    installation = new TestInstallation(folder, 4).start();
    client = installation.backend();
    key = installation.createKey(client, "asked", 2, 3);
    made = key.getAttestation().getCompletions(0);
    keyPublic = KeyPublic.parseFrom(made.getKeyPublic());
  }

  @AfterAll
  static void stop() {
    installation.close();
  }

  @BeforeEach
  void honest() {
    installation.parties.questions.clear();
    installation.parties.answering = (self, question) -> List.of(honest(self, question));
  }

  private static ByteString fresh(int length) {
    byte[] bytes = new byte[length];
    RANDOM.nextBytes(bytes);
    return ByteString.copyFrom(bytes);
  }

  private static EpochStatement signed(int party, CurrentStatement statement) {
    return statement.signed(party, TestEvidence.sign(party, statement.of(party)));
  }

  private static EpochStatement says(int party, KeyPublic shares, ByteString challenge) {
    return signed(
        party, CurrentStatement.using("test", made.getSessionId(), shares, false, challenge));
  }

  private static EpochAnswer answer(EpochQuestion question, EpochStatement statement) {
    return EpochAnswer.newBuilder()
        .setKey(question.getKey())
        .setChallenge(question.getChallenge())
        .setStatement(statement)
        .build();
  }

  private static EpochAnswer honest(Member self, EpochQuestion question) {
    return answer(question, says(self.partyId(), keyPublic, question.getChallenge()));
  }

  private static Key get(ManagedChannel as, ByteString challenge) {
    return keys(as)
        .getKey(GetKeyRequest.newBuilder().setName("keys/asked").setChallenge(challenge).build());
  }

  @Test
  void every_party_answers_the_very_challenge_of_the_client() {
    ByteString challenge = fresh(32);
    Key answer = get(client, challenge);
    assertThat(answer.getCurrentList())
        .containsExactly(
            says(1, keyPublic, challenge),
            says(2, keyPublic, challenge),
            says(3, keyPublic, challenge));
    assertThat(answer.toBuilder().clearCurrent().build()).isEqualTo(key);
    // p4 holds no share.
    assertThat(installation.parties.questions).hasSize(3);
  }

  @Test
  void nobody_is_asked_without_a_challenge() {
    assertThat(get(client, ByteString.EMPTY)).isEqualTo(key);
    assertThat(installation.parties.questions).isEmpty();
  }

  @Test
  void a_challenge_of_another_length_reaches_no_party() {
    for (int length : new int[] {1, 31, 33, 4096}) {
      fails(ErrorReason.CHALLENGE_INVALID, () -> get(client, fresh(length)));
    }
    ManagedChannel auditor = installation.client("auditor");
    fails(ErrorReason.CLIENT_NOT_ALLOWED, () -> get(auditor, fresh(32)));
    fails(
        ErrorReason.KEY_NOT_FOUND,
        () ->
            keys(client)
                .getKey(
                    GetKeyRequest.newBuilder()
                        .setName("keys/none")
                        .setChallenge(fresh(32))
                        .build()));
    assertThat(installation.parties.questions).isEmpty();
  }

  @Test
  void a_silent_party_and_one_that_cannot_be_reached_are_missing() {
    installation.parties.answering =
        (self, question) -> self.partyId() == 2 ? List.of() : List.of(honest(self, question));
    ByteString challenge = fresh(32);
    assertThat(get(client, challenge).getCurrentList())
        .containsExactly(says(1, keyPublic, challenge), says(3, keyPublic, challenge));
    installation.parties.disconnect("p3");
    try {
      ByteString next = fresh(32);
      assertThat(get(client, next).getCurrentList()).containsExactly(says(1, keyPublic, next));
    } finally {
      installation.parties.connect("p3");
    }
  }

  @Test
  void no_lie_of_a_party_reaches_the_client_and_none_keeps_another_answer_away() {
    List<EpochStatement> lies = new ArrayList<>();
    ByteString challenge = fresh(32);
    lies.add(says(2, keyPublic, fresh(32)));
    lies.add(says(1, keyPublic, challenge));
    lies.add(says(3, keyPublic, challenge).toBuilder().setParty(2).build());
    lies.add(says(2, keyPublic.toBuilder().setKeyId("keys/other").build(), challenge));
    lies.add(says(2, keyPublic.toBuilder().setPublicKey(fresh(48)).build(), challenge));
    lies.add(says(2, keyPublic, challenge).toBuilder().setEpoch(7).build());
    lies.add(
        signed(
            2, CurrentStatement.using("other", made.getSessionId(), keyPublic, false, challenge)));
    lies.add(says(2, keyPublic, challenge).toBuilder().setSessionId(fresh(31)).build());
    lies.add(says(2, keyPublic, challenge).toBuilder().setSignature(fresh(64)).build());
    lies.add(EpochStatement.getDefaultInstance());
    for (EpochStatement lie : lies) {
      installation.parties.answering =
          (self, question) ->
              List.of(self.partyId() == 2 ? answer(question, lie) : honest(self, question));
      assertThat(get(client, challenge).getCurrentList())
          .as("%s", lie)
          .containsExactly(says(1, keyPublic, challenge), says(3, keyPublic, challenge));
    }
  }

  @Test
  void the_first_answer_of_a_party_counts_and_a_stranger_has_none() {
    ByteString challenge = fresh(32);
    KeyPublic later = keyPublic.toBuilder().setEpoch(2).build();
    installation.parties.answering =
        (self, question) -> {
          Member coordinator = installation.network.roster().byName("coordinator").orElseThrow();
          Member stranger = installation.network.roster().byName("p4").orElseThrow();
          installation.parties.say("p4", coordinator, honest(stranger, question));
          return List.of(
              answer(question, says(self.partyId(), later, question.getChallenge())),
              honest(self, question));
        };
    assertThat(get(client, challenge).getCurrentList())
        .containsExactly(
            says(1, later, challenge), says(2, later, challenge), says(3, later, challenge));
  }

  @Test
  void a_field_that_nobody_knows_is_left_out() {
    UnknownFieldSet unknown =
        UnknownFieldSet.newBuilder()
            .addField(99, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
            .build();
    installation.parties.answering =
        (self, question) ->
            List.of(
                answer(
                    question,
                    says(self.partyId(), keyPublic, question.getChallenge()).toBuilder()
                        .setUnknownFields(unknown)
                        .build()));
    ByteString challenge = fresh(32);
    assertThat(get(client, challenge).getCurrentList())
        .hasSize(3)
        .contains(says(1, keyPublic, challenge));
  }

  @Test
  void questions_that_wait_have_a_bound_for_each_client_and_in_all() throws Exception {
    installation.parties.answering = (_, _) -> List.of();
    KeyRecord record = installation.bean(KeyDirectory.class).read("keys/asked").orElseThrow();
    AtomicLong clock = new AtomicLong();
    try (SecureChannel channel = another()) {
      EpochQuestions questions = questions(channel, clock);
      int clients = EpochQuestions.MAX_WAITING / EpochQuestions.MAX_WAITING_OF_CLIENT;
      List<Thread> asking = new ArrayList<>();
      Set<ByteString> challenges = new HashSet<>();
      for (int c = 1; c <= clients; c++) {
        String name = "client-" + c;
        // The rates are not what is looked at.
        clock.addAndGet(TimeUnit.HOURS.toNanos(1));
        for (int i = 0; i < EpochQuestions.MAX_WAITING_OF_CLIENT; i++) {
          ByteString challenge = fresh(32);
          challenges.add(challenge);
          asking.add(asking(questions, name, record, challenge));
        }
        // A question reaches its three parties after it has taken its room.
        eventually(() -> reached(challenges));
        assertOverloaded(() -> questions.ask(name, record, fresh(32), patient()));
      }
      assertOverloaded(() -> questions.ask("one more", record, fresh(32), patient()));
      for (Thread thread : asking) {
        thread.interrupt();
        thread.join();
      }
      ByteString next = fresh(32);
      Thread another = asking(questions, "one more", record, next);
      eventually(() -> reached(Set.of(next)));
      another.interrupt();
      another.join();
    }
  }

  private static Thread asking(
      EpochQuestions questions, String client, KeyRecord record, ByteString challenge) {
    return Thread.ofVirtual()
        .start(
            () -> {
              try {
                questions.ask(client, record, challenge, patient());
              } catch (InterruptedException e) {
                // The test is over.
              }
            });
  }

  /** Whether each of such questions has come to its three parties. */
  private static boolean reached(Set<ByteString> challenges) {
    return installation.parties.questions.stream()
            .filter(question -> challenges.contains(question.getChallenge()))
            .count()
        == 3L * challenges.size();
  }

  @Test
  void questions_that_were_answered_leave_their_room() throws Exception {
    KeyRecord record = installation.bean(KeyDirectory.class).read("keys/asked").orElseThrow();
    AtomicLong clock = new AtomicLong();
    AtomicReference<EpochQuestions> asking = new AtomicReference<>();
    try (SecureChannel channel = answering(asking, clock)) {
      for (int i = 0; i <= EpochQuestions.MAX_WAITING; i++) {
        clock.addAndGet(TimeUnit.HOURS.toNanos(1));
        assertThat(asking.get().ask("client", record, fresh(32), patient())).hasSize(3);
      }
    }
  }

  @Test
  void questions_have_a_rate_for_each_client_and_for_all() throws Exception {
    KeyRecord record = installation.bean(KeyDirectory.class).read("keys/asked").orElseThrow();
    AtomicLong clock = new AtomicLong();
    AtomicReference<EpochQuestions> asking = new AtomicReference<>();
    try (SecureChannel channel = answering(asking, clock)) {
      EpochQuestions questions = asking.get();
      int clients = EpochQuestions.BURST / EpochQuestions.BURST_OF_CLIENT;
      for (int c = 1; c <= clients; c++) {
        String name = "client-" + c;
        for (int i = 0; i < EpochQuestions.BURST_OF_CLIENT; i++) {
          assertThat(questions.ask(name, record, fresh(32), patient())).hasSize(3);
        }
        assertOverloaded(() -> questions.ask(name, record, fresh(32), patient()));
      }
      assertOverloaded(() -> questions.ask("one more", record, fresh(32), patient()));
      clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
      for (int i = 0; i < EpochQuestions.PER_SECOND_OF_CLIENT; i++) {
        assertThat(questions.ask("client-1", record, fresh(32), patient())).hasSize(3);
      }
      assertOverloaded(() -> questions.ask("client-1", record, fresh(32), patient()));
    }
  }

  @Test
  void nobody_is_asked_for_a_client_whose_time_is_up() throws Exception {
    KeyRecord record = installation.bean(KeyDirectory.class).read("keys/asked").orElseThrow();
    AtomicReference<EpochQuestions> asking = new AtomicReference<>();
    try (SecureChannel channel = answering(asking, new AtomicLong())) {
      ByteString challenge = fresh(32);
      assertThat(asking.get().ask("client", record, challenge, caller(-1))).isEmpty();
      // A later question has come to the parties, and the first one has not.
      assertThat(asking.get().ask("client", record, fresh(32), patient())).hasSize(3);
      assertThat(installation.parties.questions)
          .noneMatch(question -> question.getChallenge().equals(challenge));
    }
  }

  /** A channel whose answers come to the questions that are put in place here. */
  private SecureChannel answering(AtomicReference<EpochQuestions> asking, AtomicLong clock) {
    SecureChannel channel = installation.network.channel(TestInstallation.ANOTHER);
    channel.onMessage(message -> asking.get().answered(message.sender(), answerIn(message.body())));
    asking.set(questions(channel, clock));
    channel.start();
    return channel;
  }

  private static EpochAnswer answerIn(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getEpochAnswer();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  private SecureChannel another() {
    SecureChannel channel = installation.network.channel(TestInstallation.ANOTHER);
    channel.onMessage(_ -> {});
    channel.start();
    return channel;
  }

  private static EpochQuestions questions(SecureChannel channel, AtomicLong clock) {
    return new EpochQuestions(
        () -> Optional.of(channel),
        new CoordinatorMetrics(new SimpleMeterRegistry()),
        Duration.ofHours(1),
        clock::get);
  }

  /** Waits until the parties have answered, however slow the machine is. */
  private static Caller patient() {
    return caller(TimeUnit.MINUTES.toNanos(1));
  }

  private static Caller caller(long nanos) {
    return new Caller(System.nanoTime() + nanos, TraceContext.create(RANDOM));
  }

  private static void assertOverloaded(org.assertj.core.api.ThrowableAssert.ThrowingCallable ask) {
    assertThatThrownBy(ask)
        .isInstanceOfSatisfying(
            CustodyException.class, e -> assertThat(e.reason()).isEqualTo(ErrorReason.OVERLOADED));
  }
}
