package io.coterie.messaging.socket;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.DiscardUnknownFieldsParser;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Parser;
import com.google.protobuf.UnsafeByteOperations;
import com.google.protobuf.WireFormat;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.api.ApiException;
import io.coterie.messaging.api.ApiRequest;
import io.coterie.messaging.api.ApiResponse;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Calls and pushes as the WebSocket carries them. */
final class SocketMessages {
  private static final int MAX_HEADERS = 64;

  /** Fields of a message and of what is in it; clients send some ten. */
  private static final int MAX_FIELDS = 128;

  private static final Parser<WebSocketMessage> PARSER =
      DiscardUnknownFieldsParser.wrap(WebSocketMessage.parser());

  private SocketMessages() {}

  /**
   * A message as a client sent it. In memory it is about as large as its bytes: fields that are not
   * known are dropped, and so many are refused that each would be an object for a few bytes.
   */
  static WebSocketMessage parse(byte[] message) throws InvalidProtocolBufferException {
    requireFewFields(message);
    return PARSER.parseFrom(message);
  }

  private static void requireFewFields(byte[] message) throws InvalidProtocolBufferException {
    CodedInputStream in = CodedInputStream.newInstance(message);
    int fields = 0;
    try {
      for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
        fields++;
        if (isMessage(tag)) {
          int end = in.pushLimit(in.readRawVarint32());
          for (int inner = in.readTag(); inner != 0; inner = in.readTag()) {
            fields++;
            in.skipField(inner);
          }
          in.popLimit(end);
        } else {
          in.skipField(tag);
        }
      }
    } catch (IOException e) {
      throw new InvalidProtocolBufferException(e);
    }
    if (fields > MAX_FIELDS) {
      throw new InvalidProtocolBufferException("too many fields");
    }
  }

  private static boolean isMessage(int tag) {
    int field = WireFormat.getTagFieldNumber(tag);
    return WireFormat.getTagWireType(tag) == WireFormat.WIRETYPE_LENGTH_DELIMITED
        && (field == WebSocketMessage.REQUEST_FIELD_NUMBER
            || field == WebSocketMessage.RESPONSE_FIELD_NUMBER);
  }

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
