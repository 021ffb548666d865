package io.coterie.messaging.storage;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.queue.Delivery;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.OnlineQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.messaging.queue.SharedContent;
import io.coterie.proto.signal.Envelope;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
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
 * OnlineQueue} has them. Whoever is connected is told as soon as there is something to fetch.
 */
public final class PostgresMessageQueue implements MessageQueue, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PostgresMessageQueue.class);

  /** Acknowledged messages deleted in one transaction. */
  private static final int MAX_DELETES = 1_000;

  /** Ends the deletion; no message has this id. */
  private static final Long END = -1L;

  private final JdbcClient jdbc;
  private final JdbcOperations batch;
  private final TransactionTemplate transaction;
  private final Presence presence;
  private final Clock clock;
  private final Limits limits;
  private final OnlineQueue online;

  /** Acknowledged, and perhaps not deleted yet. */
  private final Set<Long> acknowledged = ConcurrentHashMap.newKeySet();

  private final BlockingQueue<Long> toDelete = new LinkedBlockingQueue<>();
  private final Thread deleter;

  /**
   * @param storedMessages most stored messages that wait for one device
   * @param storedTimeToLive how long a stored message waits to be fetched
   */
  public record Limits(int storedMessages, Duration storedTimeToLive) {}

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
    this.deleter =
        Thread.ofPlatform().name("messaging-acknowledged").start(this::deleteAcknowledged);
  }

  @Override
  public void enqueue(Delivery delivery) {
    if (delivery.online()) {
      online.add(delivery);
    } else {
      transaction.executeWithoutResult(status -> store(delivery));
      for (Delivery.Recipient recipient : delivery.recipients()) {
        presence.storedAvailable(recipient.device());
      }
    }
  }

  private void store(Delivery delivery) {
    for (Delivery.Recipient recipient : delivery.recipients()) {
      if (countStored(recipient.device()) >= limits.storedMessages()) {
        throw new QueueFullException();
      }
    }
    @Nullable Long bodyId =
        delivery.sharedBody() == null
            ? null
            : jdbc.sql("INSERT INTO shared_body (body) VALUES (:body) RETURNING id")
                .param("body", delivery.sharedBody())
                .query(Long.class)
                .single();
    Timestamp now = Timestamp.from(clock.instant());
    // The device may have gone since it was looked up; then nobody is left to read the message.
    batch.batchUpdate(
        """
        INSERT INTO stored_message (aci, device_id, received_at, envelope, shared_body_id,
          recipient_view, traceparent)
        SELECT aci, device_id, ?::timestamptz, ?::bytea, ?::bigint, ?::bytea, ?::text FROM device
        WHERE aci = ? AND device_id = ? FOR KEY SHARE
        """,
        delivery.recipients(),
        delivery.recipients().size(),
        (statement, recipient) -> {
          SharedContent shared = recipient.shared();
          statement.setTimestamp(1, now);
          statement.setBytes(2, recipient.envelope().toByteArray());
          statement.setObject(3, bodyId, Types.BIGINT);
          statement.setBytes(4, shared == null ? null : shared.view());
          statement.setString(5, delivery.traceparent());
          statement.setObject(6, recipient.device().aci());
          statement.setInt(7, recipient.device().deviceId());
        });
  }

  private int countStored(DeviceAddress device) {
    return jdbc.sql(
            """
            SELECT count(*) FROM (SELECT 1 FROM stored_message
              WHERE aci = :aci AND device_id = :device LIMIT :limit) AS waiting
            """)
        .param("aci", device.aci())
        .param("device", device.deviceId())
        .param("limit", limits.storedMessages())
        .query(Integer.class)
        .single();
  }

  @Override
  public Optional<QueuedMessage> takeOnline(DeviceAddress device) {
    return online.take(device);
  }

  @Override
  public List<QueuedMessage> stored(DeviceAddress device, Collection<Long> except, int limit) {
    // Taken before the query: what is deleted meanwhile, the query may still see.
    Set<Long> leftOut = new HashSet<>(except);
    leftOut.addAll(acknowledged);
    return jdbc.sql(
            """
            SELECT m.id, m.envelope, m.recipient_view, m.traceparent, b.body
            FROM stored_message m LEFT JOIN shared_body b ON b.id = m.shared_body_id
            WHERE m.aci = :aci AND m.device_id = :device AND m.id <> ALL (:except)
            ORDER BY m.id LIMIT :limit
            """)
        .param("aci", device.aci())
        .param("device", device.deviceId())
        .param("except", leftOut.toArray(Long[]::new))
        .param("limit", limit)
        .query((row, n) -> message(row))
        .list();
  }

  private static QueuedMessage message(ResultSet row) throws SQLException {
    try {
      Envelope envelope = Envelope.parseFrom(row.getBytes("envelope"));
      byte[] body = row.getBytes("body");
      if (body != null) {
        byte[] content =
            SealedSenderMultiRecipientMessage.messageForRecipient(
                body, row.getBytes("recipient_view"));
        envelope = envelope.toBuilder().setContent(ByteString.copyFrom(content)).build();
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
        LOG.warn("interrupted: acknowledged messages will be delivered again", e);
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

  /** Deletes what was acknowledged before this, and no more. */
  @Override
  public void close() {
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
