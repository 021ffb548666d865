package io.coterie.coordinator.config;

import com.zaxxer.hikari.HikariDataSource;
import io.coterie.coordinator.custody.evidence.EvidenceArchive;
import io.coterie.coordinator.storage.JdbcAuditStore;
import io.coterie.coordinator.storage.JdbcEvidenceStore;
import io.coterie.coordinator.storage.JdbcKeyStore;
import io.coterie.coordinator.storage.JdbcReplicaStore;
import io.coterie.coordinator.storage.JdbcSigningStore;
import io.coterie.coordinator.storage.Worker;
import io.coterie.coordinator.telemetry.CoordinatorAudit;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.audit.AuditTrail;
import java.time.Clock;
import java.time.Duration;
import javax.sql.DataSource;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.jdbc.autoconfigure.DataSourceProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;

/** Wiring of the database: pools, stores, the audit trail, the archive of evidence. */
@Configuration(proxyBeanMethods = false)
class StorageConfiguration {
  /** Commits wait for the disk, whatever the server's default is: see docs/adr/0004. */
  private static final String DURABLE_COMMIT = "-c synchronous_commit=on";

  /** A heartbeat that takes longer has failed. */
  private static final int HEARTBEAT_SECONDS = 2;

  /** Commits may be lost when the database crashes. */
  private static final String SOON_COMMIT = "-c synchronous_commit=off";

  @Bean
  @Primary
  HikariDataSource durableDataSource(DataSourceProperties database) {
    return pool(database, "durable", DURABLE_COMMIT, 16);
  }

  /** Takes writes that may be lost; nothing durable is read back from it. */
  @Bean
  HikariDataSource soonDataSource(DataSourceProperties database) {
    return pool(database, "soon", SOON_COMMIT, 8);
  }

  /** Takes only heartbeats: a replica that waits for its statements is there all the same. */
  @Bean
  HikariDataSource heartbeatDataSource(DataSourceProperties database) {
    HikariDataSource pool = pool(database, "heartbeat", SOON_COMMIT, 1);
    // After an outage all replicas have to be seen again at nearly the same time: a statement or a
    // login that hangs ends soon, and no pause between two attempts to connect grows.
    pool.addDataSourceProperty("connectTimeout", "1");
    pool.addDataSourceProperty("socketTimeout", String.valueOf(HEARTBEAT_SECONDS));
    pool.setConnectionTimeout(Duration.ofSeconds(HEARTBEAT_SECONDS).toMillis());
    pool.setValidationTimeout(Duration.ofSeconds(HEARTBEAT_SECONDS).toMillis() / 2);
    pool.setMinimumIdle(0);
    // It never gives its place among the database's connections away.
    pool.setMaxLifetime(0);
    return pool;
  }

  private static HikariDataSource pool(
      DataSourceProperties database, String name, String options, int most) {
    HikariDataSource pool =
        database.initializeDataSourceBuilder().type(HikariDataSource.class).build();
    pool.setPoolName(name);
    pool.addDataSourceProperty("options", options);
    pool.setMaximumPoolSize(most);
    pool.setMinimumIdle(Math.min(4, most));
    pool.setConnectionTimeout(5_000);
    // Every statement is sent again and again: prepare it at its first use.
    pool.addDataSourceProperty("prepareThreshold", "1");
    pool.addDataSourceProperty("ApplicationName", "coterie-coordinator");
    pool.addDataSourceProperty("tcpKeepAlive", "true");
    return pool;
  }

  @Bean
  Worker worker(CoordinatorProperties properties) {
    return new Worker(properties.replica(), properties.handover().goneAfter());
  }

  @Bean
  JdbcReplicaStore replicaStore(
      @Qualifier("heartbeatDataSource") DataSource heartbeats, Worker worker) {
    return new JdbcReplicaStore(heartbeats, worker);
  }

  @Bean
  JdbcKeyStore keyStore(DataSource durable, Worker worker) {
    return new JdbcKeyStore(durable, worker);
  }

  @Bean
  JdbcSigningStore signingStore(
      DataSource durable, @Qualifier("soonDataSource") DataSource soon, Worker worker) {
    return new JdbcSigningStore(durable, soon, worker);
  }

  @Bean
  @DependsOnDatabaseInitialization
  CoordinatorAudit audit(DataSource durable, Clock clock, CoordinatorProperties properties) {
    String trail = properties.replica();
    return new CoordinatorAudit(new AuditTrail(trail, new JdbcAuditStore(durable, trail), clock));
  }

  @Bean
  @DependsOnDatabaseInitialization
  EvidenceArchive evidence(DataSource durable, CoordinatorMetrics metrics, Clock clock) {
    return new EvidenceArchive(new JdbcEvidenceStore(durable), metrics, clock);
  }
}
