package io.coterie.platform.audit;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;

/**
 * One link of the chain: an event, its place and time, and the hash that ties it to the one before.
 *
 * @param sequence 1 for the first, then without gaps
 * @param time by this service's clock, to the millisecond
 * @param previousHash hash of the record before, 32 bytes; of the first: hash of the trail's name
 * @param hash SHA-256 of the {@linkplain #encode canonical encoding}, 32 bytes
 */
public record AuditRecord(
    long sequence, Instant time, AuditEvent event, byte[] previousHash, byte[] hash) {
  private static final String TAG = "coterie/audit-record/1";
  private static final String GENESIS_TAG = "coterie/audit-trail/1";

  /** The record that follows {@code previousHash}. */
  static AuditRecord link(long sequence, Instant time, AuditEvent event, byte[] previousHash) {
    return new AuditRecord(
        sequence, time, event, previousHash, sha256(encode(sequence, time, event, previousHash)));
  }

  /** The previous hash of the first record of a trail; differs between trails. */
  static byte[] genesis(String trail) {
    return sha256(
        encoding(
            out -> {
              text(out, GENESIS_TAG);
              text(out, trail);
            }));
  }

  /** Whether {@link #hash} belongs to the rest. */
  public boolean isConsistent() {
    return Arrays.equals(hash, sha256(encode(sequence, time, event, previousHash)));
  }

  /** Whether it is the one after another. */
  public boolean follows(AuditRecord before) {
    return sequence == before.sequence + 1 && Arrays.equals(previousHash, before.hash);
  }

  /**
   * The canonical encoding: tag, sequence (u64), time (u64, milliseconds since 1970), actor,
   * action, outcome, number of fields (u32), each name and value in the order of names, previous
   * hash. Every text and the hash is preceded by its length in bytes (u32); integers are
   * big-endian.
   */
  private static byte[] encode(long sequence, Instant time, AuditEvent event, byte[] previousHash) {
    return encoding(
        out -> {
          text(out, TAG);
          out.writeLong(sequence);
          out.writeLong(time.toEpochMilli());
          text(out, event.actor());
          text(out, event.action());
          text(out, event.outcome());
          out.writeInt(event.fields().size());
          for (Map.Entry<String, String> field : event.fields().entrySet()) {
            text(out, field.getKey());
            text(out, field.getValue());
          }
          out.writeInt(previousHash.length);
          out.write(previousHash);
        });
  }

  @FunctionalInterface
  private interface Writer {
    void write(DataOutputStream out) throws IOException;
  }

  private static byte[] encoding(Writer writer) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      writer.write(new DataOutputStream(bytes));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  private static void text(DataOutputStream out, String text) throws IOException {
    byte[] bytes = text.getBytes(UTF_8);
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  private static byte[] sha256(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof AuditRecord r
        && sequence == r.sequence
        && time.equals(r.time)
        && event.equals(r.event)
        && Arrays.equals(previousHash, r.previousHash)
        && Arrays.equals(hash, r.hash);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(hash);
  }

  @Override
  public String toString() {
    return "AuditRecord[" + sequence + ", " + HexFormat.of().formatHex(hash) + "]";
  }
}
