package io.coterie.simulation;

import com.google.protobuf.ByteString;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.jspecify.annotations.Nullable;

/**
 * A message of the fast core.
 *
 * @param recipient 0 for a broadcast
 * @param run number that the sender drew for its run: its one-time value
 * @param body 8 bytes that follow from all the rest
 */
record FastEnvelope(
    int protocol, ByteString session, int round, int sender, int recipient, long run, long body) {
  private static final int SESSION_BYTES = 32;
  private static final int BYTES = 4 + SESSION_BYTES + 3 * 4 + 2 * 8;

  /** The envelope that is due. */
  static FastEnvelope due(
      int protocol, ByteString session, int round, int sender, int recipient, long run) {
    return new FastEnvelope(
        protocol,
        session,
        round,
        sender,
        recipient,
        run,
        body(protocol, session, round, sender, recipient, run));
  }

  private static long body(
      int protocol, ByteString session, int round, int sender, int recipient, long run) {
    return Chance.of(run)
        .part(protocol + "/" + session.hashCode() + "/" + round + "/" + sender + "/" + recipient)
        .nextLong();
  }

  /** Whether the body is the one that is due. */
  boolean isTrue() {
    return body == body(protocol, session, round, sender, recipient, run);
  }

  FastEnvelope with(long otherBody) {
    return new FastEnvelope(protocol, session, round, sender, recipient, run, otherBody);
  }

  FastEnvelope ofRun(long other) {
    return due(protocol, session, round, sender, recipient, other);
  }

  ByteString encode() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(BYTES);
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(protocol);
      session.writeTo(out);
      out.writeInt(round);
      out.writeInt(sender);
      out.writeInt(recipient);
      out.writeLong(run);
      out.writeLong(body);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return ByteString.copyFrom(bytes.toByteArray());
  }

  /** Null if the bytes are no envelope. */
  static @Nullable FastEnvelope decode(byte[] bytes) {
    if (bytes.length != BYTES) {
      return null;
    }
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      return new FastEnvelope(
          in.readInt(),
          ByteString.copyFrom(in.readNBytes(SESSION_BYTES)),
          in.readInt(),
          in.readInt(),
          in.readInt(),
          in.readLong(),
          in.readLong());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
