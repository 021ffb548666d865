package io.coterie.messaging.api;

import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.limit.Source;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** One call, whichever way it came. */
public final class ApiRequest {
  /** Characters of a path with its query, as many as the HTTP server takes of all headers. */
  private static final int MAX_TARGET = 16 * 1024;

  /** No call has more than five. */
  private static final int MAX_PARAMETERS = 16;

  private final String verb;
  private final String path;
  private final Map<String, String> query;
  private final Map<String, String> headers;
  private final byte[] body;
  private final @Nullable Authenticated connection;
  private final Source source;

  /**
   * @param target path, with a query after {@code ?} if there is one
   * @param headers first value of each; names in any case
   * @param connection owner of the WebSocket, if the call came through an authenticated one
   * @param source whose share of the service the call uses
   * @throws ApiException 400 if the target is malformed, or too long
   */
  public ApiRequest(
      String verb,
      String target,
      Map<String, String> headers,
      byte[] body,
      @Nullable Authenticated connection,
      Source source) {
    if (target.length() > MAX_TARGET) {
      throw ApiException.badRequest();
    }
    int question = target.indexOf('?');
    this.verb = verb;
    this.path = question < 0 ? target : target.substring(0, question);
    this.query = question < 0 ? Map.of() : parseQuery(target.substring(question + 1));
    this.headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    this.headers.putAll(headers);
    this.body = body;
    this.connection = connection;
    this.source = source;
  }

  private static Map<String, String> parseQuery(String text) {
    Map<String, String> query = new LinkedHashMap<>();
    String[] pairs = text.split("&", MAX_PARAMETERS + 1);
    if (pairs.length > MAX_PARAMETERS) {
      throw ApiException.badRequest();
    }
    for (String pair : pairs) {
      int equals = pair.indexOf('=');
      try {
        query.putIfAbsent(
            decode(equals < 0 ? pair : pair.substring(0, equals)),
            equals < 0 ? "" : decode(pair.substring(equals + 1)));
      } catch (IllegalArgumentException e) {
        throw ApiException.badRequest();
      }
    }
    return query;
  }

  private static String decode(String text) {
    return URLDecoder.decode(text, StandardCharsets.UTF_8);
  }

  public String verb() {
    return verb;
  }

  public String path() {
    return path;
  }

  public Optional<String> query(String name) {
    return Optional.ofNullable(query.get(name));
  }

  /** {@code true} or {@code false}; anything else is a bad request. */
  public boolean queryFlag(String name, boolean otherwise) {
    return switch (query.get(name)) {
      case null -> otherwise;
      case "true" -> true;
      case "false" -> false;
      default -> throw ApiException.badRequest();
    };
  }

  public Optional<String> header(String name) {
    return Optional.ofNullable(headers.get(name));
  }

  public byte[] body() {
    return body;
  }

  /** The source whose share of the service the call uses. */
  public Source source() {
    return source;
  }

  /** The owner of the WebSocket, if it is an authenticated one. */
  public Optional<Authenticated> connection() {
    return Optional.ofNullable(connection);
  }
}
