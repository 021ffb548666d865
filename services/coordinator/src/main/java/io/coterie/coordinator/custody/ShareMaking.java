package io.coterie.coordinator.custody;

import io.coterie.channel.Member;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.QuorumChooser.Choice;
import io.coterie.coordinator.session.RefusalScope;
import io.coterie.coordinator.session.Session;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.session.Sessions;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.SessionFailures;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.RefusalReason;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sessions of all parties of a key, tried one after another for one request until all parties hold
 * the shares that it asks for, or it can be said that they never will.
 */
public final class ShareMaking {
  private static final Logger log = LoggerFactory.getLogger(ShareMaking.class);

  /**
   * What is wanted.
   *
   * @param from the key's public data of the epoch that is replaced; null for a new key
   * @param dealers a reshare: the parties of that epoch, in ascending order of party id; else empty
   * @param epoch in the order
   * @param parties that will hold a share, in ascending order of party id
   * @param failure the reason when no session can succeed
   * @param ordering done before the first order of all
   * @param stillMine whether this replica is to go on; asked before each further session
   * @param asking only ask for what the parties hold already, and start nothing: they have no time
   *     left by the order
   * @param inDoubt whether a request that ran out of time, or of sessions, is still asked about
   *     until a party has shown that it holds no share of it
   */
  record Task(
      String key,
      Scheme scheme,
      @Nullable KeyPublic from,
      List<KeyRecord.Holder> dealers,
      int epoch,
      int threshold,
      SignedIntent intent,
      Instant notAfter,
      List<KeyRecord.Holder> parties,
      ErrorReason failure,
      Runnable ordering,
      BooleanSupplier stillMine,
      boolean asking,
      boolean inDoubt) {
    Task {
      dealers = List.copyOf(dealers);
      parties = List.copyOf(parties);
    }

    /** What the session is to do, with those of the dealers that can. */
    SessionPlan.Work work(Collection<Member> able) {
      if (from == null) {
        return new SessionPlan.Work.Keygen();
      }
      return dealers.isEmpty()
          ? new SessionPlan.Work.Refresh(from)
          : new SessionPlan.Work.Reshare(
              from,
              able.stream().map(Member::partyId).toList(),
              parties.stream().map(KeyRecord.Holder::partyId).toList());
    }
  }

  /** How it ended; {@code sessions} counts those of earlier processes too. */
  sealed interface End {
    record Made(KeyPublic keyPublic, int sessions) implements End {}

    record Failed(Trouble trouble, int sessions) implements End {}

    /** Another replica works on the request now. */
    record Lost() implements End {}

    /** This replica stops; another one goes on. */
    record Stopped() implements End {}
  }

  private final CompletableFuture<Void> stopping = new CompletableFuture<>();
  private final Sessions sessions;
  private final QuorumChooser chooser;
  private final AdaptiveTimeout timeout;
  private final PartyLink link;
  private final RunLimits limits;
  private final Clock clock;

  public ShareMaking(
      Sessions sessions,
      QuorumChooser chooser,
      AdaptiveTimeout timeout,
      PartyLink link,
      RunLimits limits,
      Clock clock) {
    this.sessions = sessions;
    this.chooser = chooser;
    this.timeout = timeout;
    this.link = link;
    this.limits = limits;
    this.clock = clock;
  }

  /** Starts nothing new; what is running ends at its next step. */
  void stop() {
    stopping.complete(null);
  }

  CompletableFuture<Void> stopping() {
    return stopping;
  }

  /**
   * Runs sessions until the end.
   *
   * @param tried sessions of earlier processes for the same request
   */
  End drive(Task task, Run<?> run, int tried) throws InterruptedException {
    return new Drive(task, run, tried).drive();
  }

  /** A thread's state. */
  private final class Drive {
    private final Task task;
    private final Run<?> run;
    private final Pace pace = new Pace(stopping);
    private int tried;
    private int attempt;

    /**
     * Whether nobody can have all shares of this request: nobody was asked yet, or a party has
     * shown in the last session that it holds none.
     */
    private boolean unmade;

    /** Dealers that have said that they have no share to deal with. */
    private final Set<Integer> shareless = new HashSet<>();

    /** Culprits of earlier sessions. */
    private final Set<Integer> blamed = new HashSet<>();

    Drive(Task task, Run<?> run, int tried) {
      this.task = task;
      this.run = run;
      this.tried = tried;
      this.unmade = tried == 0;
    }

    End drive() throws InterruptedException {
      while (!stopping.isDone()) {
        if (attempt > 0 && !task.stillMine().getAsBoolean()) {
          log.warn("another replica works on this request now");
          return new End.Lost();
        }
        if (unmade || !task.inDoubt()) {
          if (run.isCancelled()) {
            return failed(Trouble.of(ErrorReason.OPERATION_CANCELLED, run.resource));
          }
          if (clock.instant().isAfter(task.notAfter())) {
            return failed(lastTrouble().as(ErrorReason.INTENT_EXPIRED));
          }
          if (tried >= limits.maxSessions()) {
            return failed(lastTrouble().as(task.failure()));
          }
        }
        Optional<SecureChannel> channel = link.channel();
        if (channel.isEmpty()) {
          run.troubled(
              Trouble.outOfReach(
                  run.resource, task.parties().stream().map(KeyRecord.Holder::name).toList()));
          pace.pause();
          continue;
        }
        List<Member> members = members(channel.get(), task.parties());
        // All of them: a key has a share for each.
        switch (chooser.choose(
            task.parties().size(), members, channel.get().reachable(), new HashMap<>())) {
          case Choice.Exhausted e -> {
            return failed(
                Trouble.parties(
                    ErrorReason.PARTY_UNKNOWN,
                    run.resource,
                    task.parties().stream()
                        .filter(h -> members.stream().noneMatch(m -> m.partyId() == h.partyId()))
                        .map(KeyRecord.Holder::name)
                        .toList(),
                    0,
                    "not_in_roster"));
          }
          case Choice.OutOfReach o -> {
            run.troubled(Trouble.outOfReach(run.resource, Trouble.names(o.unreachable())));
            pace.pauseUntilReachable(channel.get(), o.unreachable());
          }
          case Choice.Chosen chosen -> {
            List<Member> dealers = members(channel.get(), task.dealers());
            dealers.removeIf(m -> shareless.contains(m.partyId()));
            Set<Member> away = new HashSet<>(dealers);
            away.removeAll(channel.get().reachable());
            dealers.removeAll(away);
            if (!canDeal(dealers.stream().map(Member::partyId).collect(Collectors.toSet()))) {
              run.troubled(Trouble.outOfReach(run.resource, Trouble.names(away)));
              pace.pauseUntilReachable(channel.get(), away);
              continue;
            }
            if (attempt > 0) {
              pace.pause();
            }
            End end = tryWith(channel.get(), chosen.parties(), dealers);
            if (end != null) {
              return end;
            }
          }
        }
      }
      return new End.Stopped();
    }

    /**
     * Whether those can deal without the other dealers: as many as the old threshold, and fewer are
     * left behind with an old share. The parties insist on it.
     */
    private boolean canDeal(Set<Integer> dealing) {
      KeyPublic from = task.from();
      if (from == null || task.dealers().isEmpty()) {
        return true;
      }
      Set<Integer> leftBehind = ids(task.dealers());
      leftBehind.removeAll(dealing);
      leftBehind.removeAll(ids(task.parties()));
      int threshold = from.getThreshold();
      return dealing.size() >= threshold && leftBehind.size() < threshold;
    }

    private static Set<Integer> ids(List<KeyRecord.Holder> holders) {
      return holders.stream()
          .map(KeyRecord.Holder::partyId)
          .collect(Collectors.toCollection(HashSet::new));
    }

    private List<Member> members(SecureChannel channel, List<KeyRecord.Holder> holders) {
      List<Member> members = new ArrayList<>();
      for (KeyRecord.Holder holder : holders) {
        channel.roster().byPartyId(holder.partyId()).ifPresent(members::add);
      }
      return members;
    }

    /** One session; null if another one is to be tried. */
    private @Nullable End tryWith(SecureChannel channel, List<Member> holders, List<Member> dealers)
        throws InterruptedException {
      List<Member> parties =
          Stream.concat(holders.stream(), dealers.stream())
              .distinct()
              .sorted(Comparator.comparingInt(Member::partyId))
              .toList();
      if (tried == 0) {
        task.ordering().run();
      }
      Instant now = clock.instant();
      Duration time = timeout.next(attempt);
      Session session =
          sessions.start(
              channel,
              new SessionPlan(
                  task.work(dealers),
                  task.scheme(),
                  task.key(),
                  task.epoch(),
                  task.threshold(),
                  task.intent(),
                  parties,
                  deadline(now, time),
                  run.trace));
      tried++;
      attempt++;
      run.trying(session);
      long started = System.nanoTime();
      SessionOutcome outcome = session.await(atMost(time, now));
      if (outcome instanceof SessionOutcome.Created created) {
        timeout.succeeded(System.nanoTime() - started);
        return new End.Made(created.keyPublic(), tried);
      }
      if (outcome instanceof SessionOutcome.Stopped) {
        return new End.Stopped();
      }
      unmade = shows(outcome);
      Trouble trouble = Trouble.of(run.resource, session, outcome).asOf(isPast(clock.instant()));
      run.troubled(trouble);
      try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
        log.warn("no new shares: {} {}", trouble.reason(), trouble.metadata());
      }
      if (unmade && run.isCancelled()) {
        return null;
      }
      Trouble end = lasting(session, outcome, trouble);
      if (end != null) {
        return failed(end);
      }
      if (outcome instanceof SessionOutcome.Unsent) {
        tried--;
      }
      return null;
    }

    private boolean isPast(Instant now) {
      return task.asking() || run.isCancelled() || now.isAfter(task.notAfter());
    }

    private Instant deadline(Instant now, Duration time) {
      if (isPast(now)) {
        // So far back that no party's clock leaves it time to start anything.
        Instant past = now.minus(limits.clockSkew().multipliedBy(2));
        return past.isAfter(task.notAfter()) ? task.notAfter() : past;
      }
      Instant deadline = now.plus(time).plus(limits.clockSkew());
      return deadline.isAfter(task.notAfter()) ? task.notAfter() : deadline;
    }

    private Duration atMost(Duration time, Instant now) {
      Duration untilExpiry = Duration.between(now, task.notAfter());
      return isPast(now) || time.compareTo(untilExpiry) <= 0 ? time : untilExpiry;
    }

    /**
     * Whether a party without a share took part in it. A party that has one would have said so, and
     * without all parties' shares none of them is used.
     */
    private static boolean shows(SessionOutcome outcome) {
      return switch (outcome) {
        case SessionOutcome.Refused r -> true;
        case SessionOutcome.Aborted a -> true;
        case SessionOutcome.Undecided u -> !u.without().isEmpty();
        case SessionOutcome.TimedOut t -> t.round() > 0;
        default -> false;
      };
    }

    /**
     * Why no later session of this request can succeed; null if one may. All parties are needed.
     */
    private @Nullable Trouble lasting(Session session, SessionOutcome outcome, Trouble trouble) {
      return switch (outcome) {
        case SessionOutcome.Refused refused -> {
          for (Map.Entry<Integer, RefusalReason> e : refused.by().entrySet()) {
            RefusalScope scope = RefusalScope.of(e.getValue());
            if (dealsNoMore(e.getKey(), e.getValue())) {
              shareless.add(e.getKey());
            } else if (scope != RefusalScope.PARTY && !wasLate(e.getValue())) {
              yield Trouble.parties(
                  scope == RefusalScope.EPOCH
                      ? ErrorReason.EPOCH_MISMATCH
                      : SessionFailures.reason(e.getValue()),
                  run.resource,
                  session.names(List.of(e.getKey())),
                  0,
                  e.getValue().name());
            }
          }
          yield null;
        }
        case SessionOutcome.Aborted aborted -> {
          if (!aborted.culprits().isEmpty()) {
            yield blamedForGood(aborted.culprits()) ? trouble : null;
          }
          yield aborted.hopeless() ? trouble.as(task.failure()) : null;
        }
        case SessionOutcome.Undecided u -> null;
        case SessionOutcome.TimedOut t -> null;
        case SessionOutcome.Unsent u -> null;
        case SessionOutcome.Stopped s -> null;
        case SessionOutcome.Created c -> null;
        case SessionOutcome.Bound b ->
            throw new IllegalStateException("a key generation session answered for a signature");
        case SessionOutcome.Signed s ->
            throw new IllegalStateException("a key generation session made a signature");
        case SessionOutcome.Presigned p ->
            throw new IllegalStateException("a key generation session made a presignature");
      };
    }

    /** Whether the order had come too late, rather than the request. */
    private boolean wasLate(RefusalReason reason) {
      return reason == RefusalReason.REFUSAL_REASON_INTENT_EXPIRED && !isPast(clock.instant());
    }

    /**
     * Whether one of the culprits is to be taken for one. In a renewal it may have to be blamed
     * twice: while parties switch, one of them may deal with a share that fits no other.
     */
    private boolean blamedForGood(Set<Integer> culprits) {
      boolean again = culprits.stream().anyMatch(blamed::contains);
      blamed.addAll(culprits);
      return again || !task.inDoubt();
    }

    /**
     * Whether a party that cannot deal may be left out as a dealer: it has lost its share, or
     * missed what became of it.
     */
    private boolean dealsNoMore(int party, RefusalReason reason) {
      Set<Integer> rest = ids(task.dealers());
      rest.removeAll(shareless);
      return (reason == RefusalReason.REFUSAL_REASON_UNKNOWN_KEY
              || reason == RefusalReason.REFUSAL_REASON_WRONG_EPOCH)
          && rest.remove(party)
          && canDeal(rest);
    }

    private Trouble lastTrouble() {
      Trouble last = run.trouble();
      return last != null ? last : Trouble.of(ErrorReason.INTENT_EXPIRED, run.resource);
    }

    private End failed(Trouble trouble) {
      return new End.Failed(trouble, tried);
    }
  }
}
