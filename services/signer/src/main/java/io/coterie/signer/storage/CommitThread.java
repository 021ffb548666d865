package io.coterie.signer.storage;

import java.time.Duration;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A platform thread of its own, because a commit waits for the disk. */
final class CommitThread implements CommitRunner {
  private static final Logger log = LoggerFactory.getLogger(CommitThread.class);

  private final ScheduledThreadPoolExecutor thread;

  /**
   * @param name of the party, for the thread's name
   */
  CommitThread(String name) {
    this.thread =
        new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().daemon().name(name + "-store").factory());
  }

  @Override
  public void execute(Runnable task) {
    thread.execute(guarded(task));
  }

  @Override
  public void after(Duration delay, Runnable task) {
    thread.schedule(guarded(task), delay.toNanos(), TimeUnit.NANOSECONDS);
  }

  /** The thread keeps the failure of a task to itself, so the task logs it. */
  private static Runnable guarded(Runnable task) {
    return () -> {
      try {
        task.run();
      } catch (RuntimeException | Error e) {
        log.error("a step of the store failed", e);
      }
    };
  }

  @Override
  public long nanos() {
    return System.nanoTime();
  }

  @Override
  public boolean close(Runnable last, Duration time) throws InterruptedException {
    execute(last);
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    thread.shutdown();
    return thread.awaitTermination(time.toNanos(), TimeUnit.NANOSECONDS);
  }
}
