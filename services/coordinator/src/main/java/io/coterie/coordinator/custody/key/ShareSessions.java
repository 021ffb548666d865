package io.coterie.coordinator.custody.key;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.KeyRecord.Holder;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.custody.request.Pace;
import io.coterie.coordinator.custody.request.Run;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.custody.request.Stopping;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.ObservedSession;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.session.QuorumChooser;
import io.coterie.coordinator.session.QuorumChooser.Choice;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.session.Sessions;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs sessions of all parties of a key, one after another for one request, until all parties hold
 * the shares that it asks for, or no later session can succeed. {@link ShareFindings} decides
 * which.
 */
public final class ShareSessions {
  private static final Logger log = LoggerFactory.getLogger(ShareSessions.class);

  /** The request that sessions are run for. */
  interface Request {
    /** Called before the first order of all. */
    default void ordering() {}

    /** Whether this replica is to go on; asked before each further session. */
    boolean isMine();

    /**
     * Whether the sessions only ask which shares the parties hold already, and start nothing: their
     * orders leave no time for more.
     */
    default boolean onlyAsks() {
      return false;
    }
  }

  /** How it ended; {@code sessions} counts those of earlier processes too. */
  sealed interface End {
    record Made(Completion completion, int sessions) implements End {}

    record Failed(Failure failure, int sessions) implements End {}

    /** Another replica works on the request now. */
    record Lost() implements End {}

    /** This replica stops; another one goes on. */
    record Stopped() implements End {}
  }

  private final Sessions sessions;
  private final QuorumChooser chooser;
  private final AdaptiveTimeout timeout;
  private final PartyLink link;
  private final RunLimits limits;
  private final Stopping stopping;
  private final Clock clock;

  /** Sessions of one coordinator; none is running. */
  public ShareSessions(
      Sessions sessions,
      QuorumChooser chooser,
      AdaptiveTimeout timeout,
      PartyLink link,
      RunLimits limits,
      Stopping stopping,
      Clock clock) {
    this.sessions = sessions;
    this.chooser = chooser;
    this.timeout = timeout;
    this.link = link;
    this.limits = limits;
    this.stopping = stopping;
    this.clock = clock;
  }

  /** Requests of one kind that may be worked on at once. */
  int maxRuns() {
    return limits.maxRuns();
  }

  /**
   * The parties of those names, in ascending order of party id.
   *
   * @throws CustodyException naming the one that is not in the roster, or all of them while there
   *     is no channel: without a roster, names mean nothing
   */
  List<Holder> holders(String key, List<String> names) {
    Roster roster =
        link.channel()
            .map(SecureChannel::roster)
            .orElseThrow(() -> Failure.outOfReach(key, names).toException());
    List<Holder> holders = new ArrayList<>();
    for (String name : names) {
      Member member =
          roster
              .byName(name)
              .filter(m -> m.role() == Member.Role.PARTY)
              .orElseThrow(
                  () ->
                      Failure.parties(
                              ErrorReason.PARTY_UNKNOWN, key, List.of(name), 0, "not_in_roster")
                          .toException());
      holders.add(new Holder(member.partyId(), name));
    }
    holders.sort(Comparator.comparingInt(Holder::partyId));
    return holders;
  }

  /**
   * Runs sessions until the end.
   *
   * @param tried sessions of earlier processes for the same request
   */
  End make(ShareWork work, Request request, Run<?> run, int tried) throws InterruptedException {
    return new Attempts(work, request, run, tried).run();
  }

  /** The sessions for one request: a thread's state. */
  private final class Attempts {
    private final ShareWork work;
    private final Request request;
    private final Run<?> run;
    private final ShareFindings findings;
    private final Pace pace = new Pace(stopping, sessions.timer());
    private int tried;
    private int attempt;

    Attempts(ShareWork work, Request request, Run<?> run, int tried) {
      this.work = work;
      this.request = request;
      this.run = run;
      this.tried = tried;
      this.findings = new ShareFindings(work, tried > 0);
    }

    End run() throws InterruptedException {
      while (!stopping.hasBegun()) {
        if (attempt > 0 && !request.isMine()) {
          log.warn("this replica leaves a request to another one, which works on it now");
          return new End.Lost();
        }
        if (findings.mayFail()) {
          if (run.isCancelled()) {
            return failed(Failure.of(ErrorReason.OPERATION_CANCELLED, run.resource));
          }
          if (clock.instant().isAfter(work.notAfter())) {
            return failed(run.lastFailureOrExpiry().as(ErrorReason.INTENT_EXPIRED));
          }
          if (tried >= limits.maxSessions()) {
            return failed(run.lastFailureOrExpiry().as(work.failure()));
          }
        }
        Optional<SecureChannel> channel = link.channel();
        if (channel.isEmpty()) {
          run.failedFor(
              Failure.outOfReach(run.resource, work.parties().stream().map(Holder::name).toList()));
          pace.pause();
          continue;
        }
        End end = tryOnce(channel.get());
        if (end != null) {
          return end;
        }
      }
      return new End.Stopped();
    }

    /** One session, or a pause until its parties can be reached; null if another is to be tried. */
    private @Nullable End tryOnce(SecureChannel channel) throws InterruptedException {
      List<Member> members = members(channel, work.parties());
      // All parties take part: a key has a share for each.
      switch (chooser.choose(
          work.parties().size(), members, channel.reachable(), new HashMap<>())) {
        case Choice.Exhausted _ -> {
          return failed(
              Failure.parties(
                  ErrorReason.PARTY_UNKNOWN,
                  run.resource,
                  work.parties().stream()
                      .filter(h -> members.stream().noneMatch(m -> m.partyId() == h.partyId()))
                      .map(Holder::name)
                      .toList(),
                  0,
                  "not_in_roster"));
        }
        case Choice.OutOfReach outOfReach -> {
          awaitReachable(channel, Set.copyOf(outOfReach.unreachable()));
          return null;
        }
        case Choice.Chosen chosen -> {
          Set<Integer> able = findings.dealers();
          List<Member> dealers = members(channel, work.dealers());
          dealers.removeIf(m -> !able.contains(m.partyId()));
          Set<Member> away = new HashSet<>(dealers);
          away.removeAll(channel.reachable());
          dealers.removeAll(away);
          if (!findings.canDeal(
              dealers.stream().map(Member::partyId).collect(Collectors.toSet()))) {
            awaitReachable(channel, away);
            return null;
          }
          if (attempt > 0) {
            pace.pause();
          }
          return tryWith(channel, chosen.parties(), dealers);
        }
      }
    }

    private void awaitReachable(SecureChannel channel, Set<Member> away)
        throws InterruptedException {
      run.failedFor(Failure.outOfReach(run.resource, Failure.names(away)));
      pace.pauseUntilReachable(channel, away);
    }

    private List<Member> members(SecureChannel channel, List<Holder> holders) {
      List<Member> members = new ArrayList<>();
      for (Holder holder : holders) {
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
        request.ordering();
      }
      Instant now = clock.instant();
      Duration usual = timeout.next(attempt);
      Duration least = work.leastTime(attempt);
      Duration time = usual.compareTo(least) < 0 ? least : usual;
      ObservedSession session =
          sessions.start(
              channel,
              new SessionPlan(
                  work.ofSession(dealers),
                  work.scheme(),
                  work.key(),
                  work.epoch(),
                  work.threshold(),
                  work.intent(),
                  parties,
                  deadline(now, time),
                  run.trace));
      tried++;
      attempt++;
      run.trying(session);
      long started = sessions.timer().nanos();
      SessionOutcome outcome = session.await(atMost(time, now));
      if (outcome instanceof SessionOutcome.Created created) {
        if (least.isZero()) {
          timeout.succeeded(sessions.timer().nanos() - started);
        }
        return new End.Made(created.completion(), tried);
      }
      if (outcome instanceof SessionOutcome.Stopped) {
        return new End.Stopped();
      }
      boolean past = isPast(clock.instant());
      Failure failure = Failure.of(run.resource, session, outcome).asOf(past);
      run.failedFor(failure);
      try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
        log.warn("a session made no new shares: {} {}", failure.reason(), failure.metadata());
      }
      Failure end = findings.learn(outcome, failure, past);
      if (findings.isIncomplete() && run.isCancelled()) {
        return null;
      }
      if (end != null) {
        return failed(end);
      }
      if (outcome instanceof SessionOutcome.Unsent) {
        tried--;
      }
      return null;
    }

    private boolean isPast(Instant now) {
      return request.onlyAsks() || run.isCancelled() || now.isAfter(work.notAfter());
    }

    private Instant deadline(Instant now, Duration time) {
      if (isPast(now)) {
        // This lies so far back that no party's clock leaves it time to start anything.
        Instant past = now.minus(limits.clockSkew().multipliedBy(2));
        return past.isAfter(work.notAfter()) ? work.notAfter() : past;
      }
      Instant deadline = now.plus(time).plus(limits.clockSkew());
      return deadline.isAfter(work.notAfter()) ? work.notAfter() : deadline;
    }

    private Duration atMost(Duration time, Instant now) {
      Duration untilExpiry = Duration.between(now, work.notAfter());
      return isPast(now) || time.compareTo(untilExpiry) <= 0 ? time : untilExpiry;
    }

    private End failed(Failure failure) {
      return new End.Failed(failure, tried);
    }
  }
}
