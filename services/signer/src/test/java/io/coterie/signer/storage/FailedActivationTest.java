package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** New shares whose activation the disk refuses: the old ones are used on as before. */
class FailedActivationTest {
  private static final String KEY = "keys/a";
  private static final Certificate PROOF =
      new Certificate(List.of(ByteString.copyFrom(new byte[Certificate.SIGNATURE_BYTES])));

  @TempDir Path folder;
  private final Disk disk = new Disk();
  private PartyStore store;
  private KeyShareStore shares;

  /** The thread of the store, with a disk that can refuse. */
  private static final class Disk implements CommitRunner {
    private final CommitThread thread = new CommitThread("test");
    volatile boolean full;

    @Override
    public void execute(Runnable task) {
      thread.execute(task);
    }

    @Override
    public void after(Duration delay, Runnable task) {
      thread.after(delay, task);
    }

    @Override
    public long nanos() {
      return thread.nanos();
    }

    @Override
    public boolean close(Runnable last, Duration time) throws InterruptedException {
      return thread.close(last, time);
    }

    @Override
    public void committing() throws SQLException {
      if (full) {
        throw new SQLException("the disk is full");
      }
    }
  }

  @BeforeEach
  void open() {
    store =
        PartyStore.open(
            folder, "alpha", Clock.systemUTC(), (_, _) -> {}, () -> disk, new SecureRandom());
    shares = store.shares();
    get(shares.storeProvisional(share(1), event("stored")));
    get(shares.activate(share(1), PROOF, event("active")));
    get(shares.storeNext(share(2), true, event("stored")));
  }

  @AfterEach
  void close() {
    disk.full = false;
    store.close();
  }

  private static <T> T get(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private static AuditEvent event(String what) {
    return AuditEvent.of("wallet", what, "ok", Map.of());
  }

  private static SessionId session(int number) {
    return new SessionId(ByteString.copyFrom(ByteBuffer.allocate(32).putInt(number).rewind()));
  }

  private static KeyShare share(int epoch) {
    return new KeyShare(
        KEY,
        epoch,
        Scheme.SCHEME_ECDSA_SECP256K1,
        KeyShare.State.PROVISIONAL,
        List.of(1, 2, 3),
        List.of(1, 2, 3),
        KeyPublic.newBuilder().setKeyId(KEY).setThreshold(2).setEpoch(epoch).build(),
        ByteString.copyFromUtf8("sealed " + epoch),
        new KeyShare.Origin(
            session(epoch),
            "coordinator",
            "wallet",
            "request " + epoch,
            ByteString.copyFrom(new byte[32])),
        null);
  }

  private void activationFails() {
    disk.full = true;
    assertThatThrownBy(() -> get(shares.activate(share(2), PROOF, event("active"))))
        .hasRootCauseMessage("the disk is full");
    disk.full = false;
  }

  /** The old share stays in use, so the parties that it must not be used with stay excluded. */
  @Test
  void exclusions_from_the_old_share_stay_in_memory_until_the_new_one_is_on_disk() {
    get(
        shares.exclude(
            new KeyShareStore.Exclusion(
                KEY, Set.of(2), session(9), session(1), 1, ByteString.EMPTY)));
    activationFails();
    assertThat(shares.find(KEY).orElseThrow().epoch()).isEqualTo(1);
    assertThat(shares.excluded(KEY)).containsExactly(2);
    assertThat(shares.troubles()).hasSize(1);
    assertThat(get(shares.activate(share(2), PROOF, event("active")))).isTrue();
    assertThat(shares.find(KEY).orElseThrow().epoch()).isEqualTo(2);
    assertThat(shares.excluded(KEY)).isEmpty();
    assertThat(shares.troubles()).isEmpty();
  }

  @Test
  void a_freeze_stays_through_both() {
    get(
        shares.exclude(
            new KeyShareStore.Exclusion(
                KEY,
                Set.of(KeyShareStore.EVERY_PARTY),
                session(9),
                session(1),
                1,
                ByteString.EMPTY)));
    activationFails();
    assertThat(shares.excluded(KEY)).containsExactly(KeyShareStore.EVERY_PARTY);
    assertThat(get(shares.activate(share(2), PROOF, event("active")))).isTrue();
    assertThat(shares.excluded(KEY)).containsExactly(KeyShareStore.EVERY_PARTY);
  }
}
