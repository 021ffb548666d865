package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs tasks of many sources on a few threads. Sources take turns, one task each, and none has more
 * threads than its share; so a task waits for few tasks of others, however many those have. A task
 * that keeps its thread for long does not count any more, and another thread takes its place.
 */
final class FairExecutor implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FairExecutor.class);

  private final int maxThreads;
  private final int maxOfSource;
  private final Duration patience;
  private final ExecutorService threads;

  // Guarded by this.
  private final Map<Source, Line> lines = new HashMap<>();
  private final Deque<Line> turns = new ArrayDeque<>();
  private final Set<Turn> running = new LinkedHashSet<>();
  private int working;
  private long waiting;

  /** The tasks of one source. It is among the turns if it has a task that may run now. */
  private static final class Line {
    final Source source;
    final Deque<Runnable> tasks = new ArrayDeque<>();
    int running;
    boolean hasTurn;

    Line(Source source) {
      this.source = source;
    }
  }

  private static final class Turn {
    final Line line;
    final Runnable task;
    final long sinceNanos = System.nanoTime();
    boolean counts = true;

    Turn(Line line, Runnable task) {
      this.line = line;
      this.task = task;
    }
  }

  /**
   * @param name of the threads
   * @param maxOfSource most threads that work for one source
   * @param patience after which a task that still runs keeps its own thread and nobody else's
   */
  FairExecutor(String name, int maxThreads, int maxOfSource, Duration patience) {
    this.maxThreads = maxThreads;
    this.maxOfSource = maxOfSource;
    this.patience = patience;
    this.threads =
        Executors.newCachedThreadPool(
            Thread.ofPlatform().daemon().name("messaging-" + name + "-", 0).factory());
    Thread.ofPlatform().daemon().name("messaging-" + name + "-relief").start(this::relieve);
  }

  /**
   * Runs a task when it is its source's turn; tasks of one source begin in their order.
   *
   * @throws RejectedExecutionException if this is closed
   */
  synchronized void execute(Source source, Runnable task) {
    if (threads.isShutdown()) {
      throw new RejectedExecutionException("closed");
    }
    Line line = lines.computeIfAbsent(source, Line::new);
    line.tasks.addLast(task);
    waiting++;
    takeTurn(line);
    startThread();
  }

  /** Tasks that wait for their turn. */
  synchronized long waiting() {
    return waiting;
  }

  private void takeTurn(Line line) {
    if (!line.hasTurn && !line.tasks.isEmpty() && line.running < maxOfSource) {
      line.hasTurn = true;
      turns.addLast(line);
    }
  }

  /** Another thread works, if there is work for it. */
  private void startThread() {
    if (!turns.isEmpty() && working < maxThreads && !threads.isShutdown()) {
      threads.execute(this::work);
      working++;
    }
  }

  private void work() {
    Turn turn = next(null);
    while (turn != null) {
      try {
        turn.task.run();
      } catch (RuntimeException | Error e) {
        LOG.error("the work for a connection failed", e);
      }
      turn = next(turn);
    }
  }

  /** Sees to it that tasks that keep their threads do not keep others from theirs. */
  private void relieve() {
    try {
      long pause = Math.max(1, patience.toMillis() / 2);
      while (!threads.awaitTermination(pause, TimeUnit.MILLISECONDS)) {
        discountLongTasks();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized void discountLongTasks() {
    long now = System.nanoTime();
    for (Turn turn : running) {
      if (turn.counts && now - turn.sinceNanos > patience.toNanos()) {
        turn.counts = false;
        turn.line.running--;
        working--;
        takeTurn(turn.line);
        startThread();
      }
    }
  }

  private void ended(Turn turn) {
    running.remove(turn);
    if (turn.counts) {
      turn.line.running--;
    } else {
      working++;
    }
    takeTurn(turn.line);
    if (turn.line.running == 0 && turn.line.tasks.isEmpty()) {
      lines.remove(turn.line.source, turn.line);
    }
  }

  /** The next task to run; null if there is none, and then the thread has stopped working. */
  private synchronized @Nullable Turn next(@Nullable Turn last) {
    if (last != null) {
      ended(last);
    }
    if (working > maxThreads) {
      working--;
      return null;
    }
    Line line = turns.pollFirst();
    if (line == null) {
      working--;
      return null;
    }
    line.hasTurn = false;
    line.running++;
    waiting--;
    Turn turn = new Turn(line, line.tasks.removeFirst());
    running.add(turn);
    takeTurn(line);
    startThread();
    return turn;
  }

  /** Takes no more tasks. Those that it has taken run. */
  @Override
  public synchronized void close() {
    threads.shutdown();
  }
}
