package io.coterie.signer.storage;

import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
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
    try {
      thread.execute(task);
    } catch (RejectedExecutionException e) {
      log.debug("a commit dropped, the store is closed");
    }
  }

  @Override
  public void after(Duration delay, Runnable task) {
    try {
      thread.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException e) {
      log.debug("a commit dropped, the store is closed");
    }
  }

  @Override
  public long nanos() {
    return System.nanoTime();
  }

  @Override
  public boolean close(Runnable last, Duration time) throws InterruptedException {
    try {
      Future<?> ran = thread.submit(last);
      ran.get(time.toNanos(), TimeUnit.NANOSECONDS);
      return true;
    } catch (TimeoutException | RejectedExecutionException e) {
      return thread.isTerminated();
    } catch (ExecutionException e) {
      log.error("the store's last task failed", e.getCause());
      return true;
    } finally {
      thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
      thread.shutdown();
    }
  }
}
