package io.coterie.coordinator.session;

import io.coterie.coordinator.session.ResultVerifier.Claim;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SignatureClaim;
import io.coterie.proto.core.v1.VerifyCall;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks the signatures of one scheme by two implementations: the core, which combined them without
 * looking, and one that had no part in it. Those that come while others are checked are checked
 * together next, which costs less for each. There is no timer: one that finds nobody is checked at
 * once. Thread-safe.
 */
final class SignatureChecks {
  private static final Logger log = LoggerFactory.getLogger(SignatureChecks.class);

  /** Of those in one check, which a wrong one costs a check of each. */
  static final int MOST_TOGETHER = 32;

  private record Check(Claim claim, Consumer<Boolean> then) {}

  private final ProtocolId protocol;
  private final ResultVerifier verifier;
  private final Predicate<VerifyCall> core;
  private final Executor pool;

  /** Guarded by itself. */
  private final ArrayDeque<Check> waiting = new ArrayDeque<>();

  /** Guarded by {@link #waiting}. */
  private boolean running;

  /**
   * @param protocol that the signatures come from
   * @param verifier shares nothing with the core
   * @param core says whether every claim is true
   */
  SignatureChecks(
      ProtocolId protocol, ResultVerifier verifier, Predicate<VerifyCall> core, Executor pool) {
    this.protocol = protocol;
    this.core = core;
    this.verifier = verifier;
    this.pool = pool;
  }

  /**
   * Checks a signature soon. Does not block.
   *
   * @param then is told whether it is valid; runs in the pool and does not block
   */
  void check(Claim claim, Consumer<Boolean> then) {
    synchronized (waiting) {
      waiting.add(new Check(claim, then));
      if (running) {
        return;
      }
      running = true;
    }
    pool.execute(this::checkNext);
  }

  private void checkNext() {
    List<Check> together = new ArrayList<>();
    synchronized (waiting) {
      while (!waiting.isEmpty() && together.size() < MOST_TOGETHER) {
        together.add(waiting.remove());
      }
    }
    boolean all = hold(together.stream().map(Check::claim).toList());
    for (Check check : together) {
      boolean valid = all || (together.size() > 1 && hold(List.of(check.claim)));
      try {
        check.then.accept(valid);
      } catch (RuntimeException | Error e) {
        // An error too: the others wait for this lane.
        log.error("a checked signature could not be handed on", e);
      }
    }
    synchronized (waiting) {
      if (waiting.isEmpty()) {
        running = false;
        return;
      }
    }
    pool.execute(this::checkNext);
  }

  /** Whether both say so of every claim; one that cannot be checked is not valid. */
  private boolean hold(List<Claim> claims) {
    try {
      return verifier.verifiesAll(claims) && core.test(call(claims));
    } catch (RuntimeException | Error e) {
      log.error("signatures could not be checked", e);
      return false;
    }
  }

  private VerifyCall call(List<Claim> claims) {
    VerifyCall.Builder call = VerifyCall.newBuilder().setProtocol(protocol);
    for (Claim claim : claims) {
      call.addClaims(
          SignatureClaim.newBuilder()
              .setPublicKey(claim.publicKey())
              .setPayload(claim.payload())
              .setSignature(claim.signature().bytes()));
    }
    return call.build();
  }
}
