package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.Installation;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.storage.OperatorRequests.Kind;
import io.coterie.signer.storage.OperatorRequests.Request;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** One nonce point of exact Ed25519 for each key and message, whatever happens to the process. */
class ExactNoncesTest {
  private static final ByteString KEY = bytes(32, 1);
  private static final ByteString MESSAGE = bytes(64, 1);

  @TempDir Path folder;
  private PartyStore store;

  @BeforeEach
  void open() {
    store = PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {});
  }

  @AfterEach
  void close() {
    store.close();
  }

  private static ByteString bytes(int length, int value) {
    byte[] bytes = new byte[length];
    bytes[0] = (byte) value;
    bytes[length - 1] = 7;
    return ByteString.copyFrom(bytes);
  }

  private ByteString settle(ByteString key, ByteString message, int nonce) {
    return store
        .exactNonces()
        .settle(key, message, bytes(32, nonce), "wallet")
        .toCompletableFuture()
        .join();
  }

  @Test
  void the_first_point_of_a_message_is_the_only_one() {
    assertThat(settle(KEY, MESSAGE, 1)).isEqualTo(bytes(32, 1));
    assertThat(settle(KEY, MESSAGE, 1)).isEqualTo(bytes(32, 1));
    assertThat(settle(KEY, MESSAGE, 2)).isEqualTo(bytes(32, 1));
    close();
    open();
    assertThat(settle(KEY, MESSAGE, 2)).isEqualTo(bytes(32, 1));
    assertThat(settle(KEY, bytes(64, 2), 2)).as("another message").isEqualTo(bytes(32, 2));
    assertThat(settle(bytes(32, 2), MESSAGE, 3)).as("another key").isEqualTo(bytes(32, 3));
  }

  /** Sessions with several peers open the nonce of one message at a time. */
  @Test
  void of_many_at_a_time_all_get_the_same() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      List<Future<ByteString>> settled =
          IntStream.range(0, 64)
              .mapToObj(nonce -> threads.submit(() -> settle(KEY, MESSAGE, nonce)))
              .toList();
      ByteString first = settled.getFirst().get();
      for (Future<ByteString> each : settled) {
        assertThat(each.get()).isEqualTo(first);
      }
    }
  }

  @Test
  void bytes_of_another_length_are_not_stored() {
    assertThatThrownBy(() -> settle(bytes(31, 1), MESSAGE, 1)).isNotNull();
    assertThatThrownBy(() -> settle(KEY, bytes(32, 1), 1)).isNotNull();
    assertThat(settle(KEY, MESSAGE, 2)).isEqualTo(bytes(32, 2));
  }

  /** The nonces of two messages with one key differ; two answers under one would give the key. */
  @Test
  void no_two_messages_of_a_key_have_one_point() {
    ByteString other = bytes(64, 2);
    settle(KEY, MESSAGE, 1);
    assertThatThrownBy(() -> settle(KEY, other, 1))
        .hasRootCauseMessage("the nonce point is recorded for another message of the key");
    assertThat(settle(KEY, MESSAGE, 1)).isEqualTo(bytes(32, 1));
    assertThat(settle(KEY, other, 2)).as("after the refusal").isEqualTo(bytes(32, 2));
    assertThat(settle(KEY, other, 1)).as("the message has its own").isEqualTo(bytes(32, 2));
    assertThat(settle(bytes(32, 2), other, 1)).as("another key").isEqualTo(bytes(32, 1));
  }

  @Test
  void of_many_messages_at_a_time_one_has_the_point() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      List<Future<ByteString>> settled =
          IntStream.range(0, 64)
              .mapToObj(message -> threads.submit(() -> settle(KEY, bytes(64, message), 1)))
              .toList();
      int accepted = 0;
      for (Future<ByteString> each : settled) {
        try {
          each.get();
          accepted++;
        } catch (ExecutionException e) {
          assertThat(e).rootCause().isInstanceOf(StoreException.class);
        }
      }
      assertThat(accepted).isOne();
    }
  }

  /**
   * A file that was put back has the points of its time; of a later message the first one after it
   * counts. The security of the signature does not depend on it.
   */
  @Test
  void a_file_that_was_put_back_keeps_what_it_had() throws IOException {
    settle(KEY, MESSAGE, 1);
    Map<Path, byte[]> before = new HashMap<>();
    close();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, PartyStore.FILE + "*")) {
      for (Path file : files) {
        before.put(file, Files.readAllBytes(file));
      }
    }
    open();
    settle(KEY, bytes(64, 2), 2);
    close();
    for (Map.Entry<Path, byte[]> file : before.entrySet()) {
      Files.write(file.getKey(), file.getValue());
    }
    open();
    assertThat(settle(KEY, MESSAGE, 9)).isEqualTo(bytes(32, 1));
    assertThatThrownBy(() -> settle(KEY, bytes(64, 2), 1)).isNotNull();
    assertThat(settle(KEY, bytes(64, 2), 2)).isEqualTo(bytes(32, 2));
  }

  /** It can be imported again, to the nonces that it had. */
  @Test
  void points_outlive_the_shares_of_their_key() throws Exception {
    KeyPublic key =
        KeyPublic.newBuilder().setKeyId("keys/hot").setEpoch(1).setPublicKey(KEY).build();
    KeyShare share =
        new KeyShare(
            "keys/hot",
            1,
            Scheme.SCHEME_ED25519,
            KeyShare.State.PROVISIONAL,
            List.of(1, 2),
            List.of(1, 2),
            key,
            ByteString.copyFromUtf8("sealed"),
            new KeyShare.Origin(
                new SessionId(bytes(32, 9)), "coordinator", "wallet", "request", bytes(32, 4)),
            null);
    AuditEvent made = AuditEvent.of("wallet", "session.complete", "ok", Map.of());
    store.shares().storeProvisional(share, made).toCompletableFuture().join();
    settle(KEY, MESSAGE, 1);
    String named = "keys/hot " + KeyFingerprint.text(KeyFingerprint.of(key));
    new OperatorRequests(folder).ask(new Request(Kind.FORGET_KEY, named, "never used"));
    store.shares().housekeep();
    Installation.until("it is forgotten", () -> store.shares().find("keys/hot").isEmpty());
    assertThat(settle(KEY, MESSAGE, 2)).isEqualTo(bytes(32, 1));
  }
}
