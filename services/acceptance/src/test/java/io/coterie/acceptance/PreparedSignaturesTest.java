package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Signatures with an imported key find one prepared, and are the owner's own. */
@Timeout(300)
@ExtendWith(SharedCluster.class)
class PreparedSignaturesTest {
  private static final String KEY = "prepared";
  private static final int SIGNATURES = 12;
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  @Test
  void pairs_prepare_ahead_of_need_and_sign_as_the_owner_does(Running shared) {
    byte[] seed = new byte[Ed25519.SECRET_KEY_SIZE];
    new SecureRandom().nextBytes(seed);
    shared.wallet().importKey(KEY, seed, 2);
    assertThat(sign(shared, seed, "first").getPresigned()).isFalse();
    List<Double> millis = new ArrayList<>();
    for (int i = 0; i < SIGNATURES; i++) {
      awaitPrepared(shared);
      long begin = System.nanoTime();
      assertThat(sign(shared, seed, "message " + i).getPresigned()).isTrue();
      millis.add((System.nanoTime() - begin) / 1e6);
    }
    Collections.sort(millis);
    System.out.printf(
        Locale.ROOT,
        "prepared signatures of an imported key: median %.1f ms, longest %.1f ms%n",
        millis.get(SIGNATURES / 2),
        millis.getLast());
    // Of another length, for which nothing was prepared.
    assertThat(sign(shared, seed, "x".repeat(300)).getPresigned()).isFalse();
  }

  /** Everything that is wanted is ready, also for the keys of other tests. */
  private static void awaitPrepared(Running shared) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (System.nanoTime() < end) {
      Metrics metrics = shared.cluster().coordinator().metrics();
      double wanted = metrics.sum("coterie_coordinator_presignatures_wanted");
      if (wanted > 0 && metrics.sum("coterie_coordinator_presignatures_ready") >= wanted) {
        return;
      }
      LockSupport.parkNanos(Duration.ofMillis(20).toNanos());
    }
    throw new AssertionError("the pair has not prepared what is wanted");
  }

  private static Signing sign(Running shared, byte[] seed, String message) {
    ByteString text = ByteString.copyFromUtf8(message);
    Signing signing =
        shared
            .wallet()
            .sign(WalletBackend.signingIntent(KEY, Scheme.SCHEME_ED25519_EXACT).setMessage(text));
    byte[] expected = new byte[Ed25519.SIGNATURE_SIZE];
    Ed25519.sign(seed, 0, text.toByteArray(), 0, text.size(), expected, 0);
    assertThat(signing.getSignature().toByteArray()).isEqualTo(expected);
    return signing;
  }
}
