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
import java.util.function.IntConsumer;

/** What is allocated outside the Java heap, as the C library counts it. */
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

  private static final int BATCHES = 6;

  /** The smallest allocation there is, with its header. */
  private static final int SMALLEST_LEAK = 32;

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
   * Repeats an action in batches. A leak shows in every batch; what the JVM allocates beside only
   * in some, so the best batch is judged.
   */
  static void assertDoesNotGrow(int batch, IntConsumer action) {
    long best = Long.MAX_VALUE;
    for (int b = 0; b < BATCHES; b++) {
      long before = bytes();
      for (int i = 0; i < batch; i++) {
        action.accept(i);
      }
      best = Math.min(best, bytes() - before);
    }
    assertThat(best).isLessThan((long) batch * SMALLEST_LEAK / 2);
  }
}
