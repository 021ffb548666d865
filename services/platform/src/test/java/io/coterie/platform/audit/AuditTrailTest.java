package io.coterie.platform.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

class AuditTrailTest {
  private static final Clock CLOCK =
      Clock.fixed(Instant.parse("2026-01-02T03:04:05.678912Z"), ZoneOffset.UTC);

  private static final class MemoryStore implements AuditStore {
    final List<AuditRecord> records = new ArrayList<>();
    boolean failAfterStoring;

    @Override
    public Optional<AuditRecord> last() {
      return records.isEmpty() ? Optional.empty() : Optional.of(records.getLast());
    }

    @Override
    public void append(AuditRecord record) {
      if (record.sequence() != records.size() + 1) {
        throw new IllegalStateException("sequence exists");
      }
      records.add(record);
      if (failAfterStoring) {
        failAfterStoring = false;
        throw new IllegalStateException("connection lost after the commit");
      }
    }

    @Override
    public List<AuditRecord> read(long fromSequence, int limit) {
      return records.stream().filter(r -> r.sequence() >= fromSequence).limit(limit).toList();
    }
  }

  private final MemoryStore store = new MemoryStore();

  private AuditTrail open() {
    return new AuditTrail("signer/alpha", store, CLOCK);
  }

  private static AuditEvent event(String outcome) {
    return AuditEvent.of(
        "wallet-a", "signing.claim", outcome, Map.of("key", "keys/k", "session_id", "ab"));
  }

  @Test
  void chains_over_restarts() {
    open().append(event("one"));
    AuditTrail reopened = open();
    AuditRecord last = reopened.append(event("two"));
    assertThat(last.sequence()).isEqualTo(2);
    assertThat(reopened.verify())
        .isInstanceOfSatisfying(
            AuditTrail.Verification.Intact.class,
            intact -> {
              assertThat(intact.records()).isEqualTo(2);
              assertThat(intact.head()).isEqualTo(last.hash());
            });
  }

  /** The encoding is for ever. The value was computed by another program from its description. */
  @Test
  void encoding_does_not_drift() {
    assertThat(HexFormat.of().formatHex(open().append(event("one")).hash()))
        .isEqualTo("013a315c4a7a3ff6c0bc16e396941cd8e9d943b08dcd0800c936c761480f7a7c");
  }

  @Test
  void goes_on_after_a_failure_whose_outcome_is_unknown() {
    AuditTrail trail = open();
    store.failAfterStoring = true;
    assertThatThrownBy(() -> trail.append(event("one"))).isInstanceOf(IllegalStateException.class);
    trail.append(event("two"));
    assertThat(store.records).hasSize(2);
    assertThat(trail.verify()).isInstanceOf(AuditTrail.Verification.Intact.class);
  }

  @Test
  void finds_every_kind_of_tampering() {
    AuditTrail trail = open();
    for (int i = 0; i < 5; i++) {
      trail.append(event("signed"));
    }
    List<AuditRecord> good = List.copyOf(store.records);
    broken(good, 3, r -> with(r, event("refused"), r.time(), r.previousHash(), r.hash()));
    broken(good, 3, r -> with(r, r.event(), r.time().plusMillis(1), r.previousHash(), r.hash()));
    broken(good, 3, r -> with(r, r.event(), r.time(), new byte[32], r.hash()));
    // A forger who recomputes the hash breaks the next link.
    store.records.clear();
    store.records.addAll(good);
    store.records.set(
        2, AuditRecord.link(3, good.get(2).time(), event("refused"), good.get(1).hash()));
    assertBrokenAt(4);
    store.records.clear();
    store.records.addAll(good);
    store.records.remove(2);
    assertBrokenAt(3);
    store.records.clear();
    store.records.addAll(good.subList(1, 5));
    assertBrokenAt(1);
    // The same records under the name of another trail.
    store.records.clear();
    store.records.addAll(good);
    assertThat(new AuditTrail("signer/beta", store, CLOCK).verify())
        .isInstanceOf(AuditTrail.Verification.Broken.class);
  }

  private void broken(List<AuditRecord> good, int sequence, UnaryOperator<AuditRecord> change) {
    store.records.clear();
    store.records.addAll(good);
    store.records.set(sequence - 1, change.apply(good.get(sequence - 1)));
    assertBrokenAt(sequence);
  }

  private void assertBrokenAt(long sequence) {
    assertThat(open().verify())
        .isInstanceOfSatisfying(
            AuditTrail.Verification.Broken.class,
            broken -> assertThat(broken.sequence()).isEqualTo(sequence));
  }

  private static AuditRecord with(
      AuditRecord r, AuditEvent event, Instant time, byte[] previousHash, byte[] hash) {
    return new AuditRecord(r.sequence(), time, event, previousHash, hash);
  }

  @Test
  void events_are_bounded() {
    assertThatThrownBy(() -> event("x".repeat(513))).isInstanceOf(IllegalArgumentException.class);
  }
}
