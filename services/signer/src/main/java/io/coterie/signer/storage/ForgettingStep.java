package io.coterie.signer.storage;

/** As much of a table as one transaction forgets. */
final class ForgettingStep {
  /**
   * Rows of a table that are forgotten in one transaction, which others wait for. Each can touch a
   * page of its own in an index, and all pages of a transaction go through the journal.
   */
  static final int ROWS = 250;

  /** Their bytes, but for the last one: pages of what is deleted are overwritten. */
  static final long BYTES = 1 << 20;

  private int rows;
  private long bytes;

  /** One more row goes. */
  void take(long itsBytes) {
    rows++;
    bytes += itsBytes;
  }

  boolean isFull() {
    return rows == ROWS || bytes >= BYTES;
  }
}
