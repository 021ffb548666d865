package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.stream.LongStream;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.Test;

/** The records of TLS in which frames leave, as they are on the line. */
class FramesTogetherTest {
  private static final int CALLS = 20;
  private static final int TCP_PATIENCE_MS = (int) TestClient.PATIENCE.toMillis();
  private static final byte APPLICATION_DATA = 23;
  private static final int RECORD_HEADER = 5;

  private final TestService service = TestService.shared();

  /** Keeps what comes in. */
  private static final class Line extends Socket {
    private final ByteArrayOutputStream read = new ByteArrayOutputStream();

    @Override
    public InputStream getInputStream() throws IOException {
      return new FilterInputStream(super.getInputStream()) {
        @Override
        public int read() throws IOException {
          int next = super.read();
          if (next >= 0) {
            read.write(next);
          }
          return next;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
          int got = super.read(bytes, offset, length);
          if (got > 0) {
            read.write(bytes, offset, got);
          }
          return got;
        }
      };
    }

    /** The lengths of all records with content so far. */
    List<Integer> records() {
      List<Integer> lengths = new ArrayList<>();
      ByteBuffer in = ByteBuffer.wrap(read.toByteArray());
      while (in.remaining() >= RECORD_HEADER) {
        byte type = in.get();
        in.getShort();
        int length = Short.toUnsignedInt(in.getShort());
        if (type == APPLICATION_DATA) {
          lengths.add(length);
        }
        in.position(in.position() + Math.min(length, in.remaining()));
      }
      return lengths;
    }
  }

  private SSLSocket webSocket(Line line) throws IOException {
    line.setSoTimeout(TCP_PATIENCE_MS);
    line.connect(new InetSocketAddress("localhost", service.port()));
    SSLSocket socket =
        (SSLSocket)
            service
                .trust()
                .getSocketFactory()
                .createSocket(line, "localhost", line.getPort(), true);
    socket
        .getOutputStream()
        .write(
            ("GET /v1/websocket/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                    + Base64.getEncoder().encodeToString(new byte[16])
                    + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII));
    StringBuilder head = new StringBuilder();
    while (head.indexOf("\r\n\r\n") < 0) {
      head.append((char) socket.getInputStream().read());
    }
    assertThat(head).startsWith("HTTP/1.1 101");
    return socket;
  }

  private static byte[] call(long id, String path) {
    byte[] message =
        WebSocketMessage.newBuilder()
            .setType(WebSocketMessage.Type.REQUEST)
            .setRequest(WebSocketRequestMessage.newBuilder().setId(id).setVerb("GET").setPath(path))
            .build()
            .toByteArray();
    return ByteBuffer.allocate(6 + message.length)
        .put((byte) 0x82)
        .put((byte) (0x80 | message.length))
        .putInt(0)
        .put(message)
        .array();
  }

  private static long answer(DataInputStream in) throws IOException {
    assertThat(in.readUnsignedByte()).isEqualTo(0x82);
    int length = in.readUnsignedByte();
    byte[] message = new byte[length == 126 ? in.readUnsignedShort() : length];
    in.readFully(message);
    return WebSocketMessage.parseFrom(message).getResponse().getId();
  }

  @Test
  void answers_to_calls_that_came_together_leave_in_one_record() throws Exception {
    try (Line line = new Line();
        SSLSocket socket = webSocket(line)) {
      DataInputStream in = new DataInputStream(socket.getInputStream());
      // The first one alone: the turn of the upgrade reads nothing more.
      socket.getOutputStream().write(call(1, "/v1/keepalive"));
      assertThat(answer(in)).isEqualTo(1);
      int before = line.records().size();
      ByteArrayOutputStream calls = new ByteArrayOutputStream();
      for (long id = 1; id <= CALLS; id++) {
        calls.writeBytes(call(id, "/v1/keepalive"));
      }
      socket.getOutputStream().write(calls.toByteArray());
      for (long id = 1; id <= CALLS; id++) {
        assertThat(answer(in)).isEqualTo(id);
      }
      // A record for itself is one without content, too.
      socket.getOutputStream().write(call(CALLS + 1, "/v1/keepalive"));
      assertThat(answer(in)).isEqualTo(CALLS + 1);
      assertThat(line.records().size() - before).isEqualTo(2);
    }
  }

  /** More than the socket takes at once, read late. */
  @Test
  void frames_of_all_sizes_arrive_whole_and_in_their_order_however_late_they_are_read()
      throws Exception {
    try (Line line = new Line()) {
      line.setReceiveBufferSize(4096);
      try (SSLSocket socket = webSocket(line)) {
        int calls = 3_000;
        Thread sender =
            Thread.startVirtualThread(
                () -> {
                  try {
                    for (long id = 1; id <= calls; id++) {
                      socket.getOutputStream().write(call(id, "/v1/keepalive"));
                    }
                  } catch (IOException e) {
                    throw new IllegalStateException(e);
                  }
                });
        sender.join();
        DataInputStream in = new DataInputStream(socket.getInputStream());
        long[] ids = new long[calls];
        for (int i = 0; i < calls; i++) {
          ids[i] = answer(in);
        }
        assertThat(ids).containsExactly(LongStream.rangeClosed(1, calls).toArray());
      }
    }
  }
}
