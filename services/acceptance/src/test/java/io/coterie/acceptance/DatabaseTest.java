package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.acceptance.cluster.Database;
import io.coterie.acceptance.cluster.Site;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DatabaseTest {
  @TempDir Path folder;

  @Test
  void whatWasCommittedSurvivesKillMinusNine() throws Exception {
    int port;
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
    try (Database database = Database.start(folder, port, Site.HERE.direct())) {
      database.create("custody");
      try (Connection connection = DriverManager.getConnection(database.url("custody"));
          Statement statement = connection.createStatement()) {
        try (ResultSet fsync = statement.executeQuery("SHOW fsync")) {
          assertThat(fsync.next()).isTrue();
          assertThat(fsync.getString(1)).isEqualTo("on");
        }
        statement.execute("CREATE TABLE t (x int)");
        statement.execute("INSERT INTO t VALUES (7)");
      }
      database.kill();
      database.restart();
      try (Connection connection = DriverManager.getConnection(database.url("custody"));
          Statement statement = connection.createStatement();
          ResultSet row = statement.executeQuery("SELECT x FROM t")) {
        assertThat(row.next()).isTrue();
        assertThat(row.getInt(1)).isEqualTo(7);
      }
    }
  }
}
