package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.security.cert.X509Certificate;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BooleanSupplier;
import org.apache.tomcat.util.net.NioChannel;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SSLSupport;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.apache.tomcat.util.net.SocketEvent;
import org.apache.tomcat.util.net.SocketWrapperBase;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Accepts connections as {@link Admission} decides, and works for them on the threads of {@link
 * ConnectionWork} instead of those that all connections share.
 */
final class FairEndpoint extends NioEndpoint {
  private static final Logger LOG = LoggerFactory.getLogger(FairEndpoint.class);

  /**
   * Bytes that a WebSocket may send in its turn while no other waits; with more it takes another.
   */
  private static final int BYTES_OF_A_TURN = 64 << 10;

  private final Map<SocketChannel, Peer> peers = new ConcurrentHashMap<>();
  private @Nullable ConnectionWork work;

  FairEndpoint() {
    // A channel that ends late shall not be another connection's meanwhile.
    getSocketProperties().setBufferPool(0);
  }

  void serve(ConnectionWork toUse) {
    work = toUse;
  }

  private ConnectionWork work() {
    return Objects.requireNonNull(work, "threads to work on");
  }

  /**
   * The container reports each frame that is written on another thread, which would have to wake up
   * for it. A thread that writes a frame hears of it itself.
   */
  @Override
  public Executor getExecutor() {
    return OutboundFrames.isWriting() ? Runnable::run : super.getExecutor();
  }

  // ---- from the first byte to the end ----

  @Override
  protected boolean setSocketOptions(SocketChannel socket) {
    Source network;
    try {
      InetSocketAddress address = (InetSocketAddress) socket.getRemoteAddress();
      network = Source.ofRemote(address.getAddress().getHostAddress());
    } catch (IOException | RuntimeException e) {
      LOG.debug("a connection ended before it began", e);
      destroySocket(socket);
      return false;
    }
    Peer peer = new Peer(socket, network);
    peers.put(socket, peer);
    if (!stays(work().admission().admit(network, socket))) {
      peers.remove(socket);
      refuse(socket);
      return false;
    }
    work().handshakeBegun();
    if (!super.setSocketOptions(socket)) {
      forget(socket);
      return false;
    }
    if (peer.displaced) {
      Optional.ofNullable(connections.get(socket)).ifPresent(this::end);
    }
    return true;
  }

  /** Ends the connection that gives way to another, and says whether that other one may stay. */
  private boolean stays(Places.Outcome<SocketChannel> outcome) {
    return switch (outcome) {
      case Places.Outcome.Admitted<SocketChannel>(Optional<SocketChannel> displaced) -> {
        displaced.ifPresent(this::end);
        yield true;
      }
      case Places.Outcome.Refused<SocketChannel> refused -> false;
    };
  }

  /** Resets the connection: neither end keeps anything of it. */
  private void refuse(SocketChannel socket) {
    try {
      socket.setOption(StandardSocketOptions.SO_LINGER, 0);
    } catch (IOException e) {
      LOG.debug("a connection ended before it was refused", e);
    }
    destroySocket(socket);
  }

  /**
   * A thread that waits for the client gets the end of its input, or cannot write any more. The
   * container may not know the connection yet: then the thread that admits it ends it.
   */
  private void end(SocketChannel socket) {
    Optional.ofNullable(peers.get(socket)).ifPresent(peer -> peer.displaced = true);
    try {
      socket.shutdownInput();
      socket.shutdownOutput();
    } catch (IOException e) {
      LOG.debug("a connection has ended already", e);
    }
    Optional.ofNullable(connections.get(socket)).ifPresent(this::end);
  }

  /** The thread that works for the connection meanwhile ends its turn first. */
  private void end(SocketWrapperBase<NioChannel> connection) {
    super.processSocket(connection, SocketEvent.ERROR, true);
  }

  private void forget(SocketChannel socket) {
    Peer peer = peers.remove(socket);
    if (peer != null) {
      handshakeEnded(peer);
      work().admission().release(socket);
    }
  }

  private void handshakeEnded(Peer peer) {
    if (peer.handshaking.compareAndSet(true, false)) {
      work().handshakeEnded();
    }
  }

  @Override
  public void setHandler(Handler<NioChannel> handler) {
    super.setHandler(new Watched(handler));
  }

  /** Notices that a connection has become a WebSocket, and that it has ended. */
  private final class Watched implements Handler<NioChannel> {
    private final Handler<NioChannel> handler;

    Watched(Handler<NioChannel> handler) {
      this.handler = handler;
    }

    @Override
    public SocketState process(SocketWrapperBase<NioChannel> connection, SocketEvent event) {
      SocketState state = handler.process(connection, event);
      if (state == SocketState.UPGRADED) {
        Optional.ofNullable(connection.getSocket().getIOChannel())
            .map(peers::get)
            .filter(peer -> peer.webSocket == null)
            .ifPresent(peer -> upgraded(connection, peer));
      }
      return state;
    }

    private void upgraded(SocketWrapperBase<NioChannel> connection, Peer peer) {
      peer.webSocket = id(connection);
      work().admission().release(peer.socket);
    }

    @Override
    public void release(SocketWrapperBase<NioChannel> connection) {
      forget(connection.getSocket().getIOChannel());
      work().ended(id(connection));
      handler.release(connection);
    }

    @Override
    public Object getGlobal() {
      return handler.getGlobal();
    }

    @Override
    public void pause() {
      handler.pause();
    }

    @Override
    public void recycle() {
      handler.recycle();
    }
  }

  /** As {@code ServletRequest.getServletConnection} has it. */
  private static String id(SocketWrapperBase<NioChannel> connection) {
    return connection.getServletConnection("http/1.1", "").getConnectionId();
  }

  // ---- work ----

  @Override
  public boolean processSocket(
      @Nullable SocketWrapperBase<NioChannel> connection, SocketEvent event, boolean dispatch) {
    if (connection == null
        || !dispatch
        || (event != SocketEvent.OPEN_READ && event != SocketEvent.OPEN_WRITE)) {
      return super.processSocket(connection, event, dispatch);
    }
    @Nullable SocketChannel socket = connection.getSocket().getIOChannel();
    @Nullable Peer peer = socket == null ? null : peers.get(socket);
    if (peer == null) {
      return super.processSocket(connection, event, dispatch);
    }
    try {
      if (!connection.getSocket().isHandshakeComplete()) {
        work().handshake(peer.network, () -> handshake(connection, event, peer));
      } else if (peer.webSocket != null) {
        frames(connection, event, peer, peer.webSocket);
      } else {
        work().request(peer.network, () -> request(connection, event, peer));
      }
      return true;
    } catch (RejectedExecutionException e) {
      LOG.debug("the service has stopped working for connections", e);
      return false;
    }
  }

  @Override
  protected NioChannel createChannel(SocketBufferHandler buffers) {
    return isSSLEnabled() ? new TurnChannel(buffers, this) : super.createChannel(buffers);
  }

  private void request(SocketWrapperBase<NioChannel> connection, SocketEvent event, Peer peer) {
    SocketEvent next = event;
    connection.getLock().lock();
    try {
      if (peer.webSocket == null) {
        String id = id(connection);
        boolean isEdge = work().isEdge(id);
        work().begun(id, () -> end(peer.socket));
        TurnChannel.Outcome outcome = turn(connection, event, Long.MAX_VALUE, () -> false);
        if (connection.isClosed()) {
          work().ended(id);
        }
        if (!isEdge) {
          work().requestRead(peer.network, outcome.bytes());
        }
        if (!outcome.more()) {
          return;
        }
        next = SocketEvent.OPEN_READ;
      }
    } finally {
      connection.getLock().unlock();
    }
    // It has become a WebSocket in this turn, or while this waited.
    processSocket(connection, next, true);
  }

  private void frames(
      SocketWrapperBase<NioChannel> connection, SocketEvent event, Peer peer, String id) {
    if (event == SocketEvent.OPEN_READ) {
      if (peer.reading.await()) {
        work().frames(id, peer.client(), () -> read(connection, peer, id));
      }
      return;
    }
    work()
        .frames(
            id,
            peer.client(),
            () -> {
              if (turn(connection, event, BYTES_OF_A_TURN, () -> work().framesWait(id)).more()) {
                processSocket(connection, SocketEvent.OPEN_READ, true);
              }
              return false;
            });
  }

  /** Reads in one turn, and says whether there is another. */
  private boolean read(SocketWrapperBase<NioChannel> connection, Peer peer, String id) {
    peer.reading.begin();
    boolean more = false;
    boolean isAnonymous = work().isAnonymous(id);
    try {
      TurnChannel.Outcome outcome =
          turn(connection, SocketEvent.OPEN_READ, BYTES_OF_A_TURN, () -> work().framesWait(id));
      more = outcome.more();
      if (isAnonymous) {
        work().anonymousFramesRead(peer.client(), outcome.bytes());
      }
    } finally {
      more = peer.reading.end(more);
    }
    return more && !connection.isClosed();
  }

  /** More is to be read only of a connection that is still open. */
  private TurnChannel.Outcome turn(
      SocketWrapperBase<NioChannel> connection,
      SocketEvent event,
      long bytes,
      BooleanSupplier othersWait) {
    connection.getLock().lock();
    try {
      Runnable work = () -> super.processSocket(connection, event, false);
      // Of a WebSocket only: a call over HTTP may be followed by one whose body does not come.
      boolean together = bytes == BYTES_OF_A_TURN;
      TurnChannel.Outcome outcome =
          TurnChannel.turn(
              bytes, othersWait, together ? () -> OutboundFrames.together(work) : work);
      return new TurnChannel.Outcome(outcome.bytes(), outcome.more() && !connection.isClosed());
    } finally {
      connection.getLock().unlock();
    }
  }

  /** One step of the handshake. The first request is work for another thread. */
  private void handshake(SocketWrapperBase<NioChannel> connection, SocketEvent event, Peer peer) {
    connection.getLock().lock();
    try {
      if (connection.isClosed()) {
        return;
      }
      switch (step(connection, event)) {
        case 0 -> {
          handshakeEnded(peer);
          if (!identified(connection, peer)
              || !processSocket(connection, SocketEvent.OPEN_READ, true)) {
            connection.close();
          }
        }
        case SelectionKey.OP_READ -> connection.registerReadInterest();
        case SelectionKey.OP_WRITE -> connection.registerWriteInterest();
        default -> super.processSocket(connection, SocketEvent.ERROR, false);
      }
    } finally {
      connection.getLock().unlock();
    }
  }

  /** Learns whether the connection is the edge's, and so whose limits it meets; false ends it. */
  private boolean identified(SocketWrapperBase<NioChannel> connection, Peer peer) {
    if (!work().knowsEdge()) {
      return true;
    }
    boolean stays = stays(work().identified(id(connection), peer, certificates(connection)));
    if (connection.isClosed()) {
      work().ended(id(connection));
      work().admission().release(peer.socket);
    }
    return stays;
  }

  private static X509Certificate[] certificates(SocketWrapperBase<NioChannel> connection) {
    @Nullable SSLSupport tls = connection.getSslSupport();
    try {
      X509Certificate @Nullable [] chain = tls == null ? null : tls.getPeerCertificateChain();
      return chain == null ? new X509Certificate[0] : chain;
    } catch (IOException e) {
      LOG.debug("certificates of a connection cannot be read", e);
      return new X509Certificate[0];
    }
  }

  /** Zero if the handshake is complete, what the connection waits for, or -1 if it failed. */
  private static int step(SocketWrapperBase<NioChannel> connection, SocketEvent event) {
    try {
      return connection
          .getSocket()
          .handshake(event == SocketEvent.OPEN_READ, event == SocketEvent.OPEN_WRITE);
    } catch (IOException | RuntimeException e) {
      LOG.debug("a TLS handshake failed", e);
      return -1;
    }
  }
}
