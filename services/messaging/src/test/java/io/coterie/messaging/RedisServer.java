package io.coterie.messaging;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Assumptions;

/** A real Redis, which keeps nothing: after a restart it has forgotten everything. */
final class RedisServer implements AutoCloseable {
  static final String PASSWORD = "a password of the tests";

  private final Path binary;
  private final Path folder;
  private final int port;
  private Process process;

  private RedisServer(Path binary) throws IOException {
    this.binary = binary;
    this.folder = Files.createTempDirectory("redis-test");
    try (ServerSocket socket = new ServerSocket(0)) {
      this.port = socket.getLocalPort();
    }
    Files.writeString(folder.resolve("password"), PASSWORD + "\n");
    start();
  }

  /**
   * A running Redis. Without a binary the test is skipped: {@code make bootstrap} says how to get
   * one.
   */
  static RedisServer launch() {
    Optional<Path> binary = binary();
    Assumptions.assumeTrue(
        binary.isPresent(),
        "no redis-server 7: make bootstrap fetches it, or says what to install");
    try {
      return new RedisServer(binary.get());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Optional<Path> binary() {
    Path fetched = Path.of("..", "..", "build", "tools", "bin", "redis-server");
    return Stream.concat(
            Stream.of(fetched.toAbsolutePath().normalize()),
            Stream.of(System.getenv("PATH").split(":")).map(p -> Path.of(p, "redis-server")))
        .filter(Files::isExecutable)
        .findFirst();
  }

  /** The settings with which a messaging service uses this Redis. */
  List<String> arguments() {
    return List.of(
        "--coterie.messaging.redis.uri=redis://localhost:" + port,
        "--coterie.messaging.redis.password-file=" + folder.resolve("password"),
        // As patient as the tests: the machine may be busy with other builds.
        "--coterie.messaging.redis.timeout=20s");
  }

  void start() throws IOException {
    process =
        new ProcessBuilder(
                binary.toString(),
                "--port",
                "" + port,
                "--bind",
                "127.0.0.1",
                "--dir",
                folder.toString(),
                "--save",
                "",
                "--appendonly",
                "no",
                "--requirepass",
                PASSWORD)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("log").toFile())
            .start();
    Awaitility.await().until(() -> command("PING").startsWith("+PONG"));
  }

  /** Sends one command as text and gives the first line of the answer; empty if nobody answers. */
  String command(String text) {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      socket.setSoTimeout(5_000);
      socket
          .getOutputStream()
          .write(
              ("AUTH \"" + PASSWORD + "\"\r\n" + text + "\r\n")
                  .getBytes(StandardCharsets.US_ASCII));
      InputStream in = socket.getInputStream();
      assertThat(line(in)).isEqualTo("+OK");
      return line(in);
    } catch (IOException e) {
      return "";
    }
  }

  private static String line(InputStream in) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int c = in.read(); c >= 0 && c != '\n'; c = in.read()) {
      line.append((char) c);
    }
    return line.toString().strip();
  }

  void stop() {
    process.destroyForcibly().onExit().join();
  }

  @Override
  public void close() {
    stop();
  }
}
