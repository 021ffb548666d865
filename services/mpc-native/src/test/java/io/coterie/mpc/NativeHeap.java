package io.coterie.mpc;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayDeque;
import java.util.Deque;

/** The memory that is allocated outside the Java heap, as the C library counts it. */
final class NativeHeap {
  private static final StructLayout MALLINFO2 =
      MemoryLayout.structLayout(
          MemoryLayout.sequenceLayout(7, JAVA_LONG),
          JAVA_LONG.withName("uordblks"),
          MemoryLayout.sequenceLayout(2, JAVA_LONG));
  private static final MethodHandle FUNCTION =
      Linker.nativeLinker()
          .downcallHandle(
              Linker.nativeLinker().defaultLookup().findOrThrow("mallinfo2"),
              FunctionDescriptor.of(MALLINFO2));

  /** The smallest allocation there is, with its header. */
  private static final int SMALLEST_LEAK = 32;

  private static final int BATCH = 100;
  private static final int WINDOW = 20;
  private static final int MAX_BATCHES = 600;

  private NativeHeap() {}

  private static long bytes() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = (MemorySegment) FUNCTION.invokeExact((SegmentAllocator) arena);
      return info.get(
          JAVA_LONG, MALLINFO2.byteOffset(MemoryLayout.PathElement.groupElement("uordblks")));
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Repeats an action in batches until most of the latest batches left nothing behind. A leak shows
   * in every batch; other allocations of the JVM (compilers, profiles) show in some, and in fewer
   * the longer it runs.
   */
  static void assertDoesNotGrow(Runnable action) {
    Deque<Long> growth = new ArrayDeque<>();
    long clean = 0;
    for (int b = 0; b < MAX_BATCHES && clean <= WINDOW / 2; b++) {
      long before = bytes();
      for (int i = 0; i < BATCH; i++) {
        action.run();
      }
      growth.addLast(bytes() - before);
      if (growth.size() > WINDOW) {
        growth.removeFirst();
      }
      clean = growth.stream().filter(bytes -> bytes < BATCH * SMALLEST_LEAK / 2).count();
    }
    assertThat(clean)
        .as("batches without a leak, of the last: %s", growth)
        .isGreaterThan(WINDOW / 2);
  }
}
