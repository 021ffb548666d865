package io.coterie.channel.signal;

import io.coterie.channel.ChannelException;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.channel.wire.Frame;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends messages one after another, in the order in which they were given. Bodies that wait for the
 * same recipients leave together, as one message. They wait while another message is encrypted, and
 * while the messaging service is late with an answer: then processors or lines are short, and more
 * messages would make it worse. There is no timer, and nothing waits for others to come.
 * Thread-safe.
 *
 * @param <T> recipients, and the keys for them; compared by value
 */
final class SendQueue<T> {
  private static final Logger LOG = LoggerFactory.getLogger(SendQueue.class);

  /** Encrypts a frame and hands it over. */
  interface Sender<T> {
    /**
     * Sends one frame.
     *
     * @param question to be told of the service's first response, or that nothing is asked for now
     * @return completes when the messaging service has accepted it for all recipients
     */
    CompletableFuture<Void> send(
        T to, byte[] frame, SendOptions options, AnswerTimes.Question question);

    /** Counts the bodies of a message that leaves. */
    void count(T to, int bodies);
  }

  /** Finished frames, or one body that may leave with others. */
  private static final class Waiting<T> {
    final T to;
    final SendOptions options;
    final boolean broadcast;
    final List<byte[]> frames;
    final byte @Nullable [] body;
    final CompletableFuture<Void> sent = new CompletableFuture<>();

    Waiting(T to, SendOptions options, List<byte[]> frames) {
      this.to = to;
      this.options = options;
      this.broadcast = false;
      this.frames = frames;
      this.body = null;
    }

    Waiting(T to, SendOptions options, boolean broadcast, byte[] body) {
      this.to = to;
      this.options = options;
      this.broadcast = broadcast;
      this.frames = List.of();
      this.body = body;
    }

    boolean mayJoin(Waiting<T> first) {
      return body != null
          && first.body != null
          && broadcast == first.broadcast
          && options.online() == first.options.online()
          && to.equals(first.to);
    }
  }

  private final MessageLane lane;
  private final int maxBytes;
  private final AnswerTimes answers;

  /** Guarded by itself. */
  private final ArrayDeque<Waiting<T>> waiting = new ArrayDeque<>();

  /** Finished frames among those that wait. Guarded by {@link #waiting}. */
  private int framesWaiting;

  /** Bytes of the bodies that wait. Guarded by {@link #waiting}. */
  private int bytesWaiting;

  /**
   * Nothing waits.
   *
   * @param maxBytes largest content of a message with several bodies
   * @param nanoTime monotonic clock, ns
   */
  SendQueue(Executor pool, int maxBytes, LongSupplier nanoTime) {
    this.lane = new MessageLane(pool);
    this.maxBytes = maxBytes;
    this.answers = new AnswerTimes(nanoTime);
  }

  /**
   * Sends frames, each as a message of its own. The sender wipes them.
   *
   * @return completes when the messaging service has accepted all of them
   */
  CompletableFuture<Void> frames(T to, List<byte[]> frames, SendOptions options, Sender<T> sender) {
    return add(new Waiting<>(to, options, frames), sender);
  }

  /**
   * Sends a body, alone or with others. It is wiped.
   *
   * @param broadcast whether its recipients are to take it for a broadcast
   */
  CompletableFuture<Void> body(
      T to, boolean broadcast, byte[] body, SendOptions options, Sender<T> sender) {
    return add(new Waiting<>(to, options, broadcast, body), sender);
  }

  private CompletableFuture<Void> add(Waiting<T> message, Sender<T> sender) {
    synchronized (waiting) {
      waiting.add(message);
      framesWaiting += message.body == null ? 1 : 0;
      bytesWaiting += length(message);
    }
    lane.execute(() -> leave(sender));
    return message.sent;
  }

  /** Sends what may leave now. Runs in the lane. */
  private void leave(Sender<T> sender) {
    List<Waiting<T>> together = together();
    if (!together.isEmpty()) {
      leave(together, sender);
      lane.execute(() -> leave(sender)); // What is behind it may leave now, too.
    }
  }

  private void leave(List<Waiting<T>> together, Sender<T> sender) {
    AnswerTimes.Question question = answers.ask(() -> lane.execute(() -> leave(sender)));
    byte[] frame = {};
    try {
      Waiting<T> first = together.getFirst();
      CompletableFuture<Void> sent;
      if (first.body == null) {
        sent =
            Outbox.all(
                first.frames.stream()
                    .map(each -> sender.send(first.to, each, first.options, question))
                    .toList());
      } else {
        frame = frame(together);
        wipe(together);
        sender.count(first.to, together.size());
        sent = sender.send(first.to, frame, options(together), question);
      }
      sent.whenComplete(
          (done, failure) -> {
            question.end();
            end(together, failure);
          });
    } catch (RuntimeException | Error e) {
      // An Error too, because the sender waits for an end.
      LOG.error("a message could not be sent", e);
      wipe(together);
      Arrays.fill(frame, (byte) 0);
      question.end();
      end(together, e);
    }
  }

  /**
   * The first that waits and may leave, and those behind it that may join it: none is overtaken.
   * Frames leave at once, with all before them, because a late answer may be waiting for what they
   * bring; and so does as much as one message holds.
   */
  private List<Waiting<T>> together() {
    List<Waiting<T>> together = new ArrayList<>(1);
    synchronized (waiting) {
      if (framesWaiting == 0
          && waiting.size() < Frame.MAX_BATCH
          && bytesWaiting < maxBytes
          && answers.late()) {
        return together;
      }
      Waiting<T> first = waiting.poll();
      if (first == null) {
        return together;
      }
      framesWaiting -= first.body == null ? 1 : 0;
      bytesWaiting -= length(first);
      together.add(first);
      int bytes = length(first);
      for (Waiting<T> next = waiting.peek();
          next != null && together.size() < Frame.MAX_BATCH && next.mayJoin(first);
          next = waiting.peek()) {
        bytes += length(next);
        if (bytes > maxBytes) {
          break;
        }
        together.add(waiting.remove());
        bytesWaiting -= length(next);
      }
    }
    return together;
  }

  /** The trace contexts of several bodies are inside their frame. */
  private static SendOptions options(List<? extends Waiting<?>> together) {
    SendOptions first = together.getFirst().options;
    return together.size() == 1 ? first : new SendOptions(first.online(), null);
  }

  private static int length(Waiting<?> message) {
    return message.body == null ? 0 : Frame.partLength(message.body);
  }

  private static byte[] frame(List<? extends Waiting<?>> together) {
    Waiting<?> first = together.getFirst();
    if (together.size() == 1 && first.body != null) {
      return Frame.body(first.broadcast, first.body);
    }
    List<Frame.Part> parts = new ArrayList<>(together.size());
    for (Waiting<?> message : together) {
      if (message.body != null) {
        parts.add(new Frame.Part(message.body, message.options.traceparent()));
      }
    }
    return Frame.batch(first.broadcast, parts);
  }

  private static void wipe(List<? extends Waiting<?>> messages) {
    for (Waiting<?> message : messages) {
      message.frames.forEach(frame -> Arrays.fill(frame, (byte) 0));
      if (message.body != null) {
        Arrays.fill(message.body, (byte) 0);
      }
    }
  }

  private static void end(List<? extends Waiting<?>> messages, @Nullable Throwable failure) {
    for (Waiting<?> message : messages) {
      if (failure == null) {
        message.sent.complete(null);
      } else {
        message.sent.completeExceptionally(ChannelException.of(failure));
      }
    }
  }
}
