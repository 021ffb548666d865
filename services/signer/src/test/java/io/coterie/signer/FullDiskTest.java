package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.audit.AuditTrail.Verification;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Never;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.storage.StoreException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A drill with a disk that is really full: the party says nothing that it could not write, loses
 * nothing that it has said, and goes on when there is room.
 */
class FullDiskTest {
  /** A payload of the size that a party may be asked to sign. */
  private static final ByteString INTENT = ByteString.copyFrom(new byte[64 << 10]);

  private static final long FILLER_BYTES = 8 << 20;

  @TempDir Path folder;
  private Path disk;
  private boolean mounted;

  /** A disk of 32 MB for alpha, in memory. */
  @BeforeEach
  void mount() throws Exception {
    disk = Files.createDirectories(folder.resolve("parties").resolve("alpha"));
    mounted = run("mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs", disk.toString());
    assumeTrue(mounted, "a disk of its own needs root");
  }

  @AfterEach
  void unmount() throws Exception {
    if (mounted) {
      assertThat(run("umount", disk.toString())).isTrue();
    }
  }

  private static boolean run(String... command) throws IOException, InterruptedException {
    try {
      return new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start()
              .waitFor()
          == 0;
    } catch (IOException e) {
      return false; // There is no such program.
    }
  }

  /** Takes all that is free, or a number of bytes. */
  private void fill(long most) {
    byte[] zeros = new byte[64 << 10];
    try (OutputStream out = Files.newOutputStream(disk.resolve("filler"))) {
      for (long written = 0; written < most; written += zeros.length) {
        out.write(zeros);
      }
    } catch (IOException e) {
      assertThat(disk.toFile().getUsableSpace()).as("%s", e).isZero();
    }
  }

  private void makeRoom() throws IOException {
    Files.delete(disk.resolve("filler"));
  }

  private static ByteString bytes32(int number) {
    return ByteString.copyFrom(ByteBuffer.allocate(32).putInt(number).rewind());
  }

  private static SessionId session(int number) {
    return new SessionId(bytes32(number));
  }

  /** The result; null if it could not be written. */
  private static <T> @Nullable T get(CompletionStage<T> stage) {
    try {
      return stage.toCompletableFuture().join();
    } catch (CompletionException e) {
      assertThat(e).hasCauseInstanceOf(StoreException.class);
      return null;
    }
  }

  private static @Nullable Outcome claim(PartyStore store, int number, String id, int digest) {
    return get(
        store
            .claims()
            .claimOnce(
                new Claim(
                    session(number),
                    "wallet",
                    id,
                    bytes32(digest),
                    null,
                    null,
                    null,
                    INTENT,
                    "coordinators/c"),
                AuditEvent.of("wallet", "order.accept", "ok", Map.of())));
  }

  private static @Nullable Never never(PartyStore store, String id) {
    return get(
        store
            .claims()
            .never(
                "wallet",
                id,
                null,
                INTENT,
                bytes32(-1),
                AuditEvent.of("wallet", "receipt.give", "never", Map.of())));
  }

  private PartyStore open() {
    return PartyStore.open(disk, "alpha", Clock.systemUTC(), (_, _) -> {});
  }

  @Test
  void claims_fail_closed_nothing_is_lost_and_claims_go_on_when_there_is_room() throws Exception {
    fill(FILLER_BYTES);
    String[] ids = new String[2_000];
    int claimed = 0;
    String cancelled;
    @Nullable Never said;
    PartyStore store = open();
    try {
      for (int i = 0; i < ids.length; i++) {
        ids[i] = RequestId.next();
      }
      cancelled = RequestId.next();
      while (claim(store, claimed, ids[claimed], claimed) == Outcome.CLAIMED) {
        claimed++;
      }
      assertThat(claimed).isGreaterThan(50).isLessThan(ids.length - 10);
      fill(Long.MAX_VALUE); // what is left of the filler's place, too
      for (int i = 0; i < 5; i++) {
        assertThat(claim(store, claimed + i, ids[claimed + i], claimed + i)).isNull();
      }
      // The journal may still have place for a small row.
      said = never(store, cancelled);
      assertThat(store.claims().neverAlready("wallet", ids[0], null))
          .as("what is on disk can be read")
          .contains(new Never.Claimed(bytes32(0)));
    } finally {
      store.close();
    }
    try {
      open().close();
    } catch (StoreException | CompletionException e) {
      assertThat(e).as("a start is tried again until there is room").hasMessageContaining("party");
    }

    makeRoom();
    try (PartyStore again = open()) {
      for (int i = 0; i < claimed; i++) {
        assertThat(claim(again, i, ids[i], i)).isEqualTo(Outcome.SESSION_REPLAYED);
        assertThat(claim(again, 10_000 + i, ids[i], -2)).isEqualTo(Outcome.REQUEST_ID_REUSED);
        assertThat(never(again, ids[i])).isEqualTo(new Never.Claimed(bytes32(i)));
      }
      for (int i = claimed; i < claimed + 5; i++) {
        assertThat(claim(again, i, ids[i], -2))
            .as("nothing was claimed")
            .isEqualTo(Outcome.CLAIMED);
      }
      assertThat(never(again, cancelled)).isEqualTo(new Never.Said(said == null));
      assertThat(again.audit().verify()).isInstanceOf(Verification.Intact.class);
      assertThat(again.audit().read(1, 10_000).stream())
          .filteredOn(record -> record.event().action().equals("order.accept"))
          .hasSize(claimed + 5);
    }
  }

  @Test
  void a_party_whose_disk_is_full_contributes_to_nothing_and_the_others_sign() throws Exception {
    try (Installation i = Installation.faked(folder.resolve("parties")).start()) {
      i.createKey("keys/main", 2);
      assertThat(signers(i, 1, 2)).isEqualTo(2);
      fill(Long.MAX_VALUE);
      // It looks at the disk twice a second.
      Installation.until("alpha takes no part", () -> signers(i, 1, 2) == 1);
      for (int number = 0; number < 3; number++) {
        assertThat(signers(i, 1, 3)).isEqualTo(1);
        assertThat(signers(i, 2, 3)).isEqualTo(2);
      }
      makeRoom();
      Installation.until("alpha signs again", () -> signers(i, 1, 2) == 2);
      i.restart("alpha");
      assertThat(signers(i, 1, 3)).isEqualTo(2);
      assertThat(i.party("alpha").store.audit().verify()).isInstanceOf(Verification.Intact.class);
    }
  }

  /** Has a new request signed by a set of two; says how many contribute. */
  private static int signers(Installation i, int... set) {
    SessionId session =
        i.coordinator.give(
            i.coordinator
                .signOrder(
                    i.signed(i.signingIntent(Installation.requestId(), "keys/main", "hello")),
                    "keys/main",
                    2,
                    set)
                .build());
    Installation.until(
        "each contributes, or alpha refuses",
        () ->
            i.coordinator.partials(session) == set.length
                || i.coordinator.partials(session) == set.length - 1
                    && i.coordinator.hasReport("alpha", session));
    return (int) i.coordinator.partials(session);
  }
}
