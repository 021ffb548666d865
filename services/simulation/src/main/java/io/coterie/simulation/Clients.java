package io.coterie.simulation;

import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.custody.signing.CancelledSigning;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The clients of a requester: they ask a replica for a signature, wait for as long as they like,
 * ask again, there or at the other replica, and cancel.
 */
final class Clients {
  private static final long MILLI = 1_000_000L;

  /** So many of the latest requests may be asked for again, or cancelled. */
  private static final int LATELY = 4;

  /** How often a client repeats a call that gave it no end. */
  private static final int MOST_REPEATS = 4;

  private static final Duration LONG = Duration.ofSeconds(15);

  private final World world;
  private final RequestWorld replicas;
  private final List<SigningRequest> requests = new ArrayList<>();
  private int cancellations;

  Clients(World world, RequestWorld replicas) {
    this.world = world;
    this.replicas = replicas;
  }

  /**
   * Does something of what clients do.
   *
   * @param own decides what
   */
  void act(Chance own) {
    int choice = own.below(10);
    if (choice < 5 || requests.isEmpty()) {
      ask(own, begin(world.coordinator().anyKey(own), own), MOST_REPEATS);
    } else if (choice < 8) {
      ask(own, recent(own), MOST_REPEATS);
    } else {
      cancel(own, recent(own));
    }
  }

  private SigningRequest recent(Chance own) {
    return requests.get(requests.size() - 1 - own.below(Math.min(LATELY, requests.size())));
  }

  private SigningRequest begin(SimulatedKey key, Chance own) {
    Duration life = Duration.ofMillis(own.between(6_000, 25_000));
    String id = RequestId.at(world.now().minus(SimulatedCoordinator.DRAWN_AGO), own);
    SignedIntent intent =
        Identities.intents()
            .sign(
                Intents.signing(
                    id,
                    SimulatedCoordinator.known(key),
                    key.reshareEpoch,
                    key.scheme,
                    own.bytes(16),
                    life,
                    world.now()));
    Ordered.Cause cause =
        new Ordered.Cause(Ordered.REQUEST + id, IntentVerifier.digest(intent.getPayload()), true);
    SigningRequest request = new SigningRequest(id, key, intent, cause);
    requests.add(request);
    replicas.begun(request);
    return request;
  }

  /**
   * Asks a replica for a signature.
   *
   * @param repeats how often the client asks again if it gets no end
   */
  private void ask(Chance own, SigningRequest request, int repeats) {
    Duration patience = Duration.ofMillis(own.between(100, 6_000));
    Member member = replicas.any(own);
    long pause = own.between(20 * MILLI, 1_000 * MILLI);
    boolean patient = own.perMille(700);
    call(
        member,
        request,
        patience,
        () -> {
          if (repeats > 0 && patient) {
            world
                .timeline()
                .in(pause, () -> ask(own.part("repeat " + repeats), request, repeats - 1));
          }
        });
  }

  /**
   * Asks for a signature.
   *
   * @param failed told that there is no end
   */
  private void call(Member member, SigningRequest request, Duration patience, Runnable failed) {
    CoordinatorProcess process = replicas.process(member);
    if (process == null) {
      failed.run();
      return;
    }
    world.trace().line("a client asks " + member.name() + " for " + request.id());
    process.call(
        () -> {
          RequestChecker.Call call = replicas.checker().called(request, patience);
          try {
            SigningRecord record = process.sign(request.intent(), patience);
            count(request, record.state().name());
            replicas.checker().answered(call, record);
          } catch (CustodyException e) {
            count(request, e.reason().name());
            replicas.checker().answered(call);
            failed.run();
          } catch (StoreUnavailableException e) {
            count(request, "UNAVAILABLE");
            failed.run();
          } catch (InterruptedException e) {
            throw new IllegalStateException("no thread is interrupted", e);
          }
        });
  }

  private void count(SigningRequest request, String answer) {
    world.coverage().count("answer " + answer);
    world.trace().line("answer " + answer + " for " + request.id());
  }

  private void cancel(Chance own, SigningRequest request) {
    Member member = replicas.any(own);
    Duration patience = Duration.ofMillis(own.between(500, 6_000));
    CoordinatorProcess process = replicas.process(member);
    if (process == null) {
      return;
    }
    // Each is signed at another time, so none is the same as another.
    cancellations++;
    SignedIntent intent =
        Identities.intents()
            .sign(
                Intents.cancel(
                    request.intent(), world.now().plusSeconds(60).plusMillis(cancellations)));
    replicas.checker().cancels(verified(intent));
    world.trace().line("a client cancels " + request.id() + " at " + member.name());
    process.call(
        () -> {
          RequestChecker.Call call = replicas.checker().called(request, patience);
          try {
            CancelledSigning ended = process.cancel(intent, patience);
            count(request, "to a cancellation " + ended.state());
            SigningRecord record = ended.record();
            if (ended.state() == Signing.State.SIGNED && record != null) {
              replicas.checker().answered(call, record);
            } else if (ended.state() == Signing.State.NOT_SIGNED) {
              replicas.checker().never(call, ended.receipts(), record != null);
            } else {
              replicas.checker().answered(call);
            }
          } catch (CustodyException e) {
            count(request, "to a cancellation " + e.reason());
            replicas.checker().answered(call);
          } catch (StoreUnavailableException e) {
            count(request, "to a cancellation UNAVAILABLE");
          } catch (InterruptedException e) {
            throw new IllegalStateException("no thread is interrupted", e);
          }
        });
  }

  private static VerifiedIntent.Cancellation verified(SignedIntent intent) {
    try {
      return (VerifiedIntent.Cancellation) IntentVerifier.verify(intent, Identities.requesters());
    } catch (IntentException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Asks for everything once more, and waits for the answers. */
  void askAgain() {
    AtomicInteger missing = new AtomicInteger();
    Chance own = world.chance().part("clients at the end");
    for (SigningRequest request : requests) {
      missing.incrementAndGet();
      Member member = replicas.any(own);
      CoordinatorProcess process = replicas.process(member);
      if (process == null) {
        throw new IllegalStateException(member.name() + " does not run");
      }
      process.call(
          () -> {
            RequestChecker.Call call = replicas.checker().called(request, LONG);
            try {
              replicas.checker().answered(call, process.sign(request.intent(), LONG));
            } catch (CustodyException e) {
              // It has expired, and no replica has stored it.
              if (replicas.stored(request).isPresent()) {
                replicas.checker().violated(Breach.REQUEST_WITHOUT_END, request);
              }
            } catch (InterruptedException e) {
              throw new IllegalStateException("no thread is interrupted", e);
            }
            missing.decrementAndGet();
          });
    }
    if (!world.waitFor(LONG.plusSeconds(1), () -> missing.get() == 0)) {
      requests.forEach(request -> replicas.checker().violated(Breach.REQUEST_WITHOUT_END, request));
    }
  }

  /** A new request, for which a client waits. */
  SigningRequest askNow(SimulatedKey key) {
    Chance own = world.chance().part("client of " + key.name);
    SigningRequest request = begin(key, own);
    call(replicas.any(own), request, LONG, () -> {});
    return request;
  }
}
