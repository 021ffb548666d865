package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.keyIntent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.Order;
import io.grpc.ManagedChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A backlog of requests is worked off one after another, not all at once. */
class SessionTurnsTest {
  private static final int AT_ONCE = 3;
  private static final int REQUESTS = 10;

  @TempDir Path folder;

  /** Signing sessions that parties were asked to run. */
  private static long sessions(TestInstallation installation) {
    return installation.parties.orders.stream()
        .filter(o -> o.getProtocol() == ProtocolId.PROTOCOL_ID_BLS_SIGN)
        .map(Order::getCoordinatorNonce)
        .distinct()
        .count();
  }

  @Test
  void no_more_sessions_run_at_once_than_may() throws Exception {
    try (TestInstallation installation =
        new TestInstallation(
                folder,
                4,
                "--coterie.coordinator.limits.at-once=" + AT_ONCE,
                "--coterie.coordinator.signing.min=60s",
                "--coterie.coordinator.signing.initial=60s",
                "--coterie.coordinator.signing.max=60s")
            .start()) {
      ManagedChannel client = installation.backend();
      installation.createKey(client, "piled", 2, 2);
      CountDownLatch back = new CountDownLatch(1);
      for (String party : List.of("p1", "p2")) {
        installation.parties.behave(party, new Behaviour.Waits(back));
      }
      try (ExecutorService callers = Executors.newVirtualThreadPerTaskExecutor()) {
        List<Future<Signing>> answers = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
          SignRequest request =
              sign(installation.wallet.sign(signingIntent("piled", "payout " + i).build()));
          answers.add(callers.submit(() -> signing(client).sign(request)));
        }
        eventually(
            () ->
                installation
                    .query("select count(*) from signings where state = 1")
                    .equals(Integer.toString(REQUESTS)));
        eventually(() -> sessions(installation) == AT_ONCE);
        // A call that goes the same way without a bound is done, so nothing else is on its way.
        keys(client)
            .createKey(
                createKey(installation.wallet.sign(keyIntent("passing", 2, "p3", "p4").build())));
        assertThat(sessions(installation)).isEqualTo(AT_ONCE);
        back.countDown();
        for (Future<Signing> answer : answers) {
          assertThat(answer.get().getState()).isEqualTo(Signing.State.SIGNED);
        }
        assertThat(sessions(installation)).isEqualTo(REQUESTS);
      }
    }
  }
}
