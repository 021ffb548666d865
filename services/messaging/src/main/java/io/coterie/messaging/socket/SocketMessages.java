package io.coterie.messaging.socket;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
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
import io.coterie.proto.signal.Envelope;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import java.io.IOException;
import java.util.List;
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
    // The content of a message is most of it: it stays where it is.
    CodedInputStream in = UnsafeByteOperations.unsafeWrap(message).newCodedInput();
    in.enableAliasing(true);
    WebSocketMessage parsed = PARSER.parseFrom(in);
    in.checkLastTagWas(0);
    return parsed;
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

  /** The fields that are the same in all pushes. */
  private static final byte[] PUSH =
      WebSocketRequestMessage.newBuilder()
          .setVerb("PUT")
          .setPath("/api/v1/message")
          .addHeaders("X-Signal-Key: false")
          .build()
          .toByteArray();

  /**
   * The push of a message, under that id. Most of what the service does is this, so the content is
   * copied once, to where it leaves from.
   */
  static byte[] push(long id, QueuedMessage message) {
    Envelope envelope = message.envelope();
    @Nullable ByteString content = message.shared() == null ? null : message.shared().content();
    List<String> headers = pushHeaders(message);
    int bodySize = envelope.getSerializedSize();
    if (content != null) {
      bodySize += CodedOutputStream.computeBytesSize(Envelope.CONTENT_FIELD_NUMBER, content);
    }
    int requestSize =
        PUSH.length
            + lengthOfField(WebSocketRequestMessage.BODY_FIELD_NUMBER, bodySize)
            + CodedOutputStream.computeUInt64Size(WebSocketRequestMessage.ID_FIELD_NUMBER, id);
    for (String header : headers) {
      requestSize +=
          CodedOutputStream.computeStringSize(WebSocketRequestMessage.HEADERS_FIELD_NUMBER, header);
    }
    byte[] frame =
        new byte
            [CodedOutputStream.computeEnumSize(
                    WebSocketMessage.TYPE_FIELD_NUMBER, WebSocketMessage.Type.REQUEST_VALUE)
                + lengthOfField(WebSocketMessage.REQUEST_FIELD_NUMBER, requestSize)];
    try {
      CodedOutputStream out = CodedOutputStream.newInstance(frame);
      out.writeEnum(WebSocketMessage.TYPE_FIELD_NUMBER, WebSocketMessage.Type.REQUEST_VALUE);
      begin(out, WebSocketMessage.REQUEST_FIELD_NUMBER, requestSize);
      out.writeRawBytes(PUSH);
      begin(out, WebSocketRequestMessage.BODY_FIELD_NUMBER, bodySize);
      envelope.writeTo(out);
      if (content != null) {
        out.writeBytes(Envelope.CONTENT_FIELD_NUMBER, content);
      }
      out.writeUInt64(WebSocketRequestMessage.ID_FIELD_NUMBER, id);
      for (String header : headers) {
        out.writeString(WebSocketRequestMessage.HEADERS_FIELD_NUMBER, header);
      }
      out.checkNoSpaceLeft();
    } catch (IOException e) {
      throw new IllegalStateException("a frame of another size than its parts", e);
    }
    return frame;
  }

  private static List<String> pushHeaders(QueuedMessage message) {
    String timestamp = "X-Signal-Timestamp: " + message.envelope().getServerTimestamp();
    return message.traceparent() == null
        ? List.of(timestamp)
        : List.of(timestamp, "traceparent: " + message.traceparent());
  }

  private static int lengthOfField(int field, int size) {
    return CodedOutputStream.computeTagSize(field)
        + CodedOutputStream.computeUInt32SizeNoTag(size)
        + size;
  }

  /** Begins a field of so many bytes, which follow. */
  private static void begin(CodedOutputStream out, int field, int size) throws IOException {
    out.writeTag(field, WireFormat.WIRETYPE_LENGTH_DELIMITED);
    out.writeUInt32NoTag(size);
  }

  /** Tells the client that it has what was stored before it connected. */
  static byte[] queueEmpty(long id) {
    return WebSocketMessage.newBuilder()
        .setType(WebSocketMessage.Type.REQUEST)
        .setRequest(
            WebSocketRequestMessage.newBuilder()
                .setVerb("PUT")
                .setPath("/api/v1/queue/empty")
                .setId(id)
                .setBody(ByteString.EMPTY))
        .build()
        .toByteArray();
  }
}
