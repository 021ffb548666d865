package io.coterie.messaging.queue;

import io.coterie.messaging.account.DeviceAddress;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.UUID;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Online messages that nobody has fetched yet: in memory, dropped when their time is over, bounded
 * for each device and over all devices. A body that several messages share counts once. When there
 * is no room for all, the longest queues give way, so that nobody loses messages because of what
 * waits for others.
 *
 * <p>A lock that holds for a few steps in memory orders all uses.
 */
public final class OnlineMessages {
  /** Estimated bytes of a message's objects besides the bytes that it carries. */
  private static final int OBJECT_BYTES = 512;

  private final Clock clock;
  private final Limits limits;

  // Guarded by this.
  private final Map<DeviceAddress, Waiting> byDevice = new HashMap<>();

  /** Queues by the position of the highest bit of their size: those in the last are longest. */
  private final List<SequencedSet<Waiting>> bySize =
      Stream.<SequencedSet<Waiting>>generate(LinkedHashSet::new).limit(Long.SIZE).toList();

  /** How many messages refer to each shared body. */
  private final Map<byte[], Integer> bodies = new IdentityHashMap<>();

  private long depth;
  private long bytes;

  /**
   * @param timeToLive how long a message waits
   * @param messages most messages that wait for one device
   * @param bytes most bytes that wait for one device
   * @param totalBytes most bytes that wait for all devices
   */
  public record Limits(Duration timeToLive, int messages, long bytes, long totalBytes) {}

  public OnlineMessages(Clock clock, Limits limits) {
    this.clock = clock;
    this.limits = limits;
  }

  private record Entry(QueuedMessage message, Instant deadline) {
    /** Bytes that only this message needs. */
    long ownBytes() {
      return OBJECT_BYTES + message.envelope().getSerializedSize();
    }

    /** Bytes of the message as its device would get it. */
    long bytes() {
      return ownBytes() + (message.shared() == null ? 0 : message.shared().size());
    }
  }

  private static final class Waiting {
    final DeviceAddress device;
    final Deque<Entry> entries = new ArrayDeque<>();
    long bytes;

    Waiting(DeviceAddress device) {
      this.device = device;
    }
  }

  /** Adds a message; if there is no room, the oldest go, because the newest have the most time. */
  public void add(DeviceAddress device, QueuedMessage message) {
    add(device, message, clock.instant().plus(limits.timeToLive()));
  }

  /** Like {@link #add(DeviceAddress, QueuedMessage)}, to be dropped at the deadline. */
  public synchronized void add(DeviceAddress device, QueuedMessage message, Instant deadline) {
    Entry entry = new Entry(message, deadline);
    Waiting waiting = byDevice.computeIfAbsent(device, Waiting::new);
    dropExpired(waiting);
    while (!waiting.entries.isEmpty()
        && (waiting.entries.size() >= limits.messages()
            || waiting.bytes + entry.bytes() > limits.bytes())) {
      removeFirst(waiting);
    }
    resize(waiting, entry.bytes());
    waiting.entries.addLast(entry);
    depth++;
    bytes += entry.ownBytes();
    SharedContent shared = message.shared();
    if (shared != null && bodies.merge(shared.body(), 1, Integer::sum) == 1) {
      bytes += shared.body().length;
    }
    while (bytes > limits.totalBytes()) {
      Waiting longest = longest();
      removeFirst(longest);
      forgetIfEmpty(longest);
    }
  }

  /** Takes the oldest message that is still in time. */
  public synchronized Optional<QueuedMessage> take(DeviceAddress device) {
    Waiting waiting = byDevice.get(device);
    if (waiting == null) {
      return Optional.empty();
    }
    dropExpired(waiting);
    Optional<QueuedMessage> taken =
        waiting.entries.isEmpty() ? Optional.empty() : Optional.of(removeFirst(waiting).message());
    forgetIfEmpty(waiting);
    return taken;
  }

  /** Forgets the messages of a device. */
  public synchronized void drop(DeviceAddress device) {
    Waiting waiting = byDevice.get(device);
    if (waiting != null) {
      while (!waiting.entries.isEmpty()) {
        removeFirst(waiting);
      }
      forgetIfEmpty(waiting);
    }
  }

  /** Forgets the messages of all devices of an account. */
  public synchronized void drop(UUID aci) {
    byDevice.keySet().stream().filter(d -> d.aci().equals(aci)).toList().forEach(this::drop);
  }

  /** Frees what has expired. Nothing expired is ever delivered, swept or not. */
  public synchronized void sweep() {
    for (Waiting waiting : new ArrayList<>(byDevice.values())) {
      dropExpired(waiting);
      forgetIfEmpty(waiting);
    }
  }

  /** Messages that wait, of all devices. */
  public synchronized long depth() {
    return depth;
  }

  /** Estimated bytes of the messages that wait. */
  public synchronized long bytes() {
    return bytes;
  }

  private Waiting longest() {
    for (SequencedSet<Waiting> queues : bySize.reversed()) {
      if (!queues.isEmpty()) {
        return queues.getFirst();
      }
    }
    throw new IllegalStateException("bytes without a message");
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
    resize(waiting, -first.bytes());
    depth--;
    bytes -= first.ownBytes();
    SharedContent shared = first.message().shared();
    if (shared != null && bodies.merge(shared.body(), -1, OnlineMessages::sumOrNone) == null) {
      bytes -= shared.body().length;
    }
    return first;
  }

  /** Null, which removes the entry, instead of zero. */
  private static @Nullable Integer sumOrNone(int uses, int more) {
    return uses + more == 0 ? null : Integer.valueOf(uses + more);
  }

  private void resize(Waiting waiting, long moreBytes) {
    int before = sizeClass(waiting.bytes);
    waiting.bytes += moreBytes;
    int after = sizeClass(waiting.bytes);
    if (before != after || !bySize.get(after).contains(waiting)) {
      bySize.get(before).remove(waiting);
      bySize.get(after).add(waiting);
    }
  }

  private void forgetIfEmpty(Waiting waiting) {
    if (waiting.entries.isEmpty()) {
      bySize.get(sizeClass(waiting.bytes)).remove(waiting);
      byDevice.remove(waiting.device);
    }
  }

  private static int sizeClass(long size) {
    return Long.SIZE - 1 - Long.numberOfLeadingZeros(size | 1);
  }
}
