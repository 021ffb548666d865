package io.coterie.messaging.storage;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.coterie.messaging.account.DeviceAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.springframework.jdbc.core.simple.JdbcClient;

/**
 * How many more messages the queues of devices take. Counting a long queue takes long, so a count
 * is good for some messages: for a share of the room that it has found, because other replicas fill
 * the same room. Messages that are fetched meanwhile only make more.
 */
final class QueueRoom {
  /** So many replicas may fill a queue by the same count. */
  private static final int REPLICAS = 4;

  private static final int MAX_REMEMBERED = 100_000;

  private final JdbcClient jdbc;
  private final int storedMessages;

  /** Messages that a device's queue takes before it has to be counted again. */
  private final Cache<DeviceAddress, Integer> counted =
      Caffeine.newBuilder().executor(Runnable::run).maximumSize(MAX_REMEMBERED).build();

  /**
   * @param storedMessages most messages that wait for one device
   */
  QueueRoom(JdbcClient jdbc, int storedMessages) {
    this.jdbc = jdbc;
    this.storedMessages = storedMessages;
  }

  /**
   * Takes room for messages, inside the transaction that stores them, from one thread at a time.
   *
   * @param wanted messages for each device
   * @return how many of them its queue takes
   */
  Map<DeviceAddress, Integer> take(Map<DeviceAddress, Integer> wanted) {
    Map<DeviceAddress, Integer> taken = new HashMap<>();
    List<DeviceAddress> toCount = new ArrayList<>();
    wanted.forEach(
        (device, messages) -> {
          Integer left = counted.getIfPresent(device);
          if (left != null && left >= messages) {
            counted.put(device, left - messages);
            taken.put(device, messages);
          } else {
            toCount.add(device);
          }
        });
    if (!toCount.isEmpty()) {
      count(toCount)
          .forEach(
              (device, waiting) -> {
                int room = Math.max(0, storedMessages - waiting);
                int messages = Math.min(room, wanted.getOrDefault(device, 0));
                counted.put(device, (room - messages) / REPLICAS);
                taken.put(device, messages);
              });
    }
    return taken;
  }

  private Map<DeviceAddress, Integer> count(List<DeviceAddress> devices) {
    Map<DeviceAddress, Integer> waiting = new HashMap<>();
    jdbc.sql(
            """
            SELECT d.aci, d.device_id,
              (SELECT count(*) FROM (SELECT 1 FROM stored_message m
                WHERE m.aci = d.aci AND m.device_id = d.device_id LIMIT :most) AS waiting)
            FROM unnest(CAST(:acis AS uuid[]), CAST(:devices AS smallint[])) AS d (aci, device_id)
            """)
        .param("most", storedMessages)
        .param("acis", devices.stream().map(d -> d.aci().toString()).toArray(String[]::new))
        .param("devices", devices.stream().map(DeviceAddress::deviceId).toArray(Integer[]::new))
        .query(
            row -> {
              waiting.put(
                  new DeviceAddress(row.getObject(1, UUID.class), row.getInt(2)), row.getInt(3));
            });
    return waiting;
  }
}
