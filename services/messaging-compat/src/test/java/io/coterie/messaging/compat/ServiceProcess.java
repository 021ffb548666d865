package io.coterie.messaging.compat;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigInteger;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.whispersystems.signalservice.api.push.TrustStore;

/** The messaging service as an operator runs it: a process with its own class path and database. */
final class ServiceProcess implements AutoCloseable {
  private static final String MAIN = "io.coterie.messaging.MessagingApplication";
  private static final Duration START_LIMIT = Duration.ofSeconds(120);
  private static final String STORE_PASSWORD = "compat";

  private final EmbeddedPostgres postgres;
  private final Process process;
  private final int port;
  private final X509Certificate ca;
  private final Path folder;
  private final Map<String, byte[]> tokens = new TreeMap<>();

  /** Starts the service with an unused one-time token for each number, and these settings. */
  ServiceProcess(List<String> numbers, String... settings) throws Exception {
    folder = Files.createTempDirectory("messaging-compat");
    postgres = EmbeddedPostgres.start();
    KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
    generator.initialize(2048);
    KeyPair caKeys = generator.generateKeyPair();
    KeyPair serverKeys = generator.generateKeyPair();
    X500Name caName = new X500Name("CN=compat CA");
    ca = certificate(caKeys, caName, caKeys, caName, true);
    X509Certificate server =
        certificate(caKeys, caName, serverKeys, new X500Name("CN=localhost"), false);
    pem("tls.pem", "CERTIFICATE", server.getEncoded());
    pem("tls.key", "PRIVATE KEY", serverKeys.getPrivate().getEncoded());
    run("generate-certificates", folder.toString(), "11").waitFor();
    port = freePort();
    int managementPort = freePort();
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "--spring.datasource.url=" + postgres.getJdbcUrl("postgres", "postgres"),
                "--server.port=" + port,
                "--management.server.port=" + managementPort,
                "--coterie.messaging.tls.certificate=" + folder.resolve("tls.pem"),
                "--coterie.messaging.tls.private-key=" + folder.resolve("tls.key"),
                "--coterie.messaging.certificates.trust-root=" + folder.resolve("trust-root.pub"),
                "--coterie.messaging.certificates.server-certificate="
                    + folder.resolve("server-certificate"),
                "--coterie.messaging.certificates.server-private-key="
                    + folder.resolve("server-certificate.key")));
    for (String number : numbers) {
      byte[] token = new byte[24];
      new SecureRandom().nextBytes(token);
      String key = "--coterie.messaging.enrolments[" + tokens.size() + "]";
      tokens.put(number, token);
      arguments.add(key + ".number=" + number);
      arguments.add(
          key
              + ".token-sha256="
              + HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(token)));
    }
    arguments.addAll(List.of(settings));
    process = run(arguments.toArray(String[]::new));
    awaitReady(URI.create("https://localhost:" + managementPort + "/actuator/health/readiness"));
  }

  private Process run(String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(
        List.of(
            "--enable-native-access=ALL-UNNAMED",
            "-XX:+UseSerialGC",
            "-Xmx192m",
            "-cp",
            System.getProperty("messaging.classes")
                + File.pathSeparator
                + Files.readString(Path.of(System.getProperty("messaging.classpath.file"))).strip(),
            MAIN));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("log.json").toFile()))
        .start();
  }

  /** Polls the readiness probe, as Kubernetes would. */
  private void awaitReady(URI probe) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null);
    store.setCertificateEntry("ca", ca);
    TrustManagerFactory managers =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(store);
    SSLContext trust = SSLContext.getInstance("TLSv1.3");
    trust.init(null, managers.getTrustManagers(), null);
    HttpClient http = HttpClient.newBuilder().sslContext(trust).build();
    Instant limit = Instant.now().plus(START_LIMIT);
    while (true) {
      try {
        HttpResponse<String> reply =
            http.send(HttpRequest.newBuilder(probe).build(), HttpResponse.BodyHandlers.ofString());
        if (reply.statusCode() == 200) {
          return;
        }
      } catch (IOException e) {
        // Not listening yet.
      }
      if (Instant.now().isAfter(limit) || process.waitFor(100, TimeUnit.MILLISECONDS)) {
        throw new IllegalStateException(
            "the service did not start:\n" + Files.readString(folder.resolve("log.json")));
      }
    }
  }

  String url() {
    return "https://localhost:" + port;
  }

  int port() {
    return port;
  }

  /** The one-time token of a number. */
  byte[] token(String number) {
    return tokens.get(number);
  }

  /** The public key that signed the server certificate. */
  byte[] trustRoot() throws IOException {
    return Base64.getDecoder().decode(Files.readString(folder.resolve("trust-root.pub")).strip());
  }

  /** The installation's CA, in DER. */
  byte[] ca() throws Exception {
    return ca.getEncoded();
  }

  /** The installation's CA, as Signal's clients want it. */
  TrustStore trustStore() throws Exception {
    KeyStore store = KeyStore.getInstance("BKS", "BC");
    store.load(null, null);
    store.setCertificateEntry("ca", ca);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    store.store(bytes, STORE_PASSWORD.toCharArray());
    return new TrustStore() {
      @Override
      public InputStream getKeyStoreInputStream() {
        return new ByteArrayInputStream(bytes.toByteArray());
      }

      @Override
      public String getKeyStorePassword() {
        return STORE_PASSWORD;
      }
    };
  }

  @Override
  public void close() throws IOException {
    process.destroy();
    try {
      if (!process.waitFor(30, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
    }
    postgres.close();
  }

  private static X509Certificate certificate(
      KeyPair issuer, X500Name issuerName, KeyPair subject, X500Name subjectName, boolean isCa)
      throws Exception {
    return new JcaX509CertificateConverter()
        .getCertificate(
            new JcaX509v3CertificateBuilder(
                    issuerName,
                    BigInteger.valueOf(isCa ? 1 : 2),
                    Date.from(Instant.now().minus(Duration.ofHours(1))),
                    Date.from(Instant.now().plus(Duration.ofDays(1))),
                    subjectName,
                    subject.getPublic())
                .addExtension(Extension.basicConstraints, true, new BasicConstraints(isCa))
                .addExtension(
                    Extension.subjectAlternativeName,
                    false,
                    new GeneralNames(new GeneralName(GeneralName.dNSName, "localhost")))
                .build(new JcaContentSignerBuilder("SHA256withRSA").build(issuer.getPrivate())));
  }

  private void pem(String file, String type, byte[] content) throws IOException {
    Files.writeString(
        folder.resolve(file),
        "-----BEGIN %s-----\n%s\n-----END %s-----\n"
            .formatted(type, Base64.getMimeEncoder().encodeToString(content), type));
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }
}
