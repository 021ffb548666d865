package io.coterie.messaging.api;

import static io.coterie.messaging.api.Route.Access.ANYONE;
import static io.coterie.messaging.api.Route.Access.DEVICE;
import static io.coterie.messaging.api.Route.Body.NONE;

import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.telemetry.MessagingMetrics;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Calls about the service itself, and the sum of all calls. */
public final class ServiceCalls {
  /** Tag of the configuration's second version, which never changes. */
  private static final String CONFIG_TAG = "\"00000000\"";

  private final Clock clock;

  private ServiceCalls(Clock clock) {
    this.clock = clock;
  }

  /** The dispatch layer with every call there is. */
  public static Dispatcher dispatcher(
      AccountCalls accountCalls,
      KeyCalls keyCalls,
      MessageCalls messageCalls,
      MultiRecipientCalls multiRecipientCalls,
      Accounts accounts,
      MessagingMetrics metrics,
      Clock clock) {
    List<Route> routes = new ArrayList<>();
    routes.addAll(accountCalls.routes());
    routes.addAll(keyCalls.routes());
    // Before the call whose template would match its path too.
    routes.addAll(multiRecipientCalls.routes());
    routes.addAll(messageCalls.routes());
    routes.addAll(new ServiceCalls(clock).routes());
    return new Dispatcher(routes, accounts, metrics, clock);
  }

  private List<Route> routes() {
    return List.of(
        new Route("GET", "/v1/keepalive", ANYONE, NONE, false, this::keepAlive),
        new Route("GET", "/v1/config", DEVICE, NONE, false, this::config),
        new Route("GET", "/v2/config", DEVICE, NONE, false, this::configByName));
  }

  private ApiResponse keepAlive(Route.Call call) {
    return ApiResponse.ok();
  }

  private record RemoteConfig(List<String> config, long serverEpochTime) {}

  /** No function of a client is switched from here. */
  private ApiResponse config(Route.Call call) {
    return ApiResponse.json(new RemoteConfig(List.of(), clock.millis() / 1000));
  }

  private record ConfigByName(Map<String, String> config) {}

  /** Whether the client has this answer already, it says with the tag of the answer. */
  private ApiResponse configByName(Route.Call call) {
    boolean known =
        call.request()
            .header("If-None-Match")
            .filter(tags -> List.of(tags.split("\\s*,\\s*")).contains(CONFIG_TAG))
            .isPresent();
    ApiResponse response =
        known ? ApiResponse.empty(304) : ApiResponse.json(new ConfigByName(Map.of()));
    return response.withHeader("ETag", CONFIG_TAG);
  }
}
