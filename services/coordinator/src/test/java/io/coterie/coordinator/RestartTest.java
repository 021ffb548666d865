package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.keyIntent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.custody.v1.WatchSigningRequest;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A coordinator that dies loses nothing and repeats nothing. */
class RestartTest {
  @TempDir Path folder;
  private TestInstallation installation;
  private ManagedChannel client;

  @BeforeEach
  void start() {
    installation = new TestInstallation(folder, 3).start();
    client = installation.backend();
    installation.createKey(client, "hot", 2, 3);
    installation.parties.orders.clear();
  }

  @AfterEach
  void stop() {
    installation.close();
  }

  private void all(Behaviour behaviour) {
    for (String party : List.of("p1", "p2", "p3")) {
      installation.parties.behave(party, behaviour);
    }
  }

  @Test
  void pending_signings_and_creating_keys_are_resumed_without_anyones_help() {
    all(new Behaviour.Silent());
    List<SignedIntent> intents = new ArrayList<>();
    List<Future<Signing>> calls = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      intents.add(installation.wallet.sign(signingIntent("hot", "m" + i).build()));
      calls.add(SigningServiceGrpc.newFutureStub(client).sign(sign(intents.getLast())));
    }
    SignedIntent dying =
        installation.wallet.sign(signingIntent("hot", "dies").setNotAfter(inSeconds(3)).build());
    calls.add(SigningServiceGrpc.newFutureStub(client).sign(sign(dying)));
    SignedIntent keyIntent = installation.wallet.sign(keyIntent("cold", 2, "p1", "p2").build());
    Future<Key> keyCall = KeyServiceGrpc.newFutureStub(client).createKey(createKey(keyIntent));
    eventually(() -> installation.parties.orders.size() >= 9 * 2 + 2);

    installation.kill();

    for (Future<Signing> call : calls) {
      eventually(call::isDone);
      assertThat(StatusErrors.reason(call.exceptionNow())).isNotEqualTo(ErrorReason.INTERNAL);
    }
    eventually(keyCall::isDone);
    assertThat(installation.query("select count(*) from signings where state = 1")).isEqualTo("9");
    eventually(() -> Instant.now().getEpochSecond() > inSeconds(0).getSeconds() - 1);
    eventually(
        () ->
            installation
                .query("select min(not_after) < now() from signings where state = 1")
                .equals("t"));
    installation.parties.behave();

    installation.start();

    eventually(
        () -> installation.query("select count(*) from signings where state = 1").equals("0"));
    eventually(() -> installation.query("select count(*) from keys where state = 1").equals("0"));
    assertThat(installation.query("select count(*) from signings where state = 2")).isEqualTo("8");
    int orders = installation.parties.orders.size();
    for (SignedIntent intent : intents) {
      assertThat(signing(client).sign(sign(intent)).getState()).isEqualTo(Signing.State.SIGNED);
    }
    Calls.fails(ErrorReason.INTENT_EXPIRED, () -> signing(client).sign(sign(dying)));
    assertThat(keys(client).createKey(createKey(keyIntent)).getState()).isEqualTo(Key.State.ACTIVE);
    assertThat(installation.parties.orders).hasSize(orders);
  }

  @Test
  void answers_before_and_after_a_restart_are_identical() {
    SignedIntent intent = installation.wallet.sign(signingIntent("hot", "same").build());
    Signing before = signing(client).sign(sign(intent));
    installation.stop();
    installation.start();
    assertThat(signing(client).sign(sign(intent))).isEqualTo(before);
    assertThat(installation.parties.orders).hasSize(2);
  }

  @Test
  void a_stopping_coordinator_lets_its_calls_end() {
    java.util.concurrent.CountDownLatch release = new java.util.concurrent.CountDownLatch(1);
    all(new Behaviour.Waits(release));
    Future<Signing> call =
        SigningServiceGrpc.newFutureStub(client)
            .sign(sign(installation.wallet.sign(signingIntent("hot", "last").build())));
    eventually(() -> installation.parties.orders.size() == 2);
    java.util.Iterator<Signing> watch =
        signing(client)
            .watchSigning(
                WatchSigningRequest.newBuilder()
                    .setName(installation.query("select 'keys/hot/signings/' || id from signings"))
                    .build());
    assertThat(watch.next().getState()).isEqualTo(Signing.State.PENDING);
    Thread stopping = Thread.ofPlatform().start(installation::stop);
    eventually(
        () ->
            !installation
                .context()
                .getBean(org.springframework.boot.availability.ApplicationAvailability.class)
                .getReadinessState()
                .equals(org.springframework.boot.availability.ReadinessState.ACCEPTING_TRAFFIC));
    Calls.fails(ErrorReason.DRAINING, watch::next);
    release.countDown();
    eventually(call::isDone);
    assertThat(call.state()).isEqualTo(Future.State.SUCCESS);
    eventually(() -> !stopping.isAlive());
  }
}
