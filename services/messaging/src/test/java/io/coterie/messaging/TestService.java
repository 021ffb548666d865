package io.coterie.messaging;

import io.coterie.messaging.certificate.SenderCertificates;
import io.coterie.messaging.certificate.SenderCertificates.CertificateFiles;
import io.coterie.messaging.config.MessagingConfiguration;
import io.micrometer.core.instrument.MeterRegistry;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/** The real service with a real database and a real TLS socket, in a folder of its own. */
public final class TestService implements AutoCloseable {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Path folder;
  private final EmbeddedPostgres postgres;
  private final SSLContext trust;
  private final List<String> baseArguments = new ArrayList<>();
  private final TestClock clock;
  private ConfigurableApplicationContext context;

  /** Time as the service sees it: the real time plus what a test has let pass. */
  public static final class TestClock extends Clock {
    private volatile Duration offset = Duration.ZERO;

    public void advance(Duration by) {
      offset = offset.plus(by);
    }

    @Override
    public ZoneId getZone() {
      return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Instant instant() {
      return Instant.now().plus(offset);
    }
  }

  private TestService(Path folder, List<String> arguments) throws Exception {
    this.folder = folder;
    this.clock = new TestClock();
    this.postgres = database().start();
    this.trust = writeTls(folder);
    CertificateFiles files = SenderCertificates.generate(folder, 7);
    baseArguments.addAll(
        List.of(
            "--spring.datasource.url=" + postgres.getJdbcUrl("postgres", "postgres"),
            "--server.port=0",
            "--management.server.port=0",
            "--logging.structured.format.console=",
            "--logging.level.root=error",
            "--coterie.messaging.metrics.password-file="
                + Files.writeString(folder.resolve("metrics-password"), METRICS_PASSWORD),
            "--coterie.messaging.tls.certificate=" + folder.resolve("tls.pem"),
            "--coterie.messaging.tls.private-key=" + folder.resolve("tls.key"),
            "--coterie.messaging.certificates.trust-root=" + files.trustRoot(),
            "--coterie.messaging.certificates.server-certificate=" + files.serverCertificate(),
            "--coterie.messaging.certificates.server-private-key=" + files.serverPrivateKey()));
    baseArguments.addAll(arguments);
    run();
  }

  /** As durable as in production only on request, because tests do not need it and wait for it. */
  private static EmbeddedPostgres.Builder database() {
    EmbeddedPostgres.Builder database =
        EmbeddedPostgres.builder().setServerConfig("max_connections", "50");
    if (Boolean.getBoolean("coterie.messaging.durable")) {
      for (String setting : List.of("fsync", "synchronous_commit", "full_page_writes")) {
        database.setServerConfig(setting, "on");
      }
    }
    return database;
  }

  private TestService(TestService first) {
    this.folder = first.folder;
    this.postgres = first.postgres;
    this.trust = first.trust;
    this.clock = first.clock;
    this.baseArguments.addAll(first.baseArguments);
  }

  /** Another replica of the service, with the same database, keys and clock. */
  public TestService replica() {
    TestService replica = new TestService(this);
    replica.run();
    return replica;
  }

  /** Another replica of the service, as a process that can be killed. */
  public ProcessReplica processReplica(String... options) {
    return processReplica(List.of(), options);
  }

  /**
   * @param launcher starts the JVM, as {@code taskset} does; may be empty
   */
  ProcessReplica processReplica(List<String> launcher, String... options) {
    try {
      return new ProcessReplica(this, launcher, options);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  List<String> arguments() {
    return List.copyOf(baseArguments);
  }

  /** One service with default settings for all tests that do not disturb each other. */
  public static TestService shared() {
    return Shared.SERVICE;
  }

  private static final class Shared {
    // Lives as long as the JVM of the tests.
    static final TestService SERVICE = start();
  }

  /** A running service; {@code arguments} are Spring's {@code --key=value}. */
  public static TestService start(String... arguments) {
    try {
      return new TestService(Files.createTempDirectory("messaging-test"), List.of(arguments));
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private void run() {
    context =
        new SpringApplicationBuilder(MessagingConfiguration.class)
            .properties("spring.config.name=messaging")
            .initializers(
                c ->
                    ((GenericApplicationContext) c)
                        .registerBean("testClock", TestClock.class, () -> clock))
            .run(baseArguments.toArray(String[]::new));
  }

  public void stop() {
    context.close();
  }

  public void restart() {
    stop();
    run();
  }

  public ConfigurableApplicationContext context() {
    return context;
  }

  public TestClock clock() {
    return clock;
  }

  /** Open WebSockets of a kind, as the service's gauge shows them. */
  public int connections(String kind) {
    return (int)
        context
            .getBean(MeterRegistry.class)
            .get("coterie.messaging.connections")
            .tag("kind", kind)
            .gauge()
            .value();
  }

  /** Stops the database and leaves the service running. */
  public void stopDatabase() {
    try {
      postgres.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  public Path folder() {
    return folder;
  }

  public SSLContext trust() {
    return trust;
  }

  public int port() {
    return ((WebServerApplicationContext) context).getWebServer().getPort();
  }

  /** Of the user "metrics". */
  static final String METRICS_PASSWORD = "password of the metrics";

  public int managementPort() {
    return context.getEnvironment().getRequiredProperty("local.management.port", Integer.class);
  }

  /** Stops this replica and leaves the others, and the database, running. */
  public void closeReplica() {
    context.close();
  }

  /** Makes a one-time token for a number known to the service. */
  public byte[] enrol(String number) {
    byte[] token = new byte[16];
    RANDOM.nextBytes(token);
    try {
      execute(
          "INSERT INTO enrolment VALUES ('%s', '\\x%s', now())"
              .formatted(number, TestClient.sha256Hex(token)));
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
    return token;
  }

  /** A connection of the database's owner. */
  Connection databaseConnection() throws SQLException {
    return postgres.getPostgresDatabase().getConnection();
  }

  public void execute(String sql) {
    try (Connection connection = postgres.getPostgresDatabase().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  public long count(String sql) {
    try (Connection connection = postgres.getPostgresDatabase().getConnection();
        Statement statement = connection.createStatement();
        var result = statement.executeQuery(sql)) {
      result.next();
      return result.getLong(1);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void close() {
    try {
      context.close();
      postgres.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static SSLContext writeTls(Path folder) throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(256);
    KeyPair ca = generator.generateKeyPair();
    KeyPair server = generator.generateKeyPair();
    X500Name caName = new X500Name("CN=test CA");
    var signer = new JcaContentSignerBuilder("SHA256withECDSA").build(ca.getPrivate());
    Date from = Date.from(Instant.now().minus(Duration.ofHours(1)));
    Date to = Date.from(Instant.now().plus(Duration.ofDays(2)));
    X509Certificate caCertificate =
        new JcaX509CertificateConverter()
            .getCertificate(
                new JcaX509v3CertificateBuilder(
                        caName, BigInteger.ONE, from, to, caName, ca.getPublic())
                    .addExtension(Extension.basicConstraints, true, new BasicConstraints(true))
                    .build(signer));
    X509Certificate certificate =
        new JcaX509CertificateConverter()
            .getCertificate(
                new JcaX509v3CertificateBuilder(
                        caName,
                        BigInteger.TWO,
                        from,
                        to,
                        new X500Name("CN=localhost"),
                        server.getPublic())
                    .addExtension(
                        Extension.subjectAlternativeName,
                        false,
                        new GeneralNames(new GeneralName(GeneralName.dNSName, "localhost")))
                    .build(signer));
    write(folder.resolve("tls.pem"), certificate);
    write(folder.resolve("ca.pem"), caCertificate);
    Files.writeString(
        folder.resolve("tls.key"),
        "-----BEGIN PRIVATE KEY-----\n"
            + Base64.getMimeEncoder().encodeToString(server.getPrivate().getEncoded())
            + "\n-----END PRIVATE KEY-----\n");
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null);
    store.setCertificateEntry("ca", caCertificate);
    TrustManagerFactory managers =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(store);
    SSLContext context = SSLContext.getInstance("TLSv1.3");
    context.init(null, managers.getTrustManagers(), null);
    return context;
  }

  private static void write(Path file, Object object) throws IOException {
    StringWriter text = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
      writer.writeObject(object);
    }
    Files.writeString(file, text.toString());
  }
}
