package io.coterie.channel.link;

import io.coterie.channel.ChannelConfig;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import org.jspecify.annotations.Nullable;

/**
 * One WebSocket (RFC 6455, client side, binary messages) on one TLS socket.
 *
 * <p>Blocking on purpose: the thread that waits in {@link #read} is the one that gets the bytes,
 * and the thread that has a message writes it. Against the event-loop clients that were measured
 * this takes 40 instead of 105 microseconds for an echo, because no message changes threads on its
 * way (docs/protocols/channel.md, "Transport").
 */
public final class WebSocketConnection implements AutoCloseable {
  private static final String ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final int MAX_RESPONSE_HEAD = 16 << 10;
  private static final int MAX_CONTROL = 125;

  private static final byte[] CRLF = {'\r', '\n'};

  private static final int CONTINUATION = 0;
  private static final int TEXT = 1;
  private static final int BINARY = 2;
  private static final int CLOSE = 8;
  private static final int PING = 9;
  private static final int PONG = 10;

  static final int CLOSE_NORMAL = 1000;
  private static final int CLOSE_PROTOCOL_ERROR = 1002;
  private static final int CLOSE_TOO_BIG = 1009;

  private final Socket raw;
  private final DataInputStream in;
  private final OutputStream out;
  private final int maxMessage;
  private final int maxQueued;

  private final ConcurrentLinkedQueue<Outgoing> outgoing = new ConcurrentLinkedQueue<>();
  private final AtomicInteger queuedBytes = new AtomicInteger();
  private final ReentrantLock writing = new ReentrantLock();

  /** {@link System#nanoTime()} at which the write under way began, or 0. */
  private volatile long writingSince;

  private volatile long lastReadNanos = System.nanoTime();
  private volatile boolean closed;

  /**
   * A message that waits to be written.
   *
   * @param counted its bytes, if they count as waiting for the socket
   */
  private record Outgoing(int opcode, byte[] payload, int counted) {
    static Outgoing of(int opcode, byte[] payload) {
      return new Outgoing(opcode, payload, payload.length);
    }
  }

  /** The other side refused the upgrade or closed the connection. */
  static final class ClosedException extends IOException {
    private static final long serialVersionUID = 1L;
    private final int code;

    ClosedException(int code, String message) {
      super(message);
      this.code = code;
    }

    /** HTTP status of a refused upgrade (below 1000), or WebSocket close code. */
    int code() {
      return code;
    }
  }

  private WebSocketConnection(
      Socket raw, InputStream in, OutputStream out, int maxMessage, int maxQueued) {
    this.raw = raw;
    this.in = new DataInputStream(in);
    this.out = out;
    this.maxMessage = maxMessage;
    this.maxQueued = maxQueued;
  }

  /**
   * Connects and upgrades; blocks.
   *
   * @param authorization value of the Authorization header, or null for none
   * @throws ClosedException when the server answered, but not with an upgrade
   */
  static WebSocketConnection connect(
      URI base,
      String path,
      SSLContext tls,
      byte @Nullable [] authorization,
      ChannelConfig.Timing timing,
      ChannelConfig.Limits limits)
      throws IOException {
    int port = base.getPort() < 0 ? 443 : base.getPort();
    int timeoutMs = Math.toIntExact(timing.connect().toMillis());
    Socket raw = new Socket();
    try {
      raw.setTcpNoDelay(true);
      raw.setSoTimeout(timeoutMs);
      raw.connect(new InetSocketAddress(base.getHost(), port), timeoutMs);
      SSLSocket secure =
          (SSLSocket) tls.getSocketFactory().createSocket(raw, base.getHost(), port, true);
      secure.setSSLParameters(PinnedTls.parameters());
      secure.startHandshake();
      InputStream in = new BufferedInputStream(secure.getInputStream(), 64 << 10);
      OutputStream out = secure.getOutputStream();
      upgrade(base, port, path, authorization, in, out);
      // From here on silence is normal; the keep-alive notices a dead connection.
      raw.setSoTimeout(0);
      return new WebSocketConnection(
          raw, in, out, limits.maxWebSocketMessage(), limits.maxQueued());
    } catch (IOException | RuntimeException e) {
      raw.close();
      throw e;
    }
  }

  private static void upgrade(
      URI base,
      int port,
      String path,
      byte @Nullable [] authorization,
      InputStream in,
      OutputStream out)
      throws IOException {
    byte[] nonce = new byte[16];
    RANDOM.nextBytes(nonce);
    String key = Base64.getEncoder().encodeToString(nonce);
    StringBuilder head =
        new StringBuilder(256)
            .append("GET ")
            .append(path)
            .append(" HTTP/1.1\r\nHost: ")
            .append(base.getHost())
            .append(':')
            .append(port)
            .append("\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13")
            .append("\r\nSec-WebSocket-Key: ")
            .append(key)
            .append("\r\nX-Signal-Agent: coterie");
    out.write(head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1));
    if (authorization != null) {
      // Never a String: the password is in it.
      out.write("Authorization: ".getBytes(StandardCharsets.ISO_8859_1));
      out.write(authorization);
      out.write(CRLF);
    }
    out.write(CRLF);
    out.flush();

    String status = line(in, MAX_RESPONSE_HEAD);
    String[] words = status.split(" ", 3);
    if (words.length < 2 || !words[0].startsWith("HTTP/1.1") || !words[1].matches("\\d{3}")) {
      throw new IOException("no HTTP answer to the WebSocket upgrade");
    }
    Map<String, String> headers = new HashMap<>();
    int left = MAX_RESPONSE_HEAD;
    for (String line = line(in, left); !line.isEmpty(); line = line(in, left)) {
      left -= line.length();
      int colon = line.indexOf(':');
      if (colon > 0) {
        headers.put(
            line.substring(0, colon).toLowerCase(Locale.ROOT), line.substring(colon + 1).strip());
      }
    }
    int code = Integer.parseInt(words[1]);
    if (code != 101) {
      throw new ClosedException(code, "WebSocket upgrade answered with status " + code);
    }
    if (!accept(key).equals(headers.get("sec-websocket-accept"))
        || headers.containsKey("sec-websocket-extensions")) {
      throw new IOException("the WebSocket upgrade was answered wrongly");
    }
  }

  private static String accept(String key) {
    try {
      return Base64.getEncoder()
          .encodeToString(
              MessageDigest.getInstance("SHA-1")
                  .digest((key + ACCEPT_SUFFIX).getBytes(StandardCharsets.US_ASCII)));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String line(InputStream in, int max) throws IOException {
    StringBuilder line = new StringBuilder(64);
    for (int b = in.read(); b != '\n'; b = in.read()) {
      if (b < 0) {
        throw new EOFException("closed during the WebSocket upgrade");
      }
      if (line.length() >= max) {
        throw new IOException("the answer to the WebSocket upgrade is too large");
      }
      line.append((char) b);
    }
    int end = line.length();
    return end > 0 && line.charAt(end - 1) == '\r' ? line.substring(0, end - 1) : line.toString();
  }

  /**
   * The next binary message; blocks. One thread only.
   *
   * @throws ClosedException when the other side closed
   * @throws IOException when the connection broke or the other side violated the protocol
   */
  byte[] read() throws IOException {
    byte[] assembled = null;
    while (true) {
      int first = in.readUnsignedByte();
      int second = in.readUnsignedByte();
      lastReadNanos = System.nanoTime();
      int opcode = first & 0x0F;
      boolean last = (first & 0x80) != 0;
      if ((first & 0x70) != 0 || (second & 0x80) != 0) {
        throw violated(CLOSE_PROTOCOL_ERROR, "reserved bits or a masked frame from the server");
      }
      long length = second & 0x7F;
      if (length == 126) {
        length = in.readUnsignedShort();
      } else if (length == 127) {
        length = in.readLong();
      }
      if (opcode >= CLOSE && (length > MAX_CONTROL || !last)) {
        throw violated(CLOSE_PROTOCOL_ERROR, "a control frame that is too long or fragmented");
      }
      int before = assembled == null ? 0 : assembled.length;
      if (length < 0 || length + before > maxMessage) {
        throw violated(CLOSE_TOO_BIG, "a message above " + maxMessage + " bytes");
      }
      byte[] payload = new byte[(int) length];
      in.readFully(payload);
      switch (opcode) {
        case BINARY, CONTINUATION -> {
          if ((opcode == BINARY) != (assembled == null)) {
            throw violated(CLOSE_PROTOCOL_ERROR, "frames out of sequence");
          }
          if (assembled == null) {
            assembled = payload;
          } else {
            assembled = Arrays.copyOf(assembled, before + payload.length);
            System.arraycopy(payload, 0, assembled, before, payload.length);
          }
          if (last) {
            return assembled;
          }
        }
        case PING -> send(PONG, payload);
        case PONG -> {}
        case CLOSE -> {
          int code =
              payload.length >= 2 ? (payload[0] & 0xFF) << 8 | (payload[1] & 0xFF) : CLOSE_NORMAL;
          close(CLOSE_NORMAL);
          throw new ClosedException(code, "closed by the messaging service with code " + code);
        }
        case TEXT -> throw violated(CLOSE_PROTOCOL_ERROR, "a text message");
        default -> throw violated(CLOSE_PROTOCOL_ERROR, "unknown opcode " + opcode);
      }
    }
  }

  private IOException violated(int code, String what) {
    close(code);
    return new IOException("the messaging service sent " + what);
  }

  /** Puts a binary message in the queue; {@link #flush} must follow. */
  void enqueue(byte[] message) {
    enqueue(Outgoing.of(BINARY, message));
  }

  /**
   * Puts a binary message in the queue that has waited for this connection; {@link #flush} must
   * follow. It does not count as waiting for the socket, because a new one has had no time to take
   * it: counted, more than the queue holds would close each new connection before it is used.
   */
  void repeat(byte[] message) {
    outgoing.add(new Outgoing(BINARY, message, 0));
  }

  private void enqueue(Outgoing message) {
    if (queuedBytes.addAndGet(message.counted()) > maxQueued && message.counted() > 0) {
      // A peer that does not read for so long is gone; requests are repeated on the next
      // connection.
      close();
      return;
    }
    outgoing.add(message);
  }

  private void send(int opcode, byte[] payload) {
    enqueue(Outgoing.of(opcode, payload));
    flush();
  }

  /**
   * Writes what is queued, unless another thread is doing so already. Errors close the connection,
   * which its reader notices.
   */
  void flush() {
    while (!outgoing.isEmpty() && writing.tryLock()) {
      try {
        for (Outgoing next = outgoing.poll(); next != null; next = outgoing.poll()) {
          queuedBytes.addAndGet(-next.counted());
          writingSince = System.nanoTime();
          out.write(frame(next.opcode(), next.payload()));
        }
        out.flush();
      } catch (IOException e) {
        close();
        return;
      } finally {
        writingSince = 0;
        writing.unlock();
      }
    }
  }

  private static byte[] frame(int opcode, byte[] payload) {
    int length = payload.length;
    int head = length < 126 ? 2 : length < 65_536 ? 4 : 10;
    byte[] frame = new byte[head + 4 + length];
    frame[0] = (byte) (0x80 | opcode);
    if (length < 126) {
      frame[1] = (byte) (0x80 | length);
    } else if (length < 65_536) {
      frame[1] = (byte) (0x80 | 126);
      frame[2] = (byte) (length >>> 8);
      frame[3] = (byte) length;
    } else {
      frame[1] = (byte) (0x80 | 127);
      for (int i = 0; i < 4; i++) {
        frame[6 + i] = (byte) (length >>> 24 - 8 * i);
      }
    }
    int mask = RANDOM.nextInt();
    for (int i = 0; i < 4; i++) {
      frame[head + i] = (byte) (mask >>> 24 - 8 * i);
    }
    for (int i = 0; i < length; i++) {
      frame[head + 4 + i] = (byte) (payload[i] ^ mask >>> 24 - 8 * (i & 3));
    }
    return frame;
  }

  /** When the last bytes came, as {@link System#nanoTime()}. */
  long lastReadNanos() {
    return lastReadNanos;
  }

  /** Whether a write has been under way for longer than {@code nanos}. */
  boolean stalled(long nanos) {
    long since = writingSince;
    return since != 0 && System.nanoTime() - since > nanos;
  }

  /** Tells the other side the code, if the socket takes it at once, and closes. */
  void close(int code) {
    if (!closed && writing.tryLock()) {
      try {
        writingSince = System.nanoTime();
        out.write(frame(CLOSE, new byte[] {(byte) (code >>> 8), (byte) code}));
        out.flush();
      } catch (IOException e) {
        // Closing anyway.
      } finally {
        writingSince = 0;
        writing.unlock();
      }
    }
    close();
  }

  @Override
  public void close() {
    closed = true;
    try {
      // The raw socket: closing the TLS socket would wait for a writer that is stuck.
      raw.close();
    } catch (IOException e) {
      // Nothing more can be done about a socket that does not close.
    }
  }
}
