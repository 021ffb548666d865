package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

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
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLSocket;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.web.server.context.WebServerApplicationContext;

/**
 * What a connection holds while its request becomes a WebSocket, or fails to. There is one place
 * for a connection that is none, so that another of the same address is refused until it is free.
 */
class UpgradeTurnsTest {
  private static final InetAddress GREEDY = InetAddress.ofLiteral("127.0.0.6");
  private static final Pattern CONTENT_LENGTH = Pattern.compile("(?i)content-length: (\\d+)");
  private static final int LAST_CALL = 42;
  private static final int FRAMES_AT_ONCE = 4_000;

  private static TestService service;
  private static TestClient client;

  @BeforeAll
  static void start() {
    service = TestService.start("--coterie.messaging.limits.requests=1");
    client = new TestClient(service);
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  // ---- the client ----

  /** A connection of the greedy address, as soon as the place is free. */
  private static SSLSocket connect() {
    return Awaitility.await()
        .ignoreExceptionsInstanceOf(IOException.class)
        .until(UpgradeTurnsTest::handshake, socket -> true);
  }

  private static SSLSocket handshake() throws IOException {
    SSLSocket socket = (SSLSocket) service.trust().getSocketFactory().createSocket();
    try {
      socket.bind(new InetSocketAddress(GREEDY, 0));
      socket.setSoTimeout((int) TestClient.PATIENCE.toMillis());
      socket.connect(new InetSocketAddress("localhost", service.port()));
      // Of a refused connection the handshake alone may not tell.
      socket.startHandshake();
      return socket;
    } catch (IOException e) {
      socket.close();
      throw e;
    }
  }

  private static byte[] upgrade(String version) {
    return ascii(
        "GET /v1/websocket/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            + "Connection: Upgrade\r\nSec-WebSocket-Version: "
            + version
            + "\r\nSec-WebSocket-Key: "
            + Base64.getEncoder().encodeToString(new byte[16])
            + "\r\n\r\n");
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

  /** The place is free again, for another connection of the same address and for others. */
  private static void assertPlaceIsFree() throws IOException {
    try (SSLSocket other = connect()) {
      other.getOutputStream().write(together(upgrade("13"), lastCall()));
      DataInputStream in = in(other);
      assertThat(status(in)).isEqualTo(101);
      assertLastCallAnswered(in);
    }
    try (TestClient.Socket honest = client.connect(null)) {
      assertThat(honest.call("GET", "/v1/keepalive").status()).isEqualTo(200);
    }
  }

  // ---- what it may do ----

  @Test
  void a_client_that_sends_without_a_pause_from_its_upgrade_on_keeps_no_place() throws Exception {
    AtomicBoolean over = new AtomicBoolean();
    byte[] frames = frames();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
        SSLSocket greedy = connect()) {
      Future<?> writing =
          threads.submit(
              () -> {
                greedy.getOutputStream().write(together(upgrade("13"), frames));
                while (!over.get()) {
                  greedy.getOutputStream().write(frames);
                }
                greedy.getOutputStream().write(lastCall());
                return null;
              });
      DataInputStream in = in(greedy);
      try {
        assertThat(status(in)).isEqualTo(101);
        assertPlaceIsFree();
      } finally {
        over.set(true);
      }
      writing.get();
      assertLastCallAnswered(in);
    }
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

  @Test
  void after_an_upgrade_that_fails_a_long_body_is_read_whole() throws IOException {
    byte[] body = new byte[300_000];
    try (SSLSocket socket = connect()) {
      socket.getOutputStream().write(upgrade("12"));
      DataInputStream in = in(socket);
      assertThat(status(in)).isEqualTo(426);
      socket
          .getOutputStream()
          .write(
              together(
                  ascii(
                      "PUT /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                          + body.length
                          + "\r\n\r\n"),
                  body,
                  upgrade("13"),
                  lastCall()));
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
    TomcatWebServer server =
        (TomcatWebServer) ((WebServerApplicationContext) service.context()).getWebServer();
    Context context = (Context) server.getTomcat().getHost().findChildren()[0];
    Tomcat.addServlet(context, "failing", new UpgradesToFailing());
    context.addServletMappingDecoded("/failing", "failing");
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
