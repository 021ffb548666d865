package io.coterie.coordinator;

import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.DecodedPayload;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.grpc.ManagedChannel;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/**
 * The cost of a signature in this service: {@code mvn -pl services/coordinator -am test
 * -Dtest=SigningBenchmark -Dcoterie.benchmark=true}. Client, parties and fake core run in the same
 * JVM on threads of their own names, so that the CPU of each group can be told apart.
 */
@EnabledIfSystemProperty(named = "coterie.benchmark", matches = "true")
class SigningBenchmark {
  @TempDir Path folder;

  @Test
  void cpu_and_latency_of_a_signature() throws Exception {
    try (TestInstallation installation = new TestInstallation(folder, 3).start()) {
      ManagedChannel client = installation.backend();
      installation.createKey(client, "hot", 2, 3);
      installation.core.trusting = true;
      run(installation, client, 1500, 32);
      for (int inFlight : new int[] {1, 32}) {
        TreeMap<String, Long> before = cpu();
        long started = System.nanoTime();
        int count = 1500;
        long[] latencies = run(installation, client, count, inFlight);
        double seconds = (System.nanoTime() - started) / 1e9;
        TreeMap<String, Long> after = cpu();
        System.out.printf(
            "in flight %d: %.0f signatures/s, p50 %.2f ms, p95 %.2f ms%n",
            inFlight,
            count / seconds,
            latencies[count / 2] / 1e6,
            latencies[count * 95 / 100] / 1e6);
        after.forEach(
            (group, nanos) -> {
              double us = (nanos - before.getOrDefault(group, 0L)) / 1e3 / count;
              if (us > 5) {
                System.out.printf("  %-28s %8.0f us CPU a signature%n", group, us);
              }
            });
      }
    }
  }

  @Test
  void commits_of_a_request_and_of_its_result() {
    try (TestInstallation installation = new TestInstallation(folder, 3).start()) {
      SigningStore store = installation.bean(SigningStore.class);
      int count = 2000;
      long[] claims = new long[count];
      long[] results = new long[count];
      for (int i = -200; i < count; i++) {
        var intent = installation.wallet.sign(signingIntent("hot", "m").build());
        String requestId = RequestId.next();
        SigningRecord pending =
            SigningRecord.pending(
                new RequestHeader(
                    "wallet",
                    requestId,
                    ByteString.copyFrom(new byte[32]),
                    intent,
                    Instant.now(),
                    Instant.now()),
                "keys/hot",
                Scheme.SCHEME_BLS12381,
                null,
                DecodedPayload.getDefaultInstance());
        long t0 = System.nanoTime();
        store.claimOnce(pending);
        long t1 = System.nanoTime();
        store.finish(
            pending.signed(
                new SigningRecord.Result(
                    ByteString.copyFrom(new byte[96]),
                    OptionalInt.empty(),
                    ByteString.copyFrom(new byte[48]),
                    false),
                List.of("p1", "p2"),
                1,
                Instant.now()));
        if (i >= 0) {
          claims[i] = t1 - t0;
          results[i] = System.nanoTime() - t1;
        }
      }
      Arrays.sort(claims);
      Arrays.sort(results);
      System.out.printf(
          "claim (commit soon) p50 %.2f ms p95 %.2f ms; result (commit durable) p50 %.2f ms p95"
              + " %.2f ms%n",
          claims[count / 2] / 1e6,
          claims[count * 95 / 100] / 1e6,
          results[count / 2] / 1e6,
          results[count * 95 / 100] / 1e6);
    }
  }

  private static long[] run(
      TestInstallation installation, ManagedChannel client, int count, int inFlight)
      throws Exception {
    List<SignRequest> requests = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      requests.add(sign(installation.wallet.sign(signingIntent("hot", "m" + i).build())));
    }
    Semaphore free = new Semaphore(inFlight);
    AtomicInteger errors = new AtomicInteger();
    long[] latencies = new long[count];
    for (int i = 0; i < count; i++) {
      free.acquire();
      int index = i;
      long sent = System.nanoTime();
      var answer =
          SigningServiceGrpc.newFutureStub(client)
              .withDeadlineAfter(30, TimeUnit.SECONDS)
              .sign(requests.get(i));
      answer.addListener(
          () -> {
            latencies[index] = System.nanoTime() - sent;
            if (answer.state() != java.util.concurrent.Future.State.SUCCESS) {
              errors.incrementAndGet();
            }
            free.release();
          },
          Runnable::run);
    }
    free.acquire(inFlight);
    assertThat(errors).hasValue(0);
    Arrays.sort(latencies);
    return latencies;
  }

  /** CPU time by group of threads, ns. */
  private static TreeMap<String, Long> cpu() {
    var threads = ManagementFactory.getThreadMXBean();
    TreeMap<String, Long> groups = new TreeMap<>();
    for (ThreadInfo info : threads.getThreadInfo(threads.getAllThreadIds())) {
      if (info != null) {
        groups.merge(
            info.getThreadName().replaceAll("[0-9]+", ""),
            Math.max(0, threads.getThreadCpuTime(info.getThreadId())),
            Long::sum);
      }
    }
    return groups;
  }
}
