package io.coterie.coordinator.api;

import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.telemetry.TraceContext;
import io.grpc.Attributes;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Grpc;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerTransportFilter;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;

/**
 * Who calls: found once a connection, from the certificate that TLS has verified. Calls of others
 * end before a handler sees them; only the health service answers every certificate of the
 * installation.
 */
public final class ClientAuthentication extends ServerTransportFilter implements ServerInterceptor {
  private static final Attributes.Key<Client> CLIENT = Attributes.Key.create("coterie-client");

  private static final Metadata.Key<String> TRACEPARENT =
      Metadata.Key.of(TraceContext.HEADER, Metadata.ASCII_STRING_MARSHALLER);

  private static final Set<String> OPEN_SERVICES =
      Set.of(
          "grpc.health.v1.Health",
          "grpc.reflection.v1.ServerReflection",
          "grpc.reflection.v1alpha.ServerReflection");

  private final ClientDirectory clients;
  private final Duration longestWait;
  private final SecureRandom random;

  /**
   * Authentication.
   *
   * @param longestWait for a result, when the call has no deadline or a later one
   */
  public ClientAuthentication(ClientDirectory clients, Duration longestWait, SecureRandom random) {
    this.clients = clients;
    this.longestWait = longestWait;
    this.random = random;
  }

  @Override
  public Attributes transportReady(Attributes attributes) {
    return identify(attributes.get(Grpc.TRANSPORT_ATTR_SSL_SESSION))
        .map(client -> attributes.toBuilder().set(CLIENT, client).build())
        .orElse(attributes);
  }

  private Optional<Client> identify(@org.jspecify.annotations.Nullable SSLSession session) {
    try {
      return session != null
              && session.getPeerCertificates().length > 0
              && session.getPeerCertificates()[0] instanceof X509Certificate certificate
          ? clients.find(certificate)
          : Optional.empty();
    } catch (SSLPeerUnverifiedException e) {
      return Optional.empty();
    }
  }

  @Override
  public <Q, A> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
    if (OPEN_SERVICES.contains(call.getMethodDescriptor().getServiceName())) {
      return next.startCall(call, headers);
    }
    Client client = call.getAttributes().get(CLIENT);
    if (client == null) {
      StatusRuntimeException refused = StatusErrors.of(ErrorReason.CLIENT_NOT_ALLOWED);
      Metadata trailers = Status.trailersFromThrowable(refused);
      call.close(refused.getStatus(), trailers == null ? new Metadata() : trailers);
      return new ServerCall.Listener<>() {};
    }
    TraceContext trace = TraceContext.continueOrCreate(headers.get(TRACEPARENT), random);
    Context context = Context.current().withValue(Call.KEY, new Call(client, trace, longestWait));
    return Contexts.interceptCall(context, call, headers, next);
  }
}
