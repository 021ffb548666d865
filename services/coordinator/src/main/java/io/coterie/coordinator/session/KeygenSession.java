package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.session.SessionPlan.Work;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.custody.v1.Completion;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.proto.party.v1.TimedOut;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A session that makes shares of a key: key generation, refresh or reshare. The coordinator only
 * observes it, and collects the report of every party about the end. A new key exists when all
 * parties use their shares of the same session and public data. New shares replace older ones once
 * as many parties as the threshold report that they use them. It is not enough that all report a
 * stored share: one may tell its peers something else, and a new key that is only stored may give
 * way to another one of its name.
 *
 * <p>A party that holds a share from an earlier session of the same request answers with that
 * session's report instead of running again, so reports are told apart by the session they name.
 */
public final class KeygenSession extends ObservedSession {
  private static final Logger log = LoggerFactory.getLogger(KeygenSession.class);

  /** After one party said that the run is over: how long the others have to say what they saw. */
  private static final Duration HEARING = Duration.ofMillis(750);

  /**
   * After one party has answered with an earlier session's report: how long the others have to do
   * the same; the others then run this one in vain. Also how long parties have to use the new
   * shares that all of them hold.
   */
  private static final Duration ANSWERING = Duration.ofSeconds(2);

  private record Made(ByteString session, KeyPublic keyPublic) {}

  private final Map<Integer, Made> completed = new HashMap<>();

  /**
   * The shares that parties use: they know that all parties have one. A party may tell of another
   * one that it keeps, before or after.
   */
  private final Map<Integer, Made> active = new HashMap<>();

  private final Map<Integer, RefusalReason> refused = new HashMap<>();
  private final Map<Integer, String> details = new HashMap<>();
  private final Map<Integer, SessionReport> broken = new HashMap<>();
  private boolean closing;
  private boolean recalling;

  /** How many reports of an abort of each party are being judged, or were. Guarded by this. */
  private final Map<Integer, Integer> judging = new HashMap<>();

  /** Added to and asked under this. */
  private final Accusations accusations;

  /** Added to and asked under this. */
  private final CompletionEvidence evidence;

  KeygenSession(
      ByteString order,
      SessionPlan plan,
      Protocol protocol,
      Sessions sessions,
      SecureChannel channel) {
    super(order, plan, protocol, sessions, channel);
    this.accusations = new Accusations(id, plan, protocol, sessions.core(), sessions.evidence());
    this.evidence =
        new CompletionEvidence(
            channel.roster(), Objects.requireNonNull(plan.intent()), plan.holders());
  }

  @Override
  void onEnvelope(Member sender, SessionEnvelope envelope, long receivedNanos) {
    // The parties' broadcasts among themselves: nothing here for one who holds no share.
  }

  @Override
  synchronized void onReport(Member sender, SessionReport report) {
    boolean ofThisSession = report.getSessionId().equals(id.bytes());
    if (hasEnded()) {
      // It changes the end no more, and is still evidence.
      if (ofThisSession && report.hasAborted()) {
        weigh(sender, report);
      }
      return;
    }
    switch (report.getOutcomeCase()) {
      case COMPLETED -> {
        if (!ofThisSession && isOver(report.getCompleted().getKeyPublic())) {
          return;
        }
        if (!fits(report.getCompleted().getKeyPublic())) {
          log.warn("{} reports a key that does not fit the order: session {}", sender.name(), id);
          sessions.telemetry().dropped("key_mismatch");
          return;
        }
        if (!evidence.add(sender, report.getSessionId(), report.getCompleted())) {
          log.warn("{} has not signed what it reports: session {}", sender.name(), id);
          sessions.telemetry().dropped("bad_evidence");
          return;
        }
        // Not how fast it answers: a key generation takes all parties equally long.
        sessions.health().heard(sender.partyId());
        Made made = new Made(report.getSessionId(), report.getCompleted().getKeyPublic());
        completed.put(sender.partyId(), made);
        if (report.getCompleted().getActive()) {
          active.put(sender.partyId(), made);
        }
        if (!ofThisSession) {
          recall();
        }
      }
      case REFUSED -> {
        if (ofThisSession) {
          refused.put(sender.partyId(), report.getRefused().getReason());
          details.put(sender.partyId(), StatusErrors.detail(report.getRefused().getDetail()));
        }
      }
      case ABORTED -> {
        if (ofThisSession) {
          weigh(sender, report);
        }
      }
      case TIMED_OUT -> {
        if (ofThisSession) {
          broken.put(sender.partyId(), report);
        }
      }
      // Parties say that to each other.
      case DECLINED, OUTCOME_NOT_SET -> {}
    }
    judge();
  }

  /**
   * Judges a party's report, elsewhere: that takes longer than a message may wait. A party has two
   * words in a session, as among the parties: that it ended, and what it was shown after that.
   */
  private void weigh(Member reporter, SessionReport report) {
    if (judging.merge(reporter.partyId(), 1, Integer::sum) > 2) {
      return;
    }
    boolean late = hasEnded();
    sessions
        .pool()
        .execute(
            () -> {
              Accusations.Judged judged = accusations.judge(reporter, report.getAborted(), late);
              synchronized (this) {
                if (!hasEnded()) {
                  if (accusations.add(judged)) {
                    sessions.health().restarted(judged.accused());
                  }
                  broken.put(reporter.partyId(), report);
                  judge();
                }
              }
            });
  }

  /** Tells those that run this session in vain to stop, and to say so. */
  private void recall() {
    if (!recalling) {
      recalling = true;
      sessions
          .timer()
          .after(
              ANSWERING,
              () -> {
                if (!hasEnded()) {
                  cancel();
                }
              });
    }
  }

  private void judge() {
    Optional<Made> used = used();
    if (used.isPresent()) {
      verify(used.get());
      return;
    }
    if (completed.size() == plan.parties().size()) {
      Set<Made> distinct = new HashSet<>(completed.values());
      if (distinct.size() > 1) {
        // Somebody lies about the public data, and nothing here shows who.
        end(aborted(AbortCause.ABORT_CAUSE_BROADCAST_MISMATCH, true));
      } else {
        // They will use it as soon as they have told each other; unless one of them has not, or an
        // earlier session had parties that this one has not.
        close(ANSWERING);
      }
      return;
    }
    if (refused.isEmpty() && broken.isEmpty()) {
      return;
    }
    if (partiesWithout(heard()).isEmpty()) {
      end(verdict());
    } else {
      close(HEARING);
    }
  }

  private void close(Duration time) {
    if (!closing) {
      closing = true;
      sessions
          .timer()
          .after(
              time,
              () -> {
                synchronized (this) {
                  end(verdict());
                }
              });
    }
  }

  /**
   * The session and public data whose share enough holders report to use: all of a new key, as many
   * as the threshold of new shares. One of these is honest, so all parties have stored their share
   * of it, whatever the others tell: a party cannot hide from the coordinator what it told its
   * peers, nor the reverse.
   */
  private Optional<Made> used() {
    int users = renews() ? plan.threshold() : plan.holders().size();
    return active.values().stream()
        .filter(made -> evidence.suffices(made.session(), made.keyPublic(), users))
        .findFirst();
  }

  private void verify(Made made) {
    KeyPublic keyPublic = made.keyPublic();
    Completion completion = evidence.of(made.session(), keyPublic);
    sessions
        .pool()
        .execute(
            () -> {
              if (sessions.verifier(plan.scheme()).isSound(keyPublic)) {
                end(new SessionOutcome.Created(keyPublic, completion));
              } else {
                log.error("all parties agree on a key that the verifier refuses: session {}", id);
                end(aborted(AbortCause.ABORT_CAUSE_WRONG_PROOF, true));
              }
            });
  }

  private Set<Integer> heard() {
    Set<Integer> heard = new HashSet<>(completed.keySet());
    heard.addAll(refused.keySet());
    heard.addAll(broken.keySet());
    return heard;
  }

  private SessionOutcome verdict() {
    if (!refused.isEmpty()) {
      return new SessionOutcome.Refused(Map.copyOf(refused), Map.copyOf(details));
    }
    Abort shown = accusations.shown().orElse(Abort.getDefaultInstance());
    AbortCause cause = known(shown.getCause());
    // Parties that hold a share of an earlier session do not run another, and these have none.
    boolean divided =
        completed.values().stream().anyMatch(c -> !c.session().equals(id.bytes()))
            && !broken.isEmpty();
    Accusations.Accused accused = accusations.accused();
    boolean held = completed.size() == plan.parties().size();
    if (held && !renews() && accused.culprits().isEmpty()) {
      return new SessionOutcome.TimedOut(0, partiesWithout(active.keySet()));
    }
    if ((divided || held) && renews() && accused.culprits().isEmpty()) {
      Set<Integer> without = new HashSet<>(broken.keySet());
      without.removeAll(completed.keySet());
      return new SessionOutcome.Undecided(without);
    }
    if (cause == AbortCause.ABORT_CAUSE_UNSPECIFIED && !divided) {
      return silence();
    }
    return new SessionOutcome.Aborted(
        shown.getRound(),
        cause,
        accused.culprits(),
        accused.suspects(),
        false,
        divided && !renews());
  }

  /** Whether parties abandon a share in the end if not all of them have one. */
  private boolean renews() {
    return plan.work().operation().makesNextEpoch();
  }

  private SessionOutcome aborted(AbortCause cause, boolean hopeless) {
    return new SessionOutcome.Aborted(0, cause, Set.of(), Set.of(), false, hopeless);
  }

  /** The parties that kept the others waiting, by what each party reports (see Stragglers). */
  private SessionOutcome silence() {
    Map<Integer, TimedOut> waited = new HashMap<>();
    Map<Integer, Integer> reached = new HashMap<>();
    broken.forEach(
        (party, report) -> {
          if (report.hasTimedOut()) {
            waited.put(party, report.getTimedOut());
          } else {
            reached.put(party, report.getAborted().getRound());
          }
        });
    refused.keySet().forEach(party -> reached.put(party, 0));
    completed.keySet().forEach(party -> reached.put(party, Integer.MAX_VALUE));
    waited.keySet().removeAll(completed.keySet());
    int round = waited.values().stream().mapToInt(TimedOut::getRound).min().orElse(0);
    return new SessionOutcome.TimedOut(
        round, Stragglers.of(waited, reached, partiesWithout(Set.of()), plan.oneIsHonest()));
  }

  @Override
  Duration hearing() {
    return HEARING;
  }

  /** Whether a late word about shares that this session is to replace. */
  private boolean isOver(KeyPublic key) {
    return renews() && key.getEpoch() <= plan.epoch();
  }

  private boolean fits(KeyPublic key) {
    boolean asOrdered =
        switch (plan.work()) {
          case Work.Refresh refresh -> isNext(key, refresh.current());
          case Work.Reshare reshare -> isNext(key, reshare.current());
          default -> key.getEpoch() == plan.epoch();
        };
    return asOrdered
        && key.getKeyId().equals(plan.key())
        && key.getThreshold() == plan.threshold()
        && key.getVerificationSharesList().stream()
            .map(VerificationShare::getParty)
            .toList()
            .equals(plan.holders());
  }

  private boolean isNext(KeyPublic key, KeyPublic current) {
    return key.getEpoch() == plan.epoch() + 1
        && key.getPublicKey().equals(current.getPublicKey())
        && key.getChainCode().equals(current.getChainCode());
  }

  @Override
  synchronized SessionOutcome timedOut() {
    boolean silent = refused.isEmpty() && broken.isEmpty();
    return silent && completed.size() < plan.parties().size() ? silence() : verdict();
  }

  @Override
  void release() {}
}
