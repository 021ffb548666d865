package io.coterie.cli.signing;

import static java.util.concurrent.TimeUnit.NANOSECONDS;

import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.util.Timestamps;
import io.coterie.cli.intent.Approval;
import io.coterie.cli.intent.IntentOptions;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.profile.Profile;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Printing;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.grpc.Status;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Phaser;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * {@code coterie load}: requests at a steady rate, whether or not earlier ones are answered, so
 * that a slow system shows as latency and not as fewer requests. Every signature is verified here.
 */
@Command(
    name = "load",
    mixinStandardHelpOptions = true,
    description = {
      "Ask for signatures at a steady rate, verify each, and report failures and latency.",
      "The payloads are small numbers, as 32 bytes; --yes begins without a question.",
      "A request that finds nobody, or no answer in a quarter of --timeout, is sent again.",
      "Exit code 0: every request got a valid signature within --timeout."
    })
public final class LoadCommand implements Callable<Integer> {
  private static final int DIGEST_BYTES = 32;
  private static final long RETRY_PAUSE_MS = 100;
  private static final long TO_ANSWER_MS = TimeUnit.MINUTES.toMillis(5);

  /** Attempts that fit into the time of a request: an answer that was lost is asked for again. */
  private static final int ATTEMPTS = 4;

  private static final int MAX_RATE = 1_000;
  private static final int MAX_REQUESTS = 60_000;

  @Spec @Nullable CommandSpec spec;
  @Mixin Profile profile = new Profile();
  @Mixin Approval approval = new Approval();

  @Parameters(
      paramLabel = "KEY",
      description = "Name of a key whose messages or digests the requester may have signed.")
  String key = "";

  @Option(
      names = "--rate",
      defaultValue = "10",
      description = "Requests a second; default ${DEFAULT-VALUE}.")
  double rate = 10;

  @Option(
      names = "--seconds",
      defaultValue = "60",
      description = "For how long; default ${DEFAULT-VALUE}.")
  int seconds = 60;

  /** The results of the requests. Thread-safe. */
  private static final class Tally {
    private final List<Long> nanos = new ArrayList<>();
    private final Map<String, Integer> failures = new TreeMap<>();
    private int retries;

    synchronized void signed(long took) {
      nanos.add(took);
    }

    synchronized void failed(String why) {
      failures.merge(why, 1, Integer::sum);
    }

    synchronized void retried() {
      retries++;
    }

    synchronized int print(PrintWriter out, int sent) {
      Collections.sort(nanos);
      out.printf(
          Locale.ROOT,
          "requests %d, signed and verified %d, failed %d, retries %d%n",
          sent,
          nanos.size(),
          sent - nanos.size(),
          retries);
      failures.forEach((why, times) -> out.printf("  %s: %d%n", why, times));
      if (!nanos.isEmpty()) {
        out.printf(
            Locale.ROOT,
            "latency ms: p50 %.1f, p95 %.1f, p99 %.1f, max %.1f%n",
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            quantile(1));
      }
      return nanos.size() == sent ? 0 : ExitCode.NO;
    }

    private double quantile(double q) {
      int rank = (int) Math.ceil(q * nanos.size());
      return nanos.get(Math.max(0, rank - 1)) / 1e6;
    }
  }

  /** One request, until its deadline. */
  private record Request(SigningIntent intent, SignRequest message, long start, long nanos) {
    long left() {
      return start + nanos - System.nanoTime();
    }
  }

  @Override
  public Integer call() throws InterruptedException {
    if (!(rate > 0 && rate <= MAX_RATE) || seconds < 1 || rate * seconds > MAX_REQUESTS) {
      throw new ParameterException(
          Printing.line(spec),
          "--rate is at most " + MAX_RATE + ", and all requests at most " + MAX_REQUESTS);
    }
    IntentSigner signer = profile.requesterKey();
    Tally tally = new Tally();
    int requests = (int) Math.max(1, Math.round(rate * seconds));
    Phaser running = new Phaser(1);
    try (Profile.Connection connection = profile.connect();
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor()) {
      AttestedKeys keys = new AttestedKeys(profile, connection);
      AttestedKey found = keys.get(key);
      ByteString publicKey = found.publicKey();
      Timestamp end = end();
      SigningIntent first = keys.naming(found, intent(found, 0, end));
      approval.require(spec, profile.requester(), requests, first, publicKey);
      var stub = SigningServiceGrpc.newFutureStub(connection.channel());
      long began = System.nanoTime();
      for (int i = 0; i < requests; i++) {
        SigningIntent intent = i == 0 ? first : keys.naming(found, intent(found, i, end));
        SignRequest message = SignRequest.newBuilder().setSignedIntent(signer.sign(intent)).build();
        long due = began + (long) (i * 1e9 / rate);
        running.register();
        timer.schedule(
            () ->
                send(
                    stub,
                    new Request(intent, message, due, profile.timeout().toNanos()),
                    publicKey,
                    tally,
                    running,
                    timer),
            due - System.nanoTime(),
            NANOSECONDS);
      }
      running.awaitAdvanceInterruptibly(running.arriveAndDeregister());
    }
    return tally.print(Printing.out(spec), requests);
  }

  /** When the last request has had its time, and the person some to answer before the first. */
  private Timestamp end() {
    long millis = TimeUnit.SECONDS.toMillis(seconds + 1L) + profile.timeout().toMillis();
    return Timestamps.fromMillis(System.currentTimeMillis() + TO_ANSWER_MS + millis);
  }

  /** The request of that number: a message or digest that no other request of this run has. */
  SigningIntent intent(AttestedKey found, int number, Timestamp end) {
    SigningIntent.Builder intent =
        SigningIntent.newBuilder()
            .setRequestId(IntentOptions.newRequestId())
            .setKey(found.name())
            .setScheme(found.scheme())
            .setPurpose("load")
            .setNotAfter(end);
    ByteString content =
        ByteString.copyFrom(ByteBuffer.allocate(DIGEST_BYTES).putInt(number).rewind());
    return switch (found.scheme()) {
      case SCHEME_BLS12381 -> intent.setMessage(content).build();
      case SCHEME_ECDSA_SECP256K1, SCHEME_BIP340_SECP256K1, SCHEME_ED25519, SCHEME_ED25519_EXACT ->
          intent.setDigest(content).build();
      case SCHEME_UNSPECIFIED, UNRECOGNIZED ->
          throw CliException.local(found.name() + " is of a scheme that is not known here");
    };
  }

  private static void send(
      SigningServiceGrpc.SigningServiceFutureStub stub,
      Request request,
      ByteString publicKey,
      Tally tally,
      Phaser running,
      ScheduledExecutorService timer) {
    long attempt = Math.min(request.left(), request.nanos() / ATTEMPTS);
    Futures.addCallback(
        stub.withDeadlineAfter(Math.max(1, attempt), NANOSECONDS).sign(request.message()),
        new FutureCallback<Signing>() {
          @Override
          public void onSuccess(Signing signing) {
            try {
              if (signing.getState() != Signing.State.SIGNED) {
                tally.failed("state " + signing.getState());
              } else if (SignedPayload.verify(
                  request.intent(), publicKey, signing.getSignature())) {
                tally.signed(System.nanoTime() - request.start());
              } else {
                tally.failed("signature does not verify");
              }
            } catch (RuntimeException e) {
              tally.failed("signature cannot be verified: " + e.getClass().getSimpleName());
            } finally {
              running.arriveAndDeregister();
            }
          }

          @Override
          public void onFailure(Throwable failure) {
            Status.Code code = StatusErrors.code(failure);
            boolean again =
                code == Status.Code.UNAVAILABLE
                    || code == Status.Code.ABORTED
                    || code == Status.Code.DEADLINE_EXCEEDED;
            if (again && request.left() > TimeUnit.MILLISECONDS.toNanos(RETRY_PAUSE_MS)) {
              // The same request id gives one signature, whether the first attempt arrived or not.
              tally.retried();
              timer.schedule(
                  () -> send(stub, request, publicKey, tally, running, timer),
                  RETRY_PAUSE_MS,
                  TimeUnit.MILLISECONDS);
            } else {
              tally.failed(code.name());
              running.arriveAndDeregister();
            }
          }
        },
        Runnable::run);
  }
}
