package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.Service;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.MetadataUtils;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;

/** Each service as a process of its own: its memory, its start, and its end by kill -9. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class ProcessesTest {
  private static final String KEY = "durable";
  private static final int SIGNINGS = 204;
  private static final int IN_FLIGHT = 8;
  private static final long MAX_SIGNER_RESIDENT_BYTES = 350L * 1024 * 1024;
  private static final Duration RESTART = Duration.ofSeconds(90);

  /** How long a request is repeated before it counts as never answered. */
  private static final Duration PATIENCE = Duration.ofSeconds(180);

  /** Answers while something is down, after which a caller may try again. */
  private static final Set<Status.Code> TRY_AGAIN =
      EnumSet.of(
          Status.Code.UNAVAILABLE,
          Status.Code.DEADLINE_EXCEEDED,
          Status.Code.ABORTED,
          Status.Code.CANCELLED);

  private static final Optional<ErrorReason> ENDED = Optional.of(ErrorReason.RESHARE_FAILED);

  private static Cluster cluster;
  private static Key key;
  private static OutsideVerifier outside;

  @BeforeAll
  static void start() {
    cluster =
        Cluster.of(3)
            .threshold(2)
            .processes()
            // One line for each request is more than messaging says by default.
            .setting("messaging", "--logging.level.io.coterie.messaging.api=debug")
            // The coordinator waits so long for a killed party, again after each start of its own.
            .setting("coordinator", "--coterie.coordinator.keygen.initial=5s")
            .folder(Path.of("target", "cluster-processes"))
            .progress(line -> System.out.println("progress: processes: " + line))
            .start();
    key = cluster.createKey(KEY);
    outside = OutsideVerifier.start(ProjectRoot.PATH);
  }

  @AfterAll
  static void stop() {
    if (outside != null) {
      outside.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @Test
  @Order(1)
  void aSignerThatHasWorkedAndIdlesStaysUnder350MegabytesResident() {
    for (int i = 0; i < 50; i++) {
      cluster.wallet().sign(KEY, "warm " + i);
    }
    for (Service signer : cluster.signers()) {
      System.out.printf(
          "progress: %s has %d MB resident%n", signer.name(), signer.residentBytes() >> 20);
      assertThat(signer.residentBytes()).as(signer.name()).isLessThan(MAX_SIGNER_RESIDENT_BYTES);
    }
  }

  @Test
  @Order(2)
  void aTraceIdIsFoundInTheLogsOfAllThatTookPart() throws Exception {
    String trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    Metadata headers = new Metadata();
    headers.put(
        Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER),
        "00-" + trace + "-00f067aa0ba902b7-01");
    Signing signing =
        cluster
            .wallet()
            .signings()
            .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers))
            .sign(request("traced"));
    List<Service> part = new ArrayList<>(List.of(cluster.coordinator(), cluster.messaging()));
    signing.getSigningSetList().forEach(party -> part.add(cluster.signer(party)));
    for (Service service : part) {
      // A signer's line comes when its session has ended, which is after the answer.
      long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
      while (!Files.readString(service.log()).contains(trace) && System.nanoTime() < end) {
        LockSupport.parkNanos(Duration.ofMillis(20).toNanos());
      }
      assertThat(Files.readString(service.log())).as("log of %s", service.name()).contains(trace);
    }
  }

  @Test
  @Order(3)
  @Timeout(600)
  void whateverIsKilledEveryRequestIdEndsWithExactlyOneValidSignature() throws Exception {
    Map<String, Runnable> victims = victims();
    Map<SignRequest, Set<ByteString>> signatures = new ConcurrentHashMap<>();
    int each = SIGNINGS / victims.size();
    try (ExecutorService callers = Executors.newFixedThreadPool(IN_FLIGHT)) {
      for (Map.Entry<String, Runnable> victim : victims.entrySet()) {
        AtomicInteger done = new AtomicInteger();
        List<Future<?>> batch = new ArrayList<>();
        for (int i = 0; i < each; i++) {
          SignRequest request = request(victim.getKey() + " " + i);
          batch.add(
              callers.submit(
                  () -> {
                    ByteString signature = signUntilSigned(request);
                    signatures
                        .computeIfAbsent(request, r -> ConcurrentHashMap.newKeySet())
                        .add(signature);
                    done.incrementAndGet();
                  }));
        }
        while (done.get() < each / 4) {
          LockSupport.parkNanos(1_000_000);
        }
        long begin = System.nanoTime();
        victim.getValue().run();
        for (Future<?> future : batch) {
          future.get();
        }
        System.out.printf(
            "progress: killed %s after %d of %d signings, all done %.1f s later%n",
            victim.getKey(), each / 4, each, (System.nanoTime() - begin) / 1e9);
        for (Service service : cluster.services()) {
          service.awaitReady(RESTART);
        }
      }
    }

    assertThat(signatures).hasSize(each * victims.size());
    byte[] publicKey = key.getPublicKey().toByteArray();
    Set<String> names = new HashSet<>();
    for (Map.Entry<SignRequest, Set<ByteString>> entry : signatures.entrySet()) {
      Signing again = cluster.wallet().signings().sign(entry.getKey());
      assertThat(entry.getValue()).containsExactly(again.getSignature());
      assertThat(names.add(again.getName())).as("one signing for each request id").isTrue();
      assertThat(
              cluster
                  .wallet()
                  .signings()
                  .getSigning(GetSigningRequest.newBuilder().setName(again.getName()).build())
                  .getState())
          .isEqualTo(Signing.State.SIGNED);
      byte[] message =
          io.coterie.proto.custody.v1.SigningIntent.parseFrom(
                  entry.getKey().getSignedIntent().getPayload())
              .getMessage()
              .toByteArray();
      assertThat(outside.verify(publicKey, message, again.getSignature().toByteArray()).valid())
          .isTrue();
    }
  }

  /** Each process, and how it is killed and started again. */
  private static Map<String, Runnable> victims() {
    Map<String, Runnable> victims = new LinkedHashMap<>();
    for (Service service : cluster.services()) {
      victims.put(
          service.name(),
          () -> {
            service.kill();
            service.start();
          });
    }
    victims.put(
        "postgresql",
        () -> {
          cluster.database().kill();
          cluster.database().restart();
        });
    return victims;
  }

  /**
   * All parties are needed to sign with this key, so a signature after each reshare shows that all
   * use shares of the same epoch.
   */
  @Test
  @Order(4)
  @Timeout(600)
  void whateverIsKilledAReshareEndsWithOneUsableEpoch() throws Exception {
    List<String> parties = cluster.partyNames();
    Key moved = cluster.wallet().createEcdsaKey("moved", parties.size(), parties);
    ByteString publicKey = moved.getPublicKey();
    long begin = System.nanoTime();
    moved = cluster.wallet().reshareKey(moved, parties.size(), parties);
    long undisturbed = System.nanoTime() - begin;
    Map<String, Runnable> victims = victims();
    int number = 0;
    try (ExecutorService callers = Executors.newFixedThreadPool(1)) {
      for (Map.Entry<String, Runnable> victim : victims.entrySet()) {
        int epoch = moved.getEpoch();
        ReshareKeyRequest request =
            ReshareKeyRequest.newBuilder()
                .setSignedIntent(
                    cluster
                        .wallet()
                        .intents()
                        .sign(WalletBackend.reshareIntent(moved, parties.size(), parties).build()))
                .build();
        Future<Key> answer = callers.submit(() -> reshareUntilDone(request));
        // The moments of the kills are spread over the whole operation.
        long moment = undisturbed * (2 * number++ + 1) / (2 * victims.size());
        LockSupport.parkNanos(moment);
        begin = System.nanoTime();
        victim.getValue().run();
        moved = answer.get();
        System.out.printf(
            "progress: killed %s %d ms into a reshare (%d ms undisturbed), done %.1f s later%n",
            victim.getKey(),
            moment / 1_000_000,
            undisturbed / 1_000_000,
            (System.nanoTime() - begin) / 1e9);
        assertThat(moved.getEpoch()).isEqualTo(epoch + 1);
        assertThat(moved.getPublicKey()).isEqualTo(publicKey);
        SignRequest signing =
            WalletBackend.signRequest(
                cluster
                    .wallet()
                    .intents()
                    .sign(
                        WalletBackend.ecdsaIntent("moved")
                            .setDigest(ByteString.fromHex("5a".repeat(32)))
                            .build()));
        ByteString signature = signUntilSigned(signing);
        assertThat(outside.ecdsa(publicKey, ByteString.fromHex("5a".repeat(32)), signature).valid())
            .isTrue();
        for (Service service : cluster.services()) {
          service.awaitReady(RESTART);
        }
      }
    }
  }

  private static Key reshareUntilDone(ReshareKeyRequest request) {
    WalletBackend wallet = cluster.wallet();
    return untilAnswered(() -> Optional.of(wallet.attested(wallet.keys().reshareKey(request))));
  }

  private static SignRequest request(String message) {
    return WalletBackend.signRequest(
        cluster
            .wallet()
            .intents()
            .sign(
                WalletBackend.signingIntent(KEY, message.getBytes(StandardCharsets.UTF_8))
                    .build()));
  }

  private static ByteString signUntilSigned(SignRequest request) {
    return untilAnswered(
        () -> {
          Signing signing = cluster.wallet().signings().sign(request);
          if (signing.getState() == Signing.State.SIGNED) {
            return Optional.of(signing.getSignature());
          }
          assertThat(signing.getState()).isEqualTo(Signing.State.PENDING);
          return Optional.empty();
        });
  }

  /** Acts as a wallet backend does: the same request again while the answer is "not now". */
  private static <T> T untilAnswered(Supplier<Optional<T>> call) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (true) {
      try {
        Optional<T> answer = call.get();
        if (answer.isPresent()) {
          return answer.get();
        }
      } catch (StatusRuntimeException e) {
        assertThat(TRY_AGAIN).as("%s", e).contains(e.getStatus().getCode());
        // A repeat of the request would get the same for ever.
        assertThat(StatusErrors.reason(e)).as("%s", e).isNotEqualTo(ENDED);
        if (System.nanoTime() - end > 0) {
          throw e;
        }
      }
      assertThat(System.nanoTime() - end).as("ns too late").isNegative();
      LockSupport.parkNanos(Duration.ofMillis(50).toNanos());
    }
  }
}
