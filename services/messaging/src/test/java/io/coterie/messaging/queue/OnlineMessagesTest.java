package io.coterie.messaging.queue;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.proto.signal.Envelope;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.OptionalLong;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class OnlineMessagesTest {
  private static final Duration TIME_TO_LIVE = Duration.ofSeconds(10);

  private Instant now = Instant.EPOCH;
  private final InstantSource source = () -> now;
  private final Clock clock = source.withZone(ZoneOffset.UTC);
  private final OnlineMessages messages = messages(3, 2_000, 1 << 20);

  private OnlineMessages messages(int most, long bytes, long totalBytes) {
    return new OnlineMessages(
        clock, new OnlineMessages.Limits(TIME_TO_LIVE, most, bytes, totalBytes));
  }

  private final DeviceAddress device = new DeviceAddress(UUID.randomUUID(), 1);

  private static QueuedMessage message(String text) {
    return new QueuedMessage(
        OptionalLong.empty(),
        Envelope.newBuilder().setContent(ByteString.copyFromUtf8(text)).build(),
        null,
        null);
  }

  private String take() {
    return messages
        .take(device)
        .map(m -> m.envelope().getContent().toStringUtf8())
        .orElse("nothing");
  }

  @Test
  void gives_messages_in_order_to_their_device_only() {
    messages.add(device, message("a"));
    messages.add(device, message("b"));
    assertThat(messages.take(new DeviceAddress(device.aci(), 2))).isEmpty();
    assertThat(take()).isEqualTo("a");
    assertThat(take()).isEqualTo("b");
    assertThat(take()).isEqualTo("nothing");
    assertThat(messages.depth()).isZero();
  }

  @Test
  void never_gives_a_message_whose_time_is_over() {
    messages.add(device, message("a"));
    now = now.plusSeconds(5);
    messages.add(device, message("b"));
    now = now.plusSeconds(5);
    assertThat(take()).isEqualTo("b");
    messages.add(device, message("c"));
    now = now.plus(TIME_TO_LIVE);
    messages.sweep();
    assertThat(messages.depth()).isZero();
    assertThat(take()).isEqualTo("nothing");
  }

  @Test
  void drops_the_oldest_when_there_are_too_many_or_they_are_too_large() {
    for (String text : new String[] {"a", "b", "c", "d"}) {
      messages.add(device, message(text));
    }
    assertThat(take()).isEqualTo("b");
    messages.add(device, message("x".repeat(900)));
    assertThat(take()).isEqualTo("d");
    assertThat(take()).startsWith("xx");
    assertThat(messages.depth()).isZero();
  }

  @Test
  void forgets_devices_and_accounts() {
    DeviceAddress second = new DeviceAddress(device.aci(), 2);
    DeviceAddress other = new DeviceAddress(UUID.randomUUID(), 1);
    for (DeviceAddress d : new DeviceAddress[] {device, second, other}) {
      messages.add(d, message("a"));
    }
    messages.drop(device);
    assertThat(messages.depth()).isEqualTo(2);
    messages.drop(device.aci());
    assertThat(messages.depth()).isEqualTo(1);
    assertThat(messages.take(other)).isPresent();
  }

  private static DeviceAddress newDevice() {
    return new DeviceAddress(UUID.randomUUID(), 1);
  }

  @Test
  void many_absent_devices_do_not_fill_the_memory_and_cost_others_nothing() {
    OnlineMessages bounded = messages(1_000, 1 << 20, 100_000);
    DeviceAddress honest = newDevice();
    bounded.add(honest, message("first"));
    for (int i = 0; i < 100; i++) {
      DeviceAddress absent = newDevice();
      for (int j = 0; j < 20; j++) {
        bounded.add(absent, message("x".repeat(1_000)));
        assertThat(bounded.bytes()).isLessThanOrEqualTo(100_000);
      }
    }
    bounded.add(honest, message("second"));
    assertThat(bounded.take(honest)).isPresent();
    assertThat(bounded.take(honest)).isPresent();
    assertThat(bounded.depth()).isPositive();
  }

  @Test
  void a_body_that_recipients_share_counts_once_and_is_freed_with_the_last_of_them() {
    OnlineMessages bounded = messages(1_000, 1 << 20, 100_000);
    byte[] body = new byte[50_000];
    for (int i = 0; i < 20; i++) {
      bounded.add(
          new DeviceAddress(device.aci(), i + 1),
          new QueuedMessage(
              OptionalLong.empty(),
              Envelope.getDefaultInstance(),
              new SharedContent(body, new byte[13], 40_000),
              null));
    }
    assertThat(bounded.depth()).isEqualTo(20);
    assertThat(bounded.bytes()).isBetween(50_000L, 65_000L);
    for (int i = 0; i < 19; i++) {
      bounded.drop(new DeviceAddress(device.aci(), i + 1));
    }
    assertThat(bounded.bytes()).isGreaterThan(50_000);
    bounded.drop(device.aci());
    assertThat(bounded.bytes()).isZero();
    assertThat(bounded.depth()).isZero();
  }
}
