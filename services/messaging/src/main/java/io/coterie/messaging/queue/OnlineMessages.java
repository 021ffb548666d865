package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Online messages that nobody has fetched yet: in memory, bounded for each device, dropped when
 * their time is over.
 */
public final class OnlineMessages {
  private final Clock clock;
  private final Duration timeToLive;
  private final int maxMessages;
  private final long maxBytes;
  private final Map<DeviceAddress, Waiting> byDevice = new ConcurrentHashMap<>();
  private final AtomicLong depth = new AtomicLong();

  /**
   * @param maxMessages most messages that wait for one device
   * @param maxBytes most bytes of content that wait for one device
   */
  public OnlineMessages(Clock clock, Duration timeToLive, int maxMessages, long maxBytes) {
    this.clock = clock;
    this.timeToLive = timeToLive;
    this.maxMessages = maxMessages;
    this.maxBytes = maxBytes;
  }

  private record Entry(QueuedMessage message, Instant deadline) {
    int bytes() {
      return message.envelope().getContent().size();
    }
  }

  /** Touched only inside {@link ConcurrentHashMap#compute}, which orders all uses. */
  private static final class Waiting {
    final Deque<Entry> entries = new ArrayDeque<>();
    long bytes;
  }

  /** Adds a message; if there is no room, the oldest go, because the newest have the most time. */
  public void add(DeviceAddress device, QueuedMessage message) {
    add(device, message, clock.instant().plus(timeToLive));
  }

  /** Like {@link #add(DeviceAddress, QueuedMessage)}, to be dropped at the deadline. */
  public void add(DeviceAddress device, QueuedMessage message, Instant deadline) {
    Entry entry = new Entry(message, deadline);
    byDevice.compute(
        device,
        (key, known) -> {
          Waiting waiting = known == null ? new Waiting() : known;
          dropExpired(waiting);
          while (!waiting.entries.isEmpty()
              && (waiting.entries.size() >= maxMessages
                  || waiting.bytes + entry.bytes() > maxBytes)) {
            removeFirst(waiting);
          }
          waiting.entries.addLast(entry);
          waiting.bytes += entry.bytes();
          depth.incrementAndGet();
          return waiting;
        });
  }

  /** Takes the oldest message that is still in time. */
  public Optional<QueuedMessage> take(DeviceAddress device) {
    @Nullable Entry[] taken = new Entry[1];
    byDevice.computeIfPresent(
        device,
        (key, waiting) -> {
          dropExpired(waiting);
          if (!waiting.entries.isEmpty()) {
            taken[0] = removeFirst(waiting);
          }
          return waiting.entries.isEmpty() ? null : waiting;
        });
    return Optional.ofNullable(taken[0]).map(Entry::message);
  }

  /** Forgets the messages of a device. */
  public void drop(DeviceAddress device) {
    byDevice.computeIfPresent(
        device,
        (key, waiting) -> {
          depth.addAndGet(-waiting.entries.size());
          return null;
        });
  }

  /** Forgets the messages of all devices of an account. */
  public void drop(UUID aci) {
    byDevice.keySet().stream().filter(d -> d.aci().equals(aci)).forEach(this::drop);
  }

  /** Frees what has expired. Nothing expired is ever delivered, swept or not. */
  public void sweep() {
    for (DeviceAddress device : byDevice.keySet()) {
      byDevice.computeIfPresent(
          device,
          (key, waiting) -> {
            dropExpired(waiting);
            return waiting.entries.isEmpty() ? null : waiting;
          });
    }
  }

  /** Messages that wait, of all devices. */
  public long depth() {
    return depth.get();
  }

  private void dropExpired(Waiting waiting) {
    Instant now = clock.instant();
    for (Entry first = waiting.entries.peekFirst();
        first != null && !first.deadline().isAfter(now);
        first = waiting.entries.peekFirst()) {
      removeFirst(waiting);
    }
  }

  private Entry removeFirst(Waiting waiting) {
    Entry first = waiting.entries.removeFirst();
    waiting.bytes -= first.bytes();
    depth.decrementAndGet();
    return first;
  }
}
