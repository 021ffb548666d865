package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import com.google.protobuf.ByteString;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpUpgradeHandler;
import jakarta.servlet.http.WebConnection;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLSocket;
import org.apache.tomcat.websocket.Constants;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Requests that become WebSockets, or fail to, and the places they hold meanwhile. There is one
 * place for a connection that is none, so that another of the same address is refused until it is
 * free.
 */
class UpgradeTurnsTest {
  private static final InetAddress GREEDY = InetAddress.ofLiteral("127.0.0.6");
  private static final Pattern CONTENT_LENGTH = Pattern.compile("(?i)content-length: (\\d+)");
  private static final int LAST_CALL = 42;
  private static final int FRAMES_AT_ONCE = 4_000;

  private static final int LARGE_FRAME = 1 << 10;

  /** As many as a WebSocket may send in its turn; fewer come with the upgrade. */
  private static final int LARGE_FRAMES_OF_A_TURN = 64;

  private static final int LARGE_FRAMES = 4 * LARGE_FRAMES_OF_A_TURN;

  /** Large frames that wait for the service whenever it looks. */
  private static final int AHEAD = 32;

  private static TestService service;
  private static TestClient client;
  private static Container container;

  @BeforeAll
  static void start() {
    service = TestService.start("--coterie.messaging.limits.requests=1");
    client = new TestClient(service);
    container = new Container(service);
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  // ---- the client ----

  /** A connection of the greedy address, as soon as the place is free. */
  private static SSLSocket connect() {
    return connect(new AtomicReference<>());
  }

  /**
   * @param plain is set to the socket below TLS
   */
  private static SSLSocket connect(AtomicReference<Socket> plain) {
    return Awaitility.await()
        .ignoreExceptionsInstanceOf(IOException.class)
        .until(
            () -> {
              plain.set(new Socket());
              return handshake(plain.get());
            },
            socket -> true);
  }

  private static SSLSocket handshake(Socket plain) throws IOException {
    try {
      plain.bind(new InetSocketAddress(GREEDY, 0));
      plain.setTcpNoDelay(true);
      plain.setSoTimeout((int) TestClient.PATIENCE.toMillis());
      plain.connect(new InetSocketAddress("localhost", service.port()));
      SSLSocket socket =
          (SSLSocket)
              service
                  .trust()
                  .getSocketFactory()
                  .createSocket(plain, "localhost", service.port(), true);
      // Of a refused connection the handshake alone may not tell.
      socket.startHandshake();
      return socket;
    } catch (IOException e) {
      plain.close();
      throw e;
    }
  }

  private static byte[] upgrade(String version) {
    return upgrade("/v1/websocket/", version);
  }

  private static byte[] upgrade(String path, String version) {
    return ascii(
        "GET "
            + path
            + " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            + "Connection: Upgrade\r\nSec-WebSocket-Version: "
            + version
            + "\r\nSec-WebSocket-Key: "
            + Base64.getEncoder().encodeToString(new byte[16])
            + "\r\n\r\n");
  }

  /** A call to nothing. */
  private static byte[] request(byte[] body) {
    String head = "PUT /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n";
    return together(ascii(head.formatted(body.length)), body);
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  /** A frame with a mask of zeros, which changes nothing. */
  private static byte[] frame(WebSocketMessage message) {
    byte[] payload = message.toByteArray();
    assertThat(payload.length).isLessThan(126);
    return ByteBuffer.allocate(6 + payload.length)
        .put((byte) 0x82)
        .put((byte) (0x80 | payload.length))
        .putInt(0)
        .put(payload)
        .array();
  }

  /** Frames that cost the service more than the client, and that it does not answer. */
  private static byte[] frames() {
    byte[] one =
        frame(
            WebSocketMessage.newBuilder()
                .setType(WebSocketMessage.Type.RESPONSE)
                .setResponse(WebSocketResponseMessage.newBuilder().setId(1).setStatus(200))
                .build());
    ByteBuffer all = ByteBuffer.allocate(FRAMES_AT_ONCE * one.length);
    for (int i = 0; i < FRAMES_AT_ONCE; i++) {
      all.put(one);
    }
    return all.array();
  }

  private static byte[] largeFrames(int count) {
    ByteBuffer all = ByteBuffer.allocate(count * (8 + LARGE_FRAME));
    for (int i = 0; i < count; i++) {
      all.put((byte) 0x82).put((byte) (0x80 | 126)).putShort((short) LARGE_FRAME).putInt(0);
      all.put(new byte[LARGE_FRAME]);
    }
    return all.array();
  }

  private static byte[] lastCall() {
    return frame(
        WebSocketMessage.newBuilder()
            .setType(WebSocketMessage.Type.REQUEST)
            .setRequest(
                WebSocketRequestMessage.newBuilder()
                    .setId(LAST_CALL)
                    .setVerb("GET")
                    .setPath("/v1/keepalive")
                    .setBody(ByteString.EMPTY))
            .build());
  }

  private static byte[] together(byte[]... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      all.writeBytes(part);
    }
    return all.toByteArray();
  }

  /** The status of an answer over HTTP, which is read whole. */
  private static int status(DataInputStream in) throws IOException {
    StringBuilder head = new StringBuilder();
    while (head.indexOf("\r\n\r\n") < 0) {
      head.append((char) in.readUnsignedByte());
    }
    Matcher length = CONTENT_LENGTH.matcher(head);
    if (length.find()) {
      in.skipNBytes(Long.parseLong(length.group(1)));
    }
    return Integer.parseInt(head.substring(9, 12));
  }

  private static void assertLastCallAnswered(DataInputStream in) throws IOException {
    assertThat(in.readUnsignedByte()).isEqualTo(0x82);
    WebSocketMessage answer = WebSocketMessage.parseFrom(in.readNBytes(in.readUnsignedByte()));
    assertThat(answer.getResponse().getId()).isEqualTo(LAST_CALL);
    assertThat(answer.getResponse().getStatus()).isEqualTo(200);
  }

  private static DataInputStream in(SSLSocket socket) throws IOException {
    return new DataInputStream(socket.getInputStream());
  }

  /** It is answered as a WebSocket. */
  private static void becomeSocket(SSLSocket socket) throws IOException {
    socket.getOutputStream().write(together(upgrade("13"), lastCall()));
    DataInputStream in = in(socket);
    assertThat(status(in)).isEqualTo(101);
    assertLastCallAnswered(in);
  }

  /** The place is free again, for another connection of the same address and for others. */
  private static void assertPlaceIsFree() throws IOException {
    try (SSLSocket other = connect()) {
      becomeSocket(other);
    }
    try (TestClient.Socket honest = client.connect(null)) {
      assertThat(honest.call("GET", "/v1/keepalive").status()).isEqualTo(200);
    }
  }

  // ---- what it may do ----

  /** Another connection is served before the client has had more than a turn. */
  @Test
  void a_client_that_sends_without_a_pause_from_its_upgrade_on_keeps_no_place() throws Exception {
    CountDownLatch turnTaken = new CountDownLatch(1);
    CountDownLatch decided = new CountDownLatch(1);
    CountDownLatch allTaken = new CountDownLatch(LARGE_FRAMES);
    try (SSLSocket greedy = connect()) {
      container.take(
          "/endless",
          (session, number) -> {
            if (number <= LARGE_FRAMES - AHEAD) {
              greedy.getOutputStream().write(largeFrames(1));
            }
            if (number == LARGE_FRAMES_OF_A_TURN) {
              turnTaken.countDown();
              Container.await(decided);
            }
            allTaken.countDown();
          });
      greedy.getOutputStream().write(together(upgrade("/endless", "13"), largeFrames(AHEAD)));
      assertThat(status(in(greedy))).isEqualTo(101);
      Container.await(turnTaken);
      try (SSLSocket other = handshake(new Socket())) {
        becomeSocket(other);
      } catch (IOException e) {
        fail("another connection is refused after a whole turn of the greedy one", e);
      } finally {
        decided.countDown();
      }
      Container.await(allTaken);
    }
    assertPlaceIsFree();
  }

  /** The container gives the channel on while a turn of the connection before goes on. */
  @Test
  void a_turn_of_a_connection_that_has_ended_does_not_bound_the_next_on_its_channel()
      throws Exception {
    CountDownLatch decided = new CountDownLatch(1);
    List<SSLSocket> open = new ArrayList<>();
    container.keepChannels();
    try (SSLSocket first = connect()) {
      container.take(
          "/ending",
          (session, number) -> {
            session.getUserProperties().put(Constants.SESSION_CLOSE_TIMEOUT_PROPERTY, 1L);
            session.close();
            Container.await(decided);
          });
      first.getOutputStream().write(upgrade("/ending", "13"));
      assertThat(status(in(first))).isEqualTo(101);
      // That there is a place says that the turn of the upgrade is over.
      open.add(connect());
      becomeSocket(open.getLast());
      first.getOutputStream().write(largeFrames(1));
      first.getInputStream().readAllBytes();
      // One of them has the channel.
      for (int i = 0; i < 4; i++) {
        open.add(connect());
        open.getLast().getOutputStream().write(request(new byte[300_000]));
        assertThat(status(in(open.getLast()))).isEqualTo(404);
        becomeSocket(open.getLast());
      }
    } finally {
      decided.countDown();
      for (SSLSocket socket : open) {
        socket.close();
      }
    }
    assertPlaceIsFree();
  }

  @Test
  void frames_that_come_with_the_upgrade_are_all_read() throws IOException {
    byte[] frames = frames();
    for (int extra : new int[] {0, 1, 100, 1_000, 8_192, 16_384, frames.length}) {
      // Whole frames, because a call comes after them.
      int whole = extra - extra % (frames.length / FRAMES_AT_ONCE);
      byte[] some = ByteBuffer.allocate(whole).put(frames, 0, whole).array();
      try (SSLSocket socket = connect()) {
        socket.getOutputStream().write(together(upgrade("13"), some, lastCall()));
        DataInputStream in = in(socket);
        assertThat(status(in)).isEqualTo(101);
        assertLastCallAnswered(in);
      }
    }
    assertPlaceIsFree();
  }

  @Test
  void connections_that_end_right_after_their_upgrade_leave_no_place_taken() throws IOException {
    for (int i = 0; i < 24; i++) {
      try (SSLSocket socket = connect()) {
        socket.setSoLinger(i % 2 == 0, 0);
        socket.getOutputStream().write(together(upgrade("13"), i % 3 == 0 ? frames() : lastCall()));
        if (i % 4 < 2) {
          assertThat(status(in(socket))).isEqualTo(101);
        }
      } catch (IOException e) {
        // The service noticed first.
      }
    }
    assertPlaceIsFree();
    Awaitility.await().until(() -> service.connections("unauthenticated") == 0);
  }

  /** Its WebSocket never opens, although the service has agreed to it. */
  @Test
  void a_connection_that_ends_before_its_upgrade_is_answered_leaves_no_place_taken()
      throws IOException {
    Container.Holding holding = new Container.Holding();
    container.add(holding);
    AtomicReference<Socket> plain = new AtomicReference<>();
    try (SSLSocket socket = connect(plain)) {
      socket.getOutputStream().write(upgrade("13"));
      Container.await(holding.decided);
      assertThat(service.connections("unauthenticated")).isPositive();
      plain.get().setSoLinger(true, 0);
      plain.get().close();
    } finally {
      container.remove(holding);
      holding.answered.countDown();
    }
    Awaitility.await().until(() -> service.connections("unauthenticated") == 0);
    assertPlaceIsFree();
  }

  @Test
  void after_an_upgrade_that_fails_a_long_body_is_read_whole() throws IOException {
    try (SSLSocket socket = connect()) {
      socket.getOutputStream().write(upgrade("12"));
      DataInputStream in = in(socket);
      assertThat(status(in)).isEqualTo(426);
      socket
          .getOutputStream()
          .write(together(request(new byte[300_000]), upgrade("13"), lastCall()));
      assertThat(status(in)).isEqualTo(404);
      assertThat(status(in)).isEqualTo(101);
      assertLastCallAnswered(in);
    }
    assertPlaceIsFree();
  }

  /** Upgrades to something that fails when it begins. */
  public static final class Failing implements HttpUpgradeHandler {
    @Override
    public void init(WebConnection connection) {
      throw new IllegalStateException("as the test has it");
    }

    @Override
    public void destroy() {}
  }

  private static final class UpgradesToFailing extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
        throws ServletException, IOException {
      request.upgrade(Failing.class);
    }
  }

  @Test
  void a_connection_whose_new_protocol_fails_to_begin_ends_and_leaves_its_place()
      throws IOException {
    container.serve("/failing", new UpgradesToFailing());
    try (SSLSocket socket = connect()) {
      socket
          .getOutputStream()
          .write(
              together(
                  ascii(
                      "GET /failing HTTP/1.1\r\nHost: localhost\r\nUpgrade: failing\r\n"
                          + "Connection: Upgrade\r\n\r\n"),
                  frames()));
      DataInputStream in = in(socket);
      assertThat(status(in)).isEqualTo(101);
      assertThat(isEnded(in)).isTrue();
    }
    assertPlaceIsFree();
  }

  private static boolean isEnded(DataInputStream in) {
    try {
      return in.read() < 0;
    } catch (IOException reset) {
      return true;
    }
  }
}
