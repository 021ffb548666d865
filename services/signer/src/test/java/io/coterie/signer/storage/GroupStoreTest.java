package io.coterie.signer.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.group.GroupRecord;
import io.coterie.signer.group.GroupStore;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Groups on the disk of a party: an epoch is begun once, and each of its results is kept once. */
class GroupStoreTest {
  private static final String GROUP = "groups/approvers";
  private static final AuditEvent MADE = AuditEvent.of("wallet", "group.step", "done", Map.of());
  private static final GroupParties PARTIES =
      GroupParties.newBuilder().setInstallation("test").build();

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

  private GroupStore groups() {
    return store.groups();
  }

  private static <T> T await(CompletionStage<T> stage) {
    return stage.toCompletableFuture().join();
  }

  private static GroupRecord epoch(int epoch, String requestId) {
    return GroupRecord.begun(
        GROUP,
        epoch,
        new GroupRecord.Origin("wallet", requestId, ByteString.copyFrom(new byte[32])),
        PARTIES);
  }

  private static GroupRecord.Share share(String name) {
    return new GroupRecord.Share(
        KeyPublic.newBuilder().setKeyId(name).build(), ByteString.copyFromUtf8("sealed " + name));
  }

  @Test
  void an_epoch_is_begun_once_and_none_before_it() {
    assertThat(await(groups().begin(epoch(2, "first")))).isTrue();
    for (int taken : List.of(1, 2)) {
      assertThat(await(groups().begin(epoch(taken, "second")))).isFalse();
    }
    assertThat(await(groups().begin(epoch(3, "second")))).isTrue();
    assertThat(groups().find(GROUP, 2)).contains(epoch(2, "first"));
    assertThat(groups().find(GROUP, 1)).isEmpty();
    assertThat(groups().find("groups/others", 2)).isEmpty();
  }

  @Test
  void each_result_is_kept_once_and_outlives_the_process() {
    await(groups().begin(epoch(1, "first")));
    assertThat(await(groups().keepOpening(GROUP, 1, share("opening"), MADE))).isTrue();
    assertThat(await(groups().keepOpening(GROUP, 1, share("other"), MADE))).isFalse();
    assertThat(await(groups().keepIssuing(GROUP, 1, share("issuing"), MADE))).isTrue();
    assertThat(await(groups().keepIssuing(GROUP, 1, share("other"), MADE))).isFalse();
    ByteString published = ByteString.copyFromUtf8("published");
    assertThat(await(groups().keepPublished(GROUP, 1, published, MADE))).isTrue();
    assertThat(await(groups().keepPublished(GROUP, 1, ByteString.copyFromUtf8("other"), MADE)))
        .isFalse();
    assertThat(groups().attested(GROUP)).isEmpty();
    ByteString attested = ByteString.copyFromUtf8("attested");
    assertThat(await(groups().keepAttested(GROUP, 1, attested, MADE))).isTrue();
    assertThat(await(groups().keepAttested(GROUP, 1, ByteString.copyFromUtf8("other"), MADE)))
        .isFalse();
    assertThat(await(groups().keepAttested(GROUP, 2, attested, MADE))).as("not begun").isFalse();

    store.close();
    open();
    GroupRecord kept = groups().find(GROUP, 1).orElseThrow();
    assertThat(kept.opening()).isEqualTo(share("opening"));
    assertThat(kept.issuing()).isEqualTo(share("issuing"));
    assertThat(kept.published()).isEqualTo(published);
    assertThat(kept.attested()).isEqualTo(attested);
    assertThat(groups().attested(GROUP)).containsExactly(kept);
    assertThat(store.audit().read(1, 100)).as("one record for each result").hasSize(4);
  }

  /** The database keeps it, whatever this program does. */
  @Test
  void no_statement_replaces_a_result() throws SQLException {
    await(groups().begin(epoch(1, "first")));
    await(groups().keepOpening(GROUP, 1, share("opening"), MADE));
    store.close();
    try (Connection file =
            DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(PartyStore.FILE));
        Statement statement = file.createStatement()) {
      for (String change :
          List.of(
              "UPDATE group_epoch SET opening_sealed = x'01'",
              "UPDATE group_epoch SET opening_public = NULL, opening_sealed = NULL")) {
        assertThatThrownBy(() -> statement.executeUpdate(change))
            .isInstanceOf(SQLException.class)
            .hasMessageContaining("a result of an epoch is stored once");
      }
      assertThatThrownBy(() -> statement.executeUpdate("UPDATE group_epoch SET published = x'01'"))
          .as("before the issuing key")
          .isInstanceOf(SQLException.class);
    }
    open();
  }

  @Test
  void a_group_counts_for_the_keys_of_its_requester() {
    long before = kept();
    await(groups().begin(epoch(1, "first")));
    long begun = kept();
    assertThat(begun).isGreaterThan(before);
    await(groups().keepOpening(GROUP, 1, share("opening"), MADE));
    GroupRecord.Share opening = share("opening");
    assertThat(kept() - begun)
        .isEqualTo(opening.sealed().size() + opening.keyPublic().getSerializedSize());
  }

  private long kept() {
    return store.claims().room().keptBytes().getOrDefault(DiskShares.ofKeys("wallet"), 0L);
  }
}
