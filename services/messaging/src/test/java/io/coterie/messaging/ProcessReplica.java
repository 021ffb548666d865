package io.coterie.messaging;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;
import org.awaitility.Awaitility;

/** A replica of the service in a JVM of its own, which ends without having a say in it. */
public final class ProcessReplica implements AutoCloseable {
  /** As deploy/images/config.json and deploy/images/build set it, after what all replicas get. */
  static final String[] IMAGE = {
    "-Xmx192m",
    "-XX:-UseSerialGC",
    "-XX:+UseG1GC",
    "-XX:-ClassUnloadingWithConcurrentMark",
    "-XX:TieredStopAtLevel=4",
    "-XX:+ExitOnOutOfMemoryError"
  };

  private final int port;
  private final Path log;
  private final Process process;
  private final TestClient client;

  /**
   * @param launcher starts the JVM, as {@code taskset} does; may be empty
   * @param options of the JVM, after those that every replica gets
   */
  ProcessReplica(TestService first, List<String> launcher, String... options) throws IOException {
    this.port = freePort();
    this.log = first.folder().resolve("replica-" + port + ".log");
    String classPath =
        Path.of("target", "classes").toAbsolutePath()
            + File.pathSeparator
            + Files.readString(Path.of("target", "runtime.classpath")).strip();
    List<String> command = new ArrayList<>(launcher);
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xmx256m"));
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", classPath, MessagingApplication.class.getName()));
    first.arguments().stream()
        .filter(argument -> !argument.startsWith("--server.port="))
        .forEach(command::add);
    command.add("--server.port=" + port);
    this.process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    this.client = new TestClient(first, () -> port);
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  /**
   * A client of this replica, which answers and takes WebSockets: it takes them some moments after
   * it answers its first call.
   */
  public TestClient awaitReady(String authorization) {
    Awaitility.await()
        .atMost(java.time.Duration.ofMinutes(3))
        .pollInterval(java.time.Duration.ofMillis(200))
        .until(
            () -> {
              if (!process.isAlive()) {
                throw new IllegalStateException("ended: " + Files.readString(log));
              }
              try (TestClient.Socket anonymous = client.connect(null)) {
                return client.rest(authorization).call("GET", "/v1/accounts/whoami").status()
                    == 200;
              } catch (AssertionError | CompletionException notYet) {
                return false;
              }
            });
    return client;
  }

  int port() {
    return port;
  }

  /** The processor time and the memory that it has taken. */
  String cost() throws IOException {
    String memory =
        Files.readAllLines(Path.of("/proc/" + process.pid() + "/status")).stream()
            .filter(line -> line.startsWith("VmHWM"))
            .findFirst()
            .orElse("VmHWM: unknown");
    return "service: processor=%.0f s, resident=%s"
        .formatted(
            process.info().totalCpuDuration().orElseThrow().toMillis() / 1e3,
            memory.substring(memory.indexOf(':') + 1).strip());
  }

  public boolean isAlive() {
    return process.isAlive();
  }

  /** Its log so far. */
  public String log() {
    try {
      return Files.readString(log);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Ends the process as {@code kill -9} does. */
  public void kill() {
    process.destroyForcibly().onExit().join();
  }

  @Override
  public void close() {
    kill();
  }
}
