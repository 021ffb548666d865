package io.coterie.messaging.api;

import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.Credentials;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import io.coterie.messaging.queue.MessageQueue.QueueFullException;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.platform.telemetry.LogScope;
import io.coterie.platform.telemetry.TraceContext;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.dao.TransientDataAccessException;
import org.springframework.transaction.CannotCreateTransactionException;
import org.springframework.transaction.TransactionSystemException;

/**
 * The one way to every call, for REST and for requests inside the WebSocket. A handler may end in
 * any way: the outcome is a response without internals in it.
 */
public final class Dispatcher {
  private static final Logger LOG = LoggerFactory.getLogger(Dispatcher.class);
  private static final String UNKNOWN_ROUTE = "unknown";
  private static final String ANY_SEGMENT = "*";
  private static final Duration QUEUE_FULL_RETRY = Duration.ofSeconds(60);

  private final Accounts accounts;
  private final MessagingMetrics metrics;
  private final Clock clock;
  private final Map<Integer, List<Entry>> bySegments = new HashMap<>();

  Dispatcher(List<Route> routes, Accounts accounts, MessagingMetrics metrics, Clock clock) {
    this.accounts = accounts;
    this.metrics = metrics;
    this.clock = clock;
    for (Route route : routes) {
      Entry entry = new Entry(route, segments(route.template()));
      bySegments.computeIfAbsent(entry.template().length, n -> new ArrayList<>()).add(entry);
    }
  }

  /** Whether the call may wait for the database. */
  public boolean mayBlock(ApiRequest request) {
    return match(request) instanceof Match m && m.route().blocking();
  }

  /** Answers a call. Neither throws nor fails. */
  public CompletableFuture<ApiResponse> dispatch(ApiRequest request) {
    long start = System.nanoTime();
    Match match = match(request);
    Optional<TraceContext> trace = request.header(TraceContext.HEADER).flatMap(TraceContext::parse);
    CompletableFuture<ApiResponse> answer;
    try (LogScope scope = LogScope.open()) {
      trace.ifPresent(scope::trace);
      answer = answer(match, request, trace);
    }
    return answer.handle(
        (response, failure) -> {
          ApiResponse ended =
              response != null
                  ? response
                  : refusal(match, request, Objects.requireNonNull(failure));
          LOG.debug("{} {}: {}", request.verb(), template(match), ended.status());
          metrics.request(template(match), ended.status(), System.nanoTime() - start);
          return ended.withHeader("X-Signal-Timestamp", Long.toString(clock.millis()));
        });
  }

  private CompletableFuture<ApiResponse> answer(
      @Nullable Match match, ApiRequest request, Optional<TraceContext> trace) {
    try {
      return match == null
          ? CompletableFuture.completedFuture(noRoute(request))
          : handle(match, request, trace);
    } catch (RuntimeException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  /** A failure as a response without internals in it. */
  private static ApiResponse refusal(@Nullable Match match, ApiRequest request, Throwable failure) {
    Throwable cause =
        failure instanceof CompletionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    return switch (cause) {
      case ApiException e -> e.response();
      case RateLimitedException e -> ApiResponse.retryLater(429, e.retryAfter());
      case QueueFullException e -> ApiResponse.retryLater(429, QUEUE_FULL_RETRY);
      case CannotCreateTransactionException e -> unavailable(e);
      case TransactionSystemException e -> unavailable(e);
      case DataAccessResourceFailureException e -> unavailable(e);
      case TransientDataAccessException e -> unavailable(e);
      default -> {
        LOG.error("a call of {} {} failed", request.verb(), template(match), cause);
        yield ApiResponse.empty(500);
      }
    };
  }

  private static ApiResponse unavailable(RuntimeException cause) {
    LOG.warn("the database does not answer, so a call is refused", cause);
    return ApiResponse.unavailable();
  }

  private static String template(@Nullable Match match) {
    return match == null ? UNKNOWN_ROUTE : match.route().template();
  }

  private ApiResponse noRoute(ApiRequest request) {
    String[] path = segments(request.path());
    boolean otherVerb =
        bySegments.getOrDefault(path.length, List.of()).stream()
            .anyMatch(entry -> entry.matches(path));
    return ApiResponse.empty(otherVerb ? 405 : 404);
  }

  private CompletableFuture<ApiResponse> handle(
      Match match, ApiRequest request, Optional<TraceContext> trace) {
    Optional<Authenticated> caller = authenticate(match.route().access(), request);
    requireMediaType(match.route().body(), request);
    return match
        .route()
        .handler()
        .handle(new Route.Call(request, caller, match.parameters(), trace));
  }

  private Optional<Authenticated> authenticate(Route.Access access, ApiRequest request) {
    if (access == Route.Access.ANYONE) {
      return Optional.empty();
    }
    Optional<Authenticated> caller;
    if (request.connection().isPresent()) {
      caller = accounts.refresh(request.connection().get().address());
      if (caller.isEmpty()) {
        throw ApiException.unauthorized();
      }
    } else {
      Optional<String> header = request.header("Authorization");
      caller =
          header
              .flatMap(Credentials::basic)
              .flatMap(Credentials::of)
              .flatMap(accounts::authenticate);
      if (header.isPresent() && caller.isEmpty()) {
        throw ApiException.unauthorized();
      }
    }
    if (access == Route.Access.DEVICE && caller.isEmpty()) {
      throw ApiException.unauthorized();
    }
    return caller;
  }

  private static void requireMediaType(Route.Body body, ApiRequest request) {
    if (body.mediaType == null) {
      return;
    }
    String type = request.header("Content-Type").orElse("");
    int parameters = type.indexOf(';');
    String bare = (parameters < 0 ? type : type.substring(0, parameters)).strip();
    if (!bare.toLowerCase(Locale.ROOT).equals(body.mediaType)) {
      throw ApiException.status(415);
    }
  }

  private record Entry(Route route, String[] template) {
    boolean matches(String[] path) {
      for (int i = 0; i < template.length; i++) {
        if (!template[i].equals(ANY_SEGMENT) && !template[i].equals(path[i])) {
          return false;
        }
      }
      return true;
    }
  }

  private record Match(Entry entry, String[] path) {
    Route route() {
      return entry.route();
    }

    /** The text that stood for each wildcard. */
    List<String> parameters() {
      List<String> parameters = new ArrayList<>();
      for (int i = 0; i < path.length; i++) {
        if (entry.template()[i].equals(ANY_SEGMENT)) {
          parameters.add(decode(path[i]));
        }
      }
      return parameters;
    }
  }

  private @Nullable Match match(ApiRequest request) {
    String[] path = segments(request.path());
    for (Entry entry : bySegments.getOrDefault(path.length, List.of())) {
      if (entry.route().verb().equals(request.verb()) && entry.matches(path)) {
        return new Match(entry, path);
      }
    }
    return null;
  }

  /** The public server knows every path with and without a slash at its end. */
  private static String[] segments(String path) {
    boolean slash = path.length() > 1 && path.endsWith("/");
    return (slash ? path.substring(0, path.length() - 1) : path).split("/", -1);
  }

  private static String decode(String segment) {
    try {
      return URLDecoder.decode(segment.replace("+", "%2B"), StandardCharsets.UTF_8);
    } catch (IllegalArgumentException e) {
      throw ApiException.badRequest();
    }
  }
}
