package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.limit.Source;
import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.RemoteEndpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
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
            TurnChannel.turn(Long.MAX_VALUE, () -> false, () -> assertThat(read()).isEqualTo(END))
                .more())
        .isFalse();
    assertThat(
            TurnChannel.turn(
                    Long.MAX_VALUE,
                    () -> false,
                    () -> {
                      TurnChannel.cutTurn();
                      assertThat(read()).isZero();
                    })
                .more())
        .isTrue();
    TurnChannel.cutTurn();
    assertThat(read()).as("there is no turn to cut").isEqualTo(END);
  }

  /** Whether the channel, which has no connection to write to, has kept a frame. */
  private static boolean keeps(TurnChannel channel) {
    try {
      return channel.write(new ByteBuffer[] {ByteBuffer.allocate(100)}, 0, 1) == 100;
    } catch (IOException e) {
      return false;
    }
  }

  @Test
  void few_channels_keep_frames_at_once() throws IOException {
    List<TurnChannel> channels =
        Stream.generate(
                () -> new TurnChannel(new SocketBufferHandler(16, 16, false), new NioEndpoint()))
            .limit(2 * TurnChannel.MAX_KEEPING)
            .toList();
    List<TurnChannel> keeping = new ArrayList<>();
    whileMoreIsToCome(() -> channels.stream().filter(TurnChannelTest::keeps).forEach(keeping::add));
    assertThat(keeping).hasSizeBetween(1, TurnChannel.MAX_KEEPING);
    keeping.getFirst().close();
    whileMoreIsToCome(() -> assertThat(keeps(channels.getLast())).isTrue());
    for (TurnChannel one : channels) {
      one.close();
    }
  }

  /** Does something when a frame is written and another one waits. */
  private static void whileMoreIsToCome(Runnable work) {
    OutboundFrames frames =
        new OutboundFrames(
            1 << 20,
            new ConnectionMemory(1 << 20, Runnable::run)
                .open(Source.ofRemote("192.0.2.1"), () -> {}),
            new PushMemory(1 << 20, 1, Runnable::run, _ -> {}, () -> 0).open(() -> {}, () -> {}),
            Runnable::run,
            new OutboundFrames.Listener() {
              @Override
              public void hasRoom() {}

              @Override
              public void isIdle() {}

              @Override
              public void failed(CloseCode code, String reason) {}
            });
    frames.push(new byte[1]);
    frames.push(new byte[1]);
    frames.open(
        (RemoteEndpoint.Async)
            Proxy.newProxyInstance(
                TurnChannelTest.class.getClassLoader(),
                new Class<?>[] {RemoteEndpoint.Async.class},
                (_, _, _) -> {
                  work.run();
                  return null;
                }));
    frames.write();
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
                                          1, () -> false, () -> assertThat(read()).isEqualTo(END))
                                      .more())
                          .join();
                  assertThat(ofNext).isFalse();
                  assertThat(read()).isZero();
                })
            .more();
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
