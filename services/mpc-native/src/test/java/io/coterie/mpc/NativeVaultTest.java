package io.coterie.mpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.bouncycastle.crypto.generators.Argon2BytesGenerator;
import org.bouncycastle.crypto.params.Argon2Parameters;
import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.junit.jupiter.api.Test;

class NativeVaultTest {
  private static final NativeMpcCore CORE = NativeMpcCore.load();

  private static byte[] key(int seed) {
    byte[] key = new byte[32];
    new Random(seed).nextBytes(key);
    return key;
  }

  static void assertFails(MpcException.Reason reason, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(MpcException.class, e -> assertThat(e.reason()).isEqualTo(reason));
  }

  @Test
  void the_callers_copy_of_the_data_key_is_wiped_even_on_failure() {
    byte[] key = key(1);
    CORE.openVault(key).close();
    assertThat(key).containsOnly(0);
    for (int length : new int[] {0, 1, 31, 33, 64}) {
      byte[] wrong = new byte[length];
      Arrays.fill(wrong, (byte) 7);
      assertFails(MpcException.Reason.INVALID_ARGUMENT, () -> CORE.openVault(wrong));
      assertThat(wrong).doesNotContain(7);
    }
  }

  /** Bouncy Castle computes the same, which has the vectors of RFC 9106 among its own tests. */
  @Test
  void argon2id_is_that_of_another_implementation_and_refuses_what_is_out_of_range() {
    for (int[] cost : new int[][] {{64, 1, 1}, {128, 3, 4}, {64 * 1024, 3, 4}}) {
      byte[] expected = new byte[32];
      Argon2BytesGenerator argon2 = new Argon2BytesGenerator();
      argon2.init(
          new Argon2Parameters.Builder(Argon2Parameters.ARGON2_id)
              .withMemoryAsKB(cost[0])
              .withIterations(cost[1])
              .withParallelism(cost[2])
              .withSalt(key(3))
              .build());
      argon2.generateBytes(key(4), expected);
      assertThat(CORE.argon2id(key(4), key(3), cost[0], cost[1], cost[2])).isEqualTo(expected);
    }
    for (int[] bad :
        new int[][] {
          {7, 1, 1},
          {31, 1, 4},
          {64, 0, 1},
          {64, 1, 0},
          {64, 65, 1},
          {1024, 1, 17},
          {-1, 1, 1},
          {64, -1, 1},
          {262_145, 1, 1}
        }) {
      assertFails(
          MpcException.Reason.INVALID_ARGUMENT,
          () -> CORE.argon2id(key(4), key(3), bad[0], bad[1], bad[2]));
    }
    for (int salt : new int[] {0, 7, 65}) {
      assertFails(
          MpcException.Reason.INVALID_ARGUMENT,
          () -> CORE.argon2id(key(4), new byte[salt], 64, 1, 1));
    }
  }

  @Test
  void opens_what_it_sealed_and_nothing_else() {
    try (Vault vault = CORE.openVault(key(1));
        Vault same = CORE.openVault(key(1));
        Vault other = CORE.openVault(key(2))) {
      for (int size : new int[] {0, 1, 1000, 1_000_000}) {
        byte[] plaintext = new byte[size];
        Arrays.fill(plaintext, (byte) 0x5a);
        byte[] sealed = vault.seal("a label – ä", plaintext);
        assertThat(vault.seal("a label – ä", plaintext)).isNotEqualTo(sealed);
        assertThat(same.unseal("a label – ä", sealed)).isEqualTo(plaintext);
        assertFails(MpcException.Reason.UNSEAL_FAILED, () -> vault.unseal("another label", sealed));
        assertFails(MpcException.Reason.UNSEAL_FAILED, () -> other.unseal("a label – ä", sealed));
      }
      byte[] sealed = vault.seal("l", new byte[] {1, 2, 3});
      for (int i = 0; i < sealed.length; i++) {
        byte[] bad = sealed.clone();
        bad[i] ^= 1;
        assertFails(MpcException.Reason.UNSEAL_FAILED, () -> vault.unseal("l", bad));
        byte[] cut = Arrays.copyOf(sealed, i);
        assertFails(MpcException.Reason.UNSEAL_FAILED, () -> vault.unseal("l", cut));
      }
    }
  }

  @Test
  void identities_have_their_own_keys() {
    try (Vault vault = CORE.openVault(key(1))) {
      Vault.SealedIdentity one = vault.createIdentity("alpha");
      Vault.SealedIdentity two = vault.createIdentity("alpha");
      assertThat(one.evidenceKey()).hasSize(32).isNotEqualTo(two.evidenceKey());
      assertThat(one.sealed()).isNotEqualTo(two.sealed());
    }
  }

  /** Two other implementations agree; a signed statement never begins as an envelope does. */
  @Test
  void statement_is_signed_with_the_evidence_key() throws Exception {
    try (Vault vault = CORE.openVault(key(1));
        Vault other = CORE.openVault(key(2))) {
      Vault.SealedIdentity identity = vault.createIdentity("alpha");
      for (int size : new int[] {0, 1, Vault.MAX_STATEMENT}) {
        byte[] statement = new byte[size];
        byte[] signature = vault.signStatement(identity.sealed(), statement);
        assertThat(signature).hasSize(64);
        assertThat(vault.signStatement(identity.sealed(), statement)).isEqualTo(signature);
        byte[] signed =
            concat(
                "coterie/statement-signature/1".getBytes(StandardCharsets.US_ASCII),
                MessageDigest.getInstance("SHA-256").digest(statement));
        byte[] envelope =
            concat("coterie/envelope-signature/1".getBytes(StandardCharsets.US_ASCII), statement);
        assertThat(verifies(identity.evidenceKey(), signed, signature)).isTrue();
        assertThat(verifies(identity.evidenceKey(), statement, signature)).isFalse();
        assertThat(verifies(identity.evidenceKey(), envelope, signature)).isFalse();
        assertThat(verifies(other.createIdentity("alpha").evidenceKey(), signed, signature))
            .isFalse();
      }
      byte[] sealed = identity.sealed();
      assertFails(
          MpcException.Reason.UNSEAL_FAILED, () -> other.signStatement(sealed, new byte[1]));
      for (int i = 0; i < sealed.length; i++) {
        byte[] bad = sealed.clone();
        bad[i] ^= 1;
        assertFails(MpcException.Reason.UNSEAL_FAILED, () -> vault.signStatement(bad, new byte[1]));
      }
      assertFails(
          MpcException.Reason.UNSEAL_FAILED,
          () -> vault.signStatement(vault.seal("", new byte[32]), new byte[1]));
      assertFails(
          MpcException.Reason.INVALID_ARGUMENT,
          () -> vault.signStatement(sealed, new byte[Vault.MAX_STATEMENT + 1]));
    }
  }

  private static byte[] concat(byte[] first, byte[] second) {
    byte[] both = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, both, first.length, second.length);
    return both;
  }

  private static boolean verifies(byte[] key, byte[] message, byte[] signature) throws Exception {
    byte[] encoded = concat(HexFormat.of().parseHex("302a300506032b6570032100"), key);
    Signature jdk = Signature.getInstance("Ed25519");
    jdk.initVerify(
        KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded)));
    jdk.update(message);
    boolean verified = jdk.verify(signature);
    assertThat(Ed25519.verify(signature, 0, key, 0, message, 0, message.length))
        .isEqualTo(verified);
    return verified;
  }

  @Test
  void each_bad_argument_is_refused() {
    byte[] huge = new byte[NativeBindings.MAX_INPUT + 1];
    String long256 = "x".repeat(256);
    try (Vault vault = CORE.openVault(key(1))) {
      byte[] sealed = vault.seal("l", new byte[1]);
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> CORE.openVault(huge.clone()),
              () -> vault.seal(long256, new byte[1]),
              () -> vault.seal("l", huge),
              () -> vault.unseal("l", huge),
              () -> vault.createIdentity(""),
              () -> vault.createIdentity(long256),
              () -> vault.signStatement(huge, new byte[1]))) {
        assertFails(MpcException.Reason.INVALID_ARGUMENT, call);
      }
      assertThatThrownBy(() -> vault.unseal(long256, sealed)).isInstanceOf(MpcException.class);
      assertThat(vault.unseal("l", sealed)).containsExactly(0);
    }
  }

  @Test
  void a_closed_vault_refuses_and_closes_again() {
    Vault vault = CORE.openVault(key(1));
    vault.close();
    vault.close();
    for (ThrowingCallable call :
        List.<ThrowingCallable>of(
            () -> vault.seal("l", new byte[1]),
            () -> vault.unseal("l", new byte[1]),
            () -> vault.createIdentity("alpha"),
            () -> vault.signStatement(new byte[1], new byte[1]))) {
      assertThatThrownBy(call).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void serves_several_threads_and_survives_being_closed_under_them() throws Exception {
    Vault vault = CORE.openVault(key(1));
    byte[] sealed = vault.seal("l", new byte[500]);
    try (ExecutorService pool = Executors.newFixedThreadPool(4)) {
      Callable<Integer> work =
          () -> {
            int done = 0;
            try {
              while (done < 200_000) {
                assertThat(vault.unseal("l", sealed)).hasSize(500);
                done++;
              }
            } catch (IllegalStateException closed) {
              assertThat(closed).hasMessage("vault is closed");
            }
            return done;
          };
      List<Future<Integer>> running =
          IntStream.range(0, 4).mapToObj(i -> pool.submit(work)).toList();
      vault.unseal("l", sealed);
      vault.close();
      for (Future<Integer> result : running) {
        assertThat(result.get()).isLessThan(200_000);
      }
    }
  }

  @Test
  void opening_and_closing_does_not_grow() {
    long handles = CORE.openHandles();
    NativeHeap.assertDoesNotGrow(
        () -> {
          try (Vault vault = CORE.openVault(key(1))) {
            vault.unseal("l", vault.seal("l", new byte[600]));
            vault.signStatement(vault.createIdentity("alpha").sealed(), new byte[600]);
            assertFails(MpcException.Reason.UNSEAL_FAILED, () -> vault.unseal("l", new byte[100]));
          }
        });
    assertThat(CORE.openHandles()).isEqualTo(handles);
  }

  @Test
  void a_forgotten_vault_is_freed_and_counted() {
    long rescued = CORE.rescuedHandles();
    long open = CORE.openHandles();
    CORE.openVault(key(1));
    await()
        .atMost(Duration.ofSeconds(20))
        .until(
            () -> {
              System.gc();
              return CORE.rescuedHandles() > rescued && CORE.openHandles() <= open;
            });
  }
}
