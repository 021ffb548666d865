package io.coterie.messaging.storage;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.coterie.messaging.account.DeviceAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.BiFunction;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;

/**
 * How much more the queues of devices take, in messages and in bytes: of all senders together, and
 * of each that has given its name a part of that. Counting a long queue takes long, so a count is
 * good for some messages: for a share of the room that it has found, because other replicas fill
 * the same room. Messages that are fetched meanwhile only make more. A queue that was full is full
 * for a while.
 */
final class QueueRoom {
  /** So many replicas may fill a queue by the same count. */
  private static final int REPLICAS = 4;

  /** So many named senders fill a queue. */
  static final int SENDERS = 4;

  /** How long a queue that was full is not counted again. */
  static final Duration FULL = Duration.ofSeconds(1);

  private static final int MAX_REMEMBERED = 20_000;

  private final JdbcClient jdbc;
  private final Size most;
  private final LongSupplier nanos;

  private final Cache<Queue, Remembered> counted =
      Caffeine.newBuilder().executor(Runnable::run).maximumSize(MAX_REMEMBERED).build();

  /** Messages and their bytes. */
  record Size(long messages, long bytes) {
    private static final Size NONE = new Size(0, 0);

    private Size plus(Size other) {
      return new Size(messages + other.messages, bytes + other.bytes);
    }

    private Size minus(Size other) {
      return new Size(messages - other.messages, bytes - other.bytes);
    }

    private Size part(int of) {
      return new Size(messages / of, bytes / of);
    }

    /** The part of one named sender: at least one message. */
    private Size ofSender() {
      return new Size(Math.max(1, messages / SENDERS), bytes / SENDERS);
    }

    private boolean holds(Size other) {
      return other.messages <= messages && other.bytes <= bytes;
    }
  }

  /**
   * A message that is to be stored.
   *
   * @param sender null if the sender has not given its name
   */
  record Message(DeviceAddress device, @Nullable UUID sender, long bytes) {
    private List<Queue> queues() {
      Queue all = new Queue(device, null);
      return sender == null ? List.of(all) : List.of(all, new Queue(device, sender));
    }

    private Size size() {
      return new Size(1, bytes);
    }
  }

  /**
   * The messages for a device.
   *
   * @param sender of these messages; null for those of all senders
   */
  private record Queue(DeviceAddress device, @Nullable UUID sender) {}

  /**
   * @param left what the queue takes before it has to be counted again
   * @param isFull whether a message was refused when it was counted
   */
  private record Remembered(Size left, boolean isFull, long sinceNanos) {}

  /**
   * @param most what waits for one device
   * @param nanos monotonic nanoseconds
   */
  QueueRoom(JdbcClient jdbc, Size most, LongSupplier nanos) {
    this.jdbc = jdbc;
    this.most = most;
    this.nanos = nanos;
  }

  /**
   * Takes room for messages, inside the transaction that stores them, from one thread at a time.
   *
   * @return whether there is room for each, in their order
   */
  List<Boolean> take(List<Message> messages) {
    Map<Queue, Size> wanted = new HashMap<>();
    messages.forEach(m -> m.queues().forEach(q -> wanted.merge(q, m.size(), Size::plus)));
    long now = nanos.getAsLong();
    Map<Queue, Size> left = new HashMap<>();
    List<Queue> toCount = new ArrayList<>();
    wanted.forEach(
        (queue, size) -> {
          Remembered known = counted.getIfPresent(queue);
          if (known != null && (known.left().holds(size) || isStillFull(known, now))) {
            left.put(queue, known.left());
          } else {
            toCount.add(queue);
          }
        });
    left.putAll(count(toCount));
    Set<Queue> full = new HashSet<>();
    List<Boolean> taken = messages.stream().map(message -> take(message, left, full)).toList();
    toCount.forEach(
        queue ->
            counted.put(
                queue,
                new Remembered(
                    left.getOrDefault(queue, Size.NONE).part(REPLICAS),
                    full.contains(queue),
                    now)));
    toCount.forEach(left::remove);
    left.forEach((queue, size) -> counted.asMap().computeIfPresent(queue, keeping(size)));
    return taken;
  }

  private static boolean isStillFull(Remembered known, long now) {
    return known.isFull() && now - known.sinceNanos() < FULL.toNanos();
  }

  private static BiFunction<Queue, Remembered, Remembered> keeping(Size left) {
    return (queue, known) -> new Remembered(left, known.isFull(), known.sinceNanos());
  }

  private static boolean take(Message message, Map<Queue, Size> left, Set<Queue> full) {
    List<Queue> without =
        message.queues().stream()
            .filter(queue -> !left.getOrDefault(queue, Size.NONE).holds(message.size()))
            .toList();
    full.addAll(without);
    if (without.isEmpty()) {
      message
          .queues()
          .forEach(queue -> left.computeIfPresent(queue, (q, l) -> l.minus(message.size())));
    }
    return without.isEmpty();
  }

  private Map<Queue, Size> count(List<Queue> queues) {
    Map<Queue, Size> left = new HashMap<>();
    if (queues.isEmpty()) {
      return left;
    }
    jdbc.sql(
            """
            SELECT q.place, w.messages, w.bytes
            FROM unnest(CAST(:acis AS uuid[]), CAST(:devices AS smallint[]),
                CAST(:senders AS uuid[])) WITH ORDINALITY AS q (aci, device_id, sender, place),
              LATERAL (SELECT count(*) AS messages, coalesce(sum(bytes), 0) AS bytes
                FROM (SELECT m.bytes FROM stored_message m
                  WHERE m.aci = q.aci AND m.device_id = q.device_id
                    AND (q.sender IS NULL OR m.sender = q.sender)
                  LIMIT :most) AS waiting) AS w
            """)
        .param("most", most.messages())
        .param("acis", queues.stream().map(q -> q.device().aci().toString()).toArray(String[]::new))
        .param("devices", queues.stream().map(q -> q.device().deviceId()).toArray(Integer[]::new))
        .param("senders", queues.stream().map(QueueRoom::sender).toArray(String[]::new))
        .query(
            row -> {
              Queue queue = queues.get(row.getInt("place") - 1);
              Size waiting = new Size(row.getLong("messages"), row.getLong("bytes"));
              left.put(queue, (queue.sender() == null ? most : most.ofSender()).minus(waiting));
            });
    return left;
  }

  private static @Nullable String sender(Queue queue) {
    return queue.sender() == null ? null : queue.sender().toString();
  }
}
