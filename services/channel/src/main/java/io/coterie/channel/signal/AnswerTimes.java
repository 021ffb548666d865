package io.coterie.channel.signal;

import java.util.LinkedHashSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

/**
 * How long the messaging service takes to answer, and whether an answer is worth waiting for: on a
 * short line each one is, on any line one that is out for more than twice the shortest time of
 * late. A long line alone makes no answer late. Thread-safe.
 */
final class AnswerTimes {
  /** Differences below are noise, ns. */
  static final long NOISE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /**
   * A line on which an answer has come so fast of late is short: to wait for every answer there
   * costs less than the message that it spares, ns.
   */
  static final long SHORT_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

  /** The shortest time is that of one to two of these, so that a line may become longer. */
  static final long PERIOD_NANOS = TimeUnit.SECONDS.toNanos(15);

  private final LongSupplier nanoTime;

  /** Questions without an answer, the oldest first. */
  private final LinkedHashSet<Question> open = new LinkedHashSet<>();

  private long periodNanos;
  private long shortest = Long.MAX_VALUE;
  private long shortestBefore = Long.MAX_VALUE;

  /** Something that the service was asked. Ends once. */
  final class Question {
    private final long nanos = nanoTime.getAsLong();
    private final AtomicBoolean ended = new AtomicBoolean();
    private final Runnable then;

    private Question(Runnable then) {
      this.then = then;
    }

    /** A response of the service has come, whatever it says. */
    void answered() {
      if (ended.compareAndSet(false, true)) {
        answer(this);
        then.run();
      }
    }

    /** The question is withdrawn, or put off. Says nothing about the service's times. */
    void end() {
      if (ended.compareAndSet(false, true)) {
        remove(this);
        then.run();
      }
    }
  }

  /**
   * Nothing was asked.
   *
   * @param nanoTime monotonic clock, ns
   */
  AnswerTimes(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    this.periodNanos = nanoTime.getAsLong();
  }

  /**
   * Something is asked now.
   *
   * @param then runs when that has ended
   */
  Question ask(Runnable then) {
    Question question = new Question(then);
    synchronized (this) {
      open.add(question);
    }
    return question;
  }

  /** The service answers again, so nothing that was asked before is late any more. */
  private synchronized void answer(Question question) {
    if (open.contains(question)) {
      while (open.removeFirst() != question) {}
    }
    roll();
    shortest = Math.min(shortest, nanoTime.getAsLong() - question.nanos);
  }

  private synchronized void remove(Question question) {
    open.remove(question);
  }

  private void roll() {
    long past = nanoTime.getAsLong() - periodNanos;
    if (past > PERIOD_NANOS) {
      periodNanos += past;
      shortestBefore = past > 2 * PERIOD_NANOS ? Long.MAX_VALUE : shortest;
      shortest = Long.MAX_VALUE;
    }
  }

  /**
   * Whether an answer is to be waited for: one that is late, and on a short line each one. None is
   * as long as it is not known how long answers take.
   */
  synchronized boolean awaited() {
    roll();
    long usual = Math.min(shortest, shortestBefore);
    return !open.isEmpty()
        && usual != Long.MAX_VALUE
        && (usual <= SHORT_NANOS
            || nanoTime.getAsLong() - open.getFirst().nanos > 2 * usual + NOISE_NANOS);
  }
}
