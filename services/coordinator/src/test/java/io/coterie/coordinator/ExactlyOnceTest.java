package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.custody.v1.WatchSigningRequest;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** One request id gives one signature, and callers may come, go and repeat as they like. */
class ExactlyOnceTest {
  @TempDir static Path folder;
  static TestInstallation installation;
  static ManagedChannel client;

  @BeforeAll
  static void start() {
    installation = new TestInstallation(folder, 3).start();
    client = installation.backend();
    installation.createKey(client, "hot", 2, 3);
  }

  @AfterAll
  static void stop() {
    installation.close();
  }

  @BeforeEach
  void honest() {
    installation.parties.behave();
    installation.parties.orders.clear();
  }

  @Test
  void concurrent_repeats_share_one_session_and_get_identical_answers() throws Exception {
    SignRequest request = sign(installation.wallet.sign(signingIntent("hot", "a").build()));
    CountDownLatch release = new CountDownLatch(1);
    allWait(release);
    List<Future<Signing>> answers = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 24; i++) {
        answers.add(threads.submit(() -> signing(client).sign(request)));
      }
      eventually(() -> installation.parties.orders.size() == 2);
      release.countDown();
      for (Future<Signing> answer : answers) {
        assertThat(answer.get()).isEqualTo(answers.getFirst().get());
      }
    }
    assertThat(answers.getFirst().get().getSessions()).isEqualTo(1);
    assertThat(installation.parties.orders).hasSize(2);
    assertThat(signing(client).sign(request)).isEqualTo(answers.getFirst().get());
    assertThat(installation.parties.orders).hasSize(2);
  }

  @Test
  void another_intent_under_a_used_request_id_is_refused_and_changes_nothing() {
    SigningIntent intent = signingIntent("hot", "first").build();
    Signing first = signing(client).sign(sign(installation.wallet.sign(intent)));
    String before = row(first);

    SigningIntent other = intent.toBuilder().setMessage(ByteString.copyFromUtf8("second")).build();
    Map<String, String> metadata =
        fails(
            ErrorReason.REQUEST_ID_REUSED,
            () -> signing(client).sign(sign(installation.wallet.sign(other))));

    assertThat(metadata).containsEntry(StatusErrors.RESOURCE, first.getName());
    assertThat(row(first)).isEqualTo(before);
    assertThat(installation.parties.orders).hasSize(2);
  }

  private static String row(Signing signing) {
    return installation.query(
        "select s::text from signings s where request_id = '" + signing.getRequestId() + "'");
  }

  @Test
  void of_two_intents_racing_for_a_request_id_one_wins() throws Exception {
    for (int round = 0; round < 10; round++) {
      SigningIntent intent = signingIntent("hot", "left " + round).build();
      SigningIntent other =
          intent.toBuilder().setMessage(ByteString.copyFromUtf8("right " + round)).build();
      List<Future<Signing>> answers = new ArrayList<>();
      try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
        for (SigningIntent i : List.of(intent, other, intent, other)) {
          SignRequest request = sign(installation.wallet.sign(i));
          answers.add(threads.submit(() -> signing(client).sign(request)));
        }
      }
      List<Signing> signed = new ArrayList<>();
      for (Future<Signing> answer : answers) {
        if (answer.state() == Future.State.SUCCESS) {
          signed.add(answer.get());
        } else {
          assertThat(StatusErrors.reason(answer.exceptionNow()))
              .contains(ErrorReason.REQUEST_ID_REUSED);
        }
      }
      assertThat(signed).hasSize(2);
      assertThat(signed.get(0)).isEqualTo(signed.get(1));
    }
  }

  @Test
  void the_same_request_id_of_another_requester_is_another_request() {
    SigningIntent intent = signingIntent("hot", "shared").build();
    Signing mine = signing(client).sign(sign(installation.wallet.sign(intent)));
    fails(
        ErrorReason.CLIENT_NOT_ALLOWED,
        () -> signing(client).sign(sign(installation.treasury.sign(intent))));
    assertThat(mine.getState()).isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void a_stored_signature_is_given_again_after_the_intent_has_expired() throws Exception {
    SigningIntent intent = signingIntent("hot", "soon").setNotAfter(inSeconds(1.5)).build();
    SignRequest request = sign(installation.wallet.sign(intent));
    Signing signed = signing(client).sign(request);
    eventually(
        () -> java.time.Instant.now().getEpochSecond() > intent.getNotAfter().getSeconds() + 1);
    assertThat(signing(client).sign(request)).isEqualTo(signed);
  }

  @Test
  void a_caller_that_leaves_does_not_end_the_signing() {
    SigningIntent intent = signingIntent("hot", "gone").build();
    CountDownLatch release = new CountDownLatch(1);
    allWait(release);
    Future<Signing> call =
        SigningServiceGrpc.newFutureStub(client).sign(sign(installation.wallet.sign(intent)));
    eventually(() -> installation.parties.orders.size() == 2);
    call.cancel(true);
    release.countDown();
    String name =
        installation.query(
            "select 'keys/hot/signings/' || id from signings where request_id = '"
                + intent.getRequestId()
                + "'");
    GetSigningRequest get = GetSigningRequest.newBuilder().setName(name).build();
    eventually(() -> signing(client).getSigning(get).getState() == Signing.State.SIGNED);
  }

  @Test
  void a_caller_whose_time_is_up_learns_party_and_round_and_can_come_back() {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Silent());
    }
    SignedIntent intent = installation.wallet.sign(signingIntent("hot", "slow").build());
    Map<String, String> metadata =
        fails(
            ErrorReason.PARTY_UNRESPONSIVE,
            () ->
                SigningServiceGrpc.newBlockingStub(client)
                    .withDeadlineAfter(800, TimeUnit.MILLISECONDS)
                    .sign(sign(intent)));
    assertThat(metadata.get(StatusErrors.PARTY)).matches("p[123],p[123]");
    assertThat(metadata).containsEntry(StatusErrors.ROUND, "1");
    assertThat(metadata).containsEntry(StatusErrors.CAUSE, "timed_out");
    installation.parties.behave();
    assertThat(signing(client).sign(sign(intent)).getState()).isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void watching_shows_the_signing_as_it_is_then_its_end() throws Exception {
    SigningIntent intent = signingIntent("hot", "watched").build();
    CountDownLatch release = new CountDownLatch(1);
    allWait(release);
    Future<Signing> call =
        SigningServiceGrpc.newFutureStub(client).sign(sign(installation.wallet.sign(intent)));
    eventually(() -> installation.parties.orders.size() == 2);
    String name =
        installation.query(
            "select 'keys/hot/signings/' || id from signings where request_id = '"
                + intent.getRequestId()
                + "'");
    Iterator<Signing> watch =
        signing(client).watchSigning(WatchSigningRequest.newBuilder().setName(name).build());
    assertThat(watch.next().getState()).isEqualTo(Signing.State.PENDING);
    release.countDown();
    Signing last = watch.next();
    assertThat(last).isEqualTo(call.get());
    assertThat(watch.hasNext()).isFalse();

    Iterator<Signing> late =
        signing(client).watchSigning(WatchSigningRequest.newBuilder().setName(name).build());
    assertThat(late.next()).isEqualTo(last);
    assertThat(late.hasNext()).isFalse();
  }

  private static void allWait(CountDownLatch release) {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(party, new Behaviour.Waits(release));
    }
  }
}
