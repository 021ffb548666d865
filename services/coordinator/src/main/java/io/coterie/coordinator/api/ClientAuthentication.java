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
import java.util.Iterator;
import java.util.Optional;
import java.util.Set;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;
import org.jspecify.annotations.Nullable;

/**
 * Authenticates clients: once a connection, by the certificate that TLS has verified; on the
 * connection of a trusted proxy once a call, by the certificate that the proxy has verified. Calls
 * of unknown clients end before a handler sees them; only the health service answers every
 * certificate of the installation.
 */
public final class ClientAuthentication extends ServerTransportFilter implements ServerInterceptor {
  private static final Attributes.Key<Client> CLIENT = Attributes.Key.create("coterie-client");

  private static final Attributes.Key<Boolean> EDGE = Attributes.Key.create("coterie-edge");

  private static final Metadata.Key<String> FORWARDED_CERTIFICATE =
      Metadata.Key.of(ForwardedCertificate.HEADER, Metadata.ASCII_STRING_MARSHALLER);

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
    Optional<X509Certificate> peer = peer(attributes.get(Grpc.TRANSPORT_ATTR_SSL_SESSION));
    Attributes.Builder known = attributes.toBuilder();
    if (peer.filter(clients::isEdge).isPresent()) {
      known.set(EDGE, true);
    } else {
      peer.flatMap(clients::find).ifPresent(client -> known.set(CLIENT, client));
    }
    return known.build();
  }

  private static Optional<X509Certificate> peer(@Nullable SSLSession session) {
    try {
      return session != null
              && session.getPeerCertificates().length > 0
              && session.getPeerCertificates()[0] instanceof X509Certificate certificate
          ? Optional.of(certificate)
          : Optional.empty();
    } catch (SSLPeerUnverifiedException e) {
      return Optional.empty();
    }
  }

  private Optional<Client> caller(Attributes attributes, Metadata headers) {
    if (attributes.get(EDGE) == null) {
      return Optional.ofNullable(attributes.get(CLIENT));
    }
    Iterable<String> forwarded = headers.getAll(FORWARDED_CERTIFICATE);
    if (forwarded == null) {
      return Optional.empty();
    }
    Iterator<String> values = forwarded.iterator();
    String value = values.next();
    return values.hasNext()
        ? Optional.empty()
        : ForwardedCertificate.parse(value).flatMap(clients::find);
  }

  @Override
  public <Q, A> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
    if (OPEN_SERVICES.contains(call.getMethodDescriptor().getServiceName())) {
      return next.startCall(call, headers);
    }
    Client client = caller(call.getAttributes(), headers).orElse(null);
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
