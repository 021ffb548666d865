package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.messaging.TestClient.Party;
import io.coterie.messaging.TestClient.Recipient;
import io.coterie.messaging.TestClient.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/**
 * Messages stored for four recipients, and online messages with and without them, clients and
 * service in one JVM. A few messages; {@code -Dcoterie.messaging.stored.sends=8000
 * -Dcoterie.messaging.durable=true}, for a database that waits for its disk, is the full size. The
 * rate and the times are printed, and at full size judged.
 */
class StoredSendsTest {
  private static final int SENDS = Integer.getInteger("coterie.messaging.stored.sends", 200);
  private static final boolean FULL = SENDS >= 8_000;
  private static final int RECIPIENTS = 4;

  /** Calls that wait for their answers at once. */
  private static final int IN_FLIGHT = 32;

  private static final byte[] CONTENT = new byte[256];
  private static final String STORED = "/v1/messages/multi_recipient?ts=1&online=false";
  private static final String ONLINE = "/v1/messages/multi_recipient?ts=1&online=true";
  private static final double LEAST_PER_SECOND = 1_000;
  private static final Duration MOST_ONLINE = Duration.ofMillis(50);

  private final AtomicInteger refused = new AtomicInteger();

  /** Sends stored messages and returns how many were taken a second. */
  private double send(Socket sender, List<Party> to, int total, AtomicBoolean until)
      throws InterruptedException {
    byte[] body =
        TestClient.multiRecipient(
            CONTENT, to.stream().map(Recipient::of).toArray(Recipient[]::new));
    Map<String, String> headers = TestClient.multiRecipientHeaders(to.toArray(Party[]::new));
    Semaphore window = new Semaphore(IN_FLIGHT);
    AtomicInteger taken = new AtomicInteger();
    long begin = System.nanoTime();
    for (int i = 0; i < total && !until.get(); i++) {
      window.acquire();
      sender
          .callAsync("PUT", STORED, body, headers)
          .whenComplete(
              (reply, failure) -> {
                if (failure == null && reply.status() == 200) {
                  taken.incrementAndGet();
                } else {
                  refused.incrementAndGet();
                }
                window.release();
              });
    }
    window.acquire(IN_FLIGHT);
    return taken.get() / ((System.nanoTime() - begin) / 1e9);
  }

  /** From the call to the last recipient, in nanoseconds, from the shortest to the longest. */
  private static long[] online(Socket sender, List<Party> to, List<Socket> receivers, int times) {
    byte[] body =
        TestClient.multiRecipient(
            CONTENT, to.stream().map(Recipient::of).toArray(Recipient[]::new));
    Map<String, String> headers = TestClient.multiRecipientHeaders(to.toArray(Party[]::new));
    long[] nanos = new long[times];
    for (int i = 0; i < times; i++) {
      long begin = System.nanoTime();
      CompletableFuture<TestClient.Reply> reply = sender.callAsync("PUT", ONLINE, body, headers);
      receivers.forEach(Socket::next);
      nanos[i] = System.nanoTime() - begin;
      assertThat(reply.join().status()).isEqualTo(200);
    }
    Arrays.sort(nanos);
    return nanos;
  }

  @Test
  void stored_messages_are_taken_and_online_ones_arrive_beside_them() throws Exception {
    try (TestService service =
        TestService.start("--coterie.messaging.limits.stored-messages=1000000")) {
      TestClient client = new TestClient(service);
      List<Party> absent = new ArrayList<>();
      List<Party> present = new ArrayList<>();
      List<Socket> receivers = new ArrayList<>();
      for (int i = 0; i < RECIPIENTS; i++) {
        absent.add(client.party());
        present.add(client.party());
        receivers.add(present.getLast().connect().drained());
      }
      try (Socket stored = client.connect(null);
          Socket online = client.connect(null)) {
        AtomicBoolean over = new AtomicBoolean();
        if (FULL) {
          send(stored, absent, SENDS, over);
          online(online, present, receivers, SENDS);
          refused.set(0);
        }
        double alone = send(stored, absent, SENDS, over);
        long[] before = online(online, present, receivers, SENDS / 4);
        CompletableFuture<Double> beside =
            CompletableFuture.supplyAsync(
                () -> {
                  try {
                    return send(stored, absent, Integer.MAX_VALUE, over);
                  } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                  }
                });
        long[] during = online(online, present, receivers, SENDS / 4);
        over.set(true);
        System.out.printf(
            "stored sends/s=%.0f, beside online ones %.0f, refused=%d%n",
            alone, beside.join(), refused.get());
        print("online, nothing stored", before);
        print("online, beside stored", during);
        assertThat(refused).hasValue(0);
        if (FULL) {
          List<Bar> bars =
              List.of(
                  Bar.atLeast("stored sends/s", alone, LEAST_PER_SECOND),
                  Bar.atMost(
                      "online beside stored, p99 in ms",
                      percentile(during, 99) / 1e6,
                      MOST_ONLINE.toMillis()));
          bars.forEach(System.out::println);
          assertThat(bars).allMatch(Bar::isMet);
        }
      } finally {
        receivers.forEach(Socket::close);
      }
    }
  }

  private static long percentile(long[] sorted, int percent) {
    return sorted[sorted.length * percent / 100];
  }

  private static void print(String what, long[] sorted) {
    System.out.printf(
        "%s: p50=%.2f ms p99=%.2f ms%n",
        what, percentile(sorted, 50) / 1e6, percentile(sorted, 99) / 1e6);
  }
}
