package io.coterie.messaging.socket;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnsafeByteOperations;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.api.ApiException;
import io.coterie.messaging.api.ApiRequest;
import io.coterie.messaging.api.ApiResponse;
import io.coterie.messaging.api.Dispatcher;
import io.coterie.messaging.config.MessagingProperties;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.queue.QueuedMessage;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import jakarta.websocket.CloseReason;
import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.CloseReason.CloseCodes;
import jakarta.websocket.RemoteEndpoint;
import jakarta.websocket.Session;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.dao.DataAccessException;

/**
 * One client's WebSocket. Calls that come in are dispatched and answered; if the client has proved
 * who it is, its messages are pushed to it.
 *
 * <p>Writing never blocks: frames wait in a bounded queue and one at a time is given to the
 * container. Pushing stops while the client leaves too many messages unacknowledged or reads too
 * slowly, and goes on with the next acknowledgement or write; the messages wait in the {@link
 * MessageQueue} meanwhile. A message is in at most one place: the queue, or in flight here.
 */
final class ClientConnection implements Presence.Subscriber {
  private static final Logger LOG = LoggerFactory.getLogger(ClientConnection.class);

  /** The device has connected elsewhere. */
  static final CloseCode DISPLACED = CloseCodes.getCloseCode(4409);

  /** The credentials of the device are no longer valid. */
  static final CloseCode REAUTHENTICATE = CloseCodes.getCloseCode(4401);

  /** Calls of one connection that may wait for the database at once; more wait in the socket. */
  private static final int MAX_BLOCKING_CALLS = 16;

  /** Stored messages loaded at once. */
  private static final int LOAD_BATCH = 64;

  /** Messages that a client may refuse to acknowledge before it is told to start over. */
  private static final int MAX_REFUSED = 1_024;

  private static final int MAX_HEADERS = 64;

  /** Frames that one thread writes to a socket before it hands over to another. */
  private static final int MAX_WRITES = 64;

  /**
   * What connections share.
   *
   * @param partialBytes bytes of messages that have begun and not ended, on all connections
   */
  record Services(
      Dispatcher dispatcher,
      Accounts accounts,
      MessageQueue queue,
      Presence presence,
      MessagingMetrics metrics,
      ExecutorService blockingCalls,
      AtomicLong partialBytes,
      MessagingProperties.Limits limits,
      Consumer<ClientConnection> onClosed) {}

  private final @Nullable Authenticated who;
  private final Services services;
  private final Semaphore blockingPermits = new Semaphore(MAX_BLOCKING_CALLS);
  private final int maxFrameBytes;
  private final long maxOutboundBytes;
  private final long maxPartialBytes;

  private final ReentrantLock lock = new ReentrantLock();
  // Guarded by lock.
  private @Nullable ByteArrayOutputStream partial;
  private @Nullable Session session;
  private boolean closing;
  private boolean leaving;
  private int callsInProgress;
  private final Deque<ByteBuffer> outbound = new ArrayDeque<>();
  private long outboundBytes;
  private boolean writing;
  private final Map<Long, QueuedMessage> inFlight = new HashMap<>();
  private final Set<Long> refused = new HashSet<>();
  private long lastRequestId;
  private boolean loading;
  private boolean loadAgain;
  private boolean drained;

  ClientConnection(@Nullable Authenticated who, Services services) {
    this.who = who;
    this.services = services;
    this.maxFrameBytes = (int) services.limits().frame().toBytes();
    this.maxOutboundBytes = services.limits().outbound().toBytes();
    this.maxPartialBytes = services.limits().partial().toBytes();
  }

  boolean isAuthenticated() {
    return who != null;
  }

  // ---- life ----

  void opened(Session opened) {
    opened.setMaxIdleTimeout(services.limits().idle().toMillis());
    opened.getAsyncRemote().setSendTimeout(services.limits().sendTimeout().toMillis());
    boolean refuse;
    lock.lock();
    try {
      session = opened;
      refuse = closing;
    } finally {
      lock.unlock();
    }
    if (refuse) {
      closeSession(opened, CloseCodes.SERVICE_RESTART, "");
      return;
    }
    if (who != null) {
      try {
        services.presence().connect(who.address(), this);
      } catch (DataAccessException e) {
        LOG.warn("the other replicas are out of reach, the client must connect again", e);
        close(CloseCodes.TRY_AGAIN_LATER, "");
        return;
      }
      if (isClosing()) {
        services.presence().disconnect(who.address(), this);
        return;
      }
      // Credentials may have been revoked between the check and the line above.
      if (services.accounts().reread(who.address()).filter(this::hasSamePassword).isEmpty()) {
        revoked();
        return;
      }
      background(() -> services.accounts().seen(who));
      onlineAvailable();
      storedAvailable();
    }
  }

  private boolean isClosing() {
    lock.lock();
    try {
      return closing;
    } finally {
      lock.unlock();
    }
  }

  private boolean hasSamePassword(Authenticated current) {
    return who != null
        && Arrays.equals(current.device().password().hash(), who.device().password().hash());
  }

  /** The upgrade did not take place. */
  void abandoned() {
    closed();
  }

  /** The container has closed the session. */
  void closed() {
    List<QueuedMessage> unacknowledged;
    lock.lock();
    try {
      closing = true;
      dropPartial();
      outbound.clear();
      outboundBytes = 0;
      unacknowledged = new ArrayList<>(inFlight.values());
      inFlight.clear();
    } finally {
      lock.unlock();
    }
    if (!unacknowledged.isEmpty()) {
      LOG.debug("closed with {} messages unacknowledged", unacknowledged.size());
    }
    if (who != null) {
      services.presence().disconnect(who.address(), this);
    }
    services.onClosed().accept(this);
  }

  void close(CloseCode code, String reason) {
    Session toClose;
    lock.lock();
    try {
      if (closing) {
        return;
      }
      closing = true;
      toClose = session;
    } finally {
      lock.unlock();
    }
    if (toClose != null) {
      services.metrics().closed(Integer.toString(code.getCode()));
      closeSession(toClose, code, reason);
    }
  }

  /** A close handshake may wait for a frame that is being written; no caller shall. */
  private void closeSession(Session toClose, CloseCode code, String reason) {
    Runnable close =
        () -> {
          try {
            toClose.close(new CloseReason(code, reason));
          } catch (IOException | IllegalStateException e) {
            LOG.debug("close failed", e);
          }
        };
    try {
      services.blockingCalls().execute(close);
    } catch (RejectedExecutionException e) {
      close.run();
    }
  }

  /**
   * The service is stopping: takes no more calls, and closes when those in progress are answered.
   */
  void leave() {
    lock.lock();
    try {
      leaving = true;
    } finally {
      lock.unlock();
    }
    closeIfLeft();
  }

  /** Closes whatever is still in progress. */
  void goAway() {
    close(CloseCodes.SERVICE_RESTART, "restarting");
  }

  private void closeIfLeft() {
    boolean left;
    lock.lock();
    try {
      left = leaving && callsInProgress == 0 && outbound.isEmpty() && !writing;
    } finally {
      lock.unlock();
    }
    if (left) {
      goAway();
    }
  }

  @Override
  public void displaced() {
    close(DISPLACED, "connected elsewhere");
  }

  @Override
  public void revoked() {
    close(REAUTHENTICATE, "reauthentication required");
  }

  @Override
  public void credentialsChanged() {
    if (who != null) {
      background(
          () -> {
            if (services.accounts().reread(who.address()).filter(this::hasSamePassword).isEmpty()) {
              revoked();
            }
          });
    }
  }

  // ---- what comes in ----

  void received(ByteBuffer part, boolean last) {
    byte[] message = assemble(part, last);
    if (message == null) {
      return;
    }
    WebSocketMessage parsed;
    try {
      parsed = WebSocketMessage.parseFrom(message);
    } catch (InvalidProtocolBufferException e) {
      close(CloseCodes.NOT_CONSISTENT, "malformed message");
      return;
    }
    switch (parsed.getType()) {
      case REQUEST -> request(parsed.getRequest());
      case RESPONSE -> response(parsed.getResponse());
      case UNKNOWN -> close(CloseCodes.NOT_CONSISTENT, "malformed message");
    }
  }

  /** The whole message, if this was its last part and it is not too large. */
  private byte @Nullable [] assemble(ByteBuffer part, boolean last) {
    CloseCode refusal;
    lock.lock();
    try {
      if (closing) {
        return null;
      }
      int held = partial == null ? 0 : partial.size();
      if (held + part.remaining() > maxFrameBytes) {
        refusal = CloseCodes.TOO_BIG;
      } else if (last && partial == null) {
        byte[] message = new byte[part.remaining()];
        part.get(message);
        return message;
      } else if (services.partialBytes().addAndGet(part.remaining()) > maxPartialBytes) {
        services.partialBytes().addAndGet(-part.remaining());
        refusal = CloseCodes.TRY_AGAIN_LATER;
      } else {
        partial = partial == null ? new ByteArrayOutputStream() : partial;
        byte[] bytes = new byte[part.remaining()];
        part.get(bytes);
        partial.writeBytes(bytes);
        if (!last) {
          return null;
        }
        byte[] message = partial.toByteArray();
        dropPartial();
        return message;
      }
      dropPartial();
    } finally {
      lock.unlock();
    }
    close(refusal, "too large");
    return null;
  }

  /** The lock is held. */
  private void dropPartial() {
    if (partial != null) {
      services.partialBytes().addAndGet(-partial.size());
      partial = null;
    }
  }

  private void request(WebSocketRequestMessage message) {
    ApiRequest request;
    try {
      request =
          new ApiRequest(
              message.getVerb(),
              message.getPath(),
              headers(message),
              message.getBody().toByteArray(),
              who);
    } catch (ApiException e) {
      reply(message.getId(), e.response());
      return;
    }
    if (!beginCall()) {
      reply(message.getId(), ApiResponse.empty(503).withHeader("Retry-After", "2"));
      return;
    }
    if (!services.dispatcher().mayBlock(request)) {
      answer(message.getId(), request);
      return;
    }
    // Waiting here stops reading from this client, and from no other.
    blockingPermits.acquireUninterruptibly();
    try {
      services
          .blockingCalls()
          .execute(
              () -> {
                try {
                  answer(message.getId(), request);
                } finally {
                  blockingPermits.release();
                }
              });
    } catch (RejectedExecutionException e) {
      blockingPermits.release();
      goAway();
    }
  }

  private boolean beginCall() {
    lock.lock();
    try {
      if (leaving) {
        return false;
      }
      callsInProgress++;
      return true;
    } finally {
      lock.unlock();
    }
  }

  private void answer(long id, ApiRequest request) {
    reply(id, services.dispatcher().dispatch(request));
    lock.lock();
    try {
      callsInProgress--;
    } finally {
      lock.unlock();
    }
    closeIfLeft();
  }

  /** Written {@code Name: value}; what is not is ignored. */
  private static Map<String, String> headers(WebSocketRequestMessage message) {
    Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    for (int i = 0; i < Math.min(message.getHeadersCount(), MAX_HEADERS); i++) {
      String header = message.getHeaders(i);
      int colon = header.indexOf(':');
      if (colon > 0) {
        headers.putIfAbsent(
            header.substring(0, colon).strip(), header.substring(colon + 1).strip());
      }
    }
    return headers;
  }

  private void reply(long id, ApiResponse response) {
    WebSocketResponseMessage.Builder reply =
        WebSocketResponseMessage.newBuilder()
            .setId(id)
            .setStatus(response.status())
            .setMessage(response.status() == 200 ? "OK" : "status " + response.status());
    response.headers().forEach((name, value) -> reply.addHeaders(name + ": " + value));
    if (response.body().length > 0) {
      reply
          .addHeaders("Content-Type: application/json")
          .setBody(UnsafeByteOperations.unsafeWrap(response.body()));
    }
    byte[] frame =
        WebSocketMessage.newBuilder()
            .setType(WebSocketMessage.Type.RESPONSE)
            .setResponse(reply)
            .build()
            .toByteArray();
    boolean overflow;
    lock.lock();
    try {
      overflow = outboundBytes + frame.length > 2 * maxOutboundBytes;
      if (!overflow) {
        enqueue(frame);
      }
    } finally {
      lock.unlock();
    }
    if (overflow) {
      close(CloseCodes.VIOLATED_POLICY, "too slow");
    } else {
      write();
    }
  }

  private void response(WebSocketResponseMessage response) {
    QueuedMessage message;
    boolean accepted = response.getStatus() >= 200 && response.getStatus() < 300;
    boolean tooManyRefused = false;
    lock.lock();
    try {
      message = inFlight.remove(response.getId());
      if (message != null && message.storedId().isPresent()) {
        long id = message.storedId().getAsLong();
        if (accepted) {
          services.queue().acknowledge(id);
        } else {
          // Kept for the next connection; pushed again here, it would be refused again.
          refused.add(id);
          tooManyRefused = refused.size() > MAX_REFUSED;
        }
      }
    } finally {
      lock.unlock();
    }
    if (message == null || who == null) {
      return;
    }
    if (tooManyRefused) {
      close(CloseCodes.VIOLATED_POLICY, "too many messages refused");
      return;
    }
    if (accepted) {
      services.metrics().delivered(message.storedId().isPresent());
    }
    onlineAvailable();
    continueLoading();
  }

  private void background(Runnable work) {
    try {
      services
          .blockingCalls()
          .execute(
              () -> {
                try {
                  work.run();
                } catch (RuntimeException e) {
                  LOG.warn("queue unavailable, the client must connect again", e);
                  close(CloseCodes.TRY_AGAIN_LATER, "");
                }
              });
    } catch (RejectedExecutionException e) {
      LOG.debug("stopping, the message stays in the queue");
    }
  }

  // ---- what goes out ----

  @Override
  public void onlineAvailable() {
    if (who == null) {
      return;
    }
    lock.lock();
    try {
      while (mayPush()) {
        Optional<QueuedMessage> message = services.queue().takeOnline(who.address());
        if (message.isEmpty()) {
          break;
        }
        push(message.get());
      }
    } finally {
      lock.unlock();
    }
    write();
  }

  @Override
  public void storedAvailable() {
    lock.lock();
    try {
      loadAgain = true;
    } finally {
      lock.unlock();
    }
    continueLoading();
  }

  /** Loads stored messages in the background, one load at a time, while there may be some. */
  private void continueLoading() {
    lock.lock();
    try {
      if (loading || !loadAgain || !mayPush()) {
        return;
      }
      loading = true;
    } finally {
      lock.unlock();
    }
    background(this::load);
  }

  private void load() {
    DeviceAddress device = who == null ? null : who.address();
    while (device != null) {
      Set<Long> except;
      int limit;
      lock.lock();
      try {
        if (!mayPush() || !loadAgain) {
          loading = false;
          return;
        }
        loadAgain = false;
        limit = Math.min(LOAD_BATCH, services.limits().inFlight() - inFlight.size());
        except = new HashSet<>(refused);
        inFlight.values().forEach(m -> m.storedId().ifPresent(except::add));
      } finally {
        lock.unlock();
      }
      List<QueuedMessage> loaded = services.queue().stored(device, except, limit);
      lock.lock();
      try {
        int pushed = 0;
        for (QueuedMessage message : loaded) {
          if (!mayPush()) {
            break;
          }
          push(message);
          pushed++;
        }
        if (pushed < loaded.size() || loaded.size() == limit) {
          loadAgain = true;
        } else if (!drained) {
          drained = true;
          pushQueueEmpty();
        }
      } finally {
        lock.unlock();
      }
      write();
    }
  }

  /** Whether one more message may be in flight. The lock is held. */
  private boolean mayPush() {
    return !closing
        && !leaving
        && session != null
        && inFlight.size() < services.limits().inFlight()
        && outboundBytes < maxOutboundBytes;
  }

  /** The lock is held. */
  private void push(QueuedMessage message) {
    WebSocketRequestMessage.Builder request =
        pushRequest("/api/v1/message")
            .setBody(message.envelope().toByteString())
            .addHeaders("X-Signal-Key: false")
            .addHeaders("X-Signal-Timestamp: " + message.envelope().getServerTimestamp());
    if (message.traceparent() != null) {
      request.addHeaders("traceparent: " + message.traceparent());
    }
    inFlight.put(request.getId(), message);
    enqueue(frame(request));
  }

  /** Tells the client, once, that it has what was stored before it connected. Lock held. */
  private void pushQueueEmpty() {
    if (!closing) {
      enqueue(frame(pushRequest("/api/v1/queue/empty").setBody(ByteString.EMPTY)));
    }
  }

  private WebSocketRequestMessage.Builder pushRequest(String path) {
    return WebSocketRequestMessage.newBuilder().setVerb("PUT").setPath(path).setId(++lastRequestId);
  }

  private static byte[] frame(WebSocketRequestMessage.Builder request) {
    return WebSocketMessage.newBuilder()
        .setType(WebSocketMessage.Type.REQUEST)
        .setRequest(request)
        .build()
        .toByteArray();
  }

  /** The lock is held. */
  private void enqueue(byte[] frame) {
    if (!closing) {
      outbound.add(ByteBuffer.wrap(frame));
      outboundBytes += frame.length;
    }
  }

  /** Gives frames to the container, one after another, unless that is going on already. */
  private void write() {
    boolean first = true;
    int written = 0;
    while (true) {
      if (written++ == MAX_WRITES) {
        // The thread belongs to whoever sent the first of them, and has calls of its own to answer.
        try {
          services.blockingCalls().execute(this::resume);
          return;
        } catch (RejectedExecutionException e) {
          // The service is stopping. Nobody else would write the answers that clients wait for.
          written = 0;
        }
      }
      ByteBuffer next;
      RemoteEndpoint.Async remote;
      lock.lock();
      try {
        if (first && writing) {
          return;
        }
        first = false;
        next = closing || session == null ? null : outbound.poll();
        writing = next != null;
        if (next == null || session == null) {
          break;
        }
        remote = session.getAsyncRemote();
      } finally {
        lock.unlock();
      }
      int bytes = next.remaining();
      // Whoever comes second, this loop or the completion, goes on.
      AtomicInteger arrived = new AtomicInteger();
      try {
        remote.sendBinary(
            next,
            result -> {
              if (!result.isOK()) {
                close(CloseCodes.VIOLATED_POLICY, "too slow");
                return;
              }
              written(bytes);
              if (arrived.getAndIncrement() == 1) {
                resume();
              }
            });
      } catch (IllegalStateException | IllegalArgumentException e) {
        LOG.debug("write failed", e);
        close(CloseCodes.CLOSED_ABNORMALLY, "");
        return;
      }
      if (arrived.getAndIncrement() == 0) {
        return;
      }
    }
    closeIfLeft();
  }

  private void resume() {
    lock.lock();
    try {
      writing = false;
    } finally {
      lock.unlock();
    }
    write();
  }

  private void written(int bytes) {
    boolean resumed;
    lock.lock();
    try {
      resumed = outboundBytes >= maxOutboundBytes && outboundBytes - bytes < maxOutboundBytes;
      outboundBytes -= bytes;
    } finally {
      lock.unlock();
    }
    if (resumed) {
      onlineAvailable();
      continueLoading();
    }
  }
}
