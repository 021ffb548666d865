package io.coterie.messaging.api;

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

  public static ApiResponse empty(int status) {
    return new ApiResponse(status, EMPTY, Map.of());
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
