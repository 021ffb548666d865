package io.coterie.messaging.api;

import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.limit.Source;
import io.coterie.platform.telemetry.TraceContext;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * One call of the API.
 *
 * @param template path in which {@code *} stands for one segment, handed to the handler; also the
 *     metric label
 * @param access clients that may call
 * @param body form of the body that it reads
 * @param blocking whether it waits for the database, and so must not hold up other calls of its
 *     connection
 */
record Route(
    String verb,
    String template,
    Access access,
    Body body,
    boolean blocking,
    DeferredHandler handler) {

  /** A call that is answered when its handler returns. */
  Route(String verb, String template, Access access, Body body, boolean blocking, Handler handler) {
    this(
        verb,
        template,
        access,
        body,
        blocking,
        (DeferredHandler) call -> CompletableFuture.completedFuture(handler.handle(call)));
  }

  /** A call that does not hold up its connection, and is answered later. */
  static Route deferred(
      String verb, String template, Access access, Body body, DeferredHandler handler) {
    return new Route(verb, template, access, body, false, handler);
  }

  /** The clients that may call. */
  enum Access {
    /** Anyone; credentials are not looked at. */
    ANYONE,
    /** Anyone; but credentials that are sent must be right. */
    OPTIONAL,
    /** A device with its credentials. */
    DEVICE
  }

  /** The inputs that a call reads. */
  enum Body {
    NONE(null),
    JSON("application/json"),
    MULTI_RECIPIENT("application/vnd.signal-messenger.mrm");

    final @Nullable String mediaType;

    Body(@Nullable String mediaType) {
      this.mediaType = mediaType;
    }
  }

  /** Parse, authorise, act, reply. */
  @FunctionalInterface
  interface Handler {
    /**
     * @throws ApiException to end with another status
     */
    ApiResponse handle(Call call);
  }

  /** Parse, authorise, act; reply when the act is done. */
  @FunctionalInterface
  interface DeferredHandler {
    /**
     * @return fails like {@link #handle} throws
     * @throws ApiException to end with another status
     */
    CompletableFuture<ApiResponse> handle(Call call);
  }

  /**
   * @param caller empty unless {@link Access} asks for credentials
   * @param segments text in the place of each {@code *}, decoded
   * @param trace the caller's trace context
   */
  record Call(
      ApiRequest request,
      Optional<Authenticated> caller,
      List<String> segments,
      Optional<TraceContext> trace) {
    /** The caller of a {@link Access#DEVICE} route. */
    Authenticated device() {
      return caller.orElseThrow(ApiException::unauthorized);
    }

    /** Whose share of the service it uses. */
    Source source() {
      return caller
          .<Source>map(device -> new Source.OfAccount(device.account().aci()))
          .orElse(request.source());
    }

    /**
     * @throws ApiException 400 if the body is not JSON of that shape
     */
    <T> T json(Class<T> type) {
      return Json.read(request.body(), type).orElseThrow(ApiException::badRequest);
    }
  }
}
