package io.coterie.messaging;

import io.coterie.messaging.TestClient.Recipient;
import io.coterie.proto.signal.WebSocketMessage;
import io.coterie.proto.signal.WebSocketRequestMessage;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/**
 * Hostile senders in a process of their own, as attackers have machines of their own. They do as
 * little work as possible for what they cost the service: bytes that are prepared, no masks, and a
 * full handshake each time. They go on until standard input ends, and then print how much they did.
 */
final class HostileClients {
  /** Printed when the first has connected. */
  static final String BEGUN = "begun";

  private static final String ONLINE = "/v1/messages/multi_recipient?ts=1&online=true";
  private static final String STORED = "/v1/messages/multi_recipient?ts=1&online=false";
  private static final Duration AFTER_REFUSAL = Duration.ofMillis(100);
  private static final int HALF = 400 * 1024;

  /**
   * Senders in their handshakes at once. More would wait for each other's processor so long that
   * they are gone when the service answers.
   */
  private static final int HANDSHAKES = 32;

  private final int port;
  private final boolean eachItsAddress;
  private final SSLContext tls;
  private final CountDownLatch first = new CountDownLatch(1);
  private final Semaphore handshaking = new Semaphore(HANDSHAKES);
  private final AtomicLong attempts = new AtomicLong();
  private final AtomicLong handshakes = new AtomicLong();
  private final AtomicLong sockets = new AtomicLong();
  private final AtomicLong messages = new AtomicLong();
  private final AtomicLong bytes = new AtomicLong();
  private final AtomicInteger open = new AtomicInteger();

  /**
   * @param accessKey base64
   */
  private record Target(Recipient recipient, String accessKey) {}

  /** Does with a WebSocket as a hostile sender does, until that fails. */
  private interface Attack {
    void run(InputStream in, OutputStream out) throws IOException, InterruptedException;
  }

  private HostileClients(int port, boolean eachItsAddress) throws GeneralSecurityException {
    this.port = port;
    this.eachItsAddress = eachItsAddress;
    this.tls = SSLContext.getInstance("TLSv1.3");
    tls.init(null, new TrustManager[] {new TrustsAll()}, null);
  }

  private static final class TrustsAll implements X509TrustManager {
    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) {}

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }

  /**
   * Arguments: port, number of senders, file with a line for each target and enrolled sender, and
   * whether each sender has an address of its own.
   */
  public static void main(String[] arguments) throws Exception {
    HostileClients clients =
        new HostileClients(Integer.parseInt(arguments[0]), Boolean.parseBoolean(arguments[3]));
    int senders = Integer.parseInt(arguments[1]);
    List<Target> targets = new ArrayList<>();
    List<String> enrolled = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(arguments[2]))) {
      String[] words = line.split("\t");
      if (words[0].equals("enrolled")) {
        enrolled.add(words[1]);
      } else {
        targets.add(
            new Target(
                new Recipient(UUID.fromString(words[1]), 1, Integer.parseInt(words[2])), words[3]));
      }
    }
    long start = System.nanoTime();
    for (int i = 0; i < senders; i++) {
      int number = i;
      Thread.startVirtualThread(() -> clients.attack(number, targets, enrolled));
    }
    clients.first.await();
    System.out.println(BEGUN);
    while (System.in.read() >= 0) {
      continue;
    }
    clients.print((System.nanoTime() - start) / 1e9);
    Runtime.getRuntime().halt(0);
  }

  /** The first target is connected; the others are absent. */
  private void attack(int number, List<Target> targets, List<String> enrolled) {
    Target victim = targets.getFirst();
    Target absent = targets.get(1 + number % (targets.size() - 1));
    switch (number % 5) {
      case 0 -> // A wrong access key.
          attack(number, null, calls(call(ONLINE, victim.recipient(), absent.accessKey())));
      case 1 -> // Fills the memory with messages for somebody who is absent.
          attack(number, null, calls(call(ONLINE, absent.recipient(), absent.accessKey())));
      case 2 -> // Enrolled, and does not read its answers.
          attack(number, enrolled.get(number / 5 % enrolled.size()), unread());
      case 3 -> // Begins messages and does not end them.
          attack(number, null, half());
      default -> // Fills the database.
          attack(number, null, calls(call(STORED, absent.recipient(), absent.accessKey())));
    }
  }

  private Attack calls(byte[] call) {
    byte[] answer = new byte[4_096];
    return (in, out) -> {
      do {
        write(out, call);
      } while (in.read(answer) >= 0);
    };
  }

  private Attack unread() {
    byte[] call = frame(true, request("GET", "/v1/nothing/" + "x".repeat(4_000), new byte[0]));
    return (in, out) -> {
      while (true) {
        write(out, call);
        Thread.sleep(1);
      }
    };
  }

  private Attack half() {
    byte[] half = frame(false, new byte[HALF]);
    return (in, out) -> {
      write(out, half);
      in.read();
    };
  }

  private void write(OutputStream out, byte[] frame) throws IOException {
    out.write(frame);
    messages.incrementAndGet();
    bytes.addAndGet(frame.length);
  }

  private static byte[] call(String path, Recipient to, String accessKey) {
    return frame(
        true,
        request(
            "PUT",
            path,
            TestClient.multiRecipient(new byte[60 * 1024], to),
            "Content-Type: application/vnd.signal-messenger.mrm",
            "Unidentified-Access-Key: " + accessKey));
  }

  private static byte[] request(String verb, String path, byte[] body, String... headers) {
    return WebSocketMessage.newBuilder()
        .setType(WebSocketMessage.Type.REQUEST)
        .setRequest(
            WebSocketRequestMessage.newBuilder()
                .setId(1)
                .setVerb(verb)
                .setPath(path)
                .addAllHeaders(List.of(headers))
                .setBody(com.google.protobuf.ByteString.copyFrom(body)))
        .build()
        .toByteArray();
  }

  /** A frame with a mask of zeros, which changes nothing. */
  private static byte[] frame(boolean last, byte[] payload) {
    return ByteBuffer.allocate(14 + payload.length)
        .put((byte) (last ? 0x82 : 0x02))
        .put((byte) 0xff)
        .putLong(payload.length)
        .putInt(0)
        .put(payload)
        .array();
  }

  private InetAddress address(int number) {
    return InetAddress.ofLiteral(
        eachItsAddress ? "127.1.%d.%d".formatted(number / 250, 1 + number % 250) : "127.0.0.2");
  }

  private SSLSocket connect(Socket socket, int number) throws IOException, InterruptedException {
    handshaking.acquire();
    try {
      attempts.incrementAndGet();
      socket.bind(new InetSocketAddress(address(number), 0));
      socket.setSoTimeout(5_000);
      socket.connect(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), port), 5_000);
      // Another name each time, so that no session is resumed.
      String name = "name-" + attempts.get();
      SSLSocket secure = (SSLSocket) tls.getSocketFactory().createSocket(socket, name, port, true);
      secure.startHandshake();
      handshakes.incrementAndGet();
      first.countDown();
      return secure;
    } finally {
      handshaking.release();
    }
  }

  private void attack(int number, String authorization, Attack attack) {
    while (true) {
      try (Socket socket = new Socket();
          SSLSocket secure = connect(socket, number)) {
        run(secure, authorization, attack);
      } catch (IOException e) {
        // Refused or closed, as it should be.
      } catch (InterruptedException e) {
        return;
      }
      try {
        Thread.sleep(AFTER_REFUSAL);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  private void run(SSLSocket socket, String authorization, Attack attack)
      throws IOException, InterruptedException {
    socket
        .getOutputStream()
        .write(
            ("GET /v1/websocket/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                    + Base64.getEncoder().encodeToString(new byte[16])
                    + (authorization == null ? "" : "\r\nAuthorization: " + authorization)
                    + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII));
    byte[] answer = new byte[4_096];
    int read = socket.getInputStream().read(answer);
    if (read < 0
        || !new String(answer, 0, read, StandardCharsets.US_ASCII).startsWith("HTTP/1.1 101")) {
      return;
    }
    sockets.incrementAndGet();
    open.incrementAndGet();
    try {
      attack.run(socket.getInputStream(), socket.getOutputStream());
    } finally {
      open.decrementAndGet();
    }
  }

  private void print(double seconds) {
    System.out.printf(
        "hostile: connections/s=%.0f handshakes/s=%.0f WebSockets/s=%.0f open=%d messages/s=%.0f"
            + " MB/s=%.1f processor=%.0f s of %.0f s%n",
        attempts.get() / seconds,
        handshakes.get() / seconds,
        sockets.get() / seconds,
        open.get(),
        messages.get() / seconds,
        bytes.get() / seconds / 1e6,
        ProcessHandle.current().info().totalCpuDuration().orElse(Duration.ZERO).toMillis() / 1e3,
        seconds);
  }
}
