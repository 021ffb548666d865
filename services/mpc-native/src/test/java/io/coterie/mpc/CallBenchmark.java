package io.coterie.mpc;

import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Measures the cost of the boundary, beside the computation behind it. Run with {@code mvn -pl
 * services/mpc-native -am -Pbench process-test-classes}.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(value = 1, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@State(Scope.Benchmark)
public class CallBenchmark {
  private final LocalParties parties = new LocalParties(2);
  private final Map<Integer, Done> shares = parties.keygen(parties.keygen(2));
  private final SessionConfig signing =
      parties.sign(shares.get(1).getKeyPublic(), new byte[32], List.of(1, 2));
  private final byte[] share = shares.get(1).getSealedShare().toByteArray();
  private final MpcSession session = parties.start(1, signing, share);

  /** Bytes of an envelope. */
  @Param({"16", "1000", "100000"})
  public int size;

  private byte[] envelope = {};

  /** Not a valid envelope: the core drops it at once. */
  @Setup
  public void makeEnvelope() {
    envelope = new byte[size];
  }

  /** There and back: native memory, copies, the call, decoding of the step. */
  @Benchmark
  public Step crossing() {
    return session.handle(2, envelope);
  }

  /** Everything a signer computes to answer an order: unseal, partial signature, first step. */
  @Benchmark
  public Step startSigning() {
    try (MpcSession started = parties.start(1, signing, share)) {
      return started.firstStep();
    }
  }

  @TearDown
  public void close() {
    session.close();
    parties.close();
  }
}
