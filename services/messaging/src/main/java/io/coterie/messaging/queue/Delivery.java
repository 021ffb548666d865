package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import io.coterie.proto.signal.Envelope;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * One accepted request: the same sending for all its recipients.
 *
 * @param online whether it is dropped if not fetched in time, instead of stored
 * @param sharedBody the multi-recipient message that all contents are part of, to be stored once;
 *     null if each recipient's content is its own
 * @param traceparent W3C trace context of the sending, if any
 */
public record Delivery(
    boolean online,
    byte @Nullable [] sharedBody,
    List<Recipient> recipients,
    @Nullable String traceparent) {

  /** Bytes of the messages of all recipients, a shared body once. */
  public long bytes() {
    long bytes = sharedBody == null ? 0 : sharedBody.length;
    for (Recipient recipient : recipients) {
      bytes += recipient.envelope().getSerializedSize();
    }
    return bytes;
  }

  /** The message as its queue holds it for one of its recipients. */
  public QueuedMessage online(Recipient recipient) {
    return new QueuedMessage(
        OptionalLong.empty(), recipient.envelope(), recipient.shared(), traceparent);
  }

  /**
   * @param envelope with the content, unless that is shared
   * @param shared the content, exactly if there is a shared body
   */
  public record Recipient(DeviceAddress device, Envelope envelope, @Nullable SharedContent shared) {
    /** Bytes of the message as its device gets it. */
    public int bytes() {
      return envelope.getSerializedSize() + (shared == null ? 0 : shared.size());
    }
  }
}
