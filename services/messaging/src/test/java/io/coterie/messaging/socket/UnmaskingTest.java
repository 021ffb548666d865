package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.messaging.TestClient;
import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Socket;
import io.coterie.messaging.TestService;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import javax.net.ssl.SSLSocket;
import org.apache.tomcat.websocket.Constants;
import org.apache.tomcat.websocket.Transformation;
import org.junit.jupiter.api.Test;

class UnmaskingTest {
  private static final long SEED = 20_26;

  @Test
  void the_container_keeps_the_state_of_a_frame_where_it_is_looked_for() {
    assertThat(Unmasking.isAvailable()).isTrue();
  }

  @Test
  void a_close_of_the_client_is_told_before_the_container_answers_it() throws IOException {
    List<String> told = new ArrayList<>();
    Unmasking unmasking = new Unmasking(() -> told.add("close"));
    unmasking.setNext(
        (Transformation)
            Proxy.newProxyInstance(
                Transformation.class.getClassLoader(),
                new Class<?>[] {Transformation.class},
                (self, method, arguments) -> {
                  told.add("frame");
                  return null;
                }));
    unmasking.getMoreData(Constants.OPCODE_BINARY, true, 0, ByteBuffer.allocate(1));
    assertThat(told).containsExactly("frame");
    unmasking.getMoreData(Constants.OPCODE_CLOSE, true, 0, ByteBuffer.allocate(1));
    assertThat(told).containsExactly("frame", "close", "frame");
  }

  /** Around the sizes of a long, of the container's buffer and of a record of TLS. */
  @Test
  void messages_of_all_sizes_arrive_as_they_were_sent() {
    TestClient client = new TestClient(TestService.shared());
    Party to = client.party();
    Random random = new Random(SEED);
    try (Socket sender = client.party().connect().drained();
        Socket receiver = to.connect().drained()) {
      for (int around : new int[] {24, 125, 8_192, 16_384, 60_000}) {
        for (int size = around - 9; size <= around + 9; size++) {
          byte[] content = new byte[size];
          random.nextBytes(content);
          assertThat(
                  sender
                      .json(
                          "PUT",
                          "/v1/messages/" + to.aci,
                          TestClient.messages(true, TestClient.message(to, content)))
                      .status())
              .isEqualTo(200);
          assertThat(receiver.next().envelope().getContent().toByteArray()).isEqualTo(content);
        }
      }
    }
  }

  /**
   * Fragments whose lengths are around those where a frame or a buffer changes, and pings within.
   */
  @Test
  void messages_in_fragments_arrive_as_they_were_sent() throws IOException {
    TestService service = TestService.shared();
    TestClient client = new TestClient(service);
    Party to = client.party();
    Random random = new Random(SEED);
    try (Socket receiver = to.connect().drained();
        SSLSocket raw =
            (SSLSocket)
                service.trust().getSocketFactory().createSocket("localhost", service.port())) {
      upgrade(raw);
      for (int around : new int[] {4, 125, 8_192, 16_384, 65_536}) {
        for (int length = around - 3; length <= around + 3; length++) {
          byte[] content = new byte[20 + length + random.nextInt(100)];
          random.nextBytes(content);
          byte[] message = sealed(content, to);
          OutputStream out = raw.getOutputStream();
          out.write(frame(0x02, message, 0, length, random));
          out.write(frame(0x89, content, 0, 13, random));
          out.write(frame(0x80, message, length, message.length, random));
          out.flush();
          assertThat(receiver.next().envelope().getContent().toByteArray()).endsWith(content);
        }
      }
    }
  }

  private static byte[] sealed(byte[] content, Party to) {
    WebSocketRequestMessage.Builder request =
        WebSocketRequestMessage.newBuilder()
            .setId(1)
            .setVerb("PUT")
            .setPath("/v1/messages/multi_recipient?ts=1&online=true")
            .setBody(ByteString.copyFrom(TestClient.multiRecipient(content, Recipient.of(to))));
    TestClient.multiRecipientHeaders(to)
        .forEach((name, value) -> request.addHeaders(name + ":" + value));
    return WebSocketMessage.newBuilder()
        .setType(WebSocketMessage.Type.REQUEST)
        .setRequest(request)
        .build()
        .toByteArray();
  }

  private static void upgrade(SSLSocket socket) throws IOException {
    socket
        .getOutputStream()
        .write(
            ("GET /v1/websocket/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                    + Base64.getEncoder().encodeToString(new byte[16])
                    + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII));
    byte[] answer = new byte[4_096];
    int read = socket.getInputStream().read(answer);
    assertThat(new String(answer, 0, read, StandardCharsets.US_ASCII)).startsWith("HTTP/1.1 101");
  }

  /**
   * @param first byte of the frame: whether it is the last, and what it is
   */
  private static byte[] frame(int first, byte[] content, int from, int to, Random random) {
    int length = to - from;
    byte[] mask = new byte[4];
    random.nextBytes(mask);
    ByteBuffer frame = ByteBuffer.allocate(14 + length).put((byte) first);
    if (length < 126) {
      frame.put((byte) (0x80 | length));
    } else if (length < 1 << 16) {
      frame.put((byte) (0x80 | 126)).putShort((short) length);
    } else {
      frame.put((byte) (0x80 | 127)).putLong(length);
    }
    frame.put(mask);
    for (int i = 0; i < length; i++) {
      frame.put((byte) (content[from + i] ^ mask[i % 4]));
    }
    return Arrays.copyOf(frame.array(), frame.position());
  }
}
