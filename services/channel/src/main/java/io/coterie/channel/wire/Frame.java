package io.coterie.channel.wire;

import io.coterie.channel.ChannelConfig;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The plaintext of a message: one of a few kinds of content, padded. The layout is specified in
 * docs/protocols/channel.md, "Frame"; integers are big-endian.
 */
public sealed interface Frame {
  /** First byte of every frame. */
  byte VERSION = 2;

  /** Largest number of chunks of a body. */
  int MAX_CHUNKS = ChannelConfig.Limits.MAX_CHUNKS;

  /** Distribution ids, or distributions, a hello may carry. */
  int MAX_DISTRIBUTIONS = 4;

  /** Bytes of an access key in a hello. */
  int ACCESS_KEY_BYTES = 16;

  /** Largest serialised sender-key distribution; libsignal's take about 100 bytes. */
  int MAX_DISTRIBUTION_BYTES = 512;

  /** Largest number of bodies that leave together. */
  int MAX_BATCH = 64;

  /** A W3C trace context. */
  Pattern TRACEPARENT = Pattern.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}");

  /** Length of a trace context, in ASCII. */
  int TRACEPARENT_BYTES = 55;

  /** Smallest unit of padding, as Signal's own clients use it. */
  int PADDING_UNIT = 160;

  /** A whole body. */
  record Body(boolean broadcast, byte[] data) implements Frame {}

  /**
   * A part of a body.
   *
   * @param message number of the body, unique for the sender's process
   * @param index which part, 0 to {@code count - 1}
   * @param total length of the body in bytes
   */
  record Chunk(boolean broadcast, long message, int index, int count, int total, byte[] data)
      implements Frame {}

  /**
   * Says which process this is, hands over its access key and sender keys, and says which of the
   * other's sender keys it has.
   *
   * @param incarnation random, new at each start of the process
   * @param sequence grows with every hello of an incarnation to a peer
   * @param confirm whether the sender wants to hear that its sender keys have come, even if they
   *     are not new to the receiver
   * @param asks whether the sender could not read something for want of keys
   * @param accessKey the key with which the sender's account is reached without a name; secret
   * @param holds distribution ids of the receiver's sender keys that the sender holds
   * @param distributions serialised distributions of the sender's own keys
   * @throws IllegalArgumentException if the access key has not {@link #ACCESS_KEY_BYTES}: the frame
   *     has no length of it
   */
  record Hello(
      long incarnation,
      long sequence,
      boolean confirm,
      boolean asks,
      byte[] accessKey,
      List<UUID> holds,
      List<byte[]> distributions)
      implements Frame {
    public Hello {
      if (accessKey.length != ACCESS_KEY_BYTES) {
        throw new IllegalArgumentException("an access key has " + ACCESS_KEY_BYTES + " bytes");
      }
    }
  }

  /** Bodies that left together, in the order in which they were given. */
  record Batch(boolean broadcast, List<Part> parts) implements Frame {}

  /**
   * A whole body among others.
   *
   * @param traceparent W3C trace context of its sending, if any
   */
  record Part(byte[] data, @Nullable String traceparent) {}

  /** Shows that the sender is alive. */
  record Heartbeat() implements Frame {}

  /**
   * Says that the sender's process ends in order.
   *
   * @param incarnation the process, as in its hellos
   */
  record Farewell(long incarnation) implements Frame {}

  /** The bytes are not a frame. */
  final class MalformedException extends Exception {
    private static final long serialVersionUID = 1L;

    MalformedException(String message) {
      super(message);
    }
  }

  /** Kind of a frame: the second byte. */
  int KIND_BODY = 1;

  int KIND_CHUNK = 2;
  int KIND_HELLO = 3;
  int KIND_HEARTBEAT = 4;
  int KIND_FAREWELL = 5;
  int KIND_BATCH = 6;

  /** Flag of a body, chunk or batch: it is a broadcast. */
  int BROADCAST = 1;

  /** Flags of a hello. */
  int CONFIRM = 1;

  int ASKS = 2;
  int CHUNK_HEAD = 8 + 2 + 2 + 4;

  /** A body without a copy in between: {@code data} from {@code offset}, padded. */
  static byte[] body(boolean broadcast, byte[] data) {
    byte[] padded = padded(3 + data.length);
    padded[1] = KIND_BODY;
    padded[2] = (byte) (broadcast ? BROADCAST : 0);
    System.arraycopy(data, 0, padded, 3, data.length);
    return padded;
  }

  /**
   * Two or more bodies, padded. A trace context that is none is left out: the body of another must
   * not be lost with it.
   */
  static byte[] batch(boolean broadcast, List<Part> parts) {
    int length = 3;
    for (Part part : parts) {
      length += partLength(part.data);
    }
    byte[] padded = padded(length);
    ByteBuffer out = ByteBuffer.wrap(padded);
    out.position(1);
    out.put((byte) KIND_BATCH).put((byte) (broadcast ? BROADCAST : 0));
    for (Part part : parts) {
      out.put(traceContext(part.traceparent)).putInt(part.data.length).put(part.data);
    }
    return padded;
  }

  private static byte[] traceContext(@Nullable String traceparent) {
    return traceparent != null && TRACEPARENT.matcher(traceparent).matches()
        ? traceparent.getBytes(StandardCharsets.US_ASCII)
        : new byte[TRACEPARENT_BYTES];
  }

  /** Bytes of a body among others. */
  static int partLength(byte[] data) {
    return TRACEPARENT_BYTES + 4 + data.length;
  }

  /** Part {@code index} of a body that is cut into parts of {@code size} bytes. */
  static byte[] chunk(boolean broadcast, long message, int index, int size, byte[] data) {
    int from = index * size;
    int length = Math.min(size, data.length - from);
    byte[] padded = padded(3 + CHUNK_HEAD + length);
    ByteBuffer out = ByteBuffer.wrap(padded);
    out.position(1);
    out.put((byte) KIND_CHUNK)
        .put((byte) (broadcast ? BROADCAST : 0))
        .putLong(message)
        .putShort((short) index)
        .putShort((short) chunks(data.length, size))
        .putInt(data.length)
        .put(data, from, length);
    return padded;
  }

  /** Number of parts of {@code size} bytes. */
  static int chunks(int length, int size) {
    return Math.ceilDiv(length, size);
  }

  /** A hello, padded. */
  static byte[] hello(Hello hello) {
    int length = 3 + 8 + 8 + ACCESS_KEY_BYTES + 1 + 16 * hello.holds.size() + 1;
    for (byte[] distribution : hello.distributions) {
      length += 2 + distribution.length;
    }
    byte[] padded = padded(length);
    ByteBuffer out = ByteBuffer.wrap(padded);
    out.position(1);
    out.put((byte) KIND_HELLO)
        .put((byte) ((hello.confirm ? CONFIRM : 0) | (hello.asks ? ASKS : 0)))
        .putLong(hello.incarnation)
        .putLong(hello.sequence)
        .put(hello.accessKey)
        .put((byte) hello.holds.size());
    for (UUID id : hello.holds) {
      out.putLong(id.getMostSignificantBits()).putLong(id.getLeastSignificantBits());
    }
    out.put((byte) hello.distributions.size());
    for (byte[] distribution : hello.distributions) {
      out.putShort((short) distribution.length).put(distribution);
    }
    return padded;
  }

  /** A heartbeat, padded. */
  static byte[] heartbeat() {
    byte[] padded = padded(3);
    padded[1] = KIND_HEARTBEAT;
    return padded;
  }

  /** A farewell, padded. */
  static byte[] farewell(long incarnation) {
    byte[] padded = padded(3 + 8);
    padded[1] = KIND_FAREWELL;
    ByteBuffer.wrap(padded).putLong(3, incarnation);
    return padded;
  }

  /** An array for {@code length} bytes and their padding, with version and padding in place. */
  private static byte[] padded(int length) {
    byte[] padded = new byte[paddedLength(length)];
    padded[0] = VERSION;
    padded[length] = (byte) 0x80;
    return padded;
  }

  /**
   * Length with padding: at least one byte, up to a multiple of {@value #PADDING_UNIT}, or, above 4
   * KiB, of the coarser unit of the PADME scheme, so that an observer learns O(log log length) bits
   * and at most 12 percent are added.
   */
  static int paddedLength(int length) {
    int least = length + 1;
    int exponent = 31 - Integer.numberOfLeadingZeros(least);
    int mantissaBits = 32 - Integer.numberOfLeadingZeros(exponent);
    int unit = Math.max(PADDING_UNIT, 1 << Math.max(0, exponent - mantissaBits));
    return Math.ceilDiv(least, unit) * unit;
  }

  /**
   * Reads a padded frame. Strict: it refuses everything that no sender of ours writes.
   *
   * @throws MalformedException when it is not a frame of this version
   */
  static Frame decode(byte[] padded) throws MalformedException {
    int end = padded.length - 1;
    while (end >= 0 && padded[end] == 0) {
      end--;
    }
    if (end < 3 || padded[end] != (byte) 0x80) {
      throw new MalformedException("padding");
    }
    if (padded.length != paddedLength(end)) {
      throw new MalformedException("padded length");
    }
    ByteBuffer in = ByteBuffer.wrap(padded, 0, end);
    try {
      if (in.get() != VERSION) {
        throw new MalformedException("version");
      }
      int kind = in.get();
      int flags = in.get();
      return switch (kind) {
        case KIND_BODY -> {
          requireFlags(flags, BROADCAST);
          yield new Body(flags != 0, rest(in));
        }
        case KIND_CHUNK -> {
          requireFlags(flags, BROADCAST);
          yield chunk(flags != 0, in);
        }
        case KIND_BATCH -> {
          requireFlags(flags, BROADCAST);
          yield new Batch(flags != 0, parts(in));
        }
        case KIND_HELLO -> {
          requireFlags(flags, CONFIRM | ASKS);
          yield hello(flags, in);
        }
        case KIND_HEARTBEAT -> {
          requireFlags(flags, 0);
          if (in.hasRemaining()) {
            throw new MalformedException("heartbeat with content");
          }
          yield new Heartbeat();
        }
        case KIND_FAREWELL -> {
          requireFlags(flags, 0);
          long incarnation = in.getLong();
          if (in.hasRemaining()) {
            throw new MalformedException("bytes after a farewell");
          }
          yield new Farewell(incarnation);
        }
        default -> throw new MalformedException("kind");
      };
    } catch (BufferUnderflowException e) {
      throw new MalformedException("truncated");
    }
  }

  private static void requireFlags(int flags, int known) throws MalformedException {
    if ((flags & ~known) != 0) {
      throw new MalformedException("flags");
    }
  }

  private static Chunk chunk(boolean broadcast, ByteBuffer in) throws MalformedException {
    long message = in.getLong();
    int index = Short.toUnsignedInt(in.getShort());
    int count = Short.toUnsignedInt(in.getShort());
    int total = in.getInt();
    byte[] data = rest(in);
    if (count < 2 || count > MAX_CHUNKS || index >= count || data.length == 0) {
      throw new MalformedException("chunk index or count");
    }
    if (total < count || data.length > total) {
      throw new MalformedException("chunk total");
    }
    return new Chunk(broadcast, message, index, count, total, data);
  }

  private static List<Part> parts(ByteBuffer in) throws MalformedException {
    List<Part> parts = new ArrayList<>();
    while (in.hasRemaining()) {
      if (parts.size() == MAX_BATCH) {
        throw new MalformedException("too many bodies");
      }
      byte[] trace = new byte[TRACEPARENT_BYTES];
      in.get(trace);
      int length = in.getInt();
      if (length < 0 || length > in.remaining()) {
        throw new MalformedException("length of a body");
      }
      byte[] data = new byte[length];
      in.get(data);
      parts.add(new Part(data, traceparent(trace)));
    }
    if (parts.size() < 2) {
      throw new MalformedException("a batch of fewer than two bodies");
    }
    return parts;
  }

  private static @Nullable String traceparent(byte[] trace) throws MalformedException {
    if (trace[0] == 0) {
      for (byte each : trace) {
        if (each != 0) {
          throw new MalformedException("trace context");
        }
      }
      return null;
    }
    String value = new String(trace, StandardCharsets.US_ASCII);
    if (!TRACEPARENT.matcher(value).matches()) {
      throw new MalformedException("trace context");
    }
    return value;
  }

  private static Hello hello(int flags, ByteBuffer in) throws MalformedException {
    long incarnation = in.getLong();
    long sequence = in.getLong();
    byte[] accessKey = new byte[ACCESS_KEY_BYTES];
    in.get(accessKey);
    int held = in.get();
    if (held < 0 || held > MAX_DISTRIBUTIONS) {
      throw new MalformedException("number of sender keys held");
    }
    List<UUID> holds = new ArrayList<>(held);
    for (int i = 0; i < held; i++) {
      holds.add(new UUID(in.getLong(), in.getLong()));
    }
    int count = in.get();
    if (count < 0 || count > MAX_DISTRIBUTIONS) {
      throw new MalformedException("number of distributions");
    }
    List<byte[]> distributions = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      int length = Short.toUnsignedInt(in.getShort());
      if (length == 0 || length > MAX_DISTRIBUTION_BYTES || length > in.remaining()) {
        throw new MalformedException("length of a distribution");
      }
      byte[] distribution = new byte[length];
      in.get(distribution);
      distributions.add(distribution);
    }
    if (in.hasRemaining()) {
      throw new MalformedException("bytes after a hello");
    }
    return new Hello(
        incarnation,
        sequence,
        (flags & CONFIRM) != 0,
        (flags & ASKS) != 0,
        accessKey,
        holds,
        distributions);
  }

  private static byte[] rest(ByteBuffer in) {
    return Arrays.copyOfRange(in.array(), in.position(), in.limit());
  }
}
