package io.coterie.acceptance.bench;

import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Callers of one requester, each of which waits for one signature at a time. They ask again, under
 * the same request id, while the answer is "not now".
 */
final class Callers implements AutoCloseable {
  private static final Duration RETRY_PAUSE = Duration.ofMillis(100);

  private static final Set<Status.Code> TRY_AGAIN =
      EnumSet.of(
          Status.Code.UNAVAILABLE,
          Status.Code.ABORTED,
          Status.Code.DEADLINE_EXCEEDED,
          Status.Code.RESOURCE_EXHAUSTED);

  private final WalletBackend wallet;
  private final Supplier<SigningIntent> intents;
  private final long intervalNanos;
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private volatile boolean over;
  private volatile @Nullable RuntimeException failure;
  private volatile long forgotten = System.nanoTime();

  // Guarded by this.
  private long next = System.nanoTime();
  private List<Signed> counted = new ArrayList<>();

  /** A signature, and how long it took from the first attempt on. */
  private record Signed(SigningIntent intent, Signing signing, long nanos) {}

  /**
   * The signatures of a while, in the order of the time that they took.
   *
   * @param seconds that the while was
   */
  record Counted(List<Signed> signed, double seconds) {
    double rate() {
      return signed.size() / seconds;
    }

    double millis(double quantile) {
      int rank = (int) Math.ceil(quantile * signed.size());
      return signed.isEmpty() ? Double.NaN : signed.get(Math.max(0, rank - 1)).nanos() / 1e6;
    }

    /** Fails unless each signature is valid, by another implementation than the core's. */
    Counted verified(Key key) {
      for (Signed each : signed) {
        if (!SignedPayload.verify(
            each.intent(), key.getPublicKey(), each.signing().getSignature())) {
          throw new IllegalStateException(each.signing().getName() + " is not valid");
        }
      }
      return this;
    }
  }

  /**
   * Starts them.
   *
   * @param count of callers, so of signatures that are waited for at once at most
   * @param interval between two requests of all callers; zero for none. One that finds no caller
   *     free is left out, and not made up for
   */
  Callers(WalletBackend wallet, Supplier<SigningIntent> intents, int count, Duration interval) {
    this.wallet = wallet;
    this.intents = intents;
    this.intervalNanos = interval.toNanos();
    for (int i = 0; i < count; i++) {
      threads.execute(this::call);
    }
  }

  private void call() {
    try {
      while (!over) {
        LockSupport.parkNanos(slot() - System.nanoTime());
        SigningIntent intent = intents.get();
        SignRequest request = WalletBackend.signRequest(wallet.intents().sign(intent));
        long begin = System.nanoTime();
        Signing signing = signed(request);
        signed(new Signed(intent, signing, System.nanoTime() - begin));
      }
    } catch (RuntimeException e) {
      failure = e;
    }
  }

  private synchronized long slot() {
    next = Math.max(next + intervalNanos, System.nanoTime());
    return next;
  }

  private synchronized void signed(Signed one) {
    counted.add(one);
  }

  private Signing signed(SignRequest request) {
    while (true) {
      try {
        Signing signing = wallet.signings().sign(request);
        if (signing.getState() == Signing.State.SIGNED) {
          return signing;
        }
      } catch (StatusRuntimeException e) {
        if (!TRY_AGAIN.contains(StatusErrors.code(e))) {
          throw e;
        }
      }
      LockSupport.parkNanos(RETRY_PAUSE.toNanos());
    }
  }

  /** Forgets what was signed so far, and says what is signed from now on for so long. */
  Counted count(Duration time) throws InterruptedException {
    forget();
    Thread.sleep(time);
    return counted();
  }

  /** Forgets what was signed so far. */
  void forget() {
    take();
    forgotten = System.nanoTime();
  }

  /** What was signed since that was forgotten. Fails if a caller had to give up. */
  Counted counted() {
    List<Signed> signed = take();
    double seconds = (System.nanoTime() - forgotten) / 1e9;
    RuntimeException why = failure;
    if (why != null) {
      throw new IllegalStateException(wallet.name() + " gets no signatures", why);
    }
    signed.sort(Comparator.comparingLong(Signed::nanos));
    return new Counted(signed, seconds);
  }

  private synchronized List<Signed> take() {
    List<Signed> taken = counted;
    counted = new ArrayList<>();
    return taken;
  }

  /** Asks for nothing more, and waits for what was asked. */
  @Override
  public void close() {
    over = true;
    threads.close();
  }
}
