package io.coterie.messaging.redis;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.proto.signal.Envelope;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.OptionalLong;

/** The messages of replicas about one device, as bytes. */
sealed interface DeviceSignal {

  /**
   * An online message.
   *
   * @param deadline when it is to be dropped
   */
  record Online(QueuedMessage message, Instant deadline) implements DeviceSignal {}

  /** There are stored messages. */
  record Stored() implements DeviceSignal {}

  /**
   * The device has connected.
   *
   * @param nonce which connection; {@link #NONCE_LENGTH} characters
   * @param number higher than that of every earlier connection of the device
   */
  record Claimed(String nonce, long number) implements DeviceSignal {}

  /** Characters of a nonce: those of a UUID. */
  int NONCE_LENGTH = 36;

  /** Longest trace context; the length is one byte. */
  int MAX_TRACEPARENT = 255;

  /** {@code S}. */
  byte[] STORED = {'S'};

  /** {@code M}, deadline in ms (8), length of the trace context (1), trace context, envelope. */
  static byte[] encode(Online online) {
    String trace = online.message().traceparent();
    byte[] traceparent =
        trace == null || trace.length() > MAX_TRACEPARENT
            ? new byte[0]
            : trace.getBytes(StandardCharsets.US_ASCII);
    byte[] envelope = online.message().complete().toByteArray();
    return ByteBuffer.allocate(1 + Long.BYTES + 1 + traceparent.length + envelope.length)
        .put((byte) 'M')
        .putLong(online.deadline().toEpochMilli())
        .put((byte) traceparent.length)
        .put(traceparent)
        .put(envelope)
        .array();
  }

  /**
   * Reads what {@link #encode} or a script wrote.
   *
   * @throws IllegalArgumentException if it is something else
   */
  static DeviceSignal decode(byte[] bytes) {
    try {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      return switch (in.get()) {
        case 'M' -> online(in);
        case 'S' -> new Stored();
        case 'C' -> claimed(StandardCharsets.US_ASCII.decode(in).toString());
        default -> throw new IllegalArgumentException("unknown kind of signal");
      };
    } catch (BufferUnderflowException
        | IndexOutOfBoundsException
        | InvalidProtocolBufferException e) {
      throw new IllegalArgumentException("damaged signal", e);
    }
  }

  private static Online online(ByteBuffer in) throws InvalidProtocolBufferException {
    Instant deadline = Instant.ofEpochMilli(in.getLong());
    byte[] traceparent = new byte[Byte.toUnsignedInt(in.get())];
    in.get(traceparent);
    Envelope envelope = Envelope.parseFrom(in);
    return new Online(
        new QueuedMessage(
            OptionalLong.empty(),
            envelope,
            null,
            traceparent.length == 0 ? null : new String(traceparent, StandardCharsets.US_ASCII)),
        deadline);
  }

  private static Claimed claimed(String text) {
    return new Claimed(
        text.substring(0, NONCE_LENGTH), Long.parseLong(text.substring(NONCE_LENGTH)));
  }
}
