package io.coterie.coordinator.config;

import io.coterie.coordinator.api.ClientAuthentication;
import io.grpc.ServerCredentials;
import io.grpc.TlsServerCredentials.ClientAuth;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NettySslContextServerCredentials;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import org.springframework.boot.grpc.server.autoconfigure.GrpcServerProperties;
import org.springframework.boot.ssl.SslBundle;
import org.springframework.boot.ssl.SslBundles;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.grpc.server.NettyGrpcServerFactory;
import org.springframework.grpc.server.lifecycle.GrpcServerLifecycle;
import org.springframework.grpc.server.service.GrpcServiceConfigurer;
import org.springframework.grpc.server.service.GrpcServiceDiscoverer;

/**
 * The gRPC server: TLS 1.3 and nothing older, a client certificate from everyone. Boot's own
 * factory has no setting for the protocol version, so this one takes its place; properties are
 * Boot's.
 */
@Configuration(proxyBeanMethods = false)
class GrpcServerConfiguration {
  /** Calls of one connection at a time: a wallet backend's burst, not a flood. */
  private static final int CALLS_PER_CONNECTION = 1000;

  /** A connection without traffic for so long is asked whether its other end is still there. */
  private static final Duration KEEP_ALIVE = Duration.ofSeconds(30);

  @Bean
  ExecutorService callThreads() {
    return Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("call-", 0).factory());
  }

  @Bean
  NettyGrpcServerFactory grpcServerFactory(
      GrpcServerProperties properties,
      SslBundles bundles,
      GrpcServiceDiscoverer discoverer,
      GrpcServiceConfigurer configurer,
      ExecutorService callThreads,
      ClientAuthentication authentication) {
    String address =
        (properties.getAddress() == null ? "*" : properties.getAddress().getHostAddress())
            + ":"
            + (properties.getPort() == null ? 9090 : properties.getPort());
    SslBundle bundle = bundles.getBundle(String.valueOf(properties.getSsl().getBundle()));
    SslContext tls = tls(bundle);
    NettyGrpcServerFactory factory =
        new NettyGrpcServerFactory(
            address,
            List.of(
                builder -> {
                  builder.executor(callThreads);
                  builder.addTransportFilter(authentication);
                  builder.maxInboundMessageSize(
                      (int) properties.getInbound().getMessage().getMaxSize().toBytes());
                  builder.maxInboundMetadataSize(
                      (int) properties.getInbound().getMetadata().getMaxSize().toBytes());
                  builder.maxConcurrentCallsPerConnection(CALLS_PER_CONNECTION);
                  builder.keepAliveTime(KEEP_ALIVE.toNanos(), TimeUnit.NANOSECONDS);
                  builder.permitKeepAliveTime(KEEP_ALIVE.toNanos() / 2, TimeUnit.NANOSECONDS);
                  builder.permitKeepAliveWithoutCalls(true);
                }),
            null,
            null,
            ClientAuth.REQUIRE) {
          @Override
          protected ServerCredentials credentials() {
            return NettySslContextServerCredentials.create(tls);
          }
        };
    discoverer
        .findServices()
        .forEach(spec -> factory.addService(configurer.configure(spec, factory)));
    return factory;
  }

  private static SslContext tls(SslBundle bundle) {
    try {
      return GrpcSslContexts.configure(
              SslContextBuilder.forServer(bundle.getManagers().getKeyManagerFactory())
                  .trustManager(bundle.getManagers().getTrustManagerFactory()))
          .clientAuth(io.netty.handler.ssl.ClientAuth.REQUIRE)
          .protocols("TLSv1.3")
          .build();
    } catch (SSLException e) {
      throw new IllegalStateException("the server's TLS bundle cannot be used", e);
    }
  }

  @Bean
  GrpcServerLifecycle grpcServerLifecycle(
      NettyGrpcServerFactory factory,
      GrpcServerProperties properties,
      ApplicationEventPublisher events) {
    return new GrpcServerLifecycle(factory, properties.getShutdown().getGracePeriod(), events);
  }
}
