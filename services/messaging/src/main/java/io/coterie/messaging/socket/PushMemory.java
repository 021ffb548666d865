package io.coterie.messaging.socket;

import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bytes of messages that are on their way from the queue to sockets. Others cause them, so nobody
 * is closed for them: a socket has at most a small share, and when there is no room at all,
 * messages stay in the queue until there is. Only a client that reads nothing of its own for a
 * while, and so keeps the room from those that wait for it, is closed.
 *
 * <p>A thread looks for room before it pushes and takes it afterwards, so that each thread may go
 * beyond the bound by one message.
 */
final class PushMemory {
  private static final Logger LOG = LoggerFactory.getLogger(PushMemory.class);

  /** Sockets that have their whole share before the room is used up. */
  static final int SHARES = 32;

  private final long maxBytes;
  private final long patienceNanos;
  private final Executor executor;
  private final Executor later;
  private final LongSupplier nanos;

  private final AtomicLong bytes = new AtomicLong();
  private final Set<Share> open = ConcurrentHashMap.newKeySet();
  private final Queue<Share> waiting = new ConcurrentLinkedQueue<>();
  private final AtomicBoolean waking = new AtomicBoolean();
  private final AtomicBoolean watching = new AtomicBoolean();

  /**
   * @param maxBytes most bytes that all sockets hold
   * @param patienceNanos how long a client may read nothing while others wait
   * @param executor where connections are told of room, and closed
   * @param later runs work after that patience
   * @param nanos monotonic nanoseconds
   */
  PushMemory(
      long maxBytes, long patienceNanos, Executor executor, Executor later, LongSupplier nanos) {
    this.maxBytes = maxBytes;
    this.patienceNanos = patienceNanos;
    this.executor = executor;
    this.later = later;
    this.nanos = nanos;
  }

  /**
   * The share of a new connection.
   *
   * @param resume there is room again for which {@link Share#room} was asked
   * @param close closes the connection
   */
  Share open(Runnable resume, Runnable close) {
    return new Share(resume, close);
  }

  /** Bytes on their way to one socket. Whoever takes and releases holds the socket's lock. */
  final class Share {
    private final Runnable resume;
    private final Runnable close;
    private final AtomicLong held = new AtomicLong();
    private final AtomicBoolean waits = new AtomicBoolean();
    private volatile long progressNanos;

    private Share(Runnable resume, Runnable close) {
      this.resume = resume;
      this.close = close;
    }

    /** Room for pushes; zero or less if there is none, and then the connection is told of it. */
    long room() {
      if (hasOwnRoom() && isFull()) {
        await(this);
        return 0;
      }
      return maxBytes / SHARES - held.get();
    }

    /** Whether the socket has not used up its share, whatever the others have left. */
    boolean hasOwnRoom() {
      return held.get() < maxBytes / SHARES;
    }

    void take(long more) {
      if (held.getAndAdd(more) == 0) {
        progressNanos = nanos.getAsLong();
        open.add(this);
      }
      bytes.addAndGet(more);
    }

    /** The client has read so much, or its connection is closed. */
    void release(long less) {
      progressNanos = nanos.getAsLong();
      if (held.addAndGet(-less) == 0) {
        open.remove(this);
      }
      bytes.addAndGet(-less);
      wakeIfRoom();
    }

    private boolean isStuck() {
      return held.get() > 0 && nanos.getAsLong() - progressNanos >= patienceNanos;
    }
  }

  private boolean isFull() {
    return bytes.get() >= maxBytes;
  }

  private void await(Share share) {
    if (share.waits.compareAndSet(false, true)) {
      waiting.add(share);
    }
    watch();
    wakeIfRoom();
  }

  private void wakeIfRoom() {
    if (!waiting.isEmpty() && !isFull() && waking.compareAndSet(false, true)) {
      try {
        executor.execute(this::wake);
      } catch (RejectedExecutionException e) {
        LOG.debug("the service has stopped, so messages stay in their queues");
      }
    }
  }

  /** Those that wait go on one after another, the first first, while there is room. */
  private void wake() {
    try {
      while (!isFull()) {
        Share next = waiting.poll();
        if (next == null) {
          break;
        }
        next.waits.set(false);
        next.resume.run();
      }
    } finally {
      waking.set(false);
    }
    wakeIfRoom();
  }

  private void watch() {
    if (watching.compareAndSet(false, true)) {
      later.execute(this::closeStuck);
    }
  }

  private void closeStuck() {
    watching.set(false);
    List<Share> stuck =
        open.stream()
            .filter(Share::isStuck)
            .sorted(Comparator.comparingLong((Share share) -> share.held.get()).reversed())
            .toList();
    long left = bytes.get();
    for (Share share : stuck) {
      if (left >= maxBytes && !waiting.isEmpty()) {
        left -= share.held.get();
        share.close.run();
      }
    }
    if (!waiting.isEmpty()) {
      watch();
    }
  }
}
