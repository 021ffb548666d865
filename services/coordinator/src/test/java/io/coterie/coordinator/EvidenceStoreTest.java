package io.coterie.coordinator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.evidence.EvidenceRecord;
import io.coterie.coordinator.custody.evidence.EvidenceStore;
import io.coterie.coordinator.storage.JdbcEvidenceStore;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** The contract of the store, for PostgreSQL and for the one in memory. */
class EvidenceStoreTest {
  private static final Instant START = Instant.parse("2030-01-01T00:00:00.000001Z");

  static Stream<EvidenceStore> stores() {
    PGSimpleDataSource database = new PGSimpleDataSource();
    database.setUrl(TestInstallation.createDatabase());
    database.setUser("postgres");
    Flyway.configure().dataSource(database).locations("db/coordinator").load().migrate();
    return Stream.of(new MemoryEvidenceStore(), new JdbcEvidenceStore(database));
  }

  private static EvidenceRecord record(String key, int number, Verdict verdict, Instant time) {
    return new EvidenceRecord(
        SessionConfig.newBuilder()
            .setProtocol(ProtocolId.PROTOCOL_ID_BLS_KEYGEN)
            .setSessionId(ByteString.copyFrom(ByteBuffer.allocate(32).putInt(0, number)))
            .setKeyId(key)
            .setThreshold(2)
            .build(),
        Accusation.newBuilder()
            .setCause(AbortCause.ABORT_CAUSE_EQUIVOCATION)
            .setAccused(3)
            .addEvidence(ByteString.copyFromUtf8("one"))
            .addEvidence(ByteString.copyFromUtf8("other"))
            .build(),
        1,
        verdict,
        time);
  }

  @ParameterizedTest
  @MethodSource("stores")
  void evidence_is_read_as_it_was_kept_the_newest_of_a_key_first(EvidenceStore store) {
    EvidenceRecord first = record("keys/a", 1, Verdict.VERDICT_PROVEN, START);
    EvidenceRecord second = record("keys/a", 2, Verdict.VERDICT_RESTARTED, START.plusSeconds(1));
    EvidenceRecord other = record("keys/b", 3, Verdict.VERDICT_REFUTED, START.plusSeconds(2));
    List.of(first, second, other).forEach(store::append);
    assertThat(store.ofKey("keys/a")).containsExactly(second, first);
    assertThat(store.ofKey("keys/b")).containsExactly(other);
    assertThat(store.ofKey("keys/c")).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("stores")
  void each_verdict_has_its_own_room_and_the_oldest_make_it(EvidenceStore store) {
    EvidenceRecord proven = record("keys/a", 0, Verdict.VERDICT_PROVEN, START);
    store.append(proven);
    List<EvidenceRecord> refuted = new ArrayList<>();
    for (int i = 0; i < EvidenceStore.MAX_RECORDS + 2; i++) {
      refuted.addFirst(record("keys/a", i, Verdict.VERDICT_REFUTED, START));
      store.append(refuted.getFirst());
    }
    List<EvidenceRecord> left = new ArrayList<>(refuted.subList(0, EvidenceStore.MAX_RECORDS));
    left.add(proven);
    assertThat(store.ofKey("keys/a")).isEqualTo(left);
  }

  @ParameterizedTest
  @MethodSource("stores")
  void old_evidence_goes_when_new_comes_whatever_it_shows(EvidenceStore store) {
    store.append(record("keys/a", 1, Verdict.VERDICT_PROVEN, START));
    EvidenceRecord kept = record("keys/a", 2, Verdict.VERDICT_PROVEN, START.plusSeconds(1));
    store.append(kept);
    EvidenceRecord last =
        record("keys/a", 3, Verdict.VERDICT_REFUTED, START.plus(EvidenceStore.MAX_AGE));
    store.append(last);
    assertThat(store.ofKey("keys/a")).containsExactly(last, kept);
  }

  @ParameterizedTest
  @MethodSource("stores")
  void evidence_beyond_the_bound_is_refused(EvidenceStore store) {
    EvidenceRecord small = record("keys/a", 1, Verdict.VERDICT_REFUTED, START);
    EvidenceRecord large =
        new EvidenceRecord(
            small.session(),
            small.accusation().toBuilder()
                .addEvidence(ByteString.copyFrom(new byte[EvidenceStore.MAX_ACCUSATION]))
                .build(),
            1,
            Verdict.VERDICT_REFUTED,
            START);
    assertThatThrownBy(() -> store.append(large)).isInstanceOf(IllegalArgumentException.class);
    assertThat(store.ofKey("keys/a")).isEmpty();
  }
}
