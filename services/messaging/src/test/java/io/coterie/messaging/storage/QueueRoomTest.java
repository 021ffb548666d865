package io.coterie.messaging.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient;
import io.coterie.messaging.TestService;
import io.coterie.messaging.account.DeviceAddress;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.core.simple.JdbcClient;

class QueueRoomTest {
  private static final int MOST = 40;
  private static final int BYTES = 100;

  private final TestService service = TestService.shared();
  private final DeviceAddress device = new DeviceAddress(new TestClient(service).party().aci, 1);
  private long nanos;

  private QueueRoom room() {
    return room(MOST * BYTES);
  }

  private QueueRoom room(long bytes) {
    return new QueueRoom(
        service.context().getBean(JdbcClient.class), new QueueRoom.Size(MOST, bytes), () -> nanos);
  }

  private int take(QueueRoom room, int messages, UUID sender) {
    return Collections.frequency(
        room.take(Collections.nCopies(messages, new QueueRoom.Message(device, sender, BYTES))),
        true);
  }

  private int store(QueueRoom room, int messages) {
    return store(room, messages, null);
  }

  private int store(QueueRoom room, int messages, UUID sender) {
    int taken = take(room, messages, sender);
    fill(taken, sender);
    return taken;
  }

  private void fill(int messages, UUID sender) {
    service.execute(
        ("INSERT INTO stored_message (aci, device_id, received_at, envelope, sender, bytes)"
                + " SELECT '%s', 1, now(), '', %s, %d FROM generate_series(1, %d)")
            .formatted(
                device.aci(), sender == null ? "NULL" : "'" + sender + "'", BYTES, messages));
  }

  private void empty() {
    service.execute("DELETE FROM stored_message WHERE aci = '%s'".formatted(device.aci()));
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
    empty();
    nanos += QueueRoom.FULL.toNanos();
    assertThat(store(room, 5)).isEqualTo(5);
  }

  @Test
  void messages_within_a_count_are_not_counted_again() {
    QueueRoom room = room();
    assertThat(store(room, 4)).isEqualTo(4);
    // As if others had filled the queue: the count of before is still good for some.
    fill(MOST, null);
    assertThat(take(room, (MOST - 4) / 4, null)).isEqualTo((MOST - 4) / 4);
    assertThat(take(room, 1, null)).isZero();
  }

  @Test
  void a_full_queue_is_not_counted_again_for_a_while() {
    QueueRoom room = room();
    fill(MOST, null);
    assertThat(take(room, 1, null)).isZero();
    empty();
    nanos += QueueRoom.FULL.toNanos() - 1;
    assertThat(take(room, 1, null)).as("as it was counted").isZero();
    nanos += 1;
    assertThat(take(room, 1, null)).isEqualTo(1);
  }

  @Test
  void a_queue_takes_no_more_bytes_than_its_limit_however_few_the_messages() {
    QueueRoom room = room(10 * BYTES + BYTES / 2);
    assertThat(store(room, 12)).isEqualTo(10);
    assertThat(store(room, 1)).isZero();
  }

  @Test
  void one_named_sender_fills_its_part_of_a_queue_and_leaves_the_rest_to_others() {
    QueueRoom room = room();
    UUID greedy = UUID.randomUUID();
    assertThat(store(room, MOST, greedy)).isEqualTo(MOST / QueueRoom.SENDERS);
    assertThat(store(room, 1, greedy)).isZero();
    assertThat(store(room, 3, UUID.randomUUID())).isEqualTo(3);
    assertThat(store(room, MOST)).isEqualTo(MOST - MOST / QueueRoom.SENDERS - 3);
  }

  @Test
  void one_named_sender_fills_its_part_of_the_bytes_of_a_queue() {
    QueueRoom room = room(20 * BYTES);
    assertThat(store(room, MOST, UUID.randomUUID())).isEqualTo(20 / QueueRoom.SENDERS);
    assertThat(store(room, MOST)).isEqualTo(20 - 20 / QueueRoom.SENDERS);
  }
}
