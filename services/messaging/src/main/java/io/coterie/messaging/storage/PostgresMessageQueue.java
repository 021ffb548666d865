package io.coterie.messaging.storage;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.Delivery;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.OnlineQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.proto.signal.Envelope;
import java.nio.ByteBuffer;
import java.sql.Array;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.InvalidVersionException;
import org.signal.libsignal.protocol.SealedSenderMultiRecipientMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.core.JdbcOperations;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Stored messages in PostgreSQL, which all replicas share; online messages wherever the {@link
 * OnlineQueue} has them. A connected device is told as soon as there is something to fetch.
 */
public final class PostgresMessageQueue implements MessageQueue, AutoCloseable {
  /** Most bytes of what one statement stores, unless it is one message. */
  private static final int STATEMENT_BYTES = 256 << 10;

  private static final Logger LOG = LoggerFactory.getLogger(PostgresMessageQueue.class);

  /** Acknowledged messages deleted in one transaction. */
  private static final int MAX_DELETES = 1_000;

  /** Ids of bodies that are fetched at once. */
  private static final int BODY_IDS = 1_000;

  /** Ends the deletion; no message has this id. */
  private static final Long END = -1L;

  private final JdbcClient jdbc;
  private final JdbcOperations batch;
  private final TransactionTemplate transaction;
  private final Presence presence;
  private final Clock clock;
  private final Limits limits;
  private final OnlineQueue online;

  /** The room of queues; only the thread that stores uses it. */
  private final QueueRoom room;

  /** Ids for bodies that will be stored, for the thread that stores. */
  private final Queue<Long> bodyIds = new ArrayDeque<>();

  /** Acknowledged, and perhaps not deleted yet. */
  private final Set<Long> acknowledged = ConcurrentHashMap.newKeySet();

  private final BlockingQueue<Long> toDelete = new LinkedBlockingQueue<>();
  private final Thread deleter;
  private final GroupCommit commit;

  /**
   * @param storedMessages most stored messages that wait for one device
   * @param storedBytes most bytes of them
   * @param storedTimeToLive how long a stored message waits to be fetched
   * @param storedWait how long messages may wait to be stored before greedy senders are refused
   * @param storedPending most bytes of messages that wait to be stored
   */
  public record Limits(
      int storedMessages,
      long storedBytes,
      Duration storedTimeToLive,
      Duration storedWait,
      long storedPending) {}

  public PostgresMessageQueue(
      JdbcClient jdbc,
      JdbcOperations batch,
      TransactionTemplate transaction,
      OnlineQueue online,
      Presence presence,
      Clock clock,
      Limits limits) {
    this.jdbc = jdbc;
    this.batch = batch;
    this.transaction = transaction;
    this.online = online;
    this.presence = presence;
    this.clock = clock;
    this.limits = limits;
    this.room =
        new QueueRoom(
            jdbc,
            new QueueRoom.Size(limits.storedMessages(), limits.storedBytes()),
            System::nanoTime);
    this.commit =
        new GroupCommit(
            this::store,
            new GroupCommit.Limits(limits.storedWait(), limits.storedPending()),
            System::nanoTime);
    this.deleter =
        Thread.ofPlatform().name("messaging-acknowledged").start(this::deleteAcknowledged);
  }

  @Override
  public CompletableFuture<Set<DeviceAddress>> enqueue(Delivery delivery, Source source) {
    if (delivery.online()) {
      online.add(delivery);
      return CompletableFuture.completedFuture(Set.of());
    }
    return commit
        .add(delivery, source)
        .thenApply(
            full -> {
              for (Delivery.Recipient recipient : delivery.recipients()) {
                if (!full.contains(recipient.device())) {
                  presence.storedAvailable(recipient.device());
                }
              }
              return full;
            });
  }

  private List<Set<DeviceAddress>> store(List<Delivery> deliveries) {
    return Objects.requireNonNull(
        transaction.execute(status -> storeInTransaction(deliveries)), "a transaction's result");
  }

  private List<Set<DeviceAddress>> storeInTransaction(List<Delivery> deliveries) {
    Iterator<Boolean> hasRoom = room.take(sizes(deliveries)).iterator();
    List<Set<DeviceAddress>> full = new ArrayList<>();
    List<byte[]> bodies = new ArrayList<>();
    List<Row> rows = new ArrayList<>();
    for (Delivery delivery : deliveries) {
      Set<DeviceAddress> refused = new HashSet<>();
      int before = rows.size();
      for (Delivery.Recipient recipient : delivery.recipients()) {
        if (hasRoom.next()) {
          rows.add(
              new Row(recipient, delivery.sharedBody() == null ? -1 : bodies.size(), delivery));
        } else {
          refused.add(recipient.device());
        }
      }
      if (delivery.sharedBody() != null && rows.size() > before) {
        bodies.add(delivery.sharedBody());
      }
      full.add(refused);
    }
    insert(rows, insertBodies(bodies));
    return full;
  }

  /**
   * @param body position of the shared body; -1 if there is none
   */
  private record Row(Delivery.Recipient recipient, int body, Delivery delivery) {}

  /** The messages of all recipients, in their order. */
  private static List<QueueRoom.Message> sizes(List<Delivery> deliveries) {
    return deliveries.stream()
        .flatMap(delivery -> delivery.recipients().stream())
        .map(
            recipient ->
                new QueueRoom.Message(
                    recipient.device(), sender(recipient.envelope()), recipient.bytes()))
        .toList();
  }

  /** Null if the sender has not given its name. */
  private static @Nullable UUID sender(Envelope envelope) {
    if (!envelope.hasSourceServiceId()) {
      return null;
    }
    ByteBuffer aci = envelope.getSourceServiceId().asReadOnlyByteBuffer();
    return new UUID(aci.getLong(), aci.getLong());
  }

  /** The ids of the bodies, in their order. */
  private List<Long> insertBodies(List<byte[]> bodies) {
    if (bodies.isEmpty()) {
      return List.of();
    }
    if (bodyIds.size() < bodies.size()) {
      bodyIds.addAll(
          jdbc.sql(
                  """
                  SELECT nextval(pg_get_serial_sequence('shared_body', 'id'))
                  FROM generate_series(1, :count)
                  """)
              .param("count", Math.max(BODY_IDS, bodies.size()))
              .query((row, n) -> row.getLong(1))
              .list());
    }
    List<Long> ids = new ArrayList<>();
    for (List<byte[]> part : inParts(bodies, body -> body.length)) {
      ids.addAll(insertPart(part));
    }
    return ids;
  }

  private List<Long> insertPart(List<byte[]> bodies) {
    List<Long> ids = new ArrayList<>();
    bodies.forEach(body -> ids.add(bodyIds.remove()));
    batch.update(
        """
        INSERT INTO shared_body (id, body) OVERRIDING SYSTEM VALUE
        SELECT * FROM unnest(?::bigint[], ?::bytea[])
        """,
        statement -> {
          Connection connection = statement.getConnection();
          statement.setArray(1, connection.createArrayOf("bigint", ids.toArray()));
          statement.setArray(2, connection.createArrayOf("bytea", bodies.toArray(byte[][]::new)));
        });
    return ids;
  }

  /**
   * Statements of a group. The driver puts all values of one into one array; larger ones than half
   * of a region of the heap have regions of their own, and a full collection follows.
   */
  private static <T> List<List<T>> inParts(List<T> all, ToIntFunction<T> bytes) {
    List<List<T>> parts = new ArrayList<>();
    int room = 0;
    for (T one : all) {
      int size = bytes.applyAsInt(one);
      if (parts.isEmpty() || size > room) {
        parts.add(new ArrayList<>());
        room = STATEMENT_BYTES;
      }
      parts.getLast().add(one);
      room -= size;
    }
    return parts;
  }

  private void insert(List<Row> rows, List<Long> bodyIds) {
    inParts(rows, row -> row.recipient().envelope().getSerializedSize())
        .forEach(part -> insertPart(part, bodyIds));
  }

  private void insertPart(List<Row> rows, List<Long> bodyIds) {
    Timestamp now = Timestamp.from(clock.instant());
    // The device may have gone since it was looked up; then nobody is left to read the message.
    batch.update(
        """
        INSERT INTO stored_message (aci, device_id, received_at, envelope, shared_body_id,
          recipient_view, traceparent, sender, bytes)
        SELECT d.aci, d.device_id, ?, m.envelope, m.body, m.view, m.traceparent, m.sender, m.bytes
        FROM unnest(?::uuid[], ?::smallint[], ?::bytea[], ?::bigint[], ?::bytea[], ?::text[],
            ?::uuid[], ?::integer[]) WITH ORDINALITY
          AS m (aci, device_id, envelope, body, view, traceparent, sender, bytes, position)
        JOIN device d ON d.aci = m.aci AND d.device_id = m.device_id
        ORDER BY m.position FOR KEY SHARE OF d
        """,
        statement -> {
          Connection connection = statement.getConnection();
          statement.setTimestamp(1, now);
          statement.setArray(2, array(connection, "uuid", rows, r -> r.recipient().device().aci()));
          statement.setArray(
              3, array(connection, "smallint", rows, r -> r.recipient().device().deviceId()));
          statement.setArray(
              4, bytes(connection, rows, r -> r.recipient().envelope().toByteArray()));
          statement.setArray(
              5,
              array(connection, "bigint", rows, r -> r.body() < 0 ? null : bodyIds.get(r.body())));
          statement.setArray(
              6,
              bytes(
                  connection,
                  rows,
                  r -> r.recipient().shared() == null ? null : r.recipient().shared().view()));
          statement.setArray(7, array(connection, "text", rows, r -> r.delivery().traceparent()));
          statement.setArray(
              8, array(connection, "uuid", rows, r -> sender(r.recipient().envelope())));
          statement.setArray(9, array(connection, "integer", rows, r -> r.recipient().bytes()));
        });
  }

  private static Array array(
      Connection connection, String type, List<Row> rows, Function<Row, @Nullable Object> column)
      throws SQLException {
    return connection.createArrayOf(type, rows.stream().map(column).toArray());
  }

  /** The driver takes bytes in an array of arrays of bytes only. */
  private static Array bytes(
      Connection connection, List<Row> rows, Function<Row, byte @Nullable []> column)
      throws SQLException {
    return connection.createArrayOf("bytea", rows.stream().map(column).toArray(byte[][]::new));
  }

  @Override
  public Optional<QueuedMessage> takeOnline(DeviceAddress device) {
    return online.take(device);
  }

  @Override
  public Loaded stored(DeviceAddress device, Collection<Long> except, int limit, long bytes) {
    // Taken before the query, which may still see messages that are deleted meanwhile.
    Set<Long> leftOut = new HashSet<>(except);
    leftOut.addAll(acknowledged);
    // Sizes are known without the bytes, which only messages within the bound are asked for.
    List<Candidate> candidates =
        jdbc.sql(
                """
                SELECT id, size, total, candidates, recipient_view, traceparent,
                  CASE WHEN total <= :bytes THEN envelope END AS envelope,
                  CASE WHEN total <= :bytes THEN body END AS body
                FROM (
                  SELECT *, sum(size) OVER (ORDER BY id) AS total, count(*) OVER () AS candidates,
                    row_number() OVER (ORDER BY id) AS place
                  FROM (
                    SELECT m.id, m.envelope, m.recipient_view, m.traceparent, b.body,
                      octet_length(m.envelope) + coalesce(octet_length(b.body), 0) AS size
                    FROM stored_message m LEFT JOIN shared_body b ON b.id = m.shared_body_id
                    WHERE m.aci = :aci AND m.device_id = :device AND m.id <> ALL (:except)
                    ORDER BY m.id LIMIT :limit) AS oldest) AS sized
                WHERE total <= :bytes OR place = 1 ORDER BY id
                """)
            .param("aci", device.aci())
            .param("device", device.deviceId())
            .param("except", leftOut.toArray(Long[]::new))
            .param("limit", limit)
            .param("bytes", bytes)
            .query((row, n) -> candidate(row, bytes))
            .list();
    if (candidates.isEmpty()) {
      return new Loaded(List.of(), false, 0);
    }
    Candidate first = candidates.getFirst();
    List<QueuedMessage> messages = candidates.stream().flatMap(c -> c.message().stream()).toList();
    return new Loaded(
        messages,
        messages.size() < first.of() || first.of() == limit,
        first.message().isPresent() ? 0 : first.size());
  }

  /**
   * @param of how many messages were looked at
   * @param message empty if it has too many bytes
   */
  private record Candidate(long size, int of, Optional<QueuedMessage> message) {}

  private static Candidate candidate(ResultSet row, long bytes) throws SQLException {
    return new Candidate(
        row.getLong("size"),
        row.getInt("candidates"),
        row.getLong("total") <= bytes ? Optional.of(message(row)) : Optional.empty());
  }

  private static QueuedMessage message(ResultSet row) throws SQLException {
    try {
      Envelope envelope = Envelope.parseFrom(row.getBytes("envelope"));
      byte[] body = row.getBytes("body");
      if (body != null) {
        byte[] content =
            SealedSenderMultiRecipientMessage.messageForRecipient(
                body, row.getBytes("recipient_view"));
        envelope =
            envelope.toBuilder().setContent(UnsafeByteOperations.unsafeWrap(content)).build();
      }
      return new QueuedMessage(
          OptionalLong.of(row.getLong("id")), envelope, null, row.getString("traceparent"));
    } catch (InvalidProtocolBufferException | InvalidVersionException e) {
      throw new IllegalStateException("stored message " + row.getLong("id") + " is damaged", e);
    }
  }

  @Override
  public void acknowledge(long storedId) {
    acknowledged.add(storedId);
    toDelete.add(storedId);
  }

  /** Deletes acknowledged messages, as many at once as have come together meanwhile. */
  private void deleteAcknowledged() {
    List<Long> ids = new ArrayList<>();
    boolean last = false;
    while (!last) {
      try {
        ids.add(toDelete.take());
      } catch (InterruptedException e) {
        LOG.warn("the queue was interrupted, so acknowledged messages are delivered again", e);
        return;
      }
      toDelete.drainTo(ids, MAX_DELETES - 1);
      last = ids.remove(END);
      if (!ids.isEmpty()) {
        delete(ids);
      }
      ids.clear();
    }
  }

  private void delete(List<Long> ids) {
    Long[] messages = ids.toArray(Long[]::new);
    try {
      transaction.executeWithoutResult(
          status -> {
            Long[] bodies =
                jdbc
                    .sql(
                        "DELETE FROM stored_message WHERE id = ANY (:ids) RETURNING shared_body_id")
                    .param("ids", messages)
                    .query((row, n) -> Optional.ofNullable(row.getObject(1, Long.class)))
                    .list()
                    .stream()
                    .flatMap(Optional::stream)
                    .distinct()
                    .toArray(Long[]::new);
            jdbc.sql(
                    """
                    DELETE FROM shared_body b WHERE id = ANY (:ids)
                      AND NOT EXISTS (SELECT 1 FROM stored_message m WHERE m.shared_body_id = b.id)
                    """)
                .param("ids", bodies)
                .update();
          });
    } catch (RuntimeException e) {
      LOG.warn("{} acknowledged messages stay stored and will be delivered again", ids.size(), e);
    } finally {
      ids.forEach(acknowledged::remove);
    }
  }

  /** Stores what was taken over and deletes what was acknowledged before this, and no more. */
  @Override
  public void close() {
    commit.close();
    toDelete.add(END);
    try {
      deleter.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void dropOnline(DeviceAddress device) {
    online.drop(device);
  }

  @Override
  public void dropOnline(UUID aci) {
    online.drop(aci);
  }

  /** Frees the memory of online messages that have expired. */
  public void sweepOnline() {
    online.sweep();
  }

  /** Deletes stored messages that have expired, and bodies that no message refers to. */
  public void sweepStored() {
    jdbc.sql("DELETE FROM stored_message WHERE received_at < :before")
        .param("before", Timestamp.from(clock.instant().minus(limits.storedTimeToLive())))
        .update();
    jdbc.sql(
            """
            DELETE FROM shared_body b
            WHERE NOT EXISTS (SELECT 1 FROM stored_message m WHERE m.shared_body_id = b.id)
            """)
        .update();
  }

  /**
   * Tells devices that are connected here of stored messages that wait for them. They know already,
   * unless whoever stored the message could not tell this replica.
   */
  public void remindConnected() {
    List<DeviceAddress> connected = List.copyOf(presence.connectedHere());
    if (connected.isEmpty()) {
      return;
    }
    // One look into the index for each, however much is stored for those that are away.
    jdbc.sql(
            """
            SELECT c.aci, c.device_id
            FROM unnest(CAST(:acis AS uuid[]), CAST(:devices AS smallint[])) AS c (aci, device_id)
            WHERE EXISTS (SELECT 1 FROM stored_message m
              WHERE m.aci = c.aci AND m.device_id = c.device_id)
            """)
        .param("acis", connected.stream().map(d -> d.aci().toString()).toArray(String[]::new))
        .param("devices", connected.stream().map(DeviceAddress::deviceId).toArray(Integer[]::new))
        .query((row, n) -> new DeviceAddress(row.getObject(1, UUID.class), row.getInt(2)))
        .list()
        .forEach(presence::storedAvailable);
  }

  /** Online messages that wait in the memory of this replica. */
  public long onlineDepth() {
    return online.depth();
  }

  /** Stored messages that wait. */
  public long storedDepth() {
    return jdbc.sql("SELECT count(*) FROM stored_message").query(Long.class).single();
  }
}
