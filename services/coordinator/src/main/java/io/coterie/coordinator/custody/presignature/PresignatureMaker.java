package io.coterie.coordinator.custody.presignature;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Combination;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Place;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Presignature;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.session.ObservedSession;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.RefusalScope;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.session.Sessions;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.platform.telemetry.TraceContext;
import io.coterie.proto.custody.v1.Key;
import io.coterie.trust.Member;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.BiPredicate;
import java.util.function.IntSupplier;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the stock of presignatures filled, in the background and behind the signings: nothing is
 * made with a party that has all the signing sessions it can do, and as many sessions run at once
 * as {@link MakingPlaces} says.
 */
public final class PresignatureMaker {
  private static final Logger log = LoggerFactory.getLogger(PresignatureMaker.class);

  /** Longest pause between two looks at the stock, if it calls for none. */
  private static final Duration LOOK = Duration.ofMillis(250);

  /**
   * Bounds.
   *
   * @param maxRunning sessions at once
   * @param time for one session; those of pairs, who garble circuits, have more
   */
  public record Limits(int maxRunning, Duration time) {}

  private final MakingPlaces places;
  private final Semaphore calls = new Semaphore(0);
  private final PresignatureStock stock;
  private final KeyDirectory keys;
  private final Sessions sessions;
  private final PartyLink link;
  private final Limits limits;
  private final IntSupplier signings;
  private final BiPredicate<List<Integer>, Boolean> hasRoom;
  private final Executor threads;
  private final Clock clock;
  private final SecureRandom random;
  private volatile boolean stopping;

  /**
   * A maker that has not started.
   *
   * @param signings how many are being worked on
   * @param hasRoom whether each of these parties could do more than its signings; with true,
   *     whether it keeps up with them
   * @param threads starts a thread for each task; they wait most of the time
   */
  public PresignatureMaker(
      PresignatureStock stock,
      KeyDirectory keys,
      Sessions sessions,
      PartyLink link,
      Limits limits,
      IntSupplier signings,
      BiPredicate<List<Integer>, Boolean> hasRoom,
      Executor threads,
      Clock clock,
      SecureRandom random) {
    this.stock = stock;
    this.keys = keys;
    this.sessions = sessions;
    this.link = link;
    this.limits = limits;
    this.places = new MakingPlaces(limits.maxRunning());
    this.signings = signings;
    this.hasRoom = hasRoom;
    this.threads = threads;
    this.clock = clock;
    this.random = random;
    stock.listen(calls::release, dropped -> threads.execute(() -> giveBack(dropped)));
  }

  /** Starts filling. */
  public void start() {
    threads.execute(
        () -> {
          try {
            while (!stopping) {
              calls.tryAcquire(LOOK.toNanos(), TimeUnit.NANOSECONDS);
              calls.drainPermits();
              link.channel().ifPresent(this::fill);
            }
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        });
  }

  /** Starts nothing more, and gives back what is ready. */
  public void stop() {
    stopping = true;
    calls.release();
    stock.close();
  }

  /**
   * Tells the parties: they would keep their shares until these are too old, and have room for a
   * limited number.
   */
  private void giveBack(List<Presignature> dropped) {
    link.channel()
        .ifPresent(
            channel -> {
              Set<Member> reachable = channel.reachable();
              // The presignatures of one session are abandoned together.
              Map<SessionId, Combination> sessionsOf = new LinkedHashMap<>();
              dropped.forEach(p -> sessionsOf.put(p.session(), p.combination()));
              sessionsOf.forEach(
                  (session, combination) ->
                      sessions.cancel(
                          channel,
                          session,
                          reachable.stream()
                              .filter(m -> combination.signingSet().contains(m.partyId()))
                              .toList(),
                          null));
            });
  }

  private void fill(SecureChannel channel) {
    try {
      stock.reachable(
          channel.reachable().stream()
              .filter(m -> m.role() == Member.Role.PARTY)
              .map(Member::partyId)
              .collect(Collectors.toSet()));
      while (!stopping) {
        Optional<Place> next =
            stock.next(
                signings.getAsInt(),
                (combination, soon) ->
                    places.isFree(combination) && hasRoom.test(combination.signingSet(), soon));
        if (next.isEmpty()) {
          return;
        }
        places.begun(next.get().combination());
        threads.execute(
            () -> {
              boolean made = false;
              try {
                made = make(channel, next.get());
              } finally {
                places.ended(next.get().combination(), made);
                calls.release();
              }
            });
      }
    } catch (RuntimeException e) {
      log.error("this replica failed to fill its stock of presignatures", e);
    }
  }

  /** Whether there are presignatures of it. */
  private boolean make(SecureChannel channel, Place place) {
    Combination combination = place.combination();
    boolean made = false;
    try {
      Optional<KeyRecord> key =
          keys.find(combination.key()).filter(k -> k.state() == Key.State.ACTIVE);
      List<Member> parties = new ArrayList<>();
      combination.signingSet().forEach(p -> channel.roster().byPartyId(p).ifPresent(parties::add));
      if (key.isEmpty()
          || key.get().epoch() != combination.epoch()
          || parties.size() != combination.signingSet().size()) {
        stock.refused(combination);
        return false;
      }
      Duration time = combination.messageBlocks() == 0 ? limits.time() : SessionPlan.PAIR_TIME;
      ObservedSession session =
          sessions.start(
              channel,
              new SessionPlan(
                  new SessionPlan.Work.Presign(
                      combination.target(), place.count(), combination.messageBlocks()),
                  key.get().scheme(),
                  combination.key(),
                  combination.epoch(),
                  key.get().threshold(),
                  null,
                  parties,
                  clock.instant().plus(time),
                  TraceContext.create(random)));
      SessionOutcome outcome = session.await(time);
      if (outcome instanceof SessionOutcome.Presigned presigned) {
        made = true;
        stock.made(place, presigned.ids(), session.id());
        return true;
      }
      if (outcome instanceof SessionOutcome.Refused refused
          && refused.by().values().stream()
              .map(RefusalScope::of)
              .anyMatch(s -> s == RefusalScope.REQUEST || s == RefusalScope.SIGNING_SET)) {
        stock.refused(combination);
      }
      if (!(outcome instanceof SessionOutcome.Stopped)) {
        Failure failure = Failure.of(combination.key(), session, outcome);
        try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
          log.warn("a session made no presignatures: {} {}", failure.reason(), failure.metadata());
        }
      }
    } catch (StoreUnavailableException e) {
      log.warn("this replica makes no presignatures without its database: {}", e.getMessage());
    } catch (RuntimeException e) {
      log.error("this replica failed to make presignatures", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      if (!made) {
        stock.failed(place);
      }
    }
    return false;
  }
}
