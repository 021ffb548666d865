package io.coterie.messaging.socket;

import io.coterie.messaging.limit.Source;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** The other end of a connection. */
final class Peer {
  final SocketChannel socket;

  /** Where the connection comes from. */
  final Source network;

  final AtomicBoolean handshaking = new AtomicBoolean(true);

  final ReadingTurns reading = new ReadingTurns();

  /** The container's id of the connection, once it has become a WebSocket. */
  volatile @Nullable String webSocket;

  /** Whether its place was given to another one. */
  volatile boolean displaced;

  /** Whose turns the connection takes: that of the edge those of the client that it speaks for. */
  private volatile Source client;

  Peer(SocketChannel socket, Source network) {
    this.socket = socket;
    this.network = network;
    this.client = network;
  }

  Source client() {
    return client;
  }

  /** Work for the connection is work for that client from now on. */
  void speaksFor(Source other) {
    client = other;
  }
}
