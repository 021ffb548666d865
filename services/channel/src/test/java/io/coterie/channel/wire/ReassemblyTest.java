package io.coterie.channel.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.channel.ChannelConfig;
import java.net.URI;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Chunks from a sender who may be hostile. */
class ReassemblyTest {
  private static final ChannelConfig CONFIG =
      ChannelConfig.of(URI.create("https://localhost"), "", new byte[33]);
  private static final long SECOND = 1_000_000_000L;

  private final AtomicLong total = new AtomicLong();
  private final Reassembly reassembly = new Reassembly(CONFIG, total);
  private final byte[] body = body(2500);

  private static byte[] body(int length) {
    byte[] body = new byte[length];
    new Random(length).nextBytes(body);
    return body;
  }

  private Frame.Chunk chunk(int index) throws Exception {
    return (Frame.Chunk) Frame.decode(Frame.chunk(true, 1, index, 1000, body));
  }

  @Test
  void anyOrderGivesTheBody() throws Exception {
    int[][] orders = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    for (int[] order : orders) {
      assertThat(reassembly.add(chunk(order[0]), true, 0)).isNull();
      assertThat(reassembly.add(chunk(order[1]), true, 0)).isNull();
      assertThat(reassembly.add(chunk(order[2]), true, 0)).isEqualTo(body);
      assertThat(reassembly.kept()).isZero();
    }
    assertThat(total).hasValue(0);
  }

  @Test
  void missingChunkExpires() throws Exception {
    reassembly.add(chunk(0), true, 0);
    reassembly.add(chunk(2), true, SECOND);
    assertThat(reassembly.expire(29 * SECOND)).isZero();
    assertThat(reassembly.expire(31 * SECOND)).isEqualTo(1);
    assertThat(reassembly.kept()).isZero();
    assertThat(total).hasValue(0);
    assertThat(reassembly.add(chunk(1), true, 31 * SECOND)).isNull();
  }

  @Test
  void duplicateDropsTheBody() throws Exception {
    reassembly.add(chunk(0), true, 0);
    assertRefused(chunk(0));
    assertThat(reassembly.kept()).isZero();
  }

  @Test
  void senderKeyAndPairwiseDoNotMix() throws Exception {
    reassembly.add(chunk(0), true, 0);
    reassembly.add(chunk(1), true, 0);
    assertThat(reassembly.add(chunk(2), false, 0)).isNull();
  }

  @Test
  void contradictionsAreRefused() throws Exception {
    Frame.Chunk good = chunk(0);
    Frame.Chunk[] bad = {
      new Frame.Chunk(true, 1, 1, 4, 2500, new byte[1000]), // count
      new Frame.Chunk(true, 1, 1, 3, 2600, new byte[1000]), // total
      new Frame.Chunk(false, 1, 1, 3, 2500, new byte[1000]), // flag
      new Frame.Chunk(true, 1, 1, 3, 2500, new byte[999]), // length
      new Frame.Chunk(true, 1, 2, 3, 2500, new byte[499]), // last is too short
      new Frame.Chunk(true, 1, 2, 3, 2500, new byte[501]), // last is too long
      new Frame.Chunk(true, 1, 2, 3, 2500, new byte[2500]), // last is everything
    };
    for (Frame.Chunk chunk : bad) {
      reassembly.add(good, true, 0);
      assertRefused(chunk);
      assertThat(reassembly.kept()).isZero();
    }
    assertThat(total).hasValue(0);
  }

  @Test
  void firstChunkAloneMustBePossible() {
    assertRefused(new Frame.Chunk(true, 1, 0, 3, 2500, new byte[1]));
    assertRefused(new Frame.Chunk(true, 1, 0, 3, 2500, new byte[2499]));
    assertRefused(new Frame.Chunk(true, 1, 0, 2, CONFIG.limits().maxBody() + 1, new byte[1000]));
  }

  @Test
  void oldestBodyGivesWayToTheNewest() throws Exception {
    int max = CONFIG.limits().maxReassemblies();
    for (int i = 0; i <= max; i++) {
      reassembly.add(new Frame.Chunk(true, i, 0, 3, 2500, new byte[1000]), true, 0);
    }
    assertThat(reassembly.kept()).isEqualTo(1000L * max);
    // The first has been forgotten: its second chunk begins anew.
    reassembly.add(new Frame.Chunk(true, 0, 1, 3, 2500, new byte[1000]), true, 0);
    assertThat(reassembly.kept()).isEqualTo(1000L * max);
  }

  @Test
  void allSendersTogetherAreBounded() {
    total.set(CONFIG.limits().maxReassemblyBytes() - 500);
    assertRefused(new Frame.Chunk(true, 1, 0, 3, 2500, new byte[1000]));
    assertThat(total).hasValue(CONFIG.limits().maxReassemblyBytes() - 500);
  }

  private void assertRefused(Frame.Chunk chunk) {
    assertThatThrownBy(() -> reassembly.add(chunk, true, 0))
        .isInstanceOf(Reassembly.RefusedException.class);
  }
}
