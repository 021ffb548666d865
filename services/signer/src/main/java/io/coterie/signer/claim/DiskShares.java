package io.coterie.signer.claim;

import io.coterie.signer.claim.ClaimLedger.Room;
import java.util.HashMap;
import java.util.Map;

/**
 * How much of this party's disk each account may take. Every session leaves rows that are kept for
 * weeks, so an account for which seven times as many bytes are kept as are free gets no more: alone
 * it leaves an eighth, and however many there are, something stays free for one that has taken
 * little (docs/adr/0050). An account is a requester's, or that of a coordinator: for sessions that
 * nobody asked for, and for those of a request after its first, which its requester cannot help.
 * Shares of keys are kept for as long as the keys, so they have an account of their own for each
 * requester, which says whether it may create another key and nothing else. Thread-safe.
 */
public final class DiskShares {
  private static final int TIMES_THE_FREE = 7;

  /** Rows of a session beside its intent, at most but for the longest lists of parties. */
  private static final long SESSION_BYTES = 4_096;

  /** An intent is kept as it is, and what its payload says in an audit record, in hexadecimal. */
  private static final int TIMES_THE_INTENT = 3;

  /**
   * A share of ECDSA keeps 8,272 bytes for each other party; each party's certificate is beside it.
   */
  private static final long SHARE_BYTES_OF_EACH_PARTY = 10_000;

  private final ClaimLedger ledger;
  private Room room;

  /** Bytes of sessions that have been admitted and not claimed yet, by account. */
  private final Map<String, Long> admitted = new HashMap<>();

  /** Bytes of all sessions that were admitted since the disk was last looked at. */
  private long sinceLook;

  /** The same since the look before: they may have been written after the last one. */
  private long sinceLookBefore;

  /** Bytes of the shares that sessions make which are not over. */
  private long unwritten;

  /** Looks at the disk. */
  public DiskShares(ClaimLedger ledger) {
    this.ledger = ledger;
    this.room = ledger.room();
  }

  /** The account of a coordinator; the name of no requester has such a character. */
  public static String ofCoordinator(String name) {
    return "coordinators/" + name;
  }

  /** The account of the keys that a requester has created. */
  public static String ofKeys(String requester) {
    return "keys/" + requester;
  }

  /**
   * The bytes that a session will take, above what most take.
   *
   * @param requestBytes of its intent and the approvals of that
   */
  public static long sessionBytes(int requestBytes) {
    return SESSION_BYTES + (long) TIMES_THE_INTENT * requestBytes;
  }

  /** The bytes that a share of a key of so many parties takes, at most. */
  public static long shareBytes(int parties) {
    return SHARE_BYTES_OF_EACH_PARTY * parties;
  }

  /** Whether anybody may take more. */
  public synchronized boolean isOpen() {
    return free() > 0;
  }

  /** Whether an account may take more. */
  public synchronized boolean mayTake(String account) {
    long free = free();
    return free > 0 && kept(account) < TIMES_THE_FREE * (double) free;
  }

  /** Whether a requester may create a key: its keys and its records count together. */
  public synchronized boolean mayCreateKey(String requester) {
    long free = free();
    long own = kept(requester) + kept(ofKeys(requester));
    return free > 0 && own < TIMES_THE_FREE * (double) free;
  }

  private long kept(String account) {
    return room.keptBytes().getOrDefault(account, 0L) + admitted.getOrDefault(account, 0L);
  }

  /**
   * Sets bytes aside for a session of an account, if it may take more.
   *
   * @return false, and nothing is set aside, if it may not; otherwise the caller gives them back
   *     once they are written, or will not be
   */
  public synchronized boolean take(String account, long bytes) {
    if (!mayTake(account)) {
      return false;
    }
    admitted.merge(account, bytes, Long::sum);
    sinceLook += bytes;
    return true;
  }

  /** Gives back what was set aside: from now on what is on disk counts. */
  public synchronized void giveBack(String account, long bytes) {
    admitted.computeIfPresent(account, (_, now) -> now == bytes ? null : now - bytes);
  }

  /**
   * Sets bytes aside for a share that a session makes for a requester: it is written when the
   * session is over, so they are free for nobody until then.
   *
   * @return false, and nothing is set aside, if fewer are free; otherwise the caller gives them
   *     back when the session is over
   */
  public synchronized boolean takeForShare(String requester, long bytes) {
    if (free() <= bytes) {
      return false;
    }
    admitted.merge(ofKeys(requester), bytes, Long::sum);
    unwritten += bytes;
    return true;
  }

  /** Gives back what was set aside for a share. */
  public synchronized void giveBackForShare(String requester, long bytes) {
    giveBack(ofKeys(requester), bytes);
    unwritten -= bytes;
    sinceLook += bytes; // It may have been written after the last look.
  }

  /** Looks at the disk. To be called a few times a second. */
  public void look() {
    Room now = ledger.room();
    synchronized (this) {
      room = now;
      sinceLookBefore = sinceLook;
      sinceLook = 0;
    }
  }

  private long free() {
    return room.freeBytes() - sinceLook - sinceLookBefore - unwritten;
  }
}
