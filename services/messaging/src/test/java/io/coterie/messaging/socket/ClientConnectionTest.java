package io.coterie.messaging.socket;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.api.AccountCalls;
import io.coterie.messaging.api.Dispatcher;
import io.coterie.messaging.api.KeyCalls;
import io.coterie.messaging.api.MessageCalls;
import io.coterie.messaging.api.MultiRecipientCalls;
import io.coterie.messaging.api.ServiceCalls;
import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import jakarta.websocket.CloseReason;
import jakarta.websocket.RemoteEndpoint;
import jakarta.websocket.SendHandler;
import jakarta.websocket.SendResult;
import jakarta.websocket.Session;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.tomcat.websocket.Constants;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

/** The frames of one connection while the service stops. */
class ClientConnectionTest {
  /** More than one thread writes in a row. */
  private static final int REQUESTS = 200;

  private int closings;

  /** A socket that takes a frame when the test says so. */
  private static final class FakeSession {
    final List<ByteBuffer> frames = new ArrayList<>();
    final Deque<SendHandler> waiting = new ArrayDeque<>();
    boolean holds;
    int closed;
    final Map<String, Object> properties = new HashMap<>();

    Session session() {
      RemoteEndpoint.Async remote =
          fake(
              RemoteEndpoint.Async.class,
              (method, arguments) -> {
                if (method.equals("sendBinary")) {
                  frames.add((ByteBuffer) arguments[0]);
                  if (holds) {
                    waiting.add((SendHandler) arguments[1]);
                  } else {
                    ((SendHandler) arguments[1]).onResult(new SendResult());
                  }
                }
                return null;
              });
      return fake(
          Session.class,
          (method, arguments) -> {
            if (method.equals("close")) {
              closed = ((CloseReason) arguments[0]).getCloseCode().getCode();
            }
            return switch (method) {
              case "getAsyncRemote" -> remote;
              case "getUserProperties" -> properties;
              default -> null;
            };
          });
    }

    private interface Calls {
      Object on(String method, Object[] arguments);
    }

    private static <T> T fake(Class<T> type, Calls calls) {
      return type.cast(
          Proxy.newProxyInstance(
              type.getClassLoader(),
              new Class<?>[] {type},
              (proxy, method, arguments) -> calls.on(method.getName(), arguments)));
    }
  }

  private static ByteBuffer request(long id) {
    // The path is malformed, so that the answer needs nothing but the connection.
    return request(id, "/?%");
  }

  private static ByteBuffer request(long id, String path) {
    return ByteBuffer.wrap(
        WebSocketMessage.newBuilder()
            .setType(WebSocketMessage.Type.REQUEST)
            .setRequest(WebSocketRequestMessage.newBuilder().setId(id).setVerb("GET").setPath(path))
            .build()
            .toByteArray());
  }

  /** An anonymous connection of a service whose threads take no more work. */
  private ClientConnection connection() {
    ExecutorService stopped = Executors.newSingleThreadExecutor();
    stopped.shutdown();
    Limits limits =
        new Binder(new MapConfigurationPropertySource(Map.of())).bindOrCreate("none", Limits.class);
    MessagingMetrics metrics = new MessagingMetrics(new SimpleMeterRegistry());
    Dispatcher dispatcher =
        ServiceCalls.dispatcher(
            new AccountCalls(null, null, null, null, null, null, null),
            new KeyCalls(null, null, null),
            new MessageCalls(null, null, null),
            new MultiRecipientCalls(null, null, null),
            null,
            metrics,
            Clock.systemUTC());
    return new ClientConnection(
        null,
        Source.ofRemote("192.0.2.1"),
        new ClientConnection.Services(
            dispatcher,
            null,
            null,
            null,
            metrics,
            stopped,
            null,
            new ConnectionMemory(1 << 20, stopped),
            new PushMemory(1 << 20, 1, stopped, stopped, System::nanoTime),
            new StoredLoads(1 << 20),
            limits,
            closed -> {}),
        () -> closings++);
  }

  @Test
  void writes_on_when_no_thread_can_take_over() {
    ClientConnection connection = connection();
    FakeSession socket = new FakeSession();
    connection.opened(socket.session());
    socket.holds = true;
    for (int id = 1; id <= REQUESTS; id++) {
      connection.received(request(id), true);
    }
    assertThat(socket.frames).hasSize(1);
    socket.holds = false;
    socket.waiting.remove().onResult(new SendResult());
    assertThat(socket.frames).hasSize(REQUESTS);
    connection.received(request(REQUESTS + 1), true);
    assertThat(socket.frames).hasSize(REQUESTS + 1);
  }

  @Test
  void answers_calls_that_came_together_with_what_ends_the_connection() {
    ClientConnection connection = connection();
    FakeSession socket = new FakeSession();
    connection.opened(socket.session());
    OutboundFrames.together(
        () -> {
          for (int id = 1; id <= 3; id++) {
            connection.received(request(id), true);
          }
          connection.received(ByteBuffer.wrap(new byte[] {1}), true);
        });
    assertThat(socket.frames).hasSize(3);
    assertThat(socket.closed).isEqualTo(1007);
  }

  /** The container does nothing more then: it waits for a frame that is being written. */
  @Test
  void a_close_that_the_client_has_begun_is_one_that_waits_for_it() {
    ClientConnection connection = connection();
    FakeSession socket = new FakeSession();
    connection.opened(socket.session());
    assertThat(socket.properties)
        .doesNotContainKey(Constants.BLOCKING_SEND_TIMEOUT_PROPERTY)
        .containsEntry(Constants.SESSION_CLOSE_TIMEOUT_PROPERTY, 2_000L);
    connection.clientCloses();
    assertThat(socket.properties).containsEntry(Constants.BLOCKING_SEND_TIMEOUT_PROPERTY, 50L);
    connection.displaced();
    assertThat(socket.closed).isEqualTo(4409);
    assertThat(closings).isEqualTo(1);
  }

  @Test
  void answers_a_call_that_no_thread_can_take_and_closes() throws Exception {
    ClientConnection connection = connection();
    FakeSession socket = new FakeSession();
    connection.opened(socket.session());
    connection.received(request(1, "/v2/keys"), true);
    WebSocketResponseMessage answer =
        WebSocketMessage.parseFrom(socket.frames.getFirst()).getResponse();
    assertThat(answer.getStatus()).isEqualTo(503);
    assertThat(answer.getHeadersList()).contains("Retry-After: 2");
    assertThat(socket.closed).isEqualTo(1012);
  }
}
