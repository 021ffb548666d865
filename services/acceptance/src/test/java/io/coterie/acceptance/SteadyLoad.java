package io.coterie.acceptance;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * So many signatures a second, whether or not earlier requests are answered. Each request is asked
 * again, with the same request id, while the answer is "not now", until its deadline. Requests and
 * answers are kept for verification.
 */
final class SteadyLoad {
  /**
   * Time that a wallet backend waits for a signature in all: three starts of a service on a machine
   * that is busy with the whole cluster. The longest wait is printed.
   */
  private static final Duration DEADLINE = Duration.ofSeconds(180);

  /** For one attempt, so that an answer that was lost on the way is asked for again. */
  private static final Duration ATTEMPT = Duration.ofSeconds(15);

  private static final Duration FIRST_PAUSE = Duration.ofMillis(100);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(2);
  private static final int DIGEST_BYTES = 32;

  /** r, which the random point of an ECDSA signature gives. */
  private static final int POINT_BYTES = 32;

  private static final int CALLERS = 8;
  private static final SecureRandom RANDOM = new SecureRandom();

  /** Answers while something is down, after which a caller may try again. */
  private static final Set<Status.Code> TRY_AGAIN =
      EnumSet.of(
          Status.Code.UNAVAILABLE,
          Status.Code.ABORTED,
          Status.Code.DEADLINE_EXCEEDED,
          Status.Code.RESOURCE_EXHAUSTED);

  private final List<WalletBackend> wallets;
  private final String key;
  private final Duration interval;
  private final Queue<Answered> answered = new ConcurrentLinkedQueue<>();
  private final Queue<String> failed = new ConcurrentLinkedQueue<>();
  private final Map<String, Integer> retries = new TreeMap<>();
  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicBoolean ended = new AtomicBoolean();
  private final ExecutorService requests = Executors.newVirtualThreadPerTaskExecutor();
  private final Thread clock;

  /** One request that has its signature, how often it was asked and how long it took. */
  record Answered(
      SignRequest request, ByteString digest, Signing signing, int attempts, Duration took) {}

  private SteadyLoad(List<WalletBackend> wallets, String key, int perSecond) {
    this.wallets = wallets;
    this.key = key;
    this.interval = Duration.ofSeconds(1).dividedBy(perSecond);
    this.clock = Thread.ofVirtual().name("load").unstarted(this::tick);
  }

  /** Starts asking for signatures of digests with an ECDSA key. */
  static SteadyLoad start(WalletBackend wallet, String key, int perSecond) {
    return start(List.of(wallet), key, perSecond);
  }

  /**
   * Starts asking for signatures of digests with an ECDSA key, one coordinator after the other.
   *
   * @param wallets one requester, calling each of the coordinators
   */
  static SteadyLoad start(List<WalletBackend> wallets, String key, int perSecond) {
    SteadyLoad load = new SteadyLoad(List.copyOf(wallets), key, perSecond);
    load.clock.start();
    return load;
  }

  private void tick() {
    long next = System.nanoTime();
    while (!ended.get()) {
      int number = asked.incrementAndGet();
      requests.execute(() -> request(number));
      next += interval.toNanos();
      LockSupport.parkNanos(Math.max(0, next - System.nanoTime()));
    }
  }

  private void request(int number) {
    byte[] bytes = new byte[DIGEST_BYTES];
    RANDOM.nextBytes(bytes);
    ByteString digest = ByteString.copyFrom(bytes);
    SignRequest request =
        WalletBackend.signRequest(
            wallets
                .getFirst()
                .intents()
                .sign(WalletBackend.ecdsaIntent(key).setDigest(digest).build()));
    long begin = System.nanoTime();
    long deadline = begin + DEADLINE.toNanos();
    Duration pause = FIRST_PAUSE;
    for (int attempt = 1; ; attempt++) {
      String why;
      try {
        long left = Math.min(deadline - System.nanoTime(), ATTEMPT.toNanos());
        WalletBackend wallet = wallets.get((number + attempt) % wallets.size());
        Signing signing =
            wallet.signings().withDeadlineAfter(left, TimeUnit.NANOSECONDS).sign(request);
        if (signing.getState() == Signing.State.SIGNED) {
          Duration took = Duration.ofNanos(System.nanoTime() - begin);
          answered.add(new Answered(request, digest, signing, attempt, took));
          return;
        }
        why = signing.getState().name();
      } catch (StatusRuntimeException e) {
        Status status = e.getStatus();
        why = status.getCode() + " " + status.getDescription();
        if (!TRY_AGAIN.contains(StatusErrors.code(e))) {
          failed.add("request %d: %s".formatted(number, why));
          return;
        }
      } catch (RuntimeException e) {
        failed.add("request %d: %s".formatted(number, e));
        return;
      }
      synchronized (retries) {
        retries.merge(why, 1, Integer::sum);
      }
      long wait = ThreadLocalRandom.current().nextLong(pause.toNanos() / 2, pause.toNanos());
      if (System.nanoTime() + wait >= deadline) {
        failed.add("request %d: %s, after %d attempts".formatted(number, why, attempt));
        return;
      }
      LockSupport.parkNanos(wait);
      pause =
          pause.multipliedBy(2).compareTo(LONGEST_PAUSE) < 0
              ? pause.multipliedBy(2)
              : LONGEST_PAUSE;
    }
  }

  /** Asks for nothing more and waits for what was asked. */
  void end() {
    ended.set(true);
    try {
      clock.join();
      requests.shutdown();
      if (!requests.awaitTermination(2 * DEADLINE.toSeconds(), TimeUnit.SECONDS)) {
        throw new IllegalStateException("requests outlive their deadline");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }

  /**
   * The fate of the signatures, once the load has ended.
   *
   * @param wrong requests whose signature an implementation that is not ours refuses
   * @param twice requests that are answered otherwise when they are asked again, by any of the
   *     wallets, or whose signature shares its random point with that of another one
   */
  record Verdict(int verified, List<String> wrong, List<String> twice) {}

  /**
   * Verifies every signature, and asks each coordinator for every one again.
   *
   * @param publicKey of the key
   */
  Verdict judge(OutsideVerifier outside, ByteString publicKey) {
    List<String> wrong = new ArrayList<>();
    Map<ByteString, String> points = new HashMap<>();
    Queue<String> twice = new ConcurrentLinkedQueue<>();
    try (ExecutorService callers = Executors.newFixedThreadPool(CALLERS)) {
      for (Answered each : answered) {
        String name = each.signing().getName();
        ByteString signature = each.signing().getSignature();
        if (!outside.ecdsa(publicKey, each.digest(), signature).valid()) {
          wrong.add(name);
        }
        String other = points.put(signature.substring(0, POINT_BYTES), name);
        if (other != null) {
          twice.add(name + " and " + other);
        }
        for (WalletBackend wallet : wallets) {
          callers.execute(
              () -> {
                try {
                  if (!askAgain(wallet, each.request()).equals(each.signing())) {
                    twice.add(name);
                  }
                } catch (RuntimeException e) {
                  twice.add(name + ": asked again: " + e);
                }
              });
        }
      }
    }
    return new Verdict(answered.size(), wrong, List.copyOf(twice));
  }

  /** The answer to a request that has one, however often it takes: the edge limits the rate. */
  private static Signing askAgain(WalletBackend wallet, SignRequest request) {
    long deadline = System.nanoTime() + DEADLINE.toNanos();
    while (true) {
      try {
        return wallet
            .signings()
            .withDeadlineAfter(ATTEMPT.toNanos(), TimeUnit.NANOSECONDS)
            .sign(request);
      } catch (StatusRuntimeException e) {
        if (!TRY_AGAIN.contains(StatusErrors.code(e)) || System.nanoTime() >= deadline) {
          throw e;
        }
        // A coordinator that was away may have been back for longer than the channel has noticed.
        wallet.channel().resetConnectBackoff();
        LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(LONGEST_PAUSE.toNanos()));
      }
    }
  }

  int asked() {
    return asked.get();
  }

  int answers() {
    return answered.size();
  }

  List<Answered> answered() {
    return List.copyOf(answered);
  }

  /** Requests that have no signature, each with the reason. */
  List<String> failed() {
    return List.copyOf(failed);
  }

  /** How often something was asked again, by what had gone wrong. */
  Map<String, Integer> retries() {
    synchronized (retries) {
      return new TreeMap<>(retries);
    }
  }
}
