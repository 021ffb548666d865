package io.coterie.messaging.queue;

import com.google.protobuf.ByteString;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.proto.signal.Envelope;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * One accepted request: the same sending for all its recipients.
 *
 * @param online whether it is dropped if not fetched in time, instead of stored
 * @param sharedBody the multi-recipient message that all contents are cut out of, to be stored
 *     once; null if each recipient's content is its own
 * @param traceparent W3C trace context of the sending, if any
 */
public record Delivery(
    boolean online,
    byte @Nullable [] sharedBody,
    List<Recipient> recipients,
    @Nullable String traceparent) {

  /** What an online message is to one of its recipients. */
  public QueuedMessage online(Recipient recipient) {
    return new QueuedMessage(OptionalLong.empty(), recipient.complete(), traceparent);
  }

  /**
   * @param envelope everything but the content
   * @param content what only this recipient can read
   * @param view where {@code content} is in the shared body; null exactly if there is none
   */
  public record Recipient(
      DeviceAddress device, Envelope envelope, ByteString content, byte @Nullable [] view) {

    /** The envelope with its content. */
    public Envelope complete() {
      return envelope.toBuilder().setContent(content).build();
    }
  }
}
