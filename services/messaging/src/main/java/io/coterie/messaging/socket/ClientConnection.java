package io.coterie.messaging.socket;

import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.messaging.account.Accounts;
import io.coterie.messaging.account.Accounts.Authenticated;
import io.coterie.messaging.api.ApiException;
import io.coterie.messaging.api.ApiRequest;
import io.coterie.messaging.api.ApiResponse;
import io.coterie.messaging.api.Dispatcher;
import io.coterie.messaging.limit.Limits;
import io.coterie.messaging.limit.Source;
import io.coterie.messaging.queue.MessageQueue;
import io.coterie.messaging.queue.Presence;
import io.coterie.messaging.telemetry.MessagingMetrics;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.proto.signal.WebSocketResponseMessage;
import jakarta.websocket.CloseReason;
import jakarta.websocket.CloseReason.CloseCode;
import jakarta.websocket.CloseReason.CloseCodes;
import jakarta.websocket.Session;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.apache.tomcat.websocket.Constants;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.dao.DataAccessException;

/**
 * One client's WebSocket, from the upgrade to its end. Calls that come in are dispatched and
 * answered; if the client has proved who it is, its messages are pushed to it.
 */
final class ClientConnection implements Presence.Subscriber {
  private static final Logger LOG = LoggerFactory.getLogger(ClientConnection.class);

  /** Memory that a call in progress takes besides its message. */
  private static final int CALL_OVERHEAD = 1_024;

  /** The device has connected elsewhere. */
  static final CloseCode DISPLACED = CloseCodes.getCloseCode(4409);

  /** The credentials of the device are no longer valid. */
  static final CloseCode REAUTHENTICATE = CloseCodes.getCloseCode(4401);

  /**
   * How long the container waits for a frame that is being written when it answers a close: it
   * keeps a processor busy meanwhile. Less than a turn may take before another begins.
   */
  private static final Duration ANSWERING = Duration.ofMillis(50);

  /** How long the answer to a close is waited for, unless many others are being closed. */
  private static final Duration CLOSING = Duration.ofSeconds(2);

  private static final CloseReason GOING_AWAY =
      new CloseReason(CloseCodes.SERVICE_RESTART, "restarting");

  /**
   * The resources that connections share.
   *
   * @param memory of connections of clients that have proved who they are
   * @param anonymousMemory of the others
   * @param pushMemory of messages on their way to the former
   * @param loads of stored messages for them
   */
  record Services(
      Dispatcher dispatcher,
      Accounts accounts,
      MessageQueue queue,
      Presence presence,
      MessagingMetrics metrics,
      ExecutorService blockingCalls,
      ConnectionMemory memory,
      ConnectionMemory anonymousMemory,
      PushMemory pushMemory,
      StoredLoads loads,
      Limits limits,
      Consumer<ClientConnection> onClosed) {}

  private final @Nullable Authenticated who;
  private final Source source;
  private final Services services;
  private final Runnable onClosing;
  private final ConnectionMemory.Account memory;
  private final FrameAssembler assembler;
  private final OutboundFrames frames;
  private final CallGate calls;

  /** Null if the client is anonymous: nothing is pushed to it. */
  private final @Nullable DeliveryWindow window;

  // Guarded by this.
  private @Nullable Session session;
  private boolean closing;
  private CloseReason leaveReason = GOING_AWAY;

  /**
   * @param onClosing is run when the client is waited for to end the connection, maybe twice
   */
  ClientConnection(
      @Nullable Authenticated who, Source source, Services services, Runnable onClosing) {
    Limits limits = services.limits();
    this.onClosing = onClosing;
    this.who = who;
    this.source = source;
    this.services = services;
    this.memory =
        (who == null ? services.anonymousMemory() : services.memory())
            .open(source, () -> close(CloseCodes.TRY_AGAIN_LATER, "holds too much memory"));
    this.assembler = new FrameAssembler((int) limits.frame().toBytes(), memory);
    this.frames =
        new OutboundFrames(
            limits.outbound().toBytes(),
            memory,
            services.pushMemory().open(this::mayPush, this::readsNothing),
            services.blockingCalls(),
            new FramesListener());
    this.calls = new CallGate(services.blockingCalls());
    this.window =
        who == null
            ? null
            : new DeliveryWindow(
                who.address(),
                services.queue(),
                services.loads(),
                frames,
                services.metrics(),
                this::background,
                limits.inFlight());
  }

  Source source() {
    return source;
  }

  boolean isAuthenticated() {
    return who != null;
  }

  // ---- start and end ----

  void opened(Session opened) {
    opened.setMaxIdleTimeout(services.limits().idle().toMillis());
    opened.getUserProperties().put(Constants.SESSION_CLOSE_TIMEOUT_PROPERTY, CLOSING.toMillis());
    opened.getAsyncRemote().setSendTimeout(services.limits().sendTimeout().toMillis());
    boolean refuse;
    synchronized (this) {
      session = opened;
      refuse = closing;
    }
    if (refuse) {
      closeSession(opened, GOING_AWAY);
      return;
    }
    frames.open(opened.getAsyncRemote());
    if (who == null || window == null) {
      return;
    }
    window.start();
    try {
      services.presence().connect(who.address(), this);
    } catch (DataAccessException e) {
      LOG.warn("the other replicas are out of reach, so the client must connect again", e);
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
    window.pushOnline();
    window.storedAvailable();
  }

  private synchronized boolean isClosing() {
    return closing;
  }

  private boolean hasSamePassword(Authenticated current) {
    return who != null
        && Arrays.equals(current.device().password().hash(), who.device().password().hash());
  }

  /** The upgrade did not take place. */
  void abandoned() {
    gone();
  }

  /** The connection below has ended. Nobody closes the session if there was none yet. */
  void ended() {
    boolean neverOpened;
    synchronized (this) {
      neverOpened = session == null;
    }
    if (neverOpened) {
      gone();
    }
  }

  /** The client closes, and the container is about to answer. */
  void clientCloses() {
    @Nullable Session ending;
    synchronized (this) {
      ending = session;
    }
    if (ending != null) {
      ending
          .getUserProperties()
          .put(Constants.BLOCKING_SEND_TIMEOUT_PROPERTY, ANSWERING.toMillis());
    }
  }

  /** The container has closed the session, and waits for the answer of the client. */
  void closed() {
    onClosing.run();
    gone();
  }

  private void gone() {
    synchronized (this) {
      closing = true;
    }
    release();
    if (window != null && window.inFlight() > 0) {
      LOG.debug("a connection closed with {} messages unacknowledged", window.inFlight());
    }
    if (who != null) {
      services.presence().disconnect(who.address(), this);
    }
    services.onClosed().accept(this);
  }

  void close(CloseCode code, String reason) {
    close(new CloseReason(code, reason));
  }

  private void close(CloseReason reason) {
    Session toClose;
    synchronized (this) {
      if (closing) {
        return;
      }
      closing = true;
      toClose = session;
    }
    // Calls before the one that ends the connection have been made, and their client hears of it.
    frames.writeEarly();
    release();
    if (toClose != null) {
      services.metrics().closed(Integer.toString(reason.getCloseCode().getCode()));
      closeSession(toClose, reason);
    }
  }

  /** Ends taking and pushing; frees the memory before the container has closed. */
  private void release() {
    if (window != null) {
      window.stop();
    }
    calls.close();
    assembler.close();
    frames.close();
    memory.close();
  }

  /** A close handshake may wait for a frame that is being written; no caller shall. */
  private void closeSession(Session toClose, CloseReason reason) {
    Runnable close =
        () -> {
          try {
            toClose.close(reason);
          } catch (IOException | IllegalStateException e) {
            LOG.debug("a connection could not be closed in order", e);
          } finally {
            // The container does nothing more if its client has begun to close.
            onClosing.run();
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
    leave(GOING_AWAY);
  }

  private void leave(CloseReason reason) {
    synchronized (this) {
      leaveReason = reason;
    }
    calls.shut();
    if (window != null) {
      window.stop();
    }
    closeIfLeft();
  }

  /** Closes whatever is still in progress. */
  void goAway() {
    close(GOING_AWAY);
  }

  private void closeIfLeft() {
    if (calls.isEmptied() && frames.isIdle()) {
      CloseReason reason;
      synchronized (this) {
        reason = leaveReason;
      }
      close(reason);
    }
  }

  @Override
  public void displaced() {
    close(DISPLACED, "connected elsewhere");
  }

  /**
   * The call that revokes the credentials may have come through this connection: it is answered.
   */
  @Override
  public void revoked() {
    leave(new CloseReason(REAUTHENTICATE, "reauthentication required"));
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
    switch (assembler.add(part, last)) {
      case FrameAssembler.Outcome.Complete(byte[] message) -> received(message);
      case FrameAssembler.Outcome.Incomplete incomplete -> {}
      case FrameAssembler.Outcome.Closed closed -> {}
      case FrameAssembler.Outcome.Refused(CloseCode code) -> close(code, "too large");
    }
  }

  private void received(byte[] message) {
    WebSocketMessage parsed;
    try {
      parsed = SocketMessages.parse(message);
    } catch (InvalidProtocolBufferException e) {
      close(CloseCodes.NOT_CONSISTENT, "malformed message");
      return;
    }
    switch (parsed.getType()) {
      case REQUEST -> request(parsed.getRequest(), message.length + CALL_OVERHEAD);
      case RESPONSE -> response(parsed.getResponse());
      case UNKNOWN -> close(CloseCodes.NOT_CONSISTENT, "malformed message");
    }
  }

  /**
   * @param bytes that the call holds until it is answered: those of the frame, and of a call
   */
  private void request(WebSocketRequestMessage message, int bytes) {
    long id = message.getId();
    ApiRequest request;
    try {
      request = SocketMessages.call(message, who, source);
    } catch (ApiException e) {
      reply(id, e.response());
      return;
    }
    if (!calls.begin()) {
      reply(id, ApiResponse.unavailable());
      return;
    }
    memory.take(bytes);
    if (!services.dispatcher().mayBlock(request)) {
      answer(id, request, bytes);
      return;
    }
    try {
      calls.runBlocking(() -> answer(id, request, bytes));
    } catch (RejectedExecutionException e) {
      memory.release(bytes);
      reply(id, ApiResponse.unavailable());
      calls.end();
      goAway();
    }
  }

  private void answer(long id, ApiRequest request, int bytes) {
    services
        .dispatcher()
        .dispatch(request)
        .thenAccept(
            response -> {
              memory.release(bytes);
              reply(id, response);
              calls.end();
              closeIfLeft();
            });
  }

  private void reply(long id, ApiResponse response) {
    if (frames.answer(SocketMessages.answer(id, response))) {
      frames.write();
    } else {
      close(CloseCodes.VIOLATED_POLICY, "too slow");
    }
  }

  private void response(WebSocketResponseMessage response) {
    boolean accepted = response.getStatus() >= 200 && response.getStatus() < 300;
    if (window != null && !window.answered(response.getId(), accepted)) {
      close(CloseCodes.VIOLATED_POLICY, "too many messages refused");
    }
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
                  LOG.warn("the queue does not answer, so the client must connect again", e);
                  close(CloseCodes.TRY_AGAIN_LATER, "");
                }
              });
    } catch (RejectedExecutionException e) {
      LOG.debug("the service stops, so the message stays in the queue");
    }
  }

  // ---- what goes out ----

  @Override
  public void onlineAvailable() {
    if (window != null) {
      window.pushOnline();
    }
  }

  @Override
  public void storedAvailable() {
    if (window != null) {
      window.storedAvailable();
    }
  }

  private void mayPush() {
    if (window != null) {
      window.resume();
    }
  }

  private void readsNothing() {
    close(CloseCodes.VIOLATED_POLICY, "too slow");
  }

  private final class FramesListener implements OutboundFrames.Listener {
    @Override
    public void hasRoom() {
      mayPush();
    }

    @Override
    public void isIdle() {
      closeIfLeft();
    }

    @Override
    public void failed(CloseCode code, String reason) {
      close(code, reason);
    }
  }
}
