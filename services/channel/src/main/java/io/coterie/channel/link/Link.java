package io.coterie.channel.link;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import java.io.EOFException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A WebSocket to messaging that is kept connected, and the requests that travel on it.
 *
 * <p>Requests are answered in any order, by id. Each has a deadline, and within it survives the
 * loss of the connection: it is sent again on the next one, in the same order. All requests of the
 * channel may be repeated: receivers drop what their ratchet has seen.
 */
public final class Link implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Link.class);

  /** Close code of the service: a newer connection of this device has taken over. */
  public static final int CONNECTED_ELSEWHERE = 4409;

  /** Close code of the service: the credentials were changed. */
  static final int REAUTHENTICATE = 4401;

  private static final Duration KEEP_ALIVE_ANSWER = Duration.ofSeconds(10);

  /** Hears pushes of the service and changes of the connection. Called on the reading thread. */
  public interface Listener {
    default void onConnected() {}

    default void onDisconnected() {}

    void onRequest(Connection from, WebSocketRequestMessage request, int bytes, long nanos);
  }

  /** The answer to a request, whatever its status. */
  public record Response(int status, List<String> headers, ByteString body) {
    /** Value of a header, if there is one. */
    @Nullable String header(String name) {
      for (String header : headers) {
        int colon = header.indexOf(':');
        if (colon > 0 && header.substring(0, colon).strip().equalsIgnoreCase(name)) {
          return header.substring(colon + 1).strip();
        }
      }
      return null;
    }
  }

  /** A request that waits for its answer. */
  private record Pending(
      ChannelMetrics.Mode mode,
      byte[] frame,
      long deadlineNanos,
      CompletableFuture<Response> answer) {}

  /** One connection, as far as whoever must acknowledge a pushed request needs it. */
  public static final class Connection {
    private final WebSocketConnection socket;

    private Connection(WebSocketConnection socket) {
      this.socket = socket;
    }

    /** Answers a pushed request with that status. */
    public void respond(long id, int status) {
      socket.enqueue(
          WebSocketMessage.newBuilder()
              .setType(WebSocketMessage.Type.RESPONSE)
              .setResponse(
                  WebSocketResponseMessage.newBuilder()
                      .setId(id)
                      .setStatus(status)
                      .setMessage(status == 200 ? "OK" : ""))
              .build()
              .toByteArray());
      socket.flush();
    }
  }

  private final String name;
  private final ChannelConfig config;
  private final SSLContext tls;
  private final byte @Nullable [] authorization;
  private final Listener listener;
  private final Executor callbacks;
  private final ChannelMetrics metrics;
  private final Thread thread;

  /** Guards what follows. */
  private final Object lock = new Object();

  private final TreeMap<Long, Pending> pending = new TreeMap<>();
  private long nextId = 1;
  private @Nullable Connection connection;
  private @Nullable Cause refused;
  private boolean closed;
  private long keepAliveAtNanos;

  /**
   * @param authorization value of the Authorization header of the upgrade, or null
   * @param callbacks runs what hangs on answers, and keep-alives, so that neither holds up the
   *     reading thread or the timer
   */
  public Link(
      String name,
      ChannelConfig config,
      SSLContext tls,
      byte @Nullable [] authorization,
      Listener listener,
      Executor callbacks,
      ChannelMetrics metrics) {
    this.name = name;
    this.config = config;
    this.tls = tls;
    this.authorization = authorization;
    this.listener = listener;
    this.callbacks = callbacks;
    this.metrics = metrics;
    this.thread = Thread.ofPlatform().name("channel-" + name).daemon().unstarted(this::run);
  }

  public void start() {
    thread.start();
  }

  public boolean connected() {
    synchronized (lock) {
      return connection != null;
    }
  }

  /**
   * Sends a request. Never blocks on the network beyond writing to the socket, which may take until
   * {@link #tick} closes a socket that does not take it: not for the timer, and not under a lock.
   *
   * @param mode label with which the request and its answer are counted
   * @param headers as {@code name:value}
   * @return the answer, on a thread of the callback pool; fails with {@link ChannelException}
   */
  CompletableFuture<Response> request(
      ChannelMetrics.Mode mode,
      String verb,
      String path,
      List<String> headers,
      byte @Nullable [] body) {
    CompletableFuture<Response> answer = new CompletableFuture<>();
    WebSocketRequestMessage.Builder request =
        WebSocketRequestMessage.newBuilder().setVerb(verb).setPath(path).addAllHeaders(headers);
    if (body != null) {
      request.setBody(UnsafeByteOperations.unsafeWrap(body));
    }
    WebSocketMessage.Builder message =
        WebSocketMessage.newBuilder().setType(WebSocketMessage.Type.REQUEST);
    Connection to;
    synchronized (lock) {
      if (closed) {
        return failed(answer, Cause.CLOSED, "the channel is closed");
      }
      if (refused != null) {
        return failed(answer, refused, "the messaging service refused the connection");
      }
      if (pending.size() >= config.limits().maxRequests()) {
        return failed(answer, Cause.UNAVAILABLE, "too many requests wait for an answer");
      }
      long id = nextId++;
      byte[] frame = message.setRequest(request.setId(id)).build().toByteArray();
      pending.put(
          id,
          new Pending(
              mode, frame, System.nanoTime() + config.timing().request().toNanos(), answer));
      metrics.request(mode, frame.length);
      to = connection;
      if (to != null) {
        to.socket.enqueue(frame);
      }
    }
    if (to != null) {
      to.socket.flush();
    }
    return answer;
  }

  private CompletableFuture<Response> failed(
      CompletableFuture<Response> answer, Cause cause, String text) {
    callbacks.execute(() -> answer.completeExceptionally(new ChannelException(cause, text)));
    return answer;
  }

  /** Called a few times a second: time-outs, keep-alive, stalled sockets. Never blocks. */
  public void tick() {
    long now = System.nanoTime();
    List<Pending> late = new ArrayList<>();
    WebSocketConnection dead = null;
    boolean keepAlive = false;
    synchronized (lock) {
      pending
          .values()
          .removeIf(
              p -> {
                boolean over = now - p.deadlineNanos >= 0;
                if (over) {
                  late.add(p);
                }
                return over;
              });
      if (connection != null) {
        WebSocketConnection socket = connection.socket;
        Duration silence = config.timing().keepAlive().plus(KEEP_ALIVE_ANSWER);
        if (socket.stalled(config.timing().write().toNanos())
            || now - socket.lastReadNanos() > silence.toNanos()) {
          dead = socket;
        } else if (now - keepAliveAtNanos >= 0) {
          keepAliveAtNanos = now + config.timing().keepAlive().toNanos();
          keepAlive = true;
        }
      }
    }
    for (Pending p : late) {
      fail(p, Cause.UNAVAILABLE, "no answer from the messaging service in time");
    }
    if (dead != null) {
      LOG.info("the {} connection is silent or stalled, so the member connects again", name);
      dead.close();
    }
    if (keepAlive) {
      // Not here: a write that blocks would stop the thread that is to notice it.
      callbacks.execute(
          () -> {
            var unused =
                request(ChannelMetrics.Mode.CONTROL, "GET", "/v1/keepalive", List.of(), null);
          });
    }
  }

  private void fail(Pending p, Cause cause, String text) {
    callbacks.execute(() -> p.answer.completeExceptionally(new ChannelException(cause, text)));
  }

  private void run() {
    long pause = config.timing().reconnectMin().toMillis();
    while (!isClosed()) {
      long least = 0;
      try {
        WebSocketConnection socket =
            WebSocketConnection.connect(
                config.messaging(),
                "/v1/websocket/",
                tls,
                authorization,
                config.timing(),
                config.limits());
        if (!adopt(socket)) {
          return;
        }
        pause = config.timing().reconnectMin().toMillis();
        listener.onConnected();
        serve(socket);
      } catch (WebSocketConnection.ClosedException e) {
        LOG.info("the {} connection was closed: {}", name, e.getMessage());
        switch (e.code()) {
          case CONNECTED_ELSEWHERE -> {
            LOG.warn("the account is in use by another process; this one yields for a while");
            least = config.timing().displaced().toMillis();
          }
          case 401, 403 -> {
            refuse(Cause.UNAUTHENTICATED);
            least = config.timing().reconnectMax().toMillis();
          }
          default -> {}
        }
      } catch (IOException e) {
        if (!isClosed()) {
          LOG.info(
              "the {} connection failed: {}",
              name,
              e instanceof EOFException ? "the other side closed it" : e.getMessage());
        }
      } catch (RuntimeException e) {
        LOG.error("the {} connection failed by a bug", name, e);
      }
      boolean was;
      synchronized (lock) {
        was = connection != null;
        connection = null;
      }
      if (was) {
        listener.onDisconnected();
      }
      pauseFor(Math.max(least, pause / 2 + ThreadLocalRandom.current().nextLong(pause / 2 + 1)));
      pause = Math.min(pause * 2, config.timing().reconnectMax().toMillis());
    }
  }

  /** Makes the socket the one in use and repeats on it what has had no answer. */
  private boolean adopt(WebSocketConnection socket) {
    synchronized (lock) {
      if (closed) {
        socket.close();
        return false;
      }
      refused = null;
      connection = new Connection(socket);
      keepAliveAtNanos = System.nanoTime() + config.timing().keepAlive().toNanos();
      for (Pending p : pending.values()) {
        socket.repeat(p.frame);
      }
    }
    socket.flush();
    return true;
  }

  private void refuse(Cause cause) {
    List<Pending> all;
    synchronized (lock) {
      refused = cause;
      all = List.copyOf(pending.values());
      pending.clear();
    }
    String why = cause.name().toLowerCase(Locale.ROOT);
    LOG.warn("the messaging service refused the {} connection: {}", name, why);
    for (Pending p : all) {
      fail(p, cause, "the messaging service refused the connection");
    }
  }

  private void serve(WebSocketConnection socket) throws IOException {
    Connection self = new Connection(socket);
    while (true) {
      byte[] bytes = socket.read();
      long nanos = System.nanoTime();
      WebSocketMessage message;
      try {
        message = WebSocketMessage.parseFrom(bytes);
      } catch (InvalidProtocolBufferException e) {
        socket.close(WebSocketConnection.CLOSE_NORMAL);
        throw new IOException("the messaging service sent what is no WebSocketMessage", e);
      }
      if (message.getType() == WebSocketMessage.Type.REQUEST && message.hasRequest()) {
        listener.onRequest(self, message.getRequest(), bytes.length, nanos);
      } else if (message.getType() == WebSocketMessage.Type.RESPONSE && message.hasResponse()) {
        WebSocketResponseMessage response = message.getResponse();
        Pending p;
        synchronized (lock) {
          p = pending.remove(response.getId());
        }
        if (p != null) {
          metrics.received(p.mode, bytes.length);
          Response answer =
              new Response(response.getStatus(), response.getHeadersList(), response.getBody());
          callbacks.execute(() -> p.answer.complete(answer));
        }
      }
    }
  }

  private boolean isClosed() {
    synchronized (lock) {
      return closed;
    }
  }

  private void pauseFor(long millis) {
    synchronized (lock) {
      long until = System.nanoTime() + Duration.ofMillis(millis).toNanos();
      try {
        for (long left = millis;
            left > 0 && !closed;
            left = Duration.ofNanos(until - System.nanoTime()).toMillis()) {
          lock.wait(left);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        closed = true;
      }
    }
  }

  /** Fails what waits for an answer, says good-bye, and closes the socket. */
  @Override
  public void close() {
    List<Pending> all;
    Connection last;
    synchronized (lock) {
      closed = true;
      all = List.copyOf(pending.values());
      pending.clear();
      last = connection;
      lock.notifyAll();
    }
    for (Pending p : all) {
      p.answer.completeExceptionally(
          new ChannelException(Cause.CLOSED, "the channel was closed meanwhile"));
    }
    if (last != null) {
      last.socket.close(WebSocketConnection.CLOSE_NORMAL);
    }
  }
}
