package io.coterie.messaging.socket;

import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.CloseReason.CloseCodes;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Puts the parts of one connection's WebSocket messages together, within bounds. */
final class FrameAssembler {
  /** Memory that a part takes besides its bytes. */
  private static final int PART_OVERHEAD = 64;

  private final int maxMessageBytes;
  private final ConnectionMemory.Account memory;

  /** The parts of the incomplete message, each as it came, so that nothing is copied twice. */
  private final List<byte[]> parts = new ArrayList<>();

  private int size;
  private boolean closed;

  /** Outcome of one part. */
  sealed interface Outcome {
    /** The part was the last one. */
    record Complete(byte[] message) implements Outcome {}

    /** More parts follow. */
    record Incomplete() implements Outcome {}

    /** No parts are taken any more. */
    record Closed() implements Outcome {}

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
      return new Outcome.Closed();
    }
    if (size + part.remaining() > maxMessageBytes) {
      drop();
      return new Outcome.Refused(CloseCodes.TOO_BIG);
    }
    byte[] bytes = new byte[part.remaining()];
    part.get(bytes);
    if (last && parts.isEmpty()) {
      return new Outcome.Complete(bytes);
    }
    memory.take(bytes.length + PART_OVERHEAD);
    parts.add(bytes);
    size += bytes.length;
    if (!last) {
      return new Outcome.Incomplete();
    }
    ByteBuffer message = ByteBuffer.allocate(size);
    parts.forEach(message::put);
    drop();
    return new Outcome.Complete(message.array());
  }

  /** Forgets an incomplete message and takes no further parts. */
  synchronized void close() {
    closed = true;
    drop();
  }

  private void drop() {
    memory.release(size + (long) PART_OVERHEAD * parts.size());
    parts.clear();
    size = 0;
  }
}
