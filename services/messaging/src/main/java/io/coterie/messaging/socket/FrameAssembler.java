package io.coterie.messaging.socket;

import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.CloseReason.CloseCodes;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Puts the parts of one connection's WebSocket messages together, within bounds. */
final class FrameAssembler {
  private final int maxMessageBytes;
  private final AtomicLong partialBytes;
  private final long maxPartialBytes;
  private @Nullable ByteArrayOutputStream partial;
  private boolean closed;

  /** Outcome of one part. */
  sealed interface Outcome {
    /** The part was the last one. */
    record Complete(byte[] message) implements Outcome {}

    /** More parts follow, or the connection is closed. */
    record Incomplete() implements Outcome {}

    /** The message exceeds a bound. */
    record Refused(CloseCode code) implements Outcome {}
  }

  /**
   * @param maxMessageBytes most bytes of one message
   * @param partialBytes bytes of incomplete messages of all connections
   * @param maxPartialBytes most that {@code partialBytes} may reach
   */
  FrameAssembler(int maxMessageBytes, AtomicLong partialBytes, long maxPartialBytes) {
    this.maxMessageBytes = maxMessageBytes;
    this.partialBytes = partialBytes;
    this.maxPartialBytes = maxPartialBytes;
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
    if (partialBytes.addAndGet(part.remaining()) > maxPartialBytes) {
      partialBytes.addAndGet(-part.remaining());
      drop();
      return new Outcome.Refused(CloseCodes.TRY_AGAIN_LATER);
    }
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
      partialBytes.addAndGet(-partial.size());
      partial = null;
    }
  }
}
