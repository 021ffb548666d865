package io.coterie.messaging.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.messaging.TestClient;
import io.coterie.messaging.TestService;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.Delivery;
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
    return new Delivery(
        false,
        null,
        List.of(to).stream()
            .map(
                device ->
                    new Delivery.Recipient(
                        device,
                        Envelope.newBuilder().setContent(ByteString.copyFromUtf8("hello")).build(),
                        null))
            .toList(),
        null);
  }

  private <T> T bean(Class<T> type) {
    return service.context().getBean(type);
  }

  @Test
  void reminds_who_is_connected_of_what_is_stored_and_nobody_else() {
    DeviceAddress waiting = device();
    DeviceAddress away = device();
    DeviceAddress idle = device();
    Noting presence = new Noting();
    try (PostgresMessageQueue queue =
        new PostgresMessageQueue(
            bean(JdbcClient.class),
            bean(JdbcTemplate.class),
            new TransactionTemplate(bean(PlatformTransactionManager.class)),
            bean(OnlineQueue.class),
            presence,
            Clock.systemUTC(),
            new PostgresMessageQueue.Limits(
                10, Duration.ofHours(1), Duration.ofSeconds(1), 1 << 20))) {
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
