package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.proto.signal.Envelope;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import jakarta.websocket.CloseReason.CloseCode;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class DeliveryWindowTest implements OutboundFrames.Listener {
  private static final long MOST = 1 << 20;

  private final Deque<QueuedMessage> online = new ArrayDeque<>();
  private final List<String> resumed = new ArrayList<>();
  private final PushMemory memory =
      new PushMemory(MOST, 1, Runnable::run, _ -> {}, System::nanoTime);
  private final OutboundFrames frames =
      new OutboundFrames(
          MOST,
          new ConnectionMemory(MOST, Runnable::run).open(Source.ofRemote("192.0.2.1"), () -> {}),
          memory.open(() -> resumed.add("window"), () -> {}),
          Runnable::run,
          this);
  private final DeliveryWindow window =
      new DeliveryWindow(
          new DeviceAddress(UUID.randomUUID(), 1),
          (MessageQueue)
              Proxy.newProxyInstance(
                  getClass().getClassLoader(),
                  new Class<?>[] {MessageQueue.class},
                  (_, method, _) ->
                      method.getName().equals("takeOnline")
                          ? Optional.ofNullable(online.poll())
                          : null),
          new StoredLoads(MOST),
          frames,
          new MessagingMetrics(new SimpleMeterRegistry()),
          Runnable::run,
          10);

  private void message() {
    online.add(new QueuedMessage(OptionalLong.empty(), Envelope.getDefaultInstance(), null, null));
  }

  @Test
  void who_has_no_message_does_not_wait_for_room() {
    window.start();
    message();
    window.pushOnline();
    PushMemory.Share other = memory.open(() -> {}, () -> {});
    other.take(MOST);
    window.answered(1, true);
    other.release(MOST);
    assertThat(resumed).isEmpty();

    other.take(MOST);
    message();
    window.pushOnline();
    other.release(MOST);
    assertThat(resumed).containsExactly("window");
  }

  @Override
  public void hasRoom() {}

  @Override
  public void isIdle() {}

  @Override
  public void failed(CloseCode code, String reason) {
    throw new AssertionError(reason);
  }
}
