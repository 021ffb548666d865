package io.coterie.messaging.socket;

import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.CloseReason.CloseCodes;
import jakarta.websocket.RemoteEndpoint;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Frames that wait to be written to one socket. Writing never blocks: the container gets one frame
 * at a time. Answers are memory that the client itself has caused; pushes are caused by others.
 *
 * <p>Frames of messages that were read together are written together, so that a client that gets
 * many of them reads them together, too.
 */
final class OutboundFrames {
  private static final Logger LOG = LoggerFactory.getLogger(OutboundFrames.class);

  /** Frames that one thread writes to a socket before it hands over to another. */
  private static final int MAX_WRITES = 64;

  /** Memory that a frame takes besides its bytes: its buffer, and its places in two queues. */
  static final int FRAME_OVERHEAD = 256;

  /** Frames that wait for the end of the work that they come from. */
  private static final int MAX_LATER = 32;

  private static final ScopedValue<Later> LATER = ScopedValue.newInstance();

  private static final ThreadLocal<Boolean> WRITING = ThreadLocal.withInitial(() -> false);

  private static final ThreadLocal<Boolean> MORE = ThreadLocal.withInitial(() -> false);

  private final long maxBytes;
  private final Executor executor;
  private final Listener listener;
  private final ConnectionMemory.Account answersMemory;
  private final PushMemory.Share pushMemory;
  private final Deque<Frame> frames = new ArrayDeque<>();
  private long answerBytes;
  private long pushBytes;
  private boolean writing;
  private boolean closed;
  private RemoteEndpoint.@Nullable Async remote;

  private record Frame(ByteBuffer content, boolean isPush) {
    int size() {
      return content.capacity() + FRAME_OVERHEAD;
    }
  }

  /** Called without a lock held. */
  interface Listener {
    /** There is room for pushes again. */
    void hasRoom();

    /** All frames have been given to the container. */
    void isIdle();

    /** The socket takes no more frames. */
    void failed(CloseCode code, String reason);
  }

  /**
   * @param maxBytes most bytes of answers that may wait
   * @param answersMemory where answers are accounted
   * @param pushMemory where pushes are accounted
   * @param executor where a thread that has written enough hands over
   */
  OutboundFrames(
      long maxBytes,
      ConnectionMemory.Account answersMemory,
      PushMemory.Share pushMemory,
      Executor executor,
      Listener listener) {
    this.maxBytes = maxBytes;
    this.answersMemory = answersMemory;
    this.pushMemory = pushMemory;
    this.executor = executor;
    this.listener = listener;
  }

  /**
   * Whether this thread is giving a frame to the container. Then it can also do what the container
   * does when the frame is written: {@link #write} holds no lock and expects the completion within
   * the call.
   */
  static boolean isWriting() {
    return WRITING.get();
  }

  /**
   * Whether this thread is giving a frame to the container and gives it another one of the same
   * socket as soon as that is written.
   */
  static boolean isMoreToCome() {
    return MORE.get();
  }

  /**
   * Does work after which all frames are written that it has asked for, or earlier if many wait.
   */
  static void together(Runnable work) {
    Later later = new Later();
    try {
      ScopedValue.where(LATER, later).run(work);
    } finally {
      later.write();
    }
  }

  /** Sockets for which frames wait, in the order of the first of each. */
  private static final class Later {
    private final Set<OutboundFrames> sockets = new LinkedHashSet<>();
    private int asked;

    void add(OutboundFrames socket) {
      sockets.add(socket);
      if (++asked >= MAX_LATER) {
        write();
      }
    }

    private static void write(OutboundFrames socket) {
      try {
        socket.writeNow();
      } catch (RuntimeException e) {
        // The frames of the other sockets have no part in it.
        LOG.error("the frames of a connection could not be written", e);
        socket.listener.failed(CloseCodes.CLOSED_ABNORMALLY, "");
      }
    }

    void write() {
      List<OutboundFrames> now = List.copyOf(sockets);
      sockets.clear();
      asked = 0;
      now.forEach(Later::write);
    }
  }

  /** Frames are written from now on. */
  synchronized void open(RemoteEndpoint.Async opened) {
    remote = opened;
  }

  /** Forgets the frames that wait, and takes no more. */
  synchronized void close() {
    closed = true;
    frames.clear();
    answersMemory.release(answerBytes);
    pushMemory.release(pushBytes);
    answerBytes = 0;
    pushBytes = 0;
  }

  /** Bytes that may be pushed now; zero or less if there is no room. */
  synchronized long pushRoom() {
    return closed ? 0 : pushMemory.room();
  }

  /** Whether no frame waits or is being written. */
  synchronized boolean isIdle() {
    return frames.isEmpty() && !writing;
  }

  /** Adds the frame of a message; {@link #write} follows, without a lock held. */
  synchronized void push(byte[] frame) {
    if (!closed) {
      int size = add(frame, true);
      pushBytes += size;
      pushMemory.take(size);
    }
  }

  /** Adds an answer, unless so many bytes wait that the client evidently does not read. */
  synchronized boolean answer(byte[] frame) {
    if (answerBytes + frame.length + FRAME_OVERHEAD > maxBytes) {
      return false;
    }
    if (!closed) {
      int size = add(frame, false);
      answerBytes += size;
      answersMemory.take(size);
    }
    return true;
  }

  private int add(byte[] content, boolean isPush) {
    Frame frame = new Frame(ByteBuffer.wrap(content), isPush);
    frames.add(frame);
    return frame.size();
  }

  /** Sees to it that frames are written, before the end of the work of {@link #together}. */
  void write() {
    if (LATER.isBound()) {
      LATER.get().add(this);
    } else {
      writeNow();
    }
  }

  /** Gives frames to the container, one after another, unless that is going on already. */
  private void writeNow() {
    boolean first = true;
    int written = 0;
    while (true) {
      if (written++ == MAX_WRITES) {
        // The thread belongs to the sender of the first of them, and has calls of its own to
        // answer.
        try {
          executor.execute(this::resume);
          return;
        } catch (RejectedExecutionException e) {
          // The service is stopping. Nobody else would write the answers that clients wait for.
          written = 0;
        }
      }
      Frame next;
      RemoteEndpoint.Async to;
      boolean more;
      synchronized (this) {
        if (first && writing) {
          return;
        }
        first = false;
        to = remote;
        next = to == null ? null : frames.poll();
        writing = next != null;
        more = !frames.isEmpty() && written < MAX_WRITES;
      }
      if (next == null || to == null) {
        break;
      }
      // This loop or the completion, whichever comes second, goes on.
      AtomicInteger arrived = new AtomicInteger();
      boolean within = WRITING.get();
      WRITING.set(true);
      MORE.set(more);
      try {
        to.sendBinary(
            next.content(),
            result -> {
              MORE.set(false);
              if (!result.isOK()) {
                listener.failed(CloseCodes.VIOLATED_POLICY, "too slow");
                return;
              }
              try {
                written(next);
              } catch (RuntimeException e) {
                // This may be the thread of another client, which has no part in it.
                LOG.error("the work after a frame failed", e);
                listener.failed(CloseCodes.CLOSED_ABNORMALLY, "");
                return;
              }
              if (arrived.getAndIncrement() == 1) {
                resume();
              }
            });
      } catch (IllegalStateException | IllegalArgumentException e) {
        LOG.debug("a frame could not be written to its connection", e);
        listener.failed(CloseCodes.CLOSED_ABNORMALLY, "");
        return;
      } finally {
        WRITING.set(within);
        MORE.set(false);
      }
      if (arrived.getAndIncrement() == 0) {
        return;
      }
    }
    listener.isIdle();
  }

  private void resume() {
    synchronized (this) {
      writing = false;
    }
    writeNow();
  }

  private void written(Frame frame) {
    boolean roomAgain = false;
    synchronized (this) {
      if (closed) {
        return;
      }
      if (frame.isPush()) {
        boolean hadRoom = pushMemory.hasOwnRoom();
        pushBytes -= frame.size();
        pushMemory.release(frame.size());
        roomAgain = !hadRoom && pushMemory.hasOwnRoom();
      } else {
        answerBytes -= frame.size();
        answersMemory.release(frame.size());
      }
    }
    if (roomAgain) {
      listener.hasRoom();
    }
  }
}
