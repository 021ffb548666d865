package io.coterie.acceptance.cluster;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import org.slf4j.LoggerFactory;

/**
 * A real PostgreSQL server of our own, with its data in a folder that survives it. Durable: the
 * embedded default switches fsync off.
 */
public final class Database implements AutoCloseable {
  private static final Duration START_TIMEOUT = Duration.ofSeconds(60);
  private static final String USER = "postgres";
  private static final String LOOPBACK = "127.0.0.1";

  private final Path folder;
  private final int port;
  private final String address;
  private EmbeddedPostgres server;

  private Database(Path folder, int port, String address) {
    this.folder = folder;
    this.port = port;
    this.address = address;
    this.server = launch();
  }

  /**
   * Starts a server.
   *
   * @param address where it listens beside loopback, trusting whoever comes; the services' view of
   *     it
   */
  public static Database start(Path folder, int port, String address) {
    return new Database(folder, port, address);
  }

  private EmbeddedPostgres launch() {
    // Its progress is told by our own lines; a failure comes as an exception.
    ((Logger) LoggerFactory.getLogger(EmbeddedPostgres.class.getPackageName()))
        .setLevel(Level.WARN);
    try {
      Files.createDirectories(folder);
      Path access =
          Files.writeString(
              folder.resolve("access"),
              "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all samenet trust\n");
      return EmbeddedPostgres.builder()
          .setDataDirectory(folder.resolve("data").toFile())
          .setCleanDataDirectory(false)
          .setPort(port)
          .setServerConfig("fsync", "on")
          .setServerConfig("synchronous_commit", "on")
          .setServerConfig("full_page_writes", "on")
          .setServerConfig("listen_addresses", listenAddresses())
          .setServerConfig("hba_file", access.toString())
          .setServerConfig("max_connections", "100")
          .setPGStartupWait(START_TIMEOUT)
          .setErrorRedirector(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile()))
          .setOutputRedirector(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile()))
          .start();
    } catch (IOException e) {
      throw new UncheckedIOException("PostgreSQL did not start; see " + folder.resolve("log"), e);
    }
  }

  private String listenAddresses() {
    return address.equals(Site.HERE.direct()) ? LOOPBACK : LOOPBACK + "," + address;
  }

  /** Makes an empty database. */
  public void create(String name) {
    try (Connection connection = server.getPostgresDatabase().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("CREATE DATABASE " + name);
    } catch (SQLException e) {
      throw new IllegalStateException("cannot create database " + name, e);
    }
  }

  public String url(String name) {
    return "jdbc:postgresql://%s:%d/%s?user=%s".formatted(address, port, name, USER);
  }

  String user() {
    return USER;
  }

  /** Kills the server and all its backends without warning. */
  public void kill() {
    try {
      long postmaster =
          Long.parseLong(
              Files.readAllLines(folder.resolve("data").resolve("postmaster.pid")).getFirst());
      ProcessHandle handle = ProcessHandle.of(postmaster).orElseThrow();
      handle.descendants().forEach(ProcessHandle::destroyForcibly);
      handle.destroyForcibly();
      handle.onExit().join();
      server.close(); // releases the lock on the folder; there is nothing left to stop
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Starts the server again on the data it left. */
  public void restart() {
    server = launch();
  }

  @Override
  public void close() {
    try {
      server.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
