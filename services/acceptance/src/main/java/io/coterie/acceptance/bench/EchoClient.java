package io.coterie.acceptance.bench;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.channel.ChannelAccount;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Two accounts without any cryptography, which send each other a message of 256 bytes and back.
 * They show the cost of messaging alone.
 */
public final class EchoClient implements AutoCloseable {
  private static final int CONTENT_BYTES = 256;
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final HttpClient http;
  private final Socket one;
  private final Socket other;

  private EchoClient(HttpClient http, Socket one, Socket other) {
    this.http = http;
    this.one = one;
    this.other = other;
  }

  /** Enrols two members that nobody has pinned, and connects them. */
  static EchoClient connect(Cluster cluster, String oneName, String otherName) {
    HttpClient http =
        HttpClient.newBuilder().sslContext(cluster.ca().tls()).connectTimeout(PATIENCE).build();
    ChannelAccount one = cluster.members().enrol(oneName);
    ChannelAccount other = cluster.members().enrol(otherName);
    return new EchoClient(
        http, new Socket(http, cluster, one, other), new Socket(http, cluster, other, one));
  }

  /** There and back, in milliseconds. */
  double roundTripMillis() {
    long begin = System.nanoTime();
    one.send();
    other.awaitMessage();
    other.send();
    one.awaitMessage();
    return (System.nanoTime() - begin) / 1e6;
  }

  @Override
  public void close() {
    one.socket.abort();
    other.socket.abort();
    http.close();
  }

  private static final class Socket implements WebSocket.Listener {
    private final WebSocket socket;
    private final ByteString body;
    private final String path;
    private final ByteArrayOutputStream partial = new ByteArrayOutputStream();
    private final SynchronousQueue<Boolean> messages = new SynchronousQueue<>();
    private volatile @Nullable CompletableFuture<Integer> answer;

    /** Of the last message: a socket takes the next one only after it. */
    private CompletableFuture<?> sent = CompletableFuture.completedFuture(null);

    private long id;

    Socket(HttpClient http, Cluster cluster, ChannelAccount self, ChannelAccount peer) {
      path = "/v1/messages/" + peer.aci();
      body =
          ByteString.copyFromUtf8(
              """
              {"messages":[{"type":1,"destinationDeviceId":%d,"destinationRegistrationId":%d,\
              "content":"%s"}],"online":true,"urgent":false,"timestamp":1}"""
                  .formatted(
                      peer.deviceId(),
                      peer.registrationId(),
                      Base64.getEncoder().encodeToString(new byte[CONTENT_BYTES])));
      String credentials =
          self.aci() + ":" + new String(self.password(), StandardCharsets.US_ASCII);
      socket =
          http.newWebSocketBuilder()
              .header(
                  "Authorization",
                  "Basic "
                      + Base64.getEncoder()
                          .encodeToString(credentials.getBytes(StandardCharsets.US_ASCII)))
              .buildAsync(
                  URI.create("wss://localhost:" + cluster.messagingPort() + "/v1/websocket/"), this)
              .join();
    }

    void send() {
      CompletableFuture<Integer> accepted = new CompletableFuture<>();
      answer = accepted;
      WebSocketMessage request =
          WebSocketMessage.newBuilder()
              .setType(WebSocketMessage.Type.REQUEST)
              .setRequest(
                  WebSocketRequestMessage.newBuilder()
                      .setVerb("PUT")
                      .setPath(path)
                      .setId(++id)
                      .addHeaders("content-type:application/json")
                      .setBody(body))
              .build();
      send(socket, request).join();
    }

    /** A request and the acknowledgement of a delivery come from two threads. */
    private synchronized CompletableFuture<?> send(WebSocket to, WebSocketMessage message) {
      ByteBuffer bytes = ByteBuffer.wrap(message.toByteArray());
      sent = sent.thenCompose(_ -> to.sendBinary(bytes, true));
      return sent;
    }

    void awaitMessage() {
      try {
        if (messages.poll(PATIENCE.toMillis(), TimeUnit.MILLISECONDS) == null) {
          CompletableFuture<Integer> last = answer;
          throw new IllegalStateException(
              "no echo within "
                  + PATIENCE
                  + "; the last request was answered "
                  + (last == null ? "never" : last.getNow(0)));
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted", e);
      }
    }

    @Override
    public @Nullable CompletionStage<?> onBinary(WebSocket from, ByteBuffer data, boolean last) {
      byte[] bytes = new byte[data.remaining()];
      data.get(bytes);
      partial.writeBytes(bytes);
      from.request(1);
      if (last) {
        byte[] whole = partial.toByteArray();
        partial.reset();
        try {
          received(from, WebSocketMessage.parseFrom(whole));
        } catch (InvalidProtocolBufferException e) {
          from.abort();
        }
      }
      return null;
    }

    private void received(WebSocket from, WebSocketMessage message) {
      CompletableFuture<Integer> waiting = answer;
      if (message.hasResponse() && waiting != null) {
        waiting.complete(message.getResponse().getStatus());
      } else if (message.hasRequest()) {
        send(
            from,
            WebSocketMessage.newBuilder()
                .setType(WebSocketMessage.Type.RESPONSE)
                .setResponse(
                    WebSocketResponseMessage.newBuilder()
                        .setId(message.getRequest().getId())
                        .setStatus(200))
                .build());
        if (message.getRequest().getPath().endsWith("/message")) {
          try {
            messages.offer(true, PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        }
      }
    }
  }
}
