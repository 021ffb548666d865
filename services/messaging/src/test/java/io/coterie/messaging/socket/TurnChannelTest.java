package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.junit.jupiter.api.Test;

/** A channel that the container gives to one connection after another. */
class TurnChannelTest {
  /** Of a channel whose connection has ended. */
  private static final int END = -1;

  private final TurnChannel channel =
      new TurnChannel(new SocketBufferHandler(16, 16, false), new NioEndpoint());

  private int read() {
    try {
      return channel.read(ByteBuffer.allocate(1));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void a_turn_that_is_cut_reads_nothing_more_and_says_so() {
    assertThat(
            TurnChannel.turn(Long.MAX_VALUE, () -> false, () -> assertThat(read()).isEqualTo(END)))
        .isFalse();
    assertThat(
            TurnChannel.turn(
                Long.MAX_VALUE,
                () -> false,
                () -> {
                  TurnChannel.cutTurn();
                  assertThat(read()).isZero();
                }))
        .isTrue();
    TurnChannel.cutTurn();
    assertThat(read()).as("there is no turn to cut").isEqualTo(END);
  }

  @Test
  void a_turn_is_of_its_thread_and_not_of_another_connection_on_the_channel() {
    boolean more =
        TurnChannel.turn(
            0,
            () -> false,
            () -> {
              boolean ofNext =
                  CompletableFuture.supplyAsync(
                          () ->
                              TurnChannel.turn(
                                  1, () -> false, () -> assertThat(read()).isEqualTo(END)))
                      .join();
              assertThat(ofNext).isFalse();
              assertThat(read()).isZero();
            });
    assertThat(more).isTrue();
  }

  @Test
  void a_turn_ends_after_its_bytes_and_after_one_read_if_others_wait() {
    TurnChannel.Turn alone = new TurnChannel.Turn(100, () -> false);
    assertThat(alone.mayRead()).isTrue();
    alone.read(99);
    assertThat(alone.mayRead()).isTrue();
    alone.read(99);
    assertThat(alone.mayRead()).isFalse();
    TurnChannel.Turn oneOfMany = new TurnChannel.Turn(100, () -> true);
    assertThat(oneOfMany.mayRead()).as("each has a turn").isTrue();
    oneOfMany.read(0);
    assertThat(oneOfMany.mayRead()).as("nothing was read").isTrue();
    oneOfMany.read(1);
    assertThat(oneOfMany.mayRead()).isFalse();
  }
}
