package io.coterie.platform.ledger;

import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.jspecify.annotations.Nullable;

/**
 * How far a party's ledger has come. A store that was put back to an earlier state and goes on from
 * there reaches positions that contradict those of the ledger that it was a copy of: each start
 * draws a new mark, so no two of them agree. A store that is known to have gone back begins another
 * log instead, and contradicts nobody.
 *
 * @param log in which it is
 * @param starts how often the log was opened, from 1
 * @param mark names this start: hash of the head before it, its number, and fresh randomness
 * @param base claims before this start
 * @param claims every session that was claimed or declined, over all starts and logs as far as
 *     known
 * @param hash over the mark and each session that was claimed or declined since, in order
 */
public record LedgerPosition(
    LedgerLog log, long starts, ByteString mark, long base, long claims, ByteString hash) {
  /** Length of a mark and of a hash, bytes. */
  public static final int HASH_BYTES = LedgerLog.HASH_BYTES;

  /** The position of a party that has never started. */
  public static final LedgerPosition NONE =
      new LedgerPosition(LedgerLog.NONE, 0, ByteString.EMPTY, 0, 0, ByteString.EMPTY);

  private static final byte[] START = "coterie/start/2".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] CLAIM = "coterie/claim/1".getBytes(StandardCharsets.US_ASCII);

  /** The meaning of a position to a party that remembers another one of the same sender. */
  public enum Judgement {
    /** The ledger has gone on: this one is remembered from now on. */
    LATER,
    /** Old, or overtaken on its way: the remembered position stays, and the party is told it. */
    KNOWN,
    /** No ledger that was never put back shows both in one log. The remembered one stays. */
    CONTRADICTS
  }

  /**
   * The position after one more start; the first one begins the first log.
   *
   * @param random 32 fresh bytes
   */
  public LedgerPosition next(byte[] random) {
    return starts == 0 ? reopened(this, random) : start(log, starts + 1, claims, random);
  }

  /**
   * The first position of a new log, of a store that is known to have gone back. It lies above all
   * that this ledger and the told one were at.
   *
   * @param told where the ledger was once, or this position itself
   * @param random 32 fresh bytes
   */
  public LedgerPosition reopened(LedgerPosition told, byte[] random) {
    long number = Math.max(log.number(), told.log.number());
    LedgerLog next = orLater(told).logAfter(number, random);
    return start(next, 1, Math.max(claims, told.claims), random);
  }

  /**
   * The same where nobody has told of a position.
   *
   * @param known how many claims are known to have been made
   */
  public LedgerPosition reopened(long known, byte[] random) {
    return start(logAfter(log.number(), random), 1, Math.max(claims, known), random);
  }

  /**
   * The log that follows on this head.
   *
   * @param above number of a log, which is lower than that of the next one, like this log's
   * @param random 32 fresh bytes
   * @throws ArithmeticException after 2^63 logs
   */
  private LedgerLog logAfter(long above, byte[] random) {
    return new LedgerLog(
        Math.incrementExact(Math.max(log.number(), above)),
        ByteString.copyFrom(random),
        log.id(),
        claims,
        hash);
  }

  private LedgerPosition start(LedgerLog in, long number, long claimed, byte[] random) {
    MessageDigest sha256 = sha256();
    sha256.update(START);
    sha256.update(in.id().asReadOnlyByteBuffer());
    sha256.update(ByteBuffer.allocate(Long.BYTES).putLong(number).flip());
    sha256.update(hash.isEmpty() ? new byte[HASH_BYTES] : hash.toByteArray());
    sha256.update(random);
    ByteString mark = ByteString.copyFrom(sha256.digest());
    return new LedgerPosition(in, number, mark, claimed, claimed, mark);
  }

  /** The position after one more session was claimed. */
  public LedgerPosition claimed(ByteString session) {
    MessageDigest sha256 = sha256();
    sha256.update(CLAIM);
    sha256.update(hash.asReadOnlyByteBuffer());
    sha256.update(session.asReadOnlyByteBuffer());
    return new LedgerPosition(
        log, starts, mark, base, Math.addExact(claims, 1), ByteString.copyFrom(sha256.digest()));
  }

  /** Judges this position by the one that is remembered, if there is one. */
  public Judgement against(@Nullable LedgerPosition remembered) {
    if (remembered == null || log.number() > remembered.log.number()) {
      return Judgement.LATER;
    }
    // Two logs of one number are those of two restores of one copy. The party has begun a higher
    // one as soon as it has heard of the other.
    if (log.number() < remembered.log.number() || !log.id().equals(remembered.log.id())) {
      return Judgement.KNOWN;
    }
    return log.equals(remembered.log) ? inOneLog(remembered) : Judgement.CONTRADICTS;
  }

  private Judgement inOneLog(LedgerPosition remembered) {
    if (starts > remembered.starts) {
      return base >= remembered.claims ? Judgement.LATER : Judgement.CONTRADICTS;
    }
    if (starts < remembered.starts) {
      // The later start would have begun with these claims.
      return claims > remembered.base ? Judgement.CONTRADICTS : Judgement.KNOWN;
    }
    if (!mark.equals(remembered.mark) || base != remembered.base) {
      return Judgement.CONTRADICTS;
    }
    if (claims == remembered.claims) {
      return hash.equals(remembered.hash) ? Judgement.KNOWN : Judgement.CONTRADICTS;
    }
    return claims > remembered.claims ? Judgement.LATER : Judgement.KNOWN;
  }

  /** The later one of two positions of one ledger that was not put back in between. */
  public LedgerPosition orLater(LedgerPosition other) {
    if (log.number() != other.log.number()) {
      return other.log.number() > log.number() ? other : this;
    }
    return other.starts > starts || other.starts == starts && other.claims > claims ? other : this;
  }

  /** Whether the parts have their lengths and agree with each other. */
  boolean isWellFormed() {
    return log.isWellFormed()
        && starts > 0
        && mark.size() == HASH_BYTES
        && hash.size() == HASH_BYTES
        && base >= 0
        && claims >= base;
  }

  /** Describes the position for logs, without the hashes. */
  @Override
  public String toString() {
    return "log %d, start %d, %d claims".formatted(log.number(), starts, claims);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
