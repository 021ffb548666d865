package io.coterie.messaging.socket;

import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.api.Dispatcher;
import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.telemetry.MessagingMetrics;
import jakarta.websocket.CloseReason.CloseCodes;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.SmartLifecycle;

/**
 * All WebSockets of this process. At shutdown, before the HTTP server, it admits no more and asks
 * every client to come back later.
 */
public final class Connections implements SmartLifecycle {
  private static final Logger LOG = LoggerFactory.getLogger(Connections.class);

  /** How long a client may read nothing while others wait for the memory that it keeps. */
  private static final Duration STUCK = Duration.ofSeconds(5);

  private final Set<ClientConnection> open = ConcurrentHashMap.newKeySet();
  private final Places<ClientConnection> places;
  private final Places<ClientConnection> anonymousPlaces;
  private final ClientConnection.Services services;
  private final ExecutorService blockingCalls;
  private final Duration drain;
  private final Semaphore allClosed = new Semaphore(0);
  private volatile boolean running;

  public Connections(
      Dispatcher dispatcher,
      Accounts accounts,
      MessageQueue queue,
      Presence presence,
      MessagingMetrics metrics,
      Limits limits) {
    // Anonymous clients get at most half of everything, so that the others always have the rest.
    this.places = new Places<>(limits.connections() - limits.connections() / 2);
    this.anonymousPlaces = new Places<>(limits.connections() / 2);
    this.drain = limits.drain();
    this.blockingCalls =
        Executors.newThreadPerTaskExecutor(Thread.ofVirtual().name("messaging-call-", 0).factory());
    this.services =
        new ClientConnection.Services(
            dispatcher,
            accounts,
            queue,
            presence,
            metrics,
            blockingCalls,
            new ConnectionMemory(limits.buffers().toBytes() / 2, blockingCalls),
            new ConnectionMemory(limits.buffers().toBytes() / 2, blockingCalls),
            new PushMemory(
                limits.pushed().toBytes(),
                STUCK.toNanos(),
                blockingCalls,
                CompletableFuture.delayedExecutor(
                    STUCK.toMillis(), TimeUnit.MILLISECONDS, blockingCalls),
                System::nanoTime),
            new StoredLoads(limits.loaded().toBytes()),
            limits,
            this::closed);
    metrics.connections("authenticated", () -> count(true));
    metrics.connections("unauthenticated", () -> count(false));
  }

  private long count(boolean authenticated) {
    return open.stream().filter(c -> c.isAuthenticated() == authenticated).count();
  }

  /**
   * A connection to be upgraded to; empty if there is no room for the source or the service is
   * stopping.
   *
   * @param onClosing is run when the client is waited for to end the connection, maybe twice
   */
  Optional<ClientConnection> open(@Nullable Authenticated who, Source source, Runnable onClosing) {
    if (!running) {
      return Optional.empty();
    }
    ClientConnection connection = new ClientConnection(who, source, services, onClosing);
    return switch (places(connection).take(source, connection)) {
      case Places.Outcome.Admitted<ClientConnection>(Optional<ClientConnection> displaced) -> {
        open.add(connection);
        displaced.ifPresent(
            other -> other.close(CloseCodes.TRY_AGAIN_LATER, "others have fewer connections"));
        yield Optional.of(connection);
      }
      case Places.Outcome.Refused<ClientConnection> refused -> Optional.empty();
    };
  }

  /**
   * Where the body of a call over HTTP comes in.
   *
   * @param onRead returns when more may be read
   */
  HttpBody body(Source source, int maxBytes, Runnable onRead) {
    return new HttpBody(services.anonymousMemory(), source, maxBytes, onRead);
  }

  private Places<ClientConnection> places(ClientConnection connection) {
    return connection.isAuthenticated() ? places : anonymousPlaces;
  }

  private void closed(ClientConnection connection) {
    open.remove(connection);
    places(connection).release(connection);
    if (!running && open.isEmpty()) {
      allClosed.release();
    }
  }

  @Override
  public void start() {
    running = true;
  }

  @Override
  public void stop() {
    running = false;
    open.forEach(ClientConnection::leave);
    try {
      if (!open.isEmpty() && !allClosed.tryAcquire(drain.toMillis(), TimeUnit.MILLISECONDS)) {
        open.forEach(ClientConnection::goAway);
      }
      blockingCalls.shutdown();
      if (!blockingCalls.awaitTermination(drain.toMillis(), TimeUnit.MILLISECONDS)) {
        LOG.warn("the service stops while calls are still in progress");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public boolean isRunning() {
    return running;
  }

  /** Starts after and stops before the web server's own graceful shutdown. */
  @Override
  public int getPhase() {
    return WebServerApplicationContext.GRACEFUL_SHUTDOWN_PHASE + 1;
  }
}
