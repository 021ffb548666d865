package io.coterie.platform.audit;

import java.util.List;
import java.util.Optional;

/** Where a trail lives. */
public interface AuditStore {

  /** The record with the highest sequence. */
  Optional<AuditRecord> last();

  /** Where the trail begins now, if its first records were forgotten. */
  default Optional<Beginning> beginning() {
    return Optional.empty();
  }

  /**
   * The last one of the records that were forgotten.
   *
   * @param hash of that record: the next one names it
   */
  record Beginning(long sequence, byte[] hash) {}

  /**
   * Stores a record durably, or throws and stores nothing. A second record of the same sequence is
   * refused by the storage itself, so that two writers cannot fork the chain.
   */
  void append(AuditRecord record);

  /**
   * Reads in ascending sequence.
   *
   * @param fromSequence the first one wanted
   * @param limit at most so many
   */
  List<AuditRecord> read(long fromSequence, int limit);
}
