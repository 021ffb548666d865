package io.coterie.acceptance;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.net.http.WebSocketHandshakeException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLContext;

/**
 * A party that calls from an address of its own on this machine. Calls of others, such as those of
 * the installation's signers from 127.0.0.1, do not count as its calls.
 */
final class AddressedParty implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  /**
   * Each is a connection, whose handshake the edge awaits for five seconds: few enough for a
   * machine that has other things to do.
   */
  private static final int CALLERS = 16;

  private final HttpClient http;
  private final URI base;

  /**
   * The answer to a request for a WebSocket.
   *
   * @param status 101 if it has become one, which is closed again
   */
  record Answer(int status, boolean saysWhenToRetry) {}

  /**
   * A party; it connects when it first calls.
   *
   * @param address of 127.0.0.0/8
   * @param base the {@code https} address that it calls
   */
  AddressedParty(String address, SSLContext tls, URI base) {
    this.http =
        HttpClient.newBuilder()
            .sslContext(tls)
            .localAddress(InetAddress.ofLiteral(address))
            .version(HttpClient.Version.HTTP_1_1)
            .build();
    this.base = base;
  }

  /** Status of a GET. */
  int status(String path) throws IOException, InterruptedException {
    HttpRequest request = HttpRequest.newBuilder(base.resolve(path)).timeout(PATIENCE).build();
    return http.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
  }

  /** Calls without a pause until an answer is 429; false if none is within a minute. */
  boolean isRefusedOnceItCallsTooOften(String path)
      throws InterruptedException, ExecutionException {
    AtomicBoolean refused = new AtomicBoolean();
    long end = System.nanoTime() + PATIENCE.toNanos();
    try (ExecutorService callers = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> calls = new ArrayList<>();
      for (int i = 0; i < CALLERS; i++) {
        calls.add(
            callers.submit(
                () -> {
                  while (!refused.get() && System.nanoTime() < end) {
                    if (status(path) == 429) {
                      refused.set(true);
                    }
                  }
                  return null;
                }));
      }
      for (Future<?> call : calls) {
        call.get();
      }
    }
    return refused.get();
  }

  /**
   * Asks for a WebSocket of messaging.
   *
   * @param headers names and values by turns
   */
  Answer connect(String... headers) {
    WebSocket.Builder builder = http.newWebSocketBuilder().connectTimeout(PATIENCE);
    for (int i = 0; i < headers.length; i += 2) {
      builder.header(headers[i], headers[i + 1]);
    }
    URI socket = URI.create(base.toString().replaceFirst("https", "wss") + "/v1/websocket/");
    try {
      builder.buildAsync(socket, new WebSocket.Listener() {}).join().abort();
      return new Answer(101, false);
    } catch (CompletionException e) {
      if (e.getCause() instanceof WebSocketHandshakeException refusal) {
        HttpResponse<?> response = refusal.getResponse();
        return new Answer(
            response.statusCode(), response.headers().firstValue("retry-after").isPresent());
      }
      throw e;
    }
  }

  /** Ends its connections. */
  @Override
  public void close() {
    http.shutdownNow();
    http.close();
  }
}
