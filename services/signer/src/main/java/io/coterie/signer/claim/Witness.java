package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerPosition;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The answers of one other party to this party's statements, and whether sessions wait for it. It
 * decides from the time that it is given; nothing is sent or stored here.
 */
final class Witness {
  /** A statement is sent again, and its receiver not waited for any more, after this long. */
  static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(2);

  /** It is told of claims that no session waits for at most once in this long. */
  static final long PERIOD_NANOS = TimeUnit.SECONDS.toNanos(2);

  /** So long after its peers each session waits for those outside it, whatever they did before. */
  static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  /** A session that has waited for a holder of the key for so long tells the other parties too. */
  static final long SLOW_NANOS = GRACE_NANOS / 2;

  /**
   * One party outside the sessions holds them up for so long beyond that, and then is on probation.
   */
  private static final long CREDIT_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** So many parts of time without a wait give back one part of the credit. */
  private static final int REGAIN = 100;

  /**
   * So many sessions that wait longer than {@link #GRACE_NANOS} use up the credit at once: the
   * first messages of their peers lie in memory meanwhile.
   */
  private static final int MAX_OVERDUE = 32;

  private LedgerPosition remembers = LedgerPosition.NONE;

  /** The statement that has no answer yet. */
  private @Nullable LedgerPosition asked;

  private long askedNanos;

  /** Has let a statement wait too long; not waited for until it answers. */
  private boolean silent;

  /** Has used up its credit; has answered since. */
  private boolean probation;

  private boolean answered;
  private long credit = CREDIT_NANOS;
  private long chargedNanos;

  /** It holds up a session, and pays for it from a time on. */
  private boolean holds;

  private long holdsFromNanos;

  Witness(long nowNanos) {
    chargedNanos = nowNanos;
  }

  /** A session that has begun before waits for it. At a start its credit does not count. */
  boolean waitedFor(boolean fresh) {
    return !silent && (fresh || !probation);
  }

  /** Takes or gives credit for the time since the last call. */
  void charge(long nowNanos) {
    if (!holds) {
      credit = Math.min(CREDIT_NANOS, credit + (nowNanos - chargedNanos) / REGAIN);
    } else if (nowNanos - holdsFromNanos > 0) {
      credit -= nowNanos - holdsFromNanos;
      holdsFromNanos = nowNanos;
    }
    chargedNanos = nowNanos;
    if (probation && answered && credit == CREDIT_NANOS) {
      probation = false;
    }
  }

  /**
   * From now on it holds up these sessions.
   *
   * @param since when each has begun to wait for it, and it was told
   * @return whether it is not waited for any more because of that
   */
  boolean hold(List<Long> since, long nowNanos) {
    holds = !since.isEmpty();
    int overdue = 0;
    // Below zero for one that is told in a moment.
    long longest = holds ? Long.MIN_VALUE : 0;
    for (long from : since) {
      overdue += nowNanos - from > GRACE_NANOS ? 1 : 0;
      longest = Math.max(longest, nowNanos - from);
    }
    holdsFromNanos = nowNanos + Math.max(0, GRACE_NANOS - longest);
    if (holds && (credit <= 0 || overdue > MAX_OVERDUE)) {
      credit = Math.min(credit, 0);
      probation = true;
      answered = false;
      holds = false;
      return true;
    }
    return false;
  }

  boolean covers(ByteString mark, long claims) {
    return remembers.mark().equals(mark) && remembers.claims() >= claims;
  }

  /** Whether no statement waits for its answer. */
  boolean mayAsk() {
    return asked == null;
  }

  /** Whether it is time to tell it of claims that nobody waits for. */
  boolean isDue(long nowNanos) {
    return nowNanos - askedNanos >= PERIOD_NANOS;
  }

  void ask(LedgerPosition now, long nowNanos) {
    asked = now;
    askedNanos = nowNanos;
  }

  void tick(long nowNanos) {
    if (asked != null && nowNanos - askedNanos >= PATIENCE_NANOS) {
      asked = null;
      silent = true;
    }
  }

  /** It remembers another start: the position that it was asked for is out of date. */
  void contradicts() {
    asked = null;
  }

  /** Anything but what it was asked for is no answer. It holds up nothing from then on. */
  void answers(LedgerPosition remembered) {
    if (asked != null
        && asked.mark().equals(remembered.mark())
        && asked.claims() <= remembered.claims()) {
      asked = null;
      silent = false;
      answered = true;
      holds = false;
      remembers = remembered;
    }
  }

  /**
   * Those who matter remember enough: every peer of the session, and one of the others who can be
   * reached and are waited for.
   *
   * @param reachable parties that can be reached
   */
  static boolean enough(
      ByteString mark,
      long claims,
      Collection<Integer> peers,
      Set<Integer> reachable,
      Map<Integer, Witness> witnesses) {
    for (int peer : peers) {
      Witness witness = witnesses.get(peer);
      if (witness == null || !witness.covers(mark, claims)) {
        return false;
      }
    }
    int outside = 0;
    int covering = 0;
    for (int other : reachable) {
      Witness witness = witnesses.get(other);
      if (!peers.contains(other) && (witness == null || witness.waitedFor(false))) {
        outside++;
        covering += witness != null && witness.covers(mark, claims) ? 1 : 0;
      }
    }
    return outside == 0 || covering > 0;
  }
}
