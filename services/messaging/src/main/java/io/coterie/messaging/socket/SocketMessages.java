package io.coterie.messaging.socket;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.api.ApiException;
import io.coterie.messaging.api.ApiRequest;
import io.coterie.messaging.api.ApiResponse;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Calls and pushes as the WebSocket carries them. */
final class SocketMessages {
  private static final int MAX_HEADERS = 64;

  private SocketMessages() {}

  /**
   * The call in a request.
   *
   * @param who owner of the connection
   * @param source whose share of the service the connection uses
   * @throws ApiException 400 if the request is malformed
   */
  static ApiRequest call(
      WebSocketRequestMessage message, @Nullable Authenticated who, Source source) {
    return new ApiRequest(
        message.getVerb(),
        message.getPath(),
        headers(message),
        message.getBody().toByteArray(),
        who,
        source);
  }

  /** Written {@code Name: value}; anything else is ignored. */
  private static Map<String, String> headers(WebSocketRequestMessage message) {
    Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    for (int i = 0; i < Math.min(message.getHeadersCount(), MAX_HEADERS); i++) {
      String header = message.getHeaders(i);
      int colon = header.indexOf(':');
      if (colon > 0) {
        headers.putIfAbsent(
            header.substring(0, colon).strip(), header.substring(colon + 1).strip());
      }
    }
    return headers;
  }

  /** The answer to the call with that id. */
  static byte[] answer(long id, ApiResponse response) {
    WebSocketResponseMessage.Builder reply =
        WebSocketResponseMessage.newBuilder()
            .setId(id)
            .setStatus(response.status())
            .setMessage(response.status() == 200 ? "OK" : "status " + response.status());
    response.headers().forEach((name, value) -> reply.addHeaders(name + ": " + value));
    if (response.body().length > 0) {
      reply
          .addHeaders("Content-Type: application/json")
          .setBody(UnsafeByteOperations.unsafeWrap(response.body()));
    }
    return WebSocketMessage.newBuilder()
        .setType(WebSocketMessage.Type.RESPONSE)
        .setResponse(reply)
        .build()
        .toByteArray();
  }

  /** The push of a message, under that id. */
  static byte[] push(long id, QueuedMessage message) {
    WebSocketRequestMessage.Builder request =
        request(id, "/api/v1/message")
            .setBody(message.complete().toByteString())
            .addHeaders("X-Signal-Key: false")
            .addHeaders("X-Signal-Timestamp: " + message.envelope().getServerTimestamp());
    if (message.traceparent() != null) {
      request.addHeaders("traceparent: " + message.traceparent());
    }
    return frame(request);
  }

  /** Tells the client that it has what was stored before it connected. */
  static byte[] queueEmpty(long id) {
    return frame(request(id, "/api/v1/queue/empty").setBody(ByteString.EMPTY));
  }

  private static WebSocketRequestMessage.Builder request(long id, String path) {
    return WebSocketRequestMessage.newBuilder().setVerb("PUT").setPath(path).setId(id);
  }

  private static byte[] frame(WebSocketRequestMessage.Builder request) {
    return WebSocketMessage.newBuilder()
        .setType(WebSocketMessage.Type.REQUEST)
        .setRequest(request)
        .build()
        .toByteArray();
  }
}
