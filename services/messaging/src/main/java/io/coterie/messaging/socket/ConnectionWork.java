package io.coterie.messaging.socket;

import com.github.benmanes.caffeine.cache.Ticker;
import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.RateLimit;
import io.coterie.messaging.limit.RateLimit.RateLimitedException;
import io.coterie.messaging.limit.Rates;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.telemetry.MessagingMetrics;
import jakarta.servlet.http.HttpServletRequest;
import java.nio.channels.SocketChannel;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The threads that work for connections. Handshakes, requests, frames of anonymous WebSockets and
 * those of authenticated ones have threads of their own, for which sources take turns; so a flood
 * of one kind keeps no other waiting, and no source another.
 */
public final class ConnectionWork implements AutoCloseable {
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();

  /** Handshakes leave at least one processor to those that are connected. */
  private static final int HANDSHAKE_THREADS = Math.max(1, PROCESSORS / 2);

  /**
   * Frames wait for the database only for an account that is not in memory. More threads than
   * processors would let each frame wait for a slice of time of each.
   */
  private static final int ANONYMOUS_THREADS = Math.clamp(PROCESSORS, 2, 4);

  private static final int AUTHENTICATED_THREADS = Math.clamp(PROCESSORS, 2, 8);
  private static final int FRAME_THREADS_OF_SOURCE = 1;

  /**
   * WebSockets that wait for the answer to their close: they have no places any more, and are among
   * the connections that the container accepts.
   */
  static final int MAX_CLOSING = 48;

  /** More than a task takes that waits for no database and for no client that does not read. */
  private static final Duration PATIENCE = Duration.ofMillis(100);

  private final Admission<SocketChannel> admission;
  private final FairExecutor handshakes =
      new FairExecutor("handshake", HANDSHAKE_THREADS, HANDSHAKE_THREADS, PATIENCE);

  /** A client that lets its body or its answer wait keeps its own thread. */
  private final FairExecutor requests;

  private final FairExecutor anonymous =
      new FairExecutor("anonymous", ANONYMOUS_THREADS, FRAME_THREADS_OF_SOURCE, PATIENCE);
  private final FairExecutor authenticated =
      new FairExecutor("authenticated", AUTHENTICATED_THREADS, FRAME_THREADS_OF_SOURCE, PATIENCE);

  /** By the container's id of the connection. */
  private final Map<String, Source> accounts = new ConcurrentHashMap<>();

  /** By the container's id of the connection. */
  private final Map<String, Runnable> ends = new ConcurrentHashMap<>();

  /** WebSockets that are being closed, the oldest first. Guarded by itself. */
  private final Set<String> closing = new LinkedHashSet<>();

  /** Run when a connection that asked for a WebSocket has ended, by the container's id. */
  private final Map<String, Runnable> upgrades = new ConcurrentHashMap<>();

  private final RateLimit<Source> anonymousBytes;
  private final MessagingMetrics metrics;

  private final AtomicInteger handshaking = new AtomicInteger();

  private final @Nullable TrustedEdge edge;

  /** The edge's connections, by the container's id. */
  private final Map<String, Peer> ofEdge = new ConcurrentHashMap<>();

  /**
   * @param edge null if no proxy is believed; otherwise its connections have half of the places
   */
  public ConnectionWork(
      Limits limits,
      Rates rates,
      @Nullable TrustedEdge edge,
      Ticker ticker,
      MessagingMetrics metrics) {
    this.edge = edge;
    this.anonymousBytes = new RateLimit<>(rates.anonymousBytes(), ticker);
    this.metrics = metrics;
    int half = Math.max(1, limits.requests() / 2);
    this.admission =
        new Admission<>(
            rates.connections(),
            edge == null ? limits.requests() : Math.max(1, limits.requests() - half),
            half,
            ticker,
            metrics);
    int connections = limits.connections() + limits.requests();
    this.requests = new FairExecutor("request", connections, connections, PATIENCE);
    metrics.handshakes(handshaking::get);
    metrics.waiting("handshake", handshakes::waiting);
    metrics.waiting("request", requests::waiting);
    metrics.waiting("anonymous", anonymous::waiting);
    metrics.waiting("authenticated", authenticated::waiting);
  }

  Admission<SocketChannel> admission() {
    return admission;
  }

  // ---- the edge ----

  /** Whether the certificates of connections matter. */
  boolean knowsEdge() {
    return edge != null;
  }

  /**
   * A connection has completed its handshake.
   *
   * @param certificates that it has shown and TLS has verified
   * @return whether it may stay
   */
  Places.Outcome<SocketChannel> identified(
      String connection, Peer peer, X509Certificate[] certificates) {
    boolean isEdge = edge != null && edge.isShownBy(certificates);
    if (isEdge) {
      ofEdge.put(connection, peer);
    }
    return admission.identified(peer.network, peer.socket, isEdge);
  }

  /** A request begins: the source that it is of, if nobody proves an account. */
  Source begun(HttpServletRequest request) {
    @Nullable Peer peer = ofEdge.get(id(request));
    if (peer == null) {
      return Source.ofRemote(request.getRemoteAddr());
    }
    Source client = TrustedEdge.client(request.getHeaders(TrustedEdge.HEADER)).orElse(peer.network);
    peer.speaksFor(client);
    admission.serves(peer.socket, client);
    return client;
  }

  /** The request has been answered, and its connection has not become a WebSocket. */
  void ended(HttpServletRequest request) {
    @Nullable Peer peer = ofEdge.get(id(request));
    if (peer != null) {
      peer.speaksFor(peer.network);
      admission.rests(peer.socket);
    }
  }

  /**
   * A request asks for a WebSocket. One that comes by itself has been admitted as a connection; one
   * that comes through the edge is admitted here.
   *
   * @throws RateLimitedException if the client has had too many
   */
  void admitSocket(HttpServletRequest request, Source client) {
    if (ofEdge.containsKey(id(request))) {
      admission.admitSocket(client);
    }
  }

  private static String id(HttpServletRequest request) {
    return request.getServletConnection().getConnectionId();
  }

  // ---- the threads ----

  /** The WebSocket of that connection belongs to an account. */
  void authenticated(HttpServletRequest request, Source account) {
    accounts.put(id(request), account);
  }

  /**
   * A request asks for a WebSocket, which may not come to be although the container agreed.
   *
   * @param ended is run when the connection has ended
   */
  void upgrading(HttpServletRequest request, Runnable ended) {
    upgrades.put(id(request), ended);
  }

  /**
   * A connection is worked for.
   *
   * @param end ends it at once
   */
  void begun(String connection, Runnable end) {
    ends.put(connection, end);
  }

  /**
   * To be run when the WebSocket of that request waits for the answer to its close. If more than
   * {@value #MAX_CLOSING} do, the oldest is ended, so that clients that never answer take no
   * connection from others.
   */
  Runnable closing(HttpServletRequest request) {
    String connection = id(request);
    return () -> {
      Optional<String> oldest = Optional.empty();
      synchronized (closing) {
        if (ends.containsKey(connection)
            && closing.add(connection)
            && closing.size() > MAX_CLOSING) {
          oldest = closing.stream().findFirst();
          oldest.ifPresent(closing::remove);
        }
      }
      oldest.map(ends::get).ifPresent(Runnable::run);
    };
  }

  /** The connection has ended. */
  void ended(String connection) {
    synchronized (closing) {
      ends.remove(connection);
      closing.remove(connection);
    }
    accounts.remove(connection);
    ofEdge.remove(connection);
    Runnable ended = upgrades.remove(connection);
    if (ended != null) {
      ended.run();
    }
  }

  void handshakeBegun() {
    handshaking.incrementAndGet();
  }

  void handshakeEnded() {
    handshaking.decrementAndGet();
  }

  void handshake(Source network, Runnable task) {
    handshakes.execute(network, task);
  }

  void request(Source network, Runnable task) {
    requests.execute(network, task);
  }

  /** Reads frames of a WebSocket, or writes some, again as long as the task returns true. */
  void frames(String connection, Source network, BooleanSupplier task) {
    Source account = accounts.get(connection);
    ofFrames(account).repeat(account == null ? network : account, task);
  }

  /** Whether nobody has proved an account on the connection. */
  boolean isAnonymous(String connection) {
    return !accounts.containsKey(connection);
  }

  /**
   * So many bytes of a WebSocket without credentials have been read in its turn. An address that
   * sends more than its rate has its next turn later; so it waits, instead of all who come from
   * other addresses.
   */
  void anonymousFramesRead(Source network, long bytes) {
    pace(anonymous, network, bytes);
  }

  /** Whether the connection is one of the edge, which speaks for many clients. */
  boolean isEdge(String connection) {
    return ofEdge.containsKey(connection);
  }

  /** The same for bytes of calls over HTTP that have not been paid for with bodies. */
  void requestRead(Source network, long bytes) {
    pace(requests, network, bytes);
  }

  private void pace(FairExecutor turns, Source network, long bytes) {
    Duration wait = pay(network, bytes);
    if (wait.isPositive()) {
      turns.pause(network, wait);
    }
  }

  private Duration pay(Source source, long bytes) {
    Duration wait = bytes == 0 ? Duration.ZERO : anonymousBytes.pay(source, bytes);
    if (wait.isPositive()) {
      metrics.readLater();
    }
    return wait;
  }

  /**
   * A part of the body of a call has been read, in a turn. The thread, which the call has for
   * itself, waits until the source of the call may send more, or the connection is ended.
   */
  void bodyRead(Source source) {
    long end = System.nanoTime() + pay(source, TurnChannel.pay()).toNanos();
    for (long left = end - System.nanoTime();
        left > 0 && !TurnChannel.isEnding() && !Thread.currentThread().isInterrupted();
        left = end - System.nanoTime()) {
      LockSupport.parkNanos(Math.min(left, PATIENCE.toNanos()));
    }
  }

  /** Whether frames of others wait for the thread that reads those of that WebSocket. */
  boolean framesWait(String connection) {
    return ofFrames(accounts.get(connection)).turnsWait();
  }

  private FairExecutor ofFrames(@Nullable Source account) {
    return account == null ? anonymous : authenticated;
  }

  @Override
  public void close() {
    handshakes.close();
    requests.close();
    anonymous.close();
    authenticated.close();
  }
}
