package io.coterie.messaging;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Messages stored for four recipients, clients and service in one JVM. Run by hand, with {@code
 * -Dcoterie.messaging.durable=true} for a database that waits for its disk; prints the rate, the
 * latency of what was taken, and how often a sender was told to come back.
 */
public final class StoredBench {
  private static final int RECIPIENTS = 4;
  private static final int TOTAL = 8_000;
  private static final byte[] CONTENT = new byte[256];
  private static final String PATH = "/v1/messages/multi_recipient?ts=1&online=false";

  private StoredBench() {}

  public static void main(String[] args) throws Exception {
    try (TestService service =
        TestService.start("--coterie.messaging.limits.stored-messages=1000000")) {
      TestClient client = new TestClient(service);
      List<Party> parties = new ArrayList<>();
      for (int i = 0; i < RECIPIENTS; i++) {
        parties.add(client.party());
      }
      byte[] body =
          TestClient.multiRecipient(
              CONTENT, parties.stream().map(Recipient::of).toArray(Recipient[]::new));
      Map<String, String> headers = TestClient.multiRecipientHeaders(parties.toArray(Party[]::new));
      try (Socket sender = client.connect(null)) {
        for (int inFlight : new int[] {32, 1, 32, 128, 1_024}) {
          run(sender, body, headers, inFlight);
        }
      }
    }
  }

  private static void run(Socket sender, byte[] body, Map<String, String> headers, int inFlight)
      throws InterruptedException {
    int total = inFlight == 1 ? TOTAL / 8 : TOTAL;
    Semaphore window = new Semaphore(inFlight);
    AtomicInteger refused = new AtomicInteger();
    long[] nanos = new long[total];
    long begin = System.nanoTime();
    for (int i = 0; i < total; i++) {
      int number = i;
      window.acquire();
      long start = System.nanoTime();
      sender
          .callAsync("PUT", PATH, body, headers)
          .thenAccept(
              reply -> {
                if (reply.status() == 200) {
                  nanos[number] = System.nanoTime() - start;
                } else {
                  refused.incrementAndGet();
                }
                window.release();
              });
    }
    window.acquire(inFlight);
    double seconds = (System.nanoTime() - begin) / 1e9;
    long[] taken = Arrays.stream(nanos).filter(n -> n > 0).sorted().toArray();
    System.out.printf(
        "stored, in flight=%d: sends/s=%.0f p50=%.1f ms p99=%.1f ms refused=%d%n",
        inFlight,
        taken.length / seconds,
        taken[taken.length / 2] / 1e6,
        taken[taken.length * 99 / 100] / 1e6,
        refused.get());
  }
}
