package io.coterie.messaging;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;

/**
 * Measures the time that messaging adds to a broadcast on loopback, with real TLS sockets: clients
 * and service share this JVM and its cores. Run by hand; prints medians and the 95th percentile.
 */
public final class DeliveryBench {
  private static final int WARM_UP = 3_000;
  private static final int RUNS = 3_000;
  private static final int IN_FLIGHT = 64;
  private static final byte[] CONTENT = new byte[256];

  private DeliveryBench() {}

  public static void main(String[] args) throws Exception {
    try (TestService service = TestService.start()) {
      TestClient client = new TestClient(service);
      for (int n : new int[] {1, 3, 10}) {
        run(client, n);
      }
    }
  }

  private static void run(TestClient client, int recipients) throws Exception {
    List<Party> parties = new ArrayList<>();
    List<Socket> sockets = new ArrayList<>();
    for (int i = 0; i < recipients; i++) {
      Party party = client.party();
      parties.add(party);
      sockets.add(party.connect().drained());
    }
    byte[] body =
        TestClient.multiRecipient(
            CONTENT, parties.stream().map(Recipient::of).toArray(Recipient[]::new));
    Map<String, String> headers = TestClient.multiRecipientHeaders(parties.toArray(Party[]::new));
    String path = "/v1/messages/multi_recipient?ts=1&online=true&urgent=false&story=false";
    try (Socket sender = client.connect(null)) {
      long[] echo = new long[RUNS];
      long[] accepted = new long[RUNS];
      long[] delivered = new long[RUNS];
      for (int i = -WARM_UP; i < RUNS; i++) {
        long start = System.nanoTime();
        sender.call("GET", "/v1/keepalive");
        long mid = System.nanoTime();
        CompletableFuture<?> reply = sender.callAsync("PUT", path, body, headers);
        for (Socket socket : sockets) {
          socket.next();
        }
        long all = System.nanoTime();
        reply.join();
        if (i >= 0) {
          echo[i] = mid - start;
          delivered[i] = all - mid;
          accepted[i] = System.nanoTime() - mid;
        }
      }
      print(recipients, "keepalive round trip", echo);
      print(recipients, "send to last delivery", delivered);
      print(recipients, "send to reply", accepted);
      int total = 20_000;
      Semaphore window = new Semaphore(IN_FLIGHT);
      long start = System.nanoTime();
      for (int i = 0; i < total; i++) {
        window.acquire();
        sender
            .callAsync("PUT", path, body, headers)
            .thenAccept(
                reply -> {
                  if (reply.status() != 200) {
                    throw new AssertionError(reply.status());
                  }
                  window.release();
                });
      }
      for (Socket socket : sockets) {
        for (int i = 0; i < total; i++) {
          socket.next();
        }
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      System.out.printf(
          "recipients=%d throughput requests/s=%.0f deliveries/s=%.0f%n",
          recipients, total / seconds, total * recipients / seconds);
    }
    sockets.forEach(Socket::close);
  }

  private static void print(int recipients, String what, long[] nanos) {
    Arrays.sort(nanos);
    System.out.printf(
        "recipients=%d %s us: p50=%.0f p95=%.0f%n",
        recipients, what, nanos[nanos.length / 2] / 1e3, nanos[nanos.length * 95 / 100] / 1e3);
  }
}
