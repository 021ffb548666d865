package io.coterie.channel.link;

import com.google.protobuf.ByteString;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.link.Link.Response;
import io.coterie.channel.telemetry.ChannelMetrics;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import javax.net.ssl.SSLContext;

/** Calls of the messaging service over HTTPS, with the account's name; connections are kept. */
public final class Rest implements AutoCloseable {
  private final ChannelConfig config;

  /** Header with the account's password. A string, because the JDK's client takes no other. */
  private final String authorization;

  private final ChannelMetrics metrics;
  private final HttpClient client;

  /**
   * @param authorization value of the Authorization header
   * @param callbacks runs what hangs on answers
   */
  public Rest(
      ChannelConfig config,
      SSLContext tls,
      byte[] authorization,
      Executor callbacks,
      ChannelMetrics metrics) {
    this.config = config;
    this.authorization = new String(authorization, StandardCharsets.US_ASCII);
    this.metrics = metrics;
    this.client =
        HttpClient.newBuilder()
            .sslContext(tls)
            .sslParameters(PinnedTls.parameters())
            .connectTimeout(config.timing().connect())
            .version(HttpClient.Version.HTTP_1_1)
            .executor(callbacks)
            .build();
  }

  /** Sends a request; headers are written {@code name:value}. */
  CompletableFuture<Response> request(
      ChannelMetrics.Mode mode, String verb, String path, List<String> headers, byte[] body) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(config.messaging().resolve(path))
            .timeout(config.timing().request())
            .header("Authorization", authorization)
            .method(verb, HttpRequest.BodyPublishers.ofByteArray(body));
    for (String header : headers) {
      int colon = header.indexOf(':');
      request.header(header.substring(0, colon), header.substring(colon + 1));
    }
    metrics.request(mode, body.length);
    return client
        .sendAsync(request.build(), answer(config.limits().maxWebSocketMessage()))
        .handle(
            (answer, failure) -> {
              if (failure != null) {
                throw new ChannelException(
                    Cause.UNAVAILABLE, "the messaging service did not answer", failure);
              }
              return response(mode, answer);
            });
  }

  /** Takes an answer of at most so many bytes; a longer one is an error. */
  static HttpResponse.BodyHandler<byte[]> answer(int most) {
    return HttpResponse.BodyHandlers.limiting(HttpResponse.BodyHandlers.ofByteArray(), most);
  }

  private Response response(ChannelMetrics.Mode mode, HttpResponse<byte[]> answer) {
    metrics.received(mode, answer.body().length);
    List<String> headers = new ArrayList<>();
    answer
        .headers()
        .map()
        .forEach((name, values) -> values.forEach(value -> headers.add(name + ":" + value)));
    return new Response(answer.statusCode(), headers, ByteString.copyFrom(answer.body()));
  }

  @Override
  public void close() {
    client.shutdownNow();
  }
}
