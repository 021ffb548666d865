package io.coterie.acceptance.bench;

import java.lang.management.ManagementFactory;
import java.util.function.DoubleSupplier;

/** Time of the clock, and of the processors. */
final class Timing {
  private static final com.sun.management.OperatingSystemMXBean JVM =
      (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private Timing() {}

  /** Milliseconds that the work takes. */
  static double millis(Runnable work) {
    long begin = System.nanoTime();
    work.run();
    return (System.nanoTime() - begin) / 1e6;
  }

  /** So many samples, one after another. */
  static double[] samples(int count, DoubleSupplier one) {
    double[] samples = new double[count];
    for (int i = 0; i < count; i++) {
      samples[i] = one.getAsDouble();
    }
    return samples;
  }

  /** Processor time of this process: all services run in it, only PostgreSQL does not. */
  static long processorNanos() {
    return JVM.getProcessCpuTime();
  }
}
