package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.Service;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.grpc.CallOptions;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Random, truncated and oversized bytes at every port: refused, and nothing breaks. */
@ExtendWith(SharedCluster.class)
class RandomBytesTest {
  private static final int TIMES = 40;
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final long seed = Long.getLong("seed", System.nanoTime());
  private final Random random = new Random(seed);

  @BeforeEach
  void tellTheSeed() {
    System.out.println("progress: random bytes from -Dseed=" + seed);
  }

  @AfterEach
  void everythingStillWorks(Running shared) {
    for (Service service : shared.cluster().services()) {
      service.awaitReady(PATIENCE);
    }
    assertThat(shared.wallet().sign(SharedCluster.KEY, "after noise").getSignature().size())
        .isEqualTo(96);
  }

  @Test
  void rawBytesOnEveryTlsPort(Running shared) throws Exception {
    List<Integer> ports = new ArrayList<>();
    ports.add(shared.cluster().apiPort());
    ports.add(shared.cluster().messagingPort());
    shared.cluster().services().forEach(s -> ports.add(s.management().getPort()));
    for (int port : ports) {
      for (int i = 0; i < TIMES / 4; i++) {
        try (SSLSocket socket =
            (SSLSocket)
                shared.cluster().ca().tls().getSocketFactory().createSocket("localhost", port)) {
          socket.setSoTimeout((int) PATIENCE.toMillis());
          byte[] noise = bytes(1 + random.nextInt(20_000));
          if (i % 3 == 0) {
            // Starts as HTTP/2 would.
            System.arraycopy(
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(), 0, noise = bytes(200), 0, 24);
          }
          socket.getOutputStream().write(noise);
          socket.getOutputStream().flush();
        } catch (IOException refused) {
          // The service may end the connection whenever it likes.
        }
      }
    }
  }

  @Test
  void anyBytesAsTheRequestOfEveryGrpcMethod(Running shared) {
    List<MethodDescriptor<?, ?>> methods = new ArrayList<>();
    methods.addAll(KeyServiceGrpc.getServiceDescriptor().getMethods());
    methods.addAll(SigningServiceGrpc.getServiceDescriptor().getMethods());
    Set<Status.Code> accepted =
        EnumSet.of(
            Status.Code.INVALID_ARGUMENT,
            Status.Code.NOT_FOUND,
            Status.Code.PERMISSION_DENIED,
            Status.Code.UNAUTHENTICATED,
            Status.Code.FAILED_PRECONDITION,
            Status.Code.RESOURCE_EXHAUSTED,
            Status.Code.CANCELLED);
    for (MethodDescriptor<?, ?> method : methods) {
      for (int i = 0; i < TIMES; i++) {
        byte[] body = bytes(i == 0 ? 300_000 : random.nextInt(2_000));
        StatusRuntimeException failure =
            catchThrowableOfType(
                StatusRuntimeException.class,
                () ->
                    ClientCalls.blockingServerStreamingCall(
                            shared.wallet().channel(),
                            raw(method),
                            CallOptions.DEFAULT.withDeadlineAfter(10, TimeUnit.SECONDS),
                            body)
                        .forEachRemaining(ignored -> {}));
        // Random bytes can be a message with unknown fields only, which a list accepts.
        if (failure != null) {
          assertThat(accepted)
              .as("%s with %d bytes: %s", method.getFullMethodName(), body.length, failure)
              .contains(failure.getStatus().getCode());
        } else {
          assertThat(method.getFullMethodName()).endsWith("/ListKeys");
        }
      }
    }
  }

  private static MethodDescriptor<byte[], byte[]> raw(MethodDescriptor<?, ?> method) {
    MethodDescriptor.Marshaller<byte[]> bytes =
        new MethodDescriptor.Marshaller<>() {
          @Override
          public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
          }

          @Override
          public byte[] parse(InputStream stream) {
            try {
              return stream.readAllBytes();
            } catch (IOException e) {
              throw new UncheckedIOException(e);
            }
          }
        };
    return MethodDescriptor.<byte[], byte[]>newBuilder(bytes, bytes)
        .setFullMethodName(method.getFullMethodName())
        .setType(MethodDescriptor.MethodType.SERVER_STREAMING)
        .build();
  }

  @Test
  void anyBytesAsTheBodyOfEveryMessagingCall(Running shared) throws Exception {
    String someone = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    String[][] calls = {
      {"POST", "/v1/verification/session"},
      {"GET", "/v1/verification/session/" + someone},
      {"PATCH", "/v1/verification/session/" + someone},
      {"POST", "/v1/verification/session/" + someone + "/code"},
      {"PUT", "/v1/verification/session/" + someone + "/code"},
      {"POST", "/v1/registration"},
      {"GET", "/v1/devices/provisioning/code"},
      {"PUT", "/v1/provisioning/x"},
      {"PUT", "/v1/devices/link"},
      {"GET", "/v1/devices"},
      {"DELETE", "/v1/devices/99999"},
      {"GET", "/v1/accounts/whoami"},
      {"PUT", "/v2/keys?identity=aci"},
      {"PUT", "/v2/keys?identity=%00"},
      {"GET", "/v2/keys"},
      {"POST", "/v2/keys/check"},
      {"GET", "/v2/keys/" + someone + "/*"},
      {"GET", "/v2/keys/nobody/-1"},
      {"GET", "/v1/certificate/delivery?includeE164=perhaps"},
      {"PUT", "/v1/messages/" + someone},
      {"PUT", "/v1/messages/nobody?story=maybe"},
      {"PUT", "/v1/messages/multi_recipient?ts=x&online=y"},
      {"GET", "/v1/keepalive"},
      {"GET", "/v1/absent"},
    };
    try (HttpClient client = client(shared)) {
      for (String[] call : calls) {
        for (int i = 0; i < TIMES / 4; i++) {
          HttpRequest.Builder request =
              HttpRequest.newBuilder(
                      URI.create("https://localhost:" + shared.cluster().messagingPort() + call[1]))
                  .timeout(PATIENCE)
                  .header("Content-Type", i % 2 == 0 ? "application/json" : "application/x-noise")
                  .method(
                      call[0],
                      HttpRequest.BodyPublishers.ofByteArray(
                          i == 0 ? new byte[0] : bytes(random.nextInt(4_000))));
          if (i % 3 == 1) {
            request.header(
                "Authorization", "Basic " + Base64.getEncoder().encodeToString(bytes(40)));
          } else if (i % 3 == 2) {
            request.header("Unidentified-Access-Key", "AAAAAAAAAAAAAAAAAAAAAA==");
          }
          int status =
              client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray()).statusCode();
          assertThat(status).as("%s %s, try %d", call[0], call[1], i).isBetween(200, 499);
        }
      }
    }
  }

  @Test
  void anyBytesAsWebSocketFrames(Running shared) {
    try (HttpClient client = client(shared)) {
      for (int i = 0; i < TIMES / 2; i++) {
        CompletableFuture<Void> ended = new CompletableFuture<>();
        WebSocket socket =
            client
                .newWebSocketBuilder()
                .connectTimeout(PATIENCE)
                .buildAsync(
                    URI.create(
                        "wss://localhost:" + shared.cluster().messagingPort() + "/v1/websocket/"),
                    new WebSocket.Listener() {
                      @Override
                      public CompletableFuture<?> onClose(WebSocket w, int code, String reason) {
                        ended.complete(null);
                        return ended;
                      }

                      @Override
                      public void onError(WebSocket w, Throwable error) {
                        ended.complete(null);
                      }
                    })
                .join();
        try {
          for (int frame = 0; frame < 10 && !socket.isOutputClosed(); frame++) {
            if (frame % 4 == 3) {
              socket.sendText("noise", true).join();
            } else {
              socket.sendBinary(ByteBuffer.wrap(bytes(random.nextInt(5_000))), true).join();
            }
          }
        } catch (CompletionException closed) {
          // The service may end the connection whenever it likes.
        } finally {
          socket.abort();
        }
      }
    }
  }

  private static HttpClient client(Running shared) {
    return HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .sslContext(shared.cluster().ca().tls())
        .connectTimeout(PATIENCE)
        .build();
  }

  private byte[] bytes(int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }
}
