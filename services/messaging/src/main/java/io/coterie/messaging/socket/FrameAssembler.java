package io.coterie.messaging.socket;

import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.CloseReason.CloseCodes;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** Puts the parts of one connection's WebSocket messages together, within bounds. */
final class FrameAssembler {
  private final int maxMessageBytes;
  private final ConnectionMemory.Account memory;
  private @Nullable ByteArrayOutputStream partial;
  private boolean closed;

  /** Outcome of one part. */
  sealed interface Outcome {
    /** The part was the last one. */
    record Complete(byte[] message) implements Outcome {}

    /** More parts follow, or the connection is closed. */
    record Incomplete() implements Outcome {}

    /** The message is too large. */
    record Refused(CloseCode code) implements Outcome {}
  }

  /**
   * @param maxMessageBytes most bytes of one message
   * @param memory where an incomplete message is accounted
   */
  FrameAssembler(int maxMessageBytes, ConnectionMemory.Account memory) {
    this.maxMessageBytes = maxMessageBytes;
    this.memory = memory;
  }

  synchronized Outcome add(ByteBuffer part, boolean last) {
    if (closed) {
      return new Outcome.Incomplete();
    }
    int held = partial == null ? 0 : partial.size();
    if (held + part.remaining() > maxMessageBytes) {
      drop();
      return new Outcome.Refused(CloseCodes.TOO_BIG);
    }
    if (last && partial == null) {
      return new Outcome.Complete(bytes(part));
    }
    memory.take(part.remaining());
    if (partial == null) {
      partial = new ByteArrayOutputStream();
    }
    partial.writeBytes(bytes(part));
    if (!last) {
      return new Outcome.Incomplete();
    }
    byte[] message = partial.toByteArray();
    drop();
    return new Outcome.Complete(message);
  }

  private static byte[] bytes(ByteBuffer part) {
    byte[] bytes = new byte[part.remaining()];
    part.get(bytes);
    return bytes;
  }

  /** Forgets an incomplete message and takes no further parts. */
  synchronized void close() {
    closed = true;
    drop();
  }

  private void drop() {
    if (partial != null) {
      memory.release(partial.size());
      partial = null;
    }
  }
}
