package io.coterie.messaging.queue;

import io.coterie.proto.signal.Envelope;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A message on its way to one device.
 *
 * @param storedId its id in the queue; empty for an online message, which is nowhere but in memory
 * @param envelope what the client gets
 * @param traceparent W3C trace context of the sending, if any
 */
public record QueuedMessage(
    OptionalLong storedId, Envelope envelope, @Nullable String traceparent) {
  @Override
  public String toString() {
    return "QueuedMessage[" + storedId + "]";
  }
}
