package io.coterie.platform.telemetry;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/**
 * The ids that every log line of a piece of work carries, for as long as the scope is open on this
 * thread. The ids before it come back when it closes.
 */
public final class LogScope implements AutoCloseable {
  /** Log field: the trace's id. */
  public static final String TRACE_ID = "trace_id";

  /** Log field: the requester's request id. */
  public static final String REQUEST_ID = "request_id";

  /** Log field: the first 16 hex digits of the session id. */
  public static final String SESSION_ID = "session_id";

  private static final int SESSION_ID_BYTES_SHOWN = 8;

  private record Previous(String key, @Nullable String value) {}

  private final Deque<Previous> previous = new ArrayDeque<>();

  private LogScope() {}

  /** An empty scope. */
  public static LogScope open() {
    return new LogScope();
  }

  public LogScope trace(TraceContext trace) {
    return put(TRACE_ID, trace.traceId());
  }

  public LogScope request(String requestId) {
    return put(REQUEST_ID, requestId);
  }

  /**
   * Adds the session.
   *
   * @param sessionId 32 bytes
   */
  public LogScope session(byte[] sessionId) {
    return put(SESSION_ID, sessionLabel(sessionId));
  }

  /** How a session id is shown to people: its first 16 hex digits. */
  public static String sessionLabel(byte[] sessionId) {
    return HexFormat.of()
        .formatHex(sessionId, 0, Math.min(SESSION_ID_BYTES_SHOWN, sessionId.length));
  }

  private LogScope put(String key, String value) {
    previous.push(new Previous(key, MDC.get(key)));
    MDC.put(key, value);
    return this;
  }

  /** Restores the fields. Call on the thread that opened the scope. */
  @Override
  public void close() {
    while (!previous.isEmpty()) {
      Previous p = previous.pop();
      if (p.value() == null) {
        MDC.remove(p.key());
      } else {
        MDC.put(p.key(), p.value());
      }
    }
  }
}
