package io.coterie.messaging.redis;

import io.coterie.messaging.telemetry.MessagingMetrics;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisCredentialsProvider;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.pubsub.api.async.RedisPubSubAsyncCommands;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.lettuce.core.resource.Delay;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.dao.QueryTimeoutException;

/**
 * The two connections of a replica to Redis: one for commands, one for what comes by subscription.
 * Both come back by themselves after a failure, with all subscriptions; until then commands fail at
 * once, so that nothing piles up.
 */
public final class RedisLink implements AutoCloseable {
  private static final Duration FIRST_RECONNECT = Duration.ofMillis(10);
  private static final Duration LAST_RECONNECT = Duration.ofSeconds(1);

  private final ClientResources resources;
  private final RedisClient client;
  private final StatefulRedisConnection<byte[], byte[]> commands;
  private final StatefulRedisPubSubConnection<byte[], byte[]> subscriptions;
  private final Duration timeout;
  private final MessagingMetrics metrics;

  /**
   * @param uri {@code rediss://host:port}, or {@code redis://} without TLS
   * @param ca PEM file with the authorities that Redis' certificate is checked against; the
   *     system's if null
   * @param username null for the default user
   * @param passwordFile file whose first line is the password; null if none is asked for
   * @param timeout how long to wait for an answer
   */
  public record Settings(
      URI uri,
      @Nullable Path ca,
      @Nullable String username,
      @Nullable Path passwordFile,
      Duration timeout) {}

  /**
   * Connects.
   *
   * @throws RedisException if Redis cannot be reached or refuses
   */
  public RedisLink(Settings settings, MessagingMetrics metrics) {
    this.timeout = settings.timeout();
    this.metrics = metrics;
    this.resources =
        DefaultClientResources.builder()
            .reconnectDelay(
                Delay.exponential(FIRST_RECONNECT, LAST_RECONNECT, 2, TimeUnit.MILLISECONDS))
            .build();
    this.client = RedisClient.create(resources, redisUri(settings));
    try {
      client.setOptions(options(settings));
      this.commands = client.connect(ByteArrayCodec.INSTANCE);
      this.subscriptions = client.connectPubSub(ByteArrayCodec.INSTANCE);
    } catch (RuntimeException e) {
      shutDown();
      throw e;
    }
  }

  private static RedisURI redisUri(Settings settings) {
    RedisURI uri = RedisURI.create(settings.uri());
    uri.setTimeout(settings.timeout());
    uri.setClientName("coterie-messaging");
    Path passwordFile = settings.passwordFile();
    if (passwordFile != null) {
      // Read at each connection, so that a password can be changed without a restart.
      uri.setCredentialsProvider(
          RedisCredentialsProvider.from(
              () -> RedisCredentials.just(settings.username(), password(passwordFile))));
    }
    return uri;
  }

  private static char[] password(Path file) {
    try (var lines = Files.lines(file)) {
      return lines.findFirst().orElse("").toCharArray();
    } catch (IOException e) {
      throw new UncheckedIOException("the file with Redis' password cannot be read", e);
    }
  }

  private static ClientOptions options(Settings settings) {
    ClientOptions.Builder options =
        ClientOptions.builder()
            .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
            .timeoutOptions(TimeoutOptions.enabled(settings.timeout()))
            .socketOptions(
                SocketOptions.builder()
                    .connectTimeout(settings.timeout())
                    .keepAlive(true)
                    .tcpNoDelay(true)
                    .build());
    if (settings.ca() != null) {
      options.sslOptions(SslOptions.builder().trustManager(settings.ca().toFile()).build());
    }
    return options.build();
  }

  RedisAsyncCommands<byte[], byte[]> commands() {
    return commands.async();
  }

  RedisPubSubAsyncCommands<byte[], byte[]> subscriptions() {
    return subscriptions.async();
  }

  StatefulRedisPubSubConnection<byte[], byte[]> subscriptionConnection() {
    return subscriptions;
  }

  <T> CompletionStage<T> run(Script script, byte[][] keys, byte[]... arguments) {
    return commands.async().eval(script.text, script.output, keys, arguments);
  }

  /** A Lua script; Redis runs it as one step. */
  enum Script {
    DELIVER("deliver.lua", ScriptOutputType.INTEGER),
    CLAIM("claim.lua", ScriptOutputType.MULTI);

    private final byte[] text;
    private final ScriptOutputType output;

    Script(String resource, ScriptOutputType output) {
      try (InputStream in = RedisLink.class.getResourceAsStream("/redis/" + resource)) {
        if (in == null) {
          throw new IllegalStateException(resource + " is missing");
        }
        this.text = in.readAllBytes();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      this.output = output;
    }
  }

  /**
   * Waits until Redis has answered all.
   *
   * @throws org.springframework.dao.DataAccessException if it did not, in time
   */
  void await(Collection<? extends CompletionStage<?>> answers) {
    long start = System.nanoTime();
    String outcome = "failed";
    try {
      CompletableFuture.allOf(
              answers.stream()
                  .map(CompletionStage::toCompletableFuture)
                  .toArray(CompletableFuture[]::new))
          .get(timeout.toMillis(), TimeUnit.MILLISECONDS);
      outcome = "ok";
    } catch (TimeoutException e) {
      throw new QueryTimeoutException("Redis did not answer within " + timeout, e);
    } catch (ExecutionException e) {
      throw new DataAccessResourceFailureException("Redis is out of reach", e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new DataAccessResourceFailureException("interrupted while waiting for Redis", e);
    } finally {
      metrics.relay(outcome, System.nanoTime() - start);
    }
  }

  void await(CompletionStage<?> answer) {
    await(List.of(answer));
  }

  /** Whether both connections are up. */
  boolean available() {
    return commands.isOpen() && subscriptions.isOpen();
  }

  static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  @Override
  public void close() {
    subscriptions.close();
    commands.close();
    shutDown();
  }

  private void shutDown() {
    client.shutdown(Duration.ZERO, timeout);
    resources
        .shutdown(0, timeout.toMillis(), TimeUnit.MILLISECONDS)
        .awaitUninterruptibly(timeout.toMillis());
  }
}
