package io.coterie.channel.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FrameTest {
  private static final Frame.Hello HELLO =
      new Frame.Hello(
          0x0102030405060708L,
          9,
          true,
          true,
          HexFormat.of().parseHex("a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"),
          List.of(new UUID(1, 2)),
          List.of(new byte[] {1, 2, 3}, new byte[] {4}));

  private static final String TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  private static final Frame.Part SMALL = new Frame.Part(new byte[] {7}, null);

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 155, 156, 157, 1000, 4096, 65_536})
  void bodyComesBack(int length) throws Exception {
    byte[] data = new byte[length];
    new Random(length).nextBytes(data);
    Frame.Body body = (Frame.Body) Frame.decode(Frame.body(true, data));
    assertThat(body.broadcast()).isTrue();
    assertThat(body.data()).isEqualTo(data);
    assertThat(((Frame.Body) Frame.decode(Frame.body(false, data))).broadcast()).isFalse();
  }

  @Test
  void bodyOfZeroesComesBack() throws Exception {
    assertThat(((Frame.Body) Frame.decode(Frame.body(true, new byte[500]))).data())
        .isEqualTo(new byte[500]);
  }

  @Test
  void chunksComeBack() throws Exception {
    byte[] data = new byte[2500];
    new Random(1).nextBytes(data);
    byte[] joined = new byte[2500];
    for (int i = 0; i < 3; i++) {
      Frame.Chunk chunk = (Frame.Chunk) Frame.decode(Frame.chunk(true, 77, i, 1000, data));
      assertThat(chunk.message()).isEqualTo(77);
      assertThat(chunk.index()).isEqualTo(i);
      assertThat(chunk.count()).isEqualTo(3);
      assertThat(chunk.total()).isEqualTo(2500);
      System.arraycopy(chunk.data(), 0, joined, i * 1000, chunk.data().length);
    }
    assertThat(joined).isEqualTo(data);
  }

  @Test
  void bodiesThatLeftTogetherComeBackInOrder() throws Exception {
    Frame.Batch batch =
        (Frame.Batch)
            Frame.decode(
                Frame.batch(
                    true,
                    List.of(
                        new Frame.Part(new byte[] {1, 2}, TRACE),
                        new Frame.Part(new byte[0], null),
                        new Frame.Part(new byte[500], "no trace context"))));
    assertThat(batch.broadcast()).isTrue();
    assertThat(batch.parts())
        .extracting(Frame.Part::traceparent)
        .containsExactly(TRACE, null, null);
    assertThat(batch.parts())
        .extracting(Frame.Part::data)
        .containsExactly(new byte[] {1, 2}, new byte[0], new byte[500]);
  }

  @Test
  void helloComesBack() throws Exception {
    Frame.Hello hello = (Frame.Hello) Frame.decode(Frame.hello(HELLO));
    assertThat(hello.incarnation()).isEqualTo(HELLO.incarnation());
    assertThat(hello.sequence()).isEqualTo(9);
    assertThat(hello.confirm()).isTrue();
    assertThat(hello.asks()).isTrue();
    assertThat(hello.accessKey()).isEqualTo(HELLO.accessKey());
    assertThat(hello.holds()).containsExactly(new UUID(1, 2));
    assertThat(hello.distributions()).containsExactly(new byte[] {1, 2, 3}, new byte[] {4});
    assertThat(Frame.decode(Frame.heartbeat())).isEqualTo(new Frame.Heartbeat());
    assertThat(Frame.decode(Frame.farewell(-7))).isEqualTo(new Frame.Farewell(-7));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 15, 17})
  void helloWithAnAccessKeyOfAnotherLengthIsRefused(int length) {
    assertThatThrownBy(
            () -> new Frame.Hello(1, 1, false, false, new byte[length], List.of(), List.of()))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** The layout is a wire contract between versions. */
  @Test
  void bytesDoNotDrift() {
    assertThat(HexFormat.of().formatHex(Arrays.copyOf(Frame.hello(HELLO), 62)))
        .isEqualTo(
            "020303"
                + "0102030405060708"
                + "0000000000000009"
                + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
                + "01"
                + "00000000000000010000000000000002"
                + "02"
                + "0003010203"
                + "000104"
                + "80");
    assertThat(HexFormat.of().formatHex(Arrays.copyOf(Frame.body(true, new byte[] {5}), 6)))
        .isEqualTo("020101058000");
    assertThat(
            HexFormat.of()
                .formatHex(Arrays.copyOf(Frame.chunk(false, 3, 1, 2, new byte[] {1, 2, 9}), 21)))
        .isEqualTo("020200" + "0000000000000003" + "0001" + "0002" + "00000003" + "09" + "80");
    assertThat(HexFormat.of().formatHex(Arrays.copyOf(Frame.heartbeat(), 4))).isEqualTo("02040080");
    assertThat(HexFormat.of().formatHex(Arrays.copyOf(Frame.farewell(9), 12)))
        .isEqualTo("020500" + "0000000000000009" + "80");
    byte[] batch = Frame.batch(true, List.of(new Frame.Part(new byte[] {6}, TRACE), SMALL));
    assertThat(HexFormat.of().formatHex(Arrays.copyOf(batch, 3 + 60 + 60 + 1)))
        .isEqualTo(
            "020601"
                + HexFormat.of().formatHex(TRACE.getBytes(StandardCharsets.US_ASCII))
                + "00000001"
                + "06"
                + "00".repeat(55)
                + "00000001"
                + "07"
                + "80");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 160",
    "159, 160",
    "160, 320",
    "1000, 1120",
    "4000, 4160",
    "5000, 5120",
    "5200, 5376",
    "10000, 10240",
    "100000, 100352",
    "1000000, 1015808"
  })
  void paddingHidesTheLength(int length, int padded) {
    assertThat(Frame.paddedLength(length)).isEqualTo(padded);
    assertThat(padded).isLessThanOrEqualTo(Math.max(length + 160, (int) (length * 1.12)));
  }

  @Test
  void whatIsNoFrameIsRefused() {
    List<byte[]> bad = new ArrayList<>();
    bad.add(new byte[0]);
    bad.add(new byte[160]);
    bad.add(new byte[] {2, 1, 0, (byte) 0x80}); // not padded to a unit
    bad.add(changed(Frame.heartbeat(), 0, 1)); // version
    bad.add(changed(Frame.heartbeat(), 1, 9)); // kind
    bad.add(changed(Frame.heartbeat(), 2, 2)); // flags
    bad.add(changed(Frame.heartbeat(), 2, 1)); // a heartbeat has none
    bad.add(changed(Frame.hello(HELLO), 2, 4));
    bad.add(changed(Frame.heartbeat(), 3, 0x81)); // padding mark
    bad.add(changed(Frame.heartbeat(), 100, 0x80)); // content in a heartbeat
    bad.add(Arrays.copyOf(Frame.heartbeat(), 320)); // more padding than needed
    bad.add(changed(Frame.hello(HELLO), 35, 5)); // more ids than allowed
    bad.add(changed(Frame.hello(HELLO), 35, -1));
    bad.add(changed(Frame.hello(HELLO), 35, 0)); // then the ids are read as distributions
    bad.add(changed(Frame.hello(HELLO), 52, 5));
    bad.add(changed(Frame.hello(HELLO), 52, 1)); // bytes left over
    bad.add(changed(Frame.hello(HELLO), 53, 0x7f)); // length of a distribution
    bad.add(changed(helloWithoutAccessKey(), 2, 0));
    bad.add(changed(Frame.farewell(9), 2, 1)); // a farewell has no flags
    bad.add(changed(Frame.farewell(9), 12, 0x80)); // bytes left over
    bad.add(changed(Frame.heartbeat(), 1, Frame.KIND_FAREWELL)); // of no process
    byte[] batch = Frame.batch(true, List.of(new Frame.Part(new byte[] {6}, TRACE), SMALL));
    bad.add(changed(batch, 2, 2)); // flags
    bad.add(changed(batch, 3, 'x')); // no trace context
    bad.add(changed(batch, 3, 0)); // half of one
    bad.add(changed(batch, 61, 2)); // the first body takes a byte of the second
    bad.add(changed(batch, 58, 0xff)); // a negative length
    bad.add(changed(batch, 58, 0x7f)); // a length beyond the end
    bad.add(Frame.batch(true, List.of(SMALL))); // one body is no batch
    bad.add(Frame.batch(true, Collections.nCopies(Frame.MAX_BATCH + 1, SMALL)));
    byte[] chunk = Frame.chunk(false, 3, 1, 1000, new byte[2500]);
    bad.add(changed(chunk, 12, 3)); // index is not below count
    bad.add(changed(chunk, 14, 1)); // one chunk is no chunk
    bad.add(changed(chunk, 13, 0x7f)); // too many chunks
    bad.add(changed(chunk, 15, 0xff)); // negative total
    bad.add(changed(chunk, 17, 0)); // total below the length of the chunk
    for (byte[] frame : bad) {
      assertThatThrownBy(() -> Frame.decode(frame))
          .as(HexFormat.of().formatHex(frame, 0, Math.min(frame.length, 40)))
          .isInstanceOf(Frame.MalformedException.class);
    }
  }

  @Test
  void randomBytesNeverDoHarm() {
    Random random = new Random(7);
    for (int i = 0; i < 20_000; i++) {
      byte[] frame = new byte[random.nextInt(4) * 160];
      random.nextBytes(frame);
      if (frame.length > 2) {
        frame[0] = Frame.VERSION;
        frame[1] = (byte) (1 + random.nextInt(6));
        frame[2] = (byte) random.nextInt(2);
        int end = 3 + random.nextInt(frame.length - 3);
        Arrays.fill(frame, end, frame.length, (byte) 0);
        frame[end] = (byte) 0x80;
      }
      try {
        assertThat(Frame.decode(frame)).isNotNull();
      } catch (Frame.MalformedException e) {
        assertThat(e).hasMessageNotContaining("null");
      }
    }
  }

  /** Ids and distributions stand where the access key should. */
  private static byte[] helloWithoutAccessKey() {
    byte[] hello = Frame.hello(HELLO);
    byte[] shorter = new byte[hello.length];
    System.arraycopy(hello, 0, shorter, 0, 19);
    System.arraycopy(hello, 35, shorter, 19, hello.length - 35);
    return shorter;
  }

  private static byte[] changed(byte[] frame, int at, int value) {
    byte[] changed = frame.clone();
    changed[at] = (byte) value;
    return changed;
  }
}
