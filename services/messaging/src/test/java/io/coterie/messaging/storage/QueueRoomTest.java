package io.coterie.messaging.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient;
import io.coterie.messaging.TestService;
import io.coterie.messaging.account.DeviceAddress;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.core.simple.JdbcClient;

class QueueRoomTest {
  private static final int MOST = 40;

  private final TestService service = TestService.shared();
  private final DeviceAddress device = new DeviceAddress(new TestClient(service).party().aci, 1);

  private QueueRoom room() {
    return new QueueRoom(service.context().getBean(JdbcClient.class), MOST);
  }

  private int store(QueueRoom room, int messages) {
    int taken = room.take(Map.of(device, messages)).getOrDefault(device, -1);
    for (int i = 0; i < taken; i++) {
      service.execute(
          "INSERT INTO stored_message (aci, device_id, received_at, envelope)"
              + " VALUES ('%s', 1, now(), '')".formatted(device.aci()));
    }
    return taken;
  }

  @Test
  void replicas_fill_a_queue_together_and_no_further() {
    List<QueueRoom> replicas = List.of(room(), room(), room(), room());
    int stored = 0;
    for (int i = 0; i < 2 * MOST; i++) {
      stored += store(replicas.get(i % replicas.size()), 1);
    }
    assertThat(stored).isEqualTo(MOST);
  }

  @Test
  void a_queue_takes_as_many_of_a_group_as_it_has_room_for_and_more_when_it_is_emptied() {
    QueueRoom room = room();
    assertThat(store(room, MOST - 1)).isEqualTo(MOST - 1);
    assertThat(store(room, 5)).isEqualTo(1);
    assertThat(store(room, 5)).isZero();
    service.execute("DELETE FROM stored_message WHERE aci = '%s'".formatted(device.aci()));
    assertThat(store(room, 5)).isEqualTo(5);
  }

  @Test
  void messages_within_a_count_are_not_counted_again() {
    QueueRoom room = room();
    assertThat(store(room, 4)).isEqualTo(4);
    // As if others had filled the queue: the count of before is still good for some.
    service.execute(
        "INSERT INTO stored_message (aci, device_id, received_at, envelope)"
            + " SELECT '%s', 1, now(), '' FROM generate_series(1, %d)"
                .formatted(device.aci(), MOST));
    assertThat(room.take(Map.of(device, (MOST - 4) / 4))).containsEntry(device, (MOST - 4) / 4);
    assertThat(room.take(Map.of(device, 1))).containsEntry(device, 0);
  }
}
