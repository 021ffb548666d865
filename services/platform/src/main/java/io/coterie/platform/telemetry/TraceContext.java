package io.coterie.platform.telemetry;

import java.util.HexFormat;
import java.util.Optional;
import java.util.random.RandomGenerator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * W3C trace context, version 00: it ties the work of all services for one request together.
 *
 * @param traceId 32 lower-case hex digits, not all zero
 * @param spanId 16 lower-case hex digits, not all zero: the caller's step
 * @param sampled whether the caller records it
 */
public record TraceContext(String traceId, String spanId, boolean sampled) {
  /** Name of the header (HTTP, WebSocket requests, gRPC metadata). */
  public static final String HEADER = "traceparent";

  private static final Pattern TRACE_ID = Pattern.compile("(?!0{32})[0-9a-f]{32}");
  private static final Pattern SPAN_ID = Pattern.compile("(?!0{16})[0-9a-f]{16}");
  private static final Pattern TRACEPARENT =
      Pattern.compile("00-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})");

  public TraceContext {
    if (!TRACE_ID.matcher(traceId).matches() || !SPAN_ID.matcher(spanId).matches()) {
      throw new IllegalArgumentException("not a trace context");
    }
  }

  /** Reads a header; empty if it is absent or not well-formed, as the specification asks. */
  public static Optional<TraceContext> parse(@Nullable String traceparent) {
    if (traceparent == null) {
      return Optional.empty();
    }
    Matcher m = TRACEPARENT.matcher(traceparent);
    return m.matches()
        ? Optional.of(
            new TraceContext(m.group(1), m.group(2), (Integer.parseInt(m.group(3), 16) & 1) != 0))
        : Optional.empty();
  }

  /** The caller's context as our own step, or a new trace if it has none. */
  public static TraceContext continueOrCreate(
      @Nullable String traceparent, RandomGenerator random) {
    return parse(traceparent).map(t -> t.child(random)).orElseGet(() -> create(random));
  }

  /** A new trace. */
  public static TraceContext create(RandomGenerator random) {
    return new TraceContext(hex(random, 16), hex(random, 8), true);
  }

  /** The next step of the same trace. */
  public TraceContext child(RandomGenerator random) {
    return new TraceContext(traceId, hex(random, 8), sampled);
  }

  /** The header's value. */
  public String traceparent() {
    return "00-" + traceId + "-" + spanId + (sampled ? "-01" : "-00");
  }

  private static String hex(RandomGenerator random, int bytes) {
    byte[] value = new byte[bytes];
    do {
      random.nextBytes(value);
    } while (isZero(value));
    return HexFormat.of().formatHex(value);
  }

  private static boolean isZero(byte[] value) {
    int or = 0;
    for (byte b : value) {
      or |= b;
    }
    return or == 0;
  }
}
