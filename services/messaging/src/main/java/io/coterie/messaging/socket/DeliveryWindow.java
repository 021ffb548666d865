package io.coterie.messaging.socket;

import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.messaging.telemetry.MessagingMetrics;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * Messages pushed to one device and not yet acknowledged. A message is in at most one place: the
 * {@link MessageQueue}, or in flight here. Pushing stops while the client leaves too many messages
 * unacknowledged or reads too slowly, and goes on with the next acknowledgement or write.
 *
 * <p>Order of locks: this one, then that of {@link OutboundFrames}.
 */
final class DeliveryWindow {
  /** Stored messages loaded at once. */
  private static final int LOAD_BATCH = 64;

  /** Bytes of stored messages loaded at once, unless the first of them alone has more. */
  static final long LOAD_BYTES = 256 * 1_024;

  /** A load for less room than this would often find a message that has more. */
  private static final long LEAST_LOAD_BYTES = LOAD_BYTES / 2;

  /** Messages that a client may refuse to acknowledge before it is told to start over. */
  private static final int MAX_REFUSED = 1_024;

  private final DeviceAddress device;
  private final MessageQueue queue;
  private final StoredLoads loads;
  private final OutboundFrames frames;
  private final MessagingMetrics metrics;
  private final Consumer<Runnable> background;
  private final int size;

  /** The id of each request's stored message; none for an online one, which is kept nowhere. */
  private final Map<Long, OptionalLong> inFlight = new HashMap<>();

  private final Set<Long> refused = new HashSet<>();
  private long lastRequestId;
  private boolean running;
  private boolean loading;
  private boolean loadAgain;
  private boolean drained;

  /**
   * @param background runs work that waits for the database
   * @param size most messages in flight
   */
  DeliveryWindow(
      DeviceAddress device,
      MessageQueue queue,
      StoredLoads loads,
      OutboundFrames frames,
      MessagingMetrics metrics,
      Consumer<Runnable> background,
      int size) {
    this.device = device;
    this.queue = queue;
    this.loads = loads;
    this.frames = frames;
    this.metrics = metrics;
    this.background = background;
    this.size = size;
  }

  /** Messages may be pushed from now on. */
  synchronized void start() {
    running = true;
  }

  /** Ends the pushing of messages. */
  synchronized void stop() {
    running = false;
  }

  /** Messages in flight. */
  synchronized int inFlight() {
    return inFlight.size();
  }

  /** Pushes online messages while there are some and the window has room. */
  void pushOnline() {
    synchronized (this) {
      while (mayPush()) {
        Optional<QueuedMessage> message = queue.takeOnline(device);
        if (message.isEmpty()) {
          break;
        }
        push(message.get());
      }
    }
    frames.write();
  }

  /** There may be stored messages that have not been loaded. */
  void storedAvailable() {
    synchronized (this) {
      loadAgain = true;
    }
    continueLoading();
  }

  /** Goes on after the window or the socket has got room. */
  void resume() {
    pushOnline();
    continueLoading();
  }

  /**
   * The client has answered a push.
   *
   * @return whether the client may stay: false if it has refused too many messages
   */
  boolean answered(long requestId, boolean accepted) {
    OptionalLong storedId;
    synchronized (this) {
      storedId = inFlight.remove(requestId);
      if (storedId != null && storedId.isPresent()) {
        long id = storedId.getAsLong();
        if (accepted) {
          queue.acknowledge(id);
        } else {
          // Kept for the next connection; pushed again here, it would be refused again.
          refused.add(id);
          if (refused.size() > MAX_REFUSED) {
            return false;
          }
        }
      }
    }
    if (storedId != null) {
      if (accepted) {
        metrics.delivered(storedId.isPresent());
      }
      resume();
    }
    return true;
  }

  /** Loads stored messages in the background, one load at a time, while there may be some. */
  private void continueLoading() {
    synchronized (this) {
      if (loading || !loadAgain || !mayPush()) {
        return;
      }
      loading = true;
    }
    background.accept(this::load);
  }

  private void load() {
    long larger = 0;
    while (true) {
      long bytes;
      synchronized (this) {
        if (!mayPush() || !loadAgain) {
          loading = false;
          return;
        }
        long room = Math.clamp(frames.pushRoom(), LEAST_LOAD_BYTES, LOAD_BYTES);
        bytes = Math.max(larger, room);
      }
      AtomicLong next = new AtomicLong();
      loads.run(bytes, () -> next.set(load(bytes)));
      larger = next.get();
      frames.write();
    }
  }

  /** Loads within its turn; returns the bytes of the first message if it alone has more. */
  private long load(long bytes) {
    Set<Long> except;
    int limit;
    synchronized (this) {
      if (!mayPush()) {
        return 0;
      }
      loadAgain = false;
      limit = Math.min(LOAD_BATCH, size - inFlight.size());
      except = new HashSet<>(refused);
      inFlight.values().forEach(id -> id.ifPresent(except::add));
    }
    MessageQueue.Loaded loaded = queue.stored(device, except, limit, bytes);
    synchronized (this) {
      pushLoaded(loaded);
    }
    return loaded.larger();
  }

  /** The lock is held. */
  private void pushLoaded(MessageQueue.Loaded loaded) {
    int pushed = 0;
    for (QueuedMessage message : loaded.messages()) {
      if (!mayPush()) {
        break;
      }
      push(message);
      pushed++;
    }
    if (pushed < loaded.messages().size() || loaded.more()) {
      loadAgain = true;
    } else if (!drained) {
      // The client has what was stored before it connected.
      drained = true;
      frames.push(SocketMessages.queueEmpty(++lastRequestId));
    }
  }

  /** Whether one more message may be in flight. The lock is held. */
  private boolean mayPush() {
    return running && inFlight.size() < size && frames.pushRoom() > 0;
  }

  /** The lock is held. */
  private void push(QueuedMessage message) {
    inFlight.put(++lastRequestId, message.storedId());
    frames.push(SocketMessages.push(lastRequestId, message));
  }
}
