package io.coterie.messaging.api;

import static io.coterie.messaging.api.Route.Access.ANYONE;
import static io.coterie.messaging.api.Route.Access.DEVICE;
import static io.coterie.messaging.api.Route.Body.NONE;

import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.telemetry.MessagingMetrics;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;

/** Calls about the service itself, and the sum of all calls. */
public final class ServiceCalls {
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
        new Route("GET", "/v1/keepalive", ANYONE, NONE, false, call -> ApiResponse.ok()),
        new Route("GET", "/v1/config", DEVICE, NONE, false, this::config));
  }

  private record RemoteConfig(List<String> config, long serverEpochTime) {}

  /** No function of a client is switched from here. */
  private ApiResponse config(Route.Call call) {
    return ApiResponse.json(new RemoteConfig(List.of(), clock.millis() / 1000));
  }
}
