package io.coterie.messaging.socket;

import jakarta.websocket.Extension;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import org.apache.tomcat.websocket.Constants;
import org.apache.tomcat.websocket.MessagePart;
import org.apache.tomcat.websocket.Transformation;
import org.apache.tomcat.websocket.TransformationResult;
import org.apache.tomcat.websocket.WsFrameBase;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes the mask off a client's frames (RFC 6455, section 5.3) eight bytes at a time. The container
 * does it byte by byte and makes each step visible to all threads, which beside a flood took more
 * than half of the service's processor time.
 *
 * <p>It works ahead of the container, on the container's own state of the frame, and leaves the
 * judgement of the frame to it. A container that keeps that state elsewhere does all by itself.
 */
final class Unmasking implements Transformation {
  private static final Logger LOG = LoggerFactory.getLogger(Unmasking.class);

  private static final @Nullable Frames FRAMES = Frames.find();

  /** The container's state of the frame that is being read. */
  private record Frames(
      VarHandle ofTransformation,
      VarHandle input,
      VarHandle mask,
      VarHandle maskIndex,
      VarHandle payloadLength,
      VarHandle payloadWritten) {
    static @Nullable Frames find() {
      try {
        Class<?> transformation =
            Class.forName(WsFrameBase.class.getName() + "$UnmaskTransformation");
        MethodHandles.Lookup frames =
            MethodHandles.privateLookupIn(WsFrameBase.class, MethodHandles.lookup());
        return new Frames(
            MethodHandles.privateLookupIn(transformation, MethodHandles.lookup())
                .findVarHandle(transformation, "this$0", WsFrameBase.class),
            frames.findVarHandle(WsFrameBase.class, "inputBuffer", ByteBuffer.class),
            frames.findVarHandle(WsFrameBase.class, "mask", byte[].class),
            frames.findVarHandle(WsFrameBase.class, "maskIndex", int.class),
            frames.findVarHandle(WsFrameBase.class, "payloadLength", long.class),
            frames.findVarHandle(WsFrameBase.class, "payloadWritten", long.class));
      } catch (ReflectiveOperationException e) {
        LOG.warn("the container keeps frames elsewhere than expected, and unmasks them slowly", e);
        return null;
      }
    }
  }

  private final Runnable onClose;
  private @Nullable Transformation next;

  /** Null unless the container's state was found. */
  private @Nullable WsFrameBase frame;

  /**
   * @param onClose is run when the client closes, before the container answers it
   */
  Unmasking(Runnable onClose) {
    this.onClose = onClose;
  }

  /** Whether frames are unmasked here; otherwise by the container. */
  static boolean isAvailable() {
    return FRAMES != null;
  }

  @Override
  public void setNext(Transformation unmasking) {
    next = unmasking;
    frame =
        FRAMES != null
                && FRAMES.ofTransformation().coordinateTypes().getFirst().isInstance(unmasking)
            ? (WsFrameBase) FRAMES.ofTransformation().get(unmasking)
            : null;
  }

  private Transformation next() {
    return Objects.requireNonNull(next, "the container's own transformation");
  }

  @Override
  public TransformationResult getMoreData(
      byte operation, boolean isLast, int reserved, ByteBuffer destination) throws IOException {
    if (operation == Constants.OPCODE_CLOSE) {
      onClose.run();
    }
    if (FRAMES != null && frame != null) {
      unmask(FRAMES, frame, destination);
    }
    return next().getMoreData(operation, isLast, reserved, destination);
  }

  /** All that has come of the frame and that there is room for. */
  private static void unmask(Frames frames, WsFrameBase frame, ByteBuffer destination) {
    ByteBuffer input = (ByteBuffer) frames.input().get(frame);
    long written = (long) frames.payloadWritten().get(frame);
    long left = (long) frames.payloadLength().get(frame) - written;
    int bytes = (int) Math.min(left, Math.min(input.remaining(), destination.remaining()));
    if (bytes <= 0) {
      return;
    }
    byte[] mask = (byte[]) frames.mask().get(frame);
    int index = (int) frames.maskIndex().get(frame);
    unmask(input, destination, bytes, mask, index);
    frames.maskIndex().set(frame, (index + bytes) % mask.length);
    frames.payloadWritten().setVolatile(frame, written + bytes);
  }

  private static void unmask(
      ByteBuffer input, ByteBuffer destination, int bytes, byte[] mask, int index) {
    long eight = 0;
    for (int i = 0; i < Long.BYTES; i++) {
      eight = eight << Byte.SIZE | mask[(index + i) % mask.length] & 0xff;
    }
    int from = input.position();
    int to = destination.position();
    int i = 0;
    for (; i <= bytes - Long.BYTES; i += Long.BYTES) {
      destination.putLong(to + i, input.getLong(from + i) ^ eight);
    }
    for (; i < bytes; i++) {
      destination.put(to + i, (byte) (input.get(from + i) ^ mask[(index + i) % mask.length]));
    }
    input.position(from + bytes);
    destination.position(to + bytes);
  }

  @Override
  public boolean validateRsvBits(int bits) {
    return next().validateRsvBits(bits);
  }

  @Override
  public @Nullable Extension getExtensionResponse() {
    return next().getExtensionResponse();
  }

  @Override
  public boolean validateRsv(int reserved, byte operation) {
    return next().validateRsv(reserved, operation);
  }

  @Override
  public List<MessagePart> sendMessagePart(List<MessagePart> parts) throws IOException {
    return next().sendMessagePart(parts);
  }

  @Override
  public void close() {
    next().close();
  }
}
