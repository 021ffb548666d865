package io.coterie.channel.keys;

import io.coterie.channel.ChannelConfig.Timing;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The times at which hellos may go to one peer: growing pauses while it does not answer, a limit on
 * hellos that answer it, and pauses between fresh sessions. Without a lock of its own: {@link
 * PeerKeys} holds its lock around every call. All times are {@link System#nanoTime()}.
 */
public final class HelloPacer {
  /** Hellos to one peer that may follow each other at once. */
  static final int BURST = 8;

  /** After which one more may follow this often: a peer cannot make us flood it. */
  static final Duration REFILL = Duration.ofMillis(100);

  /** Sessions reset for decryption failures: first and longest pause between two of them. */
  static final Duration RESET_MIN = Duration.ofMillis(250);

  static final Duration RESET_MAX = Duration.ofSeconds(10);

  /** An unanswered hello opens a fresh session every so many times. */
  static final int FRESH_EVERY = 3;

  private final Timing timing;

  /** Hellos since the peer last said something new. */
  private int attempts;

  /** The time at which an unanswered hello is repeated. */
  private long nextNanos;

  /** After a failure no hello goes out before this time, urgent or not. */
  private long notBeforeNanos;

  /** Hellos that may go out at once, and the time of that count. */
  private double tokens = BURST;

  private long tokensAtNanos;

  /** The time of the last fresh session, 0 before the first; no other follows within the pause. */
  private long lastResetNanos;

  private long resetPauseMs;

  HelloPacer(Timing timing, long now) {
    this.timing = timing;
    this.nextNanos = now;
    this.notBeforeNanos = now;
    this.tokensAtNanos = now;
  }

  /** Takes the right to send one hello now, if there is one. */
  boolean take(long now, boolean urgent) {
    boolean due = urgent || now - nextNanos >= 0;
    return due && now - notBeforeNanos >= 0 && token(now);
  }

  private boolean token(long now) {
    double refill = (now - tokensAtNanos) / (double) REFILL.toNanos();
    tokens = Math.min(BURST, tokens + refill);
    tokensAtNanos = now;
    if (tokens < 1) {
      return false;
    }
    tokens--;
    return true;
  }

  /** Whether it is the turn of a hello with a fresh session, because others had no answer. */
  boolean freshTurn() {
    return attempts % FRESH_EVERY == FRESH_EVERY - 1;
  }

  /** A hello was sent, or could not be: the next one waits, longer each time. */
  void sent(long now, boolean failed) {
    long min = timing.helloMin().toMillis();
    long pause = Math.min(timing.helloMax().toMillis(), min << Math.min(attempts, 16));
    long jitter = ThreadLocalRandom.current().nextLong(pause / 4 + 1);
    attempts++;
    nextNanos = now + Duration.ofMillis(pause - jitter).toNanos();
    if (failed) {
      notBeforeNanos = nextNanos;
    }
  }

  /** The peer has answered: pauses begin anew. */
  void answered() {
    attempts = 0;
  }

  /** There is something new to tell the peer: the next hello is due, and pauses begin anew. */
  void news(long now) {
    attempts = 0;
    nextNanos = now;
  }

  /** A fresh session goes to the peer. */
  void freshSession(long now) {
    lastResetNanos = now;
  }

  /**
   * Asks for a fresh session because the one in use does not serve.
   *
   * @return false while the last fresh session is so recent that the peer may not have used it yet
   */
  boolean mayReset(long now) {
    Duration since = Duration.ofNanos(now - lastResetNanos);
    long pause = Math.max(resetPauseMs, RESET_MIN.toMillis());
    if (lastResetNanos != 0 && since.toMillis() < pause) {
      return false;
    }
    resetPauseMs =
        since.compareTo(RESET_MAX.multipliedBy(2)) > 0
            ? RESET_MIN.toMillis()
            : Math.min(pause * 2, RESET_MAX.toMillis());
    return true;
  }
}
