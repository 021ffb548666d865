package io.coterie.platform.ledger;

import com.google.protobuf.ByteString;
import io.coterie.proto.party.v1.ClaimCount;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Optional;

/**
 * A position of a party's ledger as the party states it to others: of one installation, at a time
 * by its own clock. See docs/protocols/session.md.
 *
 * @param installation name
 * @param party whose ledger it is
 * @param position on disk when it is stated
 * @param unixMs when it was signed, in ms since 1970
 */
public record LedgerHead(String installation, int party, LedgerPosition position, long unixMs) {
  private static final byte[] TAG = "coterie/head/1".getBytes(StandardCharsets.US_ASCII);

  /** The head that a message states; empty if it is none. */
  public static Optional<LedgerHead> of(String installation, ClaimCount count) {
    return position(count)
        .map(at -> new LedgerHead(installation, count.getParty(), at, count.getUnixMs()));
  }

  /** The position of a head alone, without whose it is. */
  public static Optional<LedgerPosition> position(ClaimCount count) {
    LedgerPosition position =
        new LedgerPosition(
            new LedgerLog(
                count.getLog(),
                count.getLogId(),
                count.getPreviousLogId(),
                count.getPreviousCount(),
                count.getPreviousHash()),
            count.getStarts(),
            count.getMark(),
            count.getBase(),
            count.getCount(),
            count.getHash());
    return position.isWellFormed() && count.getSignature().size() == StatementSignature.BYTES
        ? Optional.of(position)
        : Optional.empty();
  }

  /**
   * The bytes that the party signs. Everything after the tag has a fixed length or its length
   * before it, so no two heads are the same bytes.
   */
  public ByteString statement() {
    LedgerLog log = position.log();
    byte[] name = installation.getBytes(StandardCharsets.UTF_8);
    ByteBuffer bytes =
        ByteBuffer.allocate(
            TAG.length
                + 2 * Integer.BYTES
                + name.length
                + 6 * Long.BYTES
                + 2 * LedgerLog.ID_BYTES
                + 3 * LedgerPosition.HASH_BYTES);
    bytes.put(TAG).putInt(name.length).put(name).putInt(party);
    bytes.putLong(log.number()).put(log.id().asReadOnlyByteBuffer());
    put(bytes, log.previous(), LedgerLog.ID_BYTES);
    bytes.putLong(log.claims());
    put(bytes, log.hash(), LedgerPosition.HASH_BYTES);
    bytes.putLong(position.starts()).put(position.mark().asReadOnlyByteBuffer());
    bytes.putLong(position.base()).putLong(position.claims());
    bytes.put(position.hash().asReadOnlyByteBuffer()).putLong(unixMs);
    return ByteString.copyFrom(bytes.flip());
  }

  /** The first log has none before it: zeros, which no hash is. */
  private static void put(ByteBuffer bytes, ByteString value, int length) {
    bytes.put(value.isEmpty() ? new byte[length] : value.toByteArray());
  }

  /** Whether the party has signed it. */
  public boolean isSigned(ByteString signature, byte[] evidenceKey) {
    return StatementSignature.verifies(evidenceKey, statement(), signature);
  }

  /** When it was signed; a time that no clock shows becomes one at the end of the scale. */
  public Instant time() {
    return Instant.ofEpochMilli(Math.clamp(unixMs, 0, MAX_MILLIS));
  }

  /** The last one that a request id can have. */
  private static final long MAX_MILLIS = (1L << 48) - 1;

  /** The message that states it, without fields that nobody knows. */
  public ClaimCount count(ByteString signature) {
    LedgerLog log = position.log();
    return ClaimCount.newBuilder()
        .setParty(party)
        .setLog(log.number())
        .setLogId(log.id())
        .setPreviousLogId(log.previous())
        .setPreviousCount(log.claims())
        .setPreviousHash(log.hash())
        .setStarts(position.starts())
        .setMark(position.mark())
        .setBase(position.base())
        .setCount(position.claims())
        .setHash(position.hash())
        .setUnixMs(unixMs)
        .setSignature(signature)
        .build();
  }
}
