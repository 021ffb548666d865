package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Service;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.Key;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two coordinators, each a process of its own, under a steady load. */
class CoordinatorReplicasTest {
  private static final String KEY = "shared-work";

  /** Few, so that what is seen is the handing over, wherever this runs. */
  private static final int PER_SECOND = 4;

  private static final Duration RESTART = Duration.ofSeconds(180);

  private static Cluster cluster;
  private static Key key;
  private static OutsideVerifier outside;

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(3)
            .threshold(2)
            .coordinators(2)
            .processes()
            .folder(Path.of("target", "cluster-coordinators"))
            .progress(line -> System.out.println("progress: two coordinators: " + line))
            .start();
    key = cluster.wallet().createEcdsaKey(KEY, 2, cluster.partyNames());
    outside = OutsideVerifier.start(ProjectRoot.PATH);
  }

  @AfterAll
  static void stop() {
    if (outside != null) {
      outside.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @Test
  @Timeout(900)
  void whicheverIsKilledOrStoppedEveryRequestHasOneSignature() {
    List<WalletBackend> wallets = List.of(cluster.walletAt(0), cluster.walletAt(1));
    Service first = cluster.coordinators().get(0);
    Service second = cluster.coordinators().get(1);
    for (WalletBackend wallet : wallets) {
      for (int i = 0; i < 5; i++) {
        ByteString digest = ByteString.copyFrom(new byte[32]);
        wallet.sign(WalletBackend.ecdsaIntent(KEY).setDigest(digest));
      }
    }
    SteadyLoad load = SteadyLoad.start(wallets, KEY, PER_SECOND);
    try {
      awaitAnswers(load, 5 * PER_SECOND);
      second.kill();
      awaitAnswers(load, load.answers() + 10 * PER_SECOND);
      second.restart(RESTART);
      awaitAnswers(load, load.answers() + 5 * PER_SECOND);
      first.stop();
      awaitAnswers(load, load.answers() + 5 * PER_SECOND);
      first.restart(RESTART);
      awaitAnswers(load, load.answers() + 5 * PER_SECOND);
    } finally {
      load.end();
    }
    System.out.printf(
        "progress: %d requests, %d answered, asked again %s, longest %d ms%n",
        load.asked(),
        load.answers(),
        load.retries(),
        load.answered().stream().mapToLong(a -> a.took().toMillis()).max().orElse(0));

    assertThat(load.failed()).isEmpty();
    assertThat(load.answered()).hasSize(load.asked());
    assertThat(load.answered())
        .extracting(answered -> answered.signing().getName())
        .doesNotHaveDuplicates();
    SteadyLoad.Verdict verdict = load.judge(outside, key.getPublicKey());
    assertThat(verdict.wrong()).isEmpty();
    assertThat(verdict.twice()).isEmpty();
  }

  private static void awaitAnswers(SteadyLoad load, int number) {
    long end = System.nanoTime() + RESTART.toNanos();
    while (load.answers() < number) {
      assertThat(load.failed()).isEmpty();
      assertThat(System.nanoTime() - end).as("%d answers", load.answers()).isNegative();
      LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
    }
  }
}
