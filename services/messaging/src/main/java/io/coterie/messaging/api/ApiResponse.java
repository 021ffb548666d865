package io.coterie.messaging.api;

import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;

/**
 * The answer to a call.
 *
 * @param body JSON, or empty
 * @param headers besides the content type
 */
public record ApiResponse(int status, byte[] body, Map<String, String> headers) {
  private static final byte[] EMPTY = new byte[0];
  private static final Duration UNAVAILABLE_RETRY = Duration.ofSeconds(2);

  public static ApiResponse empty(int status) {
    return new ApiResponse(status, EMPTY, Map.of());
  }

  /** An answer that says when to come back, at least a second later. */
  public static ApiResponse retryLater(int status, Duration wait) {
    long seconds = Math.max(1, (wait.toMillis() + 999) / 1000);
    return empty(status).withHeader("Retry-After", Long.toString(seconds));
  }

  /** The database does not answer, or the service has no room: come back in two seconds. */
  public static ApiResponse unavailable() {
    return retryLater(503, UNAVAILABLE_RETRY);
  }

  public static ApiResponse ok() {
    return empty(200);
  }

  public static ApiResponse json(Object value) {
    return json(200, value);
  }

  public static ApiResponse json(int status, Object value) {
    return new ApiResponse(status, Json.write(value), Map.of());
  }

  public ApiResponse withHeader(String name, String value) {
    Map<String, String> more = new TreeMap<>(headers);
    more.put(name, value);
    return new ApiResponse(status, body, more);
  }
}
