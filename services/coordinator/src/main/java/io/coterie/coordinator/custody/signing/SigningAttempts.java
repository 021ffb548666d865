package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.key.KeyRecord;
import io.coterie.coordinator.custody.key.KeyRenewals;
import io.coterie.coordinator.custody.presignature.PresignatureStock;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Combination;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Presignature;
import io.coterie.coordinator.custody.presignature.PresignatureStock.Purpose;
import io.coterie.coordinator.custody.presignature.Promise;
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
import io.coterie.coordinator.session.RefusalScope;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.coordinator.session.SessionPlan;
import io.coterie.coordinator.session.Sessions;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tries one signing set after another for one request, until there is a verified signature, no
 * later session can succeed, or the intent has expired. {@link Candidates} decides who is asked;
 * this class acts. Confined to one thread.
 */
public final class SigningAttempts {
  private static final Logger log = LoggerFactory.getLogger(SigningAttempts.class);

  /** The services that the work on each request needs. */
  public record Services(
      KeyDirectory keys,
      KeyRenewals renewals,
      PresignatureStock presignatures,
      Sessions sessions,
      QuorumChooser chooser,
      AdaptiveTimeout timeout,
      PartyLink link,
      RunLimits limits,
      SessionTurns turns,
      Stopping stopping,
      Clock clock) {}

  /** The request that is worked on. Its end is stored, and its callers get it. */
  interface Request {
    /** Sessions that earlier processes tried. */
    int sessions();

    /** Whether this replica is to go on; asked before each further session. */
    boolean isMine();

    /** Does it again until the database answers: an attempt that ends forgets its sessions. */
    void persistently(Runnable access) throws InterruptedException;

    /** Another session than the first one has begun. */
    void trying(int session);

    /** There is a verified signature. */
    void succeed(SigningRecord.Result result, List<String> contributors, int sessions)
        throws InterruptedException;

    /** There will be none. */
    void fail(Failure why, int sessions) throws InterruptedException;
  }

  private final Services services;
  private final PresignatureStock presignatures;
  private final Clock clock;
  private final ReplicaTime time;
  private final Request request;
  private final Run<SigningRecord> run;
  private final VerifiedIntent.Signing intent;
  private final SigningSubject subject;
  private final Pace pace;
  private final Candidates candidates;
  private final SignedRefusals refusals;
  private final SessionTimes times;
  private final boolean presignable;

  /** Whether the two that sign talk with each other alone. */
  private final boolean ofPairs;

  private KeyRecord key;
  private KeyPublic keyPublic;
  private int tried;
  private int attempt;

  /** A session that may still become the signature: its order is given again first. */
  private @Nullable UnsettledSession unsettled;

  /**
   * The work on one request, not begun.
   *
   * @param key ACTIVE, and of the intent's scheme
   */
  SigningAttempts(
      Services services,
      Request request,
      Run<SigningRecord> run,
      VerifiedIntent.Signing intent,
      KeyRecord key,
      SigningSubject subject) {
    this.services = services;
    this.presignatures = services.presignatures();
    this.clock = services.clock();
    this.request = request;
    this.run = run;
    this.intent = intent;
    this.subject = subject;
    this.time = services.sessions().timer();
    this.pace = new Pace(services.stopping(), time);
    this.candidates = new Candidates(services.keys().excluded(intent.key()));
    this.refusals = new SignedRefusals(intent);
    this.times = new SessionTimes(services.timeout(), services.limits(), clock, run, intent);
    this.presignable = Protocol.of(intent.scheme(), Operation.SIGN_PRESIGNED).isPresent();
    this.ofPairs =
        Protocol.of(intent.scheme(), Operation.SIGN).filter(Protocol::isOfPairs).isPresent();
    this.key = key;
    this.keyPublic = Objects.requireNonNull(key.keyPublic());
    this.tried = request.sessions();
  }

  /** Works until the end; false if the request has become another replica's work. */
  boolean run() throws InterruptedException {
    while (!services.stopping().hasBegun()) {
      if (attempt > 0 && !request.isMine()) {
        log.warn("this replica leaves a request to another one, which works on it now");
        return false;
      }
      if (times.isExpired()) {
        return fail(run.lastFailureOrExpiry().as(ErrorReason.INTENT_EXPIRED));
      }
      if (tried >= services.limits().maxSessions()) {
        return fail(run.lastFailureOrExpiry());
      }
      Optional<SecureChannel> channel = services.link().channel();
      if (channel.isEmpty()) {
        run.failedFor(Failure.outOfReach(run.resource, List.of()));
        pace.pause();
        continue;
      }
      if (tryOnce(channel.get())) {
        return true;
      }
    }
    run.drain();
    return true;
  }

  /** The request has ended without a signature; parties may have said that they refused it. */
  private boolean fail(Failure why) throws InterruptedException {
    request.fail(why.with(refusals.receipts()), tried);
    return true;
  }

  /** One session, or a pause until there can be one; true if the request has ended. */
  private boolean tryOnce(SecureChannel channel) throws InterruptedException {
    UnsettledSession open = unsettled;
    if (open != null) {
      unsettled = null;
      return tryAgain(channel, open);
    }
    List<Member> members = candidates.among(key, channel.roster());
    Set<Member> reachable = channel.reachable();
    Optional<Presignature> presignature = presignature(members, reachable);
    if (presignature.isPresent()) {
      List<Integer> set = presignature.get().combination().signingSet();
      List<Member> parties =
          members.stream()
              .filter(m -> set.contains(m.partyId()))
              .sorted(Comparator.comparingInt(Member::partyId))
              .toList();
      return tryWith(channel, parties, presignature.get().id());
    }
    return switch (services
        .chooser()
        .choose(key.threshold(), ofPairs, members, reachable, candidates.ranks(clock.instant()))) {
      case Choice.Exhausted _ ->
          fail(candidates.exhausted(run.resource, key, services.keys().wentBack(key.name())));
      case Choice.OutOfReach outOfReach -> {
        run.failedFor(Failure.outOfReach(run.resource, Failure.names(outOfReach.unreachable())));
        pace.pauseUntilReachable(channel, outOfReach.unreachable());
        yield false;
      }
      case Choice.Chosen chosen -> {
        if (!chosen.fresh()) {
          pace.pause();
        }
        yield tryWith(channel, chosen.parties(), null);
      }
    };
  }

  /**
   * A presignature of parties that can sign now. Only for the first session of a request: a
   * presignature saves time when all goes well, and then something has gone wrong. Where many sign,
   * it is worth waiting for one in the making: the parties make several with the messages of one
   * signature, so that all end sooner.
   */
  private Optional<Presignature> presignature(Collection<Member> members, Set<Member> reachable)
      throws InterruptedException {
    if (!presignable || attempt > 0) {
      return Optional.empty();
    }
    Set<Integer> usable =
        members.stream()
            .filter(m -> reachable.contains(m) && !services.chooser().isSuspect(m))
            .map(Member::partyId)
            .collect(Collectors.toSet());
    Predicate<List<Integer>> would =
        set -> usable.containsAll(set) && !(ofPairs && services.chooser().isSuspectPair(set));
    Purpose purpose = Purpose.of(combination(List.of()));
    Optional<Presignature> ready = presignatures.take(purpose, would);
    if (ready.isPresent() || !presignatures.limits().isBusy(services.turns().running())) {
      return ready;
    }
    Optional<Promise> promise = presignatures.promise(purpose, would);
    return promise.isPresent() ? promise.get().await(time, services.timeout().min()) : ready;
  }

  /**
   * One session; true if the request has ended.
   *
   * @param presignature to use; null: without
   */
  private boolean tryWith(
      SecureChannel channel, List<Member> parties, @Nullable ByteString presignature)
      throws InterruptedException {
    ObservedSession session;
    SessionOutcome outcome;
    try (SessionTurns.Turn turn = awaitTurn(parties)) {
      if (turn == null) {
        return false;
      }
      Instant now = clock.instant();
      Duration atMost =
          times.ofSession(
              now, attempt, presignature != null, candidates.left(key) > parties.size());
      session =
          services
              .sessions()
              .start(channel, plan(sign(presignature), parties, times.deadline(now, atMost)));
      tried++;
      attempt++;
      run.trying(session);
      if (attempt > 1) {
        request.trying(tried);
      }
      long started = time.nanos();
      outcome = session.await(atMost);
      if (outcome instanceof SessionOutcome.Signed) {
        times.succeeded(time.nanos() - started);
        turn.succeeded();
      } else {
        times.overloaded(outcome).ifPresent(turn::overloaded);
      }
    }
    if (outcome instanceof SessionOutcome.Signed signed) {
      succeed(session, signed, parties, presignature != null);
      return true;
    }
    if (outcome instanceof SessionOutcome.Stopped) {
      run.drain();
      return true;
    }
    learn(session, outcome, parties);
    refusals.hear(outcome, channel.roster());
    Failure failure =
        Failure.of(run.resource, session, outcome)
            .asOf(times.isExpired())
            .with(refusals.receipts());
    Failure before = run.lastFailure();
    // The caller is to know what keeps the other session from its end.
    run.failedFor(before != null && outcome instanceof SessionOutcome.Bound ? before : failure);
    try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
      log.warn("a session made no signature: {} {}", failure.reason(), failure.metadata());
    }
    if (outcome instanceof SessionOutcome.Unsent) {
      pace.pause();
    }
    readKeyAgain(outcome);
    return false;
  }

  /** Takes in why a session made no signature. */
  private void learn(ObservedSession session, SessionOutcome outcome, List<Member> parties)
      throws InterruptedException {
    switch (outcome) {
      case SessionOutcome.Refused refused ->
          refused
              .by()
              .forEach((party, reason) -> refused(party, reason, refused.detail(party), parties));
      case SessionOutcome.Aborted aborted -> aborted(session, aborted, parties);
      case SessionOutcome.TimedOut timedOut -> {
        candidates.failed(timedOut.missing(), parties);
        unsettled = UnsettledSession.ordered(session.order(), intent.scheme()).orElse(null);
      }
      case SessionOutcome.Bound bound -> {
        unsettled =
            UnsettledSession.claimed(bound.party(), bound.order(), intent, key).orElse(null);
        if (unsettled == null) {
          // It refuses without a reason.
          candidates.failed(bound.party());
        } else {
          // Nothing was run in this session, and no party failed.
          tried--;
        }
        pace.pause();
      }
      case SessionOutcome.Unsent unsent -> {
        switch (unsent.cause()) {
          // One of them differs from the roster: others are asked, in the end without it.
          case UNAUTHENTICATED, UNTRUSTED, NOT_ESTABLISHED -> candidates.failed(Set.of(), parties);
          // The network failed, and no party did: the same parties are asked again.
          default -> tried--;
        }
      }
      case SessionOutcome.Signed _, SessionOutcome.Stopped _ ->
          throw new IllegalStateException("a session that ended well has taught nothing");
      case SessionOutcome.Created _ ->
          throw new IllegalStateException("a signing session created a key");
      case SessionOutcome.Presigned _ ->
          throw new IllegalStateException("a signing session made a presignature");
      case SessionOutcome.Undecided _ ->
          throw new IllegalStateException("a signing session was about shares");
    }
  }

  private void refused(int party, RefusalReason reason, String detail, List<Member> parties) {
    switch (RefusalScope.of(reason)) {
      case REQUEST -> {
        if (times.wasLate(reason)) {
          candidates.failed(party);
        } else {
          candidates.refused(party, reason, detail);
        }
      }
      case PARTY -> candidates.failed(party);
      case SIGNING_SET -> {
        presignatures.refused(combination(parties));
        parties.stream()
            .filter(m -> m.partyId() != party)
            .forEach(m -> candidates.failed(m.partyId()));
      }
      case EPOCH -> candidates.atOtherEpoch(party);
      case PRESIGNATURE -> presignatures.unknown(party, combination(parties));
    }
  }

  private void aborted(
      ObservedSession session, SessionOutcome.Aborted aborted, List<Member> parties)
      throws InterruptedException {
    if (aborted.exclude()) {
      candidates.exclude(aborted.culprits());
      for (int culprit : aborted.culprits()) {
        String cause = aborted.cause().name();
        request.persistently(
            () -> services.keys().exclude(intent.key(), culprit, cause, session.id()));
      }
    }
    candidates.failed(aborted.blamed(), parties);
  }

  /** Learns what other replicas know of the key and its parties. */
  private void readKeyAgain(SessionOutcome outcome) throws InterruptedException {
    if (candidates.someAtOtherEpoch()) {
      // A renewal is under way, here or at another replica: the parties switch one by one.
      pace.pause();
      request.persistently(this::learn);
    } else if (!(outcome instanceof SessionOutcome.Unsent)) {
      candidates.exclude(services.keys().excludedByNow(intent.key()));
    }
  }

  private void learn() {
    int epoch = keyPublic.getEpoch();
    KeyRecord read = services.renewals().learn(intent.key(), epoch);
    Set<Integer> excluded = services.keys().excluded(intent.key());
    key = read;
    keyPublic = Objects.requireNonNull(key.keyPublic());
    candidates.learned(keyPublic.getEpoch() != epoch, excluded);
  }

  /**
   * Gives the order of an earlier session again. A party that contributed sends its messages once
   * more; a party that did not declares that it never will, which lets the others take part in
   * another session. True if the request has ended.
   */
  private boolean tryAgain(SecureChannel channel, UnsettledSession open)
      throws InterruptedException {
    int claimant = open.claimant();
    Order order = open.order();
    SessionPlan.Work.Sign work =
        sign(order.getPresignatureId().isEmpty() ? null : order.getPresignatureId());
    List<Member> parties =
        order.getSigningSetList().stream()
            .flatMap(party -> channel.roster().byPartyId(party).stream())
            .toList();
    if (order.getEpoch() != keyPublic.getEpoch() || parties.size() != order.getSigningSetCount()) {
      if (claimant != 0) {
        candidates.failed(claimant);
      }
      return false;
    }
    ObservedSession session;
    SessionOutcome outcome;
    try (SessionTurns.Turn turn = awaitTurn(parties)) {
      if (turn == null) {
        unsettled = open;
        return false;
      }
      session =
          services
              .sessions()
              .again(channel, plan(work, parties, intent.notAfter()), work, open.bytes());
      run.trying(session);
      outcome = session.await(services.timeout().min());
    }
    if (outcome instanceof SessionOutcome.Signed signed) {
      succeed(session, signed, parties, work.presignature() != null);
      return true;
    }
    candidates.witnesses(Set.of(), Instant.MIN);
    if (outcome instanceof SessionOutcome.Aborted aborted) {
      aborted(session, aborted, parties);
    } else if (outcome instanceof SessionOutcome.TimedOut timedOut) {
      timedOut.missing().forEach(candidates::failed);
      candidates.witnesses(
          parties.stream()
              .map(Member::partyId)
              .filter(party -> !timedOut.missing().contains(party))
              .collect(Collectors.toSet()),
          times.settled(order, attempt));
    }
    if (claimant != 0 && !candidates.isWitness(claimant, clock.instant())) {
      // It says that it contributed, and has nothing to show for it.
      candidates.failed(claimant);
    }
    refusals.hear(outcome, channel.roster());
    run.failedFor(Failure.of(run.resource, session, outcome).with(refusals.receipts()));
    return false;
  }

  /** Null if this replica stops, or the intent expires, before it is this request's turn. */
  private SessionTurns.@Nullable Turn awaitTurn(List<Member> parties) throws InterruptedException {
    return services
        .turns()
        .await(
            intent.requester(),
            run.startedNanos,
            parties.stream().map(Member::partyId).toList(),
            () -> run.patienceNanos() > 0,
            () -> services.stopping().hasBegun() || times.isExpired())
        .orElse(null);
  }

  private SessionPlan.Work.Sign sign(@Nullable ByteString presignature) {
    return subject.work(keyPublic, presignature);
  }

  private SessionPlan plan(SessionPlan.Work.Sign work, List<Member> parties, Instant deadline) {
    return new SessionPlan(
        work,
        intent.scheme(),
        intent.key(),
        keyPublic.getEpoch(),
        key.threshold(),
        intent.envelope(),
        parties,
        deadline,
        run.trace);
  }

  private Combination combination(List<Member> parties) {
    return new Combination(
        intent.key(),
        keyPublic.getEpoch(),
        parties.stream().map(Member::partyId).toList(),
        subject.toSign().target(),
        subject.messageBlocks(intent.scheme()));
  }

  private void succeed(
      ObservedSession session,
      SessionOutcome.Signed signed,
      List<Member> parties,
      boolean presigned)
      throws InterruptedException {
    if (presignable && !presigned) {
      // Later signatures of these parties shall find presignatures.
      presignatures.want(
          combination(parties),
          Protocol.of(intent.scheme(), Operation.PRESIGN).orElseThrow().maxBatch());
    }
    Collection<String> culprits = session.names(signed.culprits());
    request.succeed(
        new SigningRecord.Result(
            signed.signature().bytes(),
            signed.signature().recoveryId(),
            subject.toSign().publicKey(),
            presigned),
        session.partyNames().stream().filter(name -> !culprits.contains(name)).toList(),
        tried);
    try (LogScope scope = LogScope.open().session(session.id().bytes().toByteArray())) {
      log.info("session {} of this request made its signature", tried);
    }
  }
}
