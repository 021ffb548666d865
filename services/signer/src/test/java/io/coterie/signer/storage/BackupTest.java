package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.MemoryLedger;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BackupTest {
  private static final byte[] KEY = {1, 2, 3};

  @TempDir Path folder;
  private Path party;
  private Path empty;

  @BeforeEach
  void party() throws IOException {
    party = folder.resolve("party");
    empty = folder.resolve("empty");
    PartyStore.createFolder(party);
    Files.write(party.resolve(Backup.DATA_KEY), KEY);
  }

  private static PartyStore open(Path folder) {
    return PartyStore.open(folder, "alpha", Clock.systemUTC(), (_, _) -> {});
  }

  private static CompletionStage<Outcome> claim(PartyStore store, int number) {
    byte[] session = new byte[32];
    session[0] = (byte) number;
    session[1] = (byte) (number >> 8);
    return store
        .claims()
        .claimOnce(
            new Claim(
                new SessionId(ByteString.copyFrom(session)),
                "wallet",
                "request " + number,
                ByteString.copyFrom(new byte[32]),
                null,
                null,
                null,
                ByteString.EMPTY,
                MemoryLedger.COORDINATOR),
            AuditEvent.of("wallet", "order.accept", "ok", Map.of()));
  }

  private static Outcome claimed(PartyStore store, int number) {
    return claim(store, number).toCompletableFuture().join();
  }

  private byte[] backup() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Backup.write(party, out);
    return out.toByteArray();
  }

  private void restore(byte[] backup) throws IOException {
    Backup.restore(new ByteArrayInputStream(backup), empty);
  }

  private static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(f -> f.getFileName().toString()).sorted().toList();
    }
  }

  @Test
  void running_party_is_backed_up_as_it_was_after_some_commit() throws IOException {
    byte[] backup;
    List<CompletionStage<Outcome>> later = new ArrayList<>();
    try (PartyStore store = open(party)) {
      for (int i = 0; i < 100; i++) {
        assertThat(claimed(store, i)).isEqualTo(Outcome.CLAIMED);
      }
      for (int i = 100; i < 400; i++) {
        later.add(claim(store, i));
      }
      backup = backup();
      assertThat(later)
          .allSatisfy(
              stage -> assertThat(stage.toCompletableFuture().join()).isEqualTo(Outcome.CLAIMED));
    }
    restore(backup);
    assertThat(Files.readAllBytes(empty.resolve(Backup.DATA_KEY))).isEqualTo(KEY);
    try (Stream<Path> files = Files.list(empty)) {
      assertThat(files.filter(f -> !f.toString().endsWith(".lock")))
          .allSatisfy(
              f ->
                  assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(f)))
                      .isEqualTo("rw-------"));
    }
    try (PartyStore store = open(empty)) {
      for (int i = 0; i < 100; i++) {
        assertThat(claimed(store, i)).as("session %d", i).isEqualTo(Outcome.SESSION_REPLAYED);
      }
      assertThat(claimed(store, 1_000)).isEqualTo(Outcome.CLAIMED);
      assertThat(store.holds().all())
          .as("nobody knows what was held since")
          .extracting(hold -> hold.scope().text())
          .containsExactly("installation");
    }
    try (PartyStore store = open(party)) {
      assertThat(store.holds().all()).isEmpty();
    }
  }

  @Test
  void stopped_party_is_backed_up_and_no_copy_is_left() throws IOException {
    try (PartyStore store = open(party)) {
      assertThat(claimed(store, 1)).isEqualTo(Outcome.CLAIMED);
    }
    // One that was killed.
    Files.writeString(party.resolve("party.db.backup.part"), "half");
    byte[] backup = backup();
    assertThat(names(party)).noneMatch(name -> name.endsWith(".part"));
    restore(backup);
    assertThat(names(empty)).noneMatch(name -> name.endsWith(".part"));
    try (PartyStore store = open(empty)) {
      assertThat(claimed(store, 1)).isEqualTo(Outcome.SESSION_REPLAYED);
    }
  }

  @Test
  void folder_without_a_party_is_not_backed_up() throws IOException {
    assertThatThrownBy(this::backup)
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("party.db");
    open(party).close();
    Files.delete(party.resolve(Backup.DATA_KEY));
    assertThatThrownBy(this::backup)
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("data.key");
    assertThat(names(party)).contains("party.db").noneMatch(name -> name.endsWith(".part"));
  }

  @Test
  void party_is_never_written_over() throws IOException {
    open(party).close();
    byte[] backup = backup();
    for (String there : List.of("party.db", "data.key")) {
      Files.createDirectories(empty);
      Files.writeString(empty.resolve(there), "mine");
      assertThatThrownBy(() -> restore(backup))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining(there + " exists");
      assertThat(empty.resolve(there)).hasContent("mine");
      Files.delete(empty.resolve(there));
    }
    restore(backup);
  }

  @Test
  void what_is_not_a_whole_backup_leaves_nothing_behind() throws IOException {
    open(party).close();
    byte[] backup = backup();
    int[] ends = {0, 10, backup.length / 2, backup.length - 200};
    for (int end : ends) {
      assertThatThrownBy(() -> restore(Arrays.copyOf(backup, end)))
          .as("%d bytes of %d", end, backup.length)
          .isInstanceOf(StoreException.class);
    }
    byte[] altered = backup.clone();
    altered[backup.length / 3] ^= 1;
    assertThatThrownBy(() -> restore(altered)).isInstanceOf(StoreException.class);
    assertThatThrownBy(() -> restore(zip(Map.of("party.db", KEY, "data.key", KEY))))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("damaged");
    assertThatThrownBy(() -> restore(zip(Map.of("../party.db", KEY))))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("../party.db");
    assertThat(names(empty)).containsOnly("party.db.lock");
    restore(backup);
  }

  private static byte[] zip(Map<String, byte[]> entries) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (ZipOutputStream zip = new ZipOutputStream(out)) {
      for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
        zip.putNextEntry(new ZipEntry(entry.getKey()));
        zip.write(entry.getValue());
      }
    }
    return out.toByteArray();
  }
}
