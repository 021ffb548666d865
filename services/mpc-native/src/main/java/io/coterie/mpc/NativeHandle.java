package io.coterie.mpc;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * Owns one object of the native core and frees it exactly once: when it is closed, or, if that was
 * forgotten, when the owner has become garbage. The latter is counted, since it means a missing
 * close.
 */
final class NativeHandle {

  /** Never refers to the owner: otherwise the owner could not become garbage. */
  private static final class Release implements Runnable {
    private final MemorySegment pointer;
    private final Consumer<MemorySegment> free;
    private final AtomicLong rescued;
    private volatile boolean closed;

    Release(MemorySegment pointer, Consumer<MemorySegment> free, AtomicLong rescued) {
      this.pointer = pointer;
      this.free = free;
      this.rescued = rescued;
    }

    @Override
    public void run() {
      if (!closed) {
        rescued.incrementAndGet();
      }
      free.accept(pointer);
    }
  }

  private final Release release;
  private final Cleaner.Cleanable cleanable;

  /**
   * Takes ownership.
   *
   * @param owner whose becoming garbage frees the object
   * @param free the library's function; runs once
   * @param rescued counts the objects that nobody closed
   */
  NativeHandle(
      Object owner,
      Cleaner cleaner,
      MemorySegment pointer,
      Consumer<MemorySegment> free,
      AtomicLong rescued) {
    this.release = new Release(pointer, free, rescued);
    this.cleanable = cleaner.register(owner, release);
  }

  /** The pointer; only for calls during which the owner is kept reachable and open. */
  MemorySegment pointer() {
    return release.pointer;
  }

  /** Frees the object. Idempotent. */
  void close() {
    release.closed = true;
    cleanable.clean();
  }
}
