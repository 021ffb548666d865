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
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends messages one after another, in the order in which they were given. Bodies that wait for the
 * same recipients leave together, as one message. They wait while another message is encrypted,
 * while the messaging service is late with an answer, since more messages would make that worse,
 * and on a short line while any answer is out. There is no timer, and nothing waits for others to
 * come. Thread-safe.
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

  /** Something to be sent, and the future that says how it went. */
  private sealed interface Waiting<T> {
    CompletableFuture<Void> sent();

    /** Overwrites the content with zeros. */
    void wipe();
  }

  /** Finished frames, which leave alone. */
  private record Frames<T>(
      T to, SendOptions options, List<byte[]> frames, CompletableFuture<Void> sent)
      implements Waiting<T> {
    @Override
    public void wipe() {
      frames.forEach(frame -> Arrays.fill(frame, (byte) 0));
    }
  }

  /** A body that may leave with others. */
  private record Body<T>(
      T to, SendOptions options, boolean broadcast, byte[] bytes, CompletableFuture<Void> sent)
      implements Waiting<T> {
    @Override
    public void wipe() {
      Arrays.fill(bytes, (byte) 0);
    }

    int length() {
      return Frame.partLength(bytes);
    }

    boolean mayJoin(Body<T> first) {
      return broadcast == first.broadcast
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
    return add(new Frames<>(to, options, frames, new CompletableFuture<>()), sender);
  }

  /**
   * Sends a body, alone or with others. It is wiped.
   *
   * @param broadcast whether its recipients are to take it for a broadcast
   */
  CompletableFuture<Void> body(
      T to, boolean broadcast, byte[] body, SendOptions options, Sender<T> sender) {
    return add(new Body<>(to, options, broadcast, body, new CompletableFuture<>()), sender);
  }

  private CompletableFuture<Void> add(Waiting<T> message, Sender<T> sender) {
    synchronized (waiting) {
      waiting.add(message);
      switch (message) {
        case Frames<T> _ -> framesWaiting++;
        case Body<T> body -> bytesWaiting += body.length();
      }
    }
    lane.execute(() -> leave(sender));
    return message.sent();
  }

  /** Sends what may leave now. Runs in the lane. */
  private void leave(Sender<T> sender) {
    Waiting<T> first = first();
    if (first == null) {
      return;
    }
    switch (first) {
      case Frames<T> frames ->
          leave(List.of(frames), sender, question -> send(frames, sender, question));
      case Body<T> body -> {
        List<Body<T>> bodies = withThoseBehind(body);
        leave(bodies, sender, question -> send(bodies, sender, question));
      }
    }
    lane.execute(() -> leave(sender)); // What is behind it may leave now, too.
  }

  private void leave(
      List<? extends Waiting<T>> together,
      Sender<T> sender,
      Function<AnswerTimes.Question, CompletableFuture<Void>> send) {
    AnswerTimes.Question question = answers.ask(() -> lane.execute(() -> leave(sender)));
    try {
      send.apply(question)
          .whenComplete(
              (done, failure) -> {
                question.end();
                end(together, failure);
              });
    } catch (RuntimeException | Error e) {
      // An Error too, because the sender waits for an end.
      LOG.error("a message could not be sent", e);
      together.forEach(Waiting::wipe);
      question.end();
      end(together, e);
    }
  }

  private CompletableFuture<Void> send(
      Frames<T> message, Sender<T> sender, AnswerTimes.Question question) {
    return all(
        message.frames.stream()
            .map(frame -> sender.send(message.to, frame, message.options, question))
            .toList());
  }

  /** Ends when all have ended, well if all have. */
  static CompletableFuture<Void> all(List<CompletableFuture<Void>> parts) {
    return parts.size() == 1
        ? parts.getFirst()
        : CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new));
  }

  private CompletableFuture<Void> send(
      List<Body<T>> bodies, Sender<T> sender, AnswerTimes.Question question) {
    byte[] frame = frame(bodies);
    try {
      bodies.forEach(Body::wipe);
      T to = bodies.getFirst().to;
      sender.count(to, bodies.size());
      return sender.send(to, frame, options(bodies), question);
    } catch (RuntimeException | Error e) {
      Arrays.fill(frame, (byte) 0);
      throw e;
    }
  }

  /**
   * Takes the first that waits, if it may leave. Frames leave at once, with all before them,
   * because a late answer may be waiting for what they bring; and so does as much as one message
   * holds.
   */
  private @Nullable Waiting<T> first() {
    synchronized (waiting) {
      if (framesWaiting == 0
          && waiting.size() < Frame.MAX_BATCH
          && bytesWaiting < maxBytes
          && answers.awaited()) {
        return null;
      }
      Waiting<T> first = waiting.poll();
      switch (first) {
        case null -> {}
        case Frames<T> _ -> framesWaiting--;
        case Body<T> body -> bytesWaiting -= body.length();
      }
      return first;
    }
  }

  /** Takes those behind a body that may join it, none of which overtakes another. */
  private List<Body<T>> withThoseBehind(Body<T> first) {
    List<Body<T>> bodies = new ArrayList<>(1);
    bodies.add(first);
    int bytes = first.length();
    synchronized (waiting) {
      while (bodies.size() < Frame.MAX_BATCH
          && waiting.peek() instanceof Body<T> next
          && next.mayJoin(first)
          && bytes + next.length() <= maxBytes) {
        waiting.remove();
        bytesWaiting -= next.length();
        bytes += next.length();
        bodies.add(next);
      }
    }
    return bodies;
  }

  /** The trace contexts of several bodies are inside their frame. */
  private static <T> SendOptions options(List<Body<T>> bodies) {
    SendOptions first = bodies.getFirst().options;
    return bodies.size() == 1 ? first : new SendOptions(first.online(), null);
  }

  private static <T> byte[] frame(List<Body<T>> bodies) {
    Body<T> first = bodies.getFirst();
    if (bodies.size() == 1) {
      return Frame.body(first.broadcast, first.bytes);
    }
    return Frame.batch(
        first.broadcast,
        bodies.stream()
            .map(body -> new Frame.Part(body.bytes, body.options.traceparent()))
            .toList());
  }

  private static void end(List<? extends Waiting<?>> messages, @Nullable Throwable failure) {
    for (Waiting<?> message : messages) {
      if (failure == null) {
        message.sent().complete(null);
      } else {
        message.sent().completeExceptionally(ChannelException.of(failure));
      }
    }
  }
}
