package io.coterie.coordinator;

import io.coterie.coordinator.custody.evidence.EvidenceRecord;
import io.coterie.coordinator.custody.evidence.EvidenceStore;
import java.util.ArrayList;
import java.util.List;

/** Evidence in memory. */
final class MemoryEvidenceStore implements EvidenceStore {
  private final List<EvidenceRecord> newestFirst = new ArrayList<>();

  @Override
  public synchronized void append(EvidenceRecord record) {
    if (record.accusation().getSerializedSize() > MAX_ACCUSATION) {
      throw new IllegalArgumentException("too long");
    }
    newestFirst.removeIf(r -> !r.judgedAt().isAfter(record.judgedAt().minus(MAX_AGE)));
    newestFirst.addFirst(record);
    newestFirst.stream()
        .filter(r -> r.verdict() == record.verdict())
        .skip(MAX_RECORDS)
        .toList()
        .forEach(newestFirst::remove);
  }

  @Override
  public synchronized List<EvidenceRecord> ofKey(String key) {
    return newestFirst.stream().filter(r -> r.session().getKeyId().equals(key)).toList();
  }
}
