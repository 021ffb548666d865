package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.junit.jupiter.api.Test;

/** A channel that the container gives to one connection after another. */
class TurnChannelTest {
  /** Of a channel whose connection has ended. */
  private static final int END = -1;

  private final TurnChannel channel =
      new TurnChannel(new SocketBufferHandler(16, 16, false), new NioEndpoint());

  private int read() throws IOException {
    return channel.read(ByteBuffer.allocate(1));
  }

  @Test
  void a_turn_reads_nothing_more_when_it_is_cut_and_says_so() throws IOException {
    TurnChannel.Turn whole = channel.beginTurn(Long.MAX_VALUE);
    assertThat(read()).isEqualTo(END);
    assertThat(channel.endTurn(whole)).isFalse();
    TurnChannel.Turn cut = channel.beginTurn(Long.MAX_VALUE);
    channel.cutTurn();
    assertThat(read()).isZero();
    assertThat(channel.endTurn(cut)).isTrue();
    channel.cutTurn();
    assertThat(read()).as("nobody would end it").isEqualTo(END);
  }

  @Test
  void the_turn_of_a_connection_that_has_ended_neither_cuts_nor_lifts_that_of_the_next()
      throws IOException {
    TurnChannel.Turn last = channel.beginTurn(0);
    assertThat(read()).isZero();
    channel.reset(null, null);
    assertThat(read()).as("read by the next connection").isEqualTo(END);
    TurnChannel.Turn next = channel.beginTurn(0);
    assertThat(channel.endTurn(last)).isTrue();
    assertThat(read()).isZero();
    assertThat(channel.endTurn(next)).isTrue();
  }
}
