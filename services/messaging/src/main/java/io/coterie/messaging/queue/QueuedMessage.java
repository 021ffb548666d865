package io.coterie.messaging.queue;

import io.coterie.proto.signal.Envelope;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A message on its way to one device.
 *
 * @param storedId its id in the queue; empty for an online message, which is nowhere but in memory
 * @param envelope the client gets this, with the content if that is shared
 * @param shared the content, if it is part of a message to many
 * @param traceparent W3C trace context of the sending, if any
 */
public record QueuedMessage(
    OptionalLong storedId,
    Envelope envelope,
    @Nullable SharedContent shared,
    @Nullable String traceparent) {

  /** The envelope with its content. */
  public Envelope complete() {
    return shared == null ? envelope : envelope.toBuilder().setContent(shared.content()).build();
  }

  @Override
  public String toString() {
    return "QueuedMessage[" + storedId + "]";
  }
}
