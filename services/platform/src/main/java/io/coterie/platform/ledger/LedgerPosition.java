package io.coterie.platform.ledger;

import com.google.protobuf.ByteString;
import io.coterie.proto.party.v1.ClaimCount;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.jspecify.annotations.Nullable;

/**
 * How far a party's ledger has come. A store that was put back to an earlier state and goes on from
 * there reaches positions that contradict those of the ledger that it was a copy of: each start
 * draws a new head, so no two of them agree.
 *
 * @param starts how often the ledger was opened, from 1
 * @param head names this start: hash of the start before it, its number, and fresh randomness
 * @param base claims before this start
 * @param claims sessions that multiply and were claimed, over all starts; a {@link #above} adds to
 *     it
 */
public record LedgerPosition(long starts, ByteString head, long base, long claims) {
  /** Length of a head, bytes. */
  public static final int HEAD_BYTES = 32;

  /**
   * Added to starts and claims when it is known that a part of the ledger was forgotten. No ledger
   * is opened, or claims, so often, so all that was forgotten lies below.
   */
  public static final long JUMP = 1L << 32;

  /** Before the first start. */
  public static final LedgerPosition NONE = new LedgerPosition(0, ByteString.EMPTY, 0, 0);

  private static final byte[] START = "coterie/start/1".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] STATEMENT = "coterie/claims/2".getBytes(StandardCharsets.US_ASCII);

  /** The meaning of a position to a party that remembers another one of the same sender. */
  public enum Judgement {
    /** The ledger has gone on: this one is remembered from now on. */
    LATER,
    /** Nothing new, or overtaken on its way: the remembered one stays, and is told the party. */
    KNOWN,
    /** No ledger that was never put back shows both. The remembered one stays. */
    CONTRADICTS
  }

  /**
   * The position after one more start.
   *
   * @param random 32 fresh bytes
   */
  public LedgerPosition next(byte[] random) {
    MessageDigest sha256 = sha256();
    sha256.update(START);
    sha256.update(ByteBuffer.allocate(Long.BYTES).putLong(starts + 1).flip());
    sha256.update(head.isEmpty() ? new byte[HEAD_BYTES] : head.toByteArray());
    sha256.update(random);
    return new LedgerPosition(starts + 1, ByteString.copyFrom(sha256.digest()), claims, claims);
  }

  /**
   * The position after one more start that lies above all that this ledger was at before it was put
   * back. It follows on this position, and lies above another one that was told.
   *
   * @param random 32 fresh bytes
   * @throws ArithmeticException beyond the largest number; some 2^31 of these
   */
  public LedgerPosition above(LedgerPosition told, byte[] random) {
    return new LedgerPosition(
            Math.addExact(Math.max(starts, told.starts), JUMP),
            head,
            base,
            Math.addExact(Math.max(claims, told.claims), JUMP))
        .next(random);
  }

  /** Judges this position by the one that is remembered, if there is one. */
  public Judgement against(@Nullable LedgerPosition remembered) {
    if (remembered == null) {
      return Judgement.LATER;
    }
    if (head.equals(remembered.head)) {
      return starts == remembered.starts && claims > remembered.claims
          ? Judgement.LATER
          : Judgement.KNOWN;
    }
    if (starts > remembered.starts) {
      return base >= remembered.claims ? Judgement.LATER : Judgement.CONTRADICTS;
    }
    return starts == remembered.starts ? Judgement.CONTRADICTS : Judgement.KNOWN;
  }

  /** The later one of two positions of one ledger that was not put back in between. */
  public LedgerPosition orLater(LedgerPosition other) {
    return other.starts > starts || other.starts == starts && other.claims > claims ? other : this;
  }

  /** The bytes of its position that a party signs. Everything after the tag has a fixed length. */
  public ByteString statement(int party) {
    ByteBuffer bytes =
        ByteBuffer.allocate(STATEMENT.length + Integer.BYTES + 3 * Long.BYTES + HEAD_BYTES)
            .put(STATEMENT)
            .putInt(party)
            .putLong(starts)
            .putLong(base)
            .putLong(claims)
            .put(head.asReadOnlyByteBuffer());
    return ByteString.copyFrom(bytes.flip());
  }

  /** Whether a message that states this position has the signature of its party's evidence key. */
  public boolean isSigned(ClaimCount count, byte[] evidenceKey) {
    return StatementSignature.verifies(
        evidenceKey, statement(count.getParty()), count.getSignature());
  }

  /** The position that a message states; null if it is none. */
  public static @Nullable LedgerPosition of(ClaimCount count) {
    return count.getHead().size() == HEAD_BYTES
            && count.getStarts() > 0
            && count.getBase() >= 0
            && count.getCount() >= count.getBase()
            && count.getSignature().size() == StatementSignature.BYTES
        ? new LedgerPosition(count.getStarts(), count.getHead(), count.getBase(), count.getCount())
        : null;
  }

  /** States this position. */
  public ClaimCount count(int party, ByteString signature) {
    return ClaimCount.newBuilder()
        .setParty(party)
        .setStarts(starts)
        .setHead(head)
        .setBase(base)
        .setCount(claims)
        .setSignature(signature)
        .build();
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
