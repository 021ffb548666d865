package io.coterie.coordinator.custody.evidence;

import io.coterie.coordinator.custody.request.StoreUnavailableException;
import java.time.Duration;
import java.util.List;

/**
 * Evidence that parties have shown, within bounds: parties choose how much of it there is, so there
 * is a bound for each verdict, and what proves nothing displaces nothing that does.
 */
public interface EvidenceStore {
  /** Records of each verdict. */
  int MAX_RECORDS = 256;

  /** How long a record is kept, at most. */
  Duration MAX_AGE = Duration.ofDays(365);

  /** Bytes of an encoded accusation; parties send and the core judges shorter ones only. */
  int MAX_ACCUSATION = 256 * 1024;

  /**
   * Adds a record, and removes those of the same verdict beyond {@link #MAX_RECORDS}, the oldest
   * first, and all that were judged {@link #MAX_AGE} before it or earlier.
   *
   * @param record with an accusation of at most {@link #MAX_ACCUSATION}
   * @throws StoreUnavailableException if it was perhaps not added; added twice, it is there twice
   * @throws IllegalArgumentException if the record breaks a bound and can never be added
   */
  void append(EvidenceRecord record);

  /** The records of a key, the newest first. */
  List<EvidenceRecord> ofKey(String key);
}
