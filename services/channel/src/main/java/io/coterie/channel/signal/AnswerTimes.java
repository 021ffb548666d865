package io.coterie.channel.signal;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

/**
 * How long the messaging service takes to answer, and whether it is late: an answer is out for more
 * than twice the shortest time of late. A long line alone makes no answer late. Thread-safe.
 */
final class AnswerTimes {
  /** Differences below are noise, ns. */
  static final long NOISE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** The shortest time is that of one to two of these, so that a line may become longer. */
  static final long PERIOD_NANOS = TimeUnit.SECONDS.toNanos(15);

  private final LongSupplier nanoTime;

  /** When what is not answered was asked, in that order. */
  private final ArrayDeque<Question> open = new ArrayDeque<>();

  private long periodNanos;
  private long shortest = Long.MAX_VALUE;
  private long shortestBefore = Long.MAX_VALUE;

  private static final class Question {
    final long nanos;

    Question(long nanos) {
      this.nanos = nanos;
    }
  }

  AnswerTimes(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    this.periodNanos = nanoTime.getAsLong();
  }

  /**
   * Something is asked now.
   *
   * @param then runs after the answer
   * @return to be run when the answer has come; does nothing a second time
   */
  Runnable asked(Runnable then) {
    Question question = new Question(nanoTime.getAsLong());
    synchronized (this) {
      open.add(question);
    }
    AtomicBoolean answered = new AtomicBoolean();
    return () -> {
      if (answered.compareAndSet(false, true)) {
        answered(question);
        then.run();
      }
    };
  }

  private synchronized void answered(Question question) {
    open.remove(question);
    long now = nanoTime.getAsLong();
    if (now - periodNanos > PERIOD_NANOS) {
      periodNanos = now;
      shortestBefore = shortest;
      shortest = Long.MAX_VALUE;
    }
    shortest = Math.min(shortest, now - question.nanos);
  }

  /** Whether an answer is late. None is as long as none has come. */
  synchronized boolean late() {
    Question oldest = open.peek();
    long usual = Math.min(shortest, shortestBefore);
    return oldest != null
        && usual != Long.MAX_VALUE
        && nanoTime.getAsLong() - oldest.nanos > 2 * usual + NOISE_NANOS;
  }
}
