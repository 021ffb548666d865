package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.limit.Source;
import jakarta.websocket.CloseReason;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ConnectionMemoryTest {
  private final List<String> closed = new ArrayList<>();
  private final ConnectionMemory memory = new ConnectionMemory(1_000, Runnable::run);

  private ConnectionMemory.Account account(String network, String name) {
    return memory.open(new Source.OfNetwork(network), () -> closed.add(name));
  }

  @Test
  void the_largest_connection_of_the_largest_source_is_closed_and_no_other() {
    ConnectionMemory.Account large = account("a", "large");
    ConnectionMemory.Account small = account("a", "small");
    ConnectionMemory.Account single = account("b", "single");
    large.take(350);
    small.take(200);
    single.take(400);
    assertThat(closed).isEmpty();
    account("c", "late").take(100);
    assertThat(closed).containsExactly("large");
    large.take(5_000);
    assertThat(closed).as("it is closed already").hasSize(1);
  }

  @Test
  void many_small_holders_at_one_source_cost_another_source_nothing() {
    ConnectionMemory.Account honest = account("honest", "honest");
    honest.take(300);
    for (int i = 0; i < 100; i++) {
      account("hostile", "hostile" + i).take(50);
    }
    assertThat(closed).isNotEmpty().doesNotContain("honest");
  }

  @Test
  void released_bytes_are_free() {
    ConnectionMemory.Account account = account("a", "account");
    for (int i = 0; i < 10; i++) {
      account.take(900);
      account.release(900);
    }
    account.take(900);
    account.close();
    account("b", "next").take(900);
    assertThat(closed).isEmpty();
  }

  private OutboundFrames frames(String network, String name) {
    return new OutboundFrames(
        1_000_000,
        account(network, name),
        new PushMemory(1 << 20, 1, Runnable::run, _ -> {}, () -> 0).open(() -> {}, () -> {}),
        Runnable::run,
        new OutboundFrames.Listener() {
          @Override
          public void hasRoom() {}

          @Override
          public void isIdle() {}

          @Override
          public void failed(CloseReason.CloseCode code, String reason) {}
        });
  }

  /** An answer of a few bytes takes hundreds: a client that reads none of them holds those. */
  @Test
  void short_frames_count_with_the_memory_that_they_take() {
    OutboundFrames frames = frames("a", "does not read");
    for (int i = 0; i < 3; i++) {
      assertThat(frames.answer(new byte[1])).isTrue();
    }
    assertThat(closed).isEmpty();
    frames.answer(new byte[1]);
    assertThat(closed).containsExactly("does not read");
  }

  @Test
  void messages_of_others_close_no_receiver() {
    for (int receiver = 0; receiver < 3; receiver++) {
      OutboundFrames frames = frames("network " + receiver, "receiver " + receiver);
      for (int i = 0; i < 40; i++) {
        frames.push(new byte[100]);
      }
    }
    assertThat(closed).isEmpty();
  }
}
