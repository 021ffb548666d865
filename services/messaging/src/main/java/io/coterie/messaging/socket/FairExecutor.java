package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
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
  private volatile boolean turnsWait;
  private boolean closed;

  /** The tasks of one source. It is among the turns if it has a task that may run now. */
  private static final class Line {
    final Source source;
    final Deque<BooleanSupplier> tasks = new ArrayDeque<>();
    int running;
    boolean hasTurn;
    boolean pauses;

    Line(Source source) {
      this.source = source;
    }
  }

  private static final class Turn {
    final Line line;
    final BooleanSupplier task;
    final long sinceNanos = System.nanoTime();
    boolean counts = true;

    Turn(Line line, BooleanSupplier task) {
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
    this(
        name,
        Thread.ofPlatform().daemon().name("messaging-" + name + "-", 0).factory(),
        maxThreads,
        maxOfSource,
        patience);
  }

  FairExecutor(
      String name, ThreadFactory factory, int maxThreads, int maxOfSource, Duration patience) {
    this.maxThreads = maxThreads;
    this.maxOfSource = maxOfSource;
    this.patience = patience;
    this.threads = Executors.newCachedThreadPool(factory);
    Thread.ofPlatform().daemon().name("messaging-" + name + "-relief").start(this::relieve);
  }

  /**
   * Runs a task when it is its source's turn; tasks of one source begin in their order.
   *
   * @throws RejectedExecutionException if this is closed
   */
  void execute(Source source, Runnable task) {
    repeat(
        source,
        () -> {
          task.run();
          return false;
        });
  }

  /**
   * Runs a task in one turn of its source after another, as long as it returns true. It never runs
   * on two threads at once.
   *
   * @throws RejectedExecutionException if this is closed
   */
  void repeat(Source source, BooleanSupplier task) {
    synchronized (this) {
      if (closed) {
        throw new RejectedExecutionException("closed");
      }
      add(source, task);
    }
    startThreads();
  }

  /** The line of a source is forgotten while it has nothing but tasks that do not count. */
  private void add(Source source, BooleanSupplier task) {
    Line line = lines.computeIfAbsent(source, Line::new);
    line.tasks.addLast(task);
    waiting++;
    takeTurn(line);
  }

  /** Tasks that wait for their turn. */
  synchronized long waiting() {
    return waiting;
  }

  /** Whether a task waits that could run now if there was a thread for it. */
  boolean turnsWait() {
    return turnsWait;
  }

  private void takeTurn(Line line) {
    if (!line.hasTurn && !line.pauses && !line.tasks.isEmpty() && line.running < maxOfSource) {
      line.hasTurn = true;
      turns.addLast(line);
      turnsWait = true;
    }
  }

  /**
   * Further threads work if there is work for them. The lock is not held: a thread that wakes up
   * would wait for it.
   */
  private void startThreads() {
    for (Turn turn = turnOfNewThread(); turn != null; turn = turnOfNewThread()) {
      Turn first = turn;
      try {
        threads.execute(() -> work(first));
      } catch (RuntimeException | Error e) {
        LOG.error("no thread for the work of a connection: it waits for one that there is", e);
        putBack(first);
        return;
      }
    }
  }

  private synchronized void putBack(Turn turn) {
    running.remove(turn);
    if (turn.counts) {
      turn.line.running--;
      working--;
    }
    Line line = lines.computeIfAbsent(turn.line.source, Line::new);
    line.tasks.addFirst(turn.task);
    waiting++;
    takeTurn(line);
  }

  private synchronized @Nullable Turn turnOfNewThread() {
    if (working >= maxThreads) {
      return null;
    }
    Turn turn = begin();
    if (turn != null) {
      working++;
    }
    return turn;
  }

  private void work(Turn first) {
    Turn turn = first;
    while (turn != null) {
      boolean again = false;
      try {
        again = turn.task.getAsBoolean();
      } catch (RuntimeException | Error e) {
        LOG.error("the work for a connection failed", e);
      }
      turn = next(turn, again);
      startThreads();
    }
  }

  /** Sees to it that tasks that keep their threads do not keep others from theirs. */
  private void relieve() {
    try {
      long pause = Math.max(1, patience.toMillis() / 2);
      while (!threads.awaitTermination(pause, TimeUnit.MILLISECONDS)) {
        discountLongTasks();
        startThreads();
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
      }
    }
  }

  private void ended(Turn turn, boolean again) {
    running.remove(turn);
    if (turn.counts) {
      turn.line.running--;
    } else {
      working++;
    }
    if (again && !closed) {
      add(turn.line.source, turn.task);
    }
    takeTurn(turn.line);
    forgetIfEmpty(turn.line);
  }

  /** The next task to run; null if there is none, and then the thread has stopped working. */
  private synchronized @Nullable Turn next(Turn last, boolean again) {
    ended(last, again);
    Turn turn = working > maxThreads ? null : begin();
    if (turn == null) {
      working--;
      shutDownIfDone();
    }
    return turn;
  }

  private @Nullable Turn begin() {
    Line line = turns.pollFirst();
    if (line == null) {
      turnsWait = false;
      return null;
    }
    line.hasTurn = false;
    line.running++;
    waiting--;
    Turn turn = new Turn(line, line.tasks.removeFirst());
    running.add(turn);
    takeTurn(line);
    turnsWait = !turns.isEmpty();
    return turn;
  }

  private void forgetIfEmpty(Line line) {
    if (line.running == 0 && line.tasks.isEmpty() && !line.pauses) {
      lines.remove(line.source, line);
    }
  }

  /** A source has no further turn for so long, if time can be kept. One that it has remains. */
  void pause(Source source, Duration time) {
    synchronized (this) {
      Line line = lines.computeIfAbsent(source, Line::new);
      if (line.pauses || closed) {
        return;
      }
      line.pauses = true;
    }
    try {
      CompletableFuture.delayedExecutor(time.toNanos(), TimeUnit.NANOSECONDS, Runnable::run)
          .execute(() -> goOn(source));
    } catch (RuntimeException | Error e) {
      LOG.error("a source that should pause goes on", e);
      goOn(source);
    }
  }

  private void goOn(Source source) {
    synchronized (this) {
      Line line = lines.get(source);
      if (line == null || !line.pauses) {
        return;
      }
      line.pauses = false;
      takeTurn(line);
      forgetIfEmpty(line);
    }
    startThreads();
  }

  /** Takes no more tasks. Those that it has taken run at once, and none of them again. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      for (Line line : lines.values()) {
        line.pauses = false;
        takeTurn(line);
      }
      shutDownIfDone();
    }
    startThreads();
  }

  private void shutDownIfDone() {
    if (closed && working == 0 && waiting == 0) {
      threads.shutdown();
    }
  }
}
