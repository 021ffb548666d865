package io.coterie.messaging.queue;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import org.signal.libsignal.protocol.InvalidVersionException;
import org.signal.libsignal.protocol.SealedSenderMultiRecipientMessage;

/**
 * One recipient's content of a message to many, as a part of the body that all recipients share.
 *
 * @param body the multi-recipient message
 * @param view where the recipient's content is in it
 * @param size bytes of the recipient's content
 */
public record SharedContent(byte[] body, byte[] view, int size) {

  /** The content, as the recipient gets it. */
  public ByteString content() {
    try {
      return UnsafeByteOperations.unsafeWrap(
          SealedSenderMultiRecipientMessage.messageForRecipient(body, view));
    } catch (InvalidVersionException e) {
      throw new IllegalStateException("a multi-recipient message that was read before", e);
    }
  }

  @Override
  public String toString() {
    return "SharedContent[" + size + "]";
  }
}
