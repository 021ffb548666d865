package io.coterie.platform.ledger;

import com.google.protobuf.ByteString;

/**
 * One log of claims. A store begins its first one when it is made, and another one each time that
 * it is known to have gone back: that one names the head at which the one before it is left, so
 * that nobody takes the two for one ledger that says two things.
 *
 * @param number 1 for the first; that of a later one is higher than of all that its party knew of
 * @param id {@link #ID_BYTES} random bytes: two restores of one copy begin two logs
 * @param previous id of the log before it; empty for the first
 * @param claims of the log before it, at the head where it is left
 * @param hash of that head; empty for the first
 */
public record LedgerLog(
    long number, ByteString id, ByteString previous, long claims, ByteString hash) {
  /** Length of an id, bytes. */
  public static final int ID_BYTES = 32;

  /** Length of the hash of a head, bytes. */
  public static final int HASH_BYTES = 32;

  /** The log of a party that has begun none. */
  public static final LedgerLog NONE =
      new LedgerLog(0, ByteString.EMPTY, ByteString.EMPTY, 0, ByteString.EMPTY);

  /** Whether the parts have their lengths, and a later log a log before it. */
  boolean isWellFormed() {
    return number > 0
        && id.size() == ID_BYTES
        && claims >= 0
        && (previous.isEmpty()
            ? hash.isEmpty() && claims == 0
            : previous.size() == ID_BYTES && hash.size() == HASH_BYTES);
  }
}
