package io.coterie.messaging.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.messaging.TestClient;
import io.coterie.messaging.TestService;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.Delivery;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.OnlineQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.proto.signal.Envelope;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** The behaviour of the queue that calls of clients do not show. */
class PostgresMessageQueueTest {
  private static final Source SOURCE = new Source.OfNetwork("192.0.2.1");

  private final TestService service = TestService.shared();

  /** Some devices are connected; notes who is told of stored messages. */
  private static final class Noting implements Presence {
    private final List<DeviceAddress> told = new CopyOnWriteArrayList<>();
    private volatile Set<DeviceAddress> connected = Set.of();

    @Override
    public void connect(DeviceAddress device, Subscriber subscriber) {}

    @Override
    public void disconnect(DeviceAddress device, Subscriber subscriber) {}

    @Override
    public void storedAvailable(DeviceAddress device) {
      told.add(device);
    }

    @Override
    public Set<DeviceAddress> connectedHere() {
      return connected;
    }

    @Override
    public boolean available() {
      return true;
    }

    @Override
    public void revoke(DeviceAddress device) {}

    @Override
    public void revoke(UUID aci) {}
  }

  private DeviceAddress device() {
    TestClient.Party party = new TestClient(service).party();
    return new DeviceAddress(party.aci, 1);
  }

  private static Delivery message(DeviceAddress... to) {
    return message(5, to);
  }

  private static Delivery message(int size, DeviceAddress... to) {
    return new Delivery(
        false,
        null,
        List.of(to).stream()
            .map(
                device ->
                    new Delivery.Recipient(
                        device,
                        Envelope.newBuilder()
                            .setContent(ByteString.copyFrom(new byte[size]))
                            .build(),
                        null))
            .toList(),
        null);
  }

  private <T> T bean(Class<T> type) {
    return service.context().getBean(type);
  }

  private PostgresMessageQueue queue(Presence presence) {
    return new PostgresMessageQueue(
        bean(JdbcClient.class),
        bean(JdbcTemplate.class),
        new TransactionTemplate(bean(PlatformTransactionManager.class)),
        bean(OnlineQueue.class),
        presence,
        Clock.systemUTC(),
        new PostgresMessageQueue.Limits(
            10, 1 << 20, Duration.ofHours(1), Duration.ofSeconds(1), 1 << 20));
  }

  private static List<Integer> sizes(MessageQueue.Loaded loaded) {
    return loaded.messages().stream().map(m -> m.envelope().getContent().size()).toList();
  }

  @Test
  void loads_no_more_bytes_than_it_is_asked_for_and_says_what_is_left() {
    DeviceAddress device = device();
    try (PostgresMessageQueue queue = queue(new Noting())) {
      for (int size : new int[] {1_000, 2_000, 50_000, 10}) {
        queue.enqueue(message(size, device), SOURCE).join();
      }
      MessageQueue.Loaded two = queue.stored(device, List.of(), 64, 4_000);
      assertThat(sizes(two)).containsExactly(1_000, 2_000);
      assertThat(two.more()).isTrue();
      assertThat(two.larger()).isZero();
      List<Long> got = two.messages().stream().map(m -> m.storedId().getAsLong()).toList();
      MessageQueue.Loaded none = queue.stored(device, got, 64, 4_000);
      assertThat(none.messages()).isEmpty();
      assertThat(none.more()).isTrue();
      assertThat(none.larger()).isBetween(50_000L, 50_100L);
      MessageQueue.Loaded large = queue.stored(device, got, 64, none.larger());
      assertThat(sizes(large)).containsExactly(50_000);
      MessageQueue.Loaded rest = queue.stored(device, got, 64, 100_000);
      assertThat(sizes(rest)).containsExactly(50_000, 10);
      assertThat(rest.more()).isFalse();
      assertThat(queue.stored(device, List.of(), 2, 100_000).more()).isTrue();
    }
  }

  @Test
  void reminds_who_is_connected_of_what_is_stored_and_nobody_else() {
    DeviceAddress waiting = device();
    DeviceAddress away = device();
    DeviceAddress idle = device();
    Noting presence = new Noting();
    try (PostgresMessageQueue queue = queue(presence)) {
      queue.enqueue(message(waiting, away), SOURCE).join();
      queue.enqueue(message(waiting), SOURCE).join();
      presence.told.clear();

      queue.remindConnected();
      assertThat(presence.told).isEmpty();
      presence.connected = Set.of(waiting, idle);
      queue.remindConnected();
      assertThat(presence.told).containsExactly(waiting);
    }
  }
}
