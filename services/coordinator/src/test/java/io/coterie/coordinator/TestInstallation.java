package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import com.zaxxer.hikari.HikariDataSource;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.channel.ChannelConnector;
import io.coterie.coordinator.channel.ChannelOpener;
import io.coterie.mpc.MpcCore;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.CreateKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.grpc.Channel;
import io.grpc.ManagedChannel;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NettyChannelBuilder;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import org.bouncycastle.asn1.x509.GeneralName;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

/** A coordinator with a real database and real TLS sockets, and scripted parties behind it. */
final class TestInstallation implements AutoCloseable {
  static final String ANOTHER = "coordinator-1";
  private static final AtomicInteger DATABASES = new AtomicInteger();
  private static EmbeddedPostgres postgres;

  final Path folder;
  final TestPki pki;
  final MemoryNetwork network;
  final ScriptedParties parties;
  final FakeCore core;
  private final MpcCore usedCore;
  final TestRequester wallet;
  final TestRequester treasury;
  final TestRequester stranger;
  final int port = freePort();
  static final String METRICS_PASSWORD = "password of the metrics";

  final int managementPort = freePort();
  private final String replica;
  private final boolean first;
  private final String database;
  private final List<String> arguments = new ArrayList<>();
  private final List<ManagedChannel> clients = new ArrayList<>();
  private ConfigurableApplicationContext context;

  /** An installation with parties p1, p2, ..., all connected. */
  TestInstallation(Path folder, int partyCount, String... moreArguments) {
    this(folder, partyCount, TestEvidence::publicKey, new FakeCore(), moreArguments);
  }

  /**
   * An installation with another core.
   *
   * @param evidenceKeys by party id
   */
  TestInstallation(
      Path folder,
      int partyCount,
      IntFunction<byte[]> evidenceKeys,
      MpcCore core,
      String... moreArguments) {
    this.folder = folder;
    this.replica = "coordinator";
    this.first = true;
    this.pki = new TestPki("installation");
    this.usedCore = core;
    this.core = core instanceof FakeCore fake ? fake : new FakeCore();
    List<Member> members = new ArrayList<>();
    members.add(member("coordinator", Member.Role.COORDINATOR, 0, new byte[0]));
    members.add(member(ANOTHER, Member.Role.COORDINATOR, 0, new byte[0]));
    for (int i = 1; i <= partyCount; i++) {
      members.add(member("p" + i, Member.Role.PARTY, i, evidenceKeys.apply(i)));
    }
    network = new MemoryNetwork(new Roster("test", 1, members));
    parties = new ScriptedParties(network);
    for (int i = 1; i <= partyCount; i++) {
      parties.connect("p" + i);
    }
    database = createDatabase();
    wallet = requester(0, "wallet", "Ed25519");
    treasury = requester(1, "treasury", "EC");
    stranger = new TestRequester(this, "stranger", keyPair("Ed25519").getPrivate());
    TestPki.Leaf server =
        pki.leaf(folder, "localhost", new GeneralName(GeneralName.dNSName, "localhost"));
    Path ca = pki.caFile(folder);
    arguments.addAll(
        List.of(
            "--spring.datasource.url=" + database,
            "--spring.datasource.username=postgres",
            "--logging.structured.format.console=",
            "--logging.level.root=WARN",
            "--coterie.coordinator.data-folder=" + folder,
            "--coterie.coordinator.tls.certificate=" + server.certificate(),
            "--coterie.coordinator.tls.private-key=" + server.privateKey(),
            "--coterie.coordinator.tls.client-ca=" + ca,
            "--coterie.coordinator.channel.messaging=https://localhost:1",
            "--coterie.coordinator.channel.ca=" + ca,
            "--coterie.coordinator.channel.trust-root=" + folder.resolve("trust-root"),
            "--coterie.coordinator.channel.number=+10000000000",
            "--coterie.coordinator.channel.token-file=" + folder.resolve("token"),
            "--coterie.coordinator.unseal.passphrase-file=" + folder.resolve("passphrase"),
            "--coterie.coordinator.metrics.password-file=" + metricsPassword(),
            "--coterie.coordinator.clients[0].name=backend",
            "--coterie.coordinator.clients[0].certificates[0]=dns:backend.example",
            "--coterie.coordinator.clients[0].submit-for[0]=wallet",
            "--coterie.coordinator.clients[0].read-keys[0]=keys/*",
            "--coterie.coordinator.clients[1].name=auditor",
            "--coterie.coordinator.clients[1].certificates[0]=subject:CN=auditor",
            "--coterie.coordinator.clients[1].read-keys[0]=keys/public-*"));
    arguments.addAll(List.of(moreArguments));
  }

  /** A second replica; it shares all but its name and ports with the first one. */
  private TestInstallation(TestInstallation other) {
    folder = other.folder;
    replica = ANOTHER;
    first = false;
    pki = other.pki;
    network = other.network;
    parties = other.parties;
    core = other.core;
    usedCore = other.usedCore;
    wallet = other.wallet;
    treasury = other.treasury;
    stranger = other.stranger;
    database = other.database;
    arguments.addAll(other.arguments);
  }

  /** A second coordinator with the same database and the same parties; not started. */
  TestInstallation another() {
    return new TestInstallation(this);
  }

  private static Member member(String name, Member.Role role, int partyId, byte[] evidenceKey) {
    byte[] identity = new byte[33];
    identity[1] = (byte) partyId;
    return new Member(
        name,
        role,
        partyId,
        "local",
        UUID.nameUUIDFromBytes(name.getBytes(java.nio.charset.StandardCharsets.UTF_8)),
        1,
        identity,
        evidenceKey);
  }

  /** A database without tables: its address, for user postgres. */
  static synchronized String createDatabase() {
    try {
      if (postgres == null) {
        postgres = EmbeddedPostgres.builder().setServerConfig("fsync", "on").start();
      }
      String name = "coordinator" + DATABASES.incrementAndGet();
      try (Connection c = postgres.getPostgresDatabase().getConnection();
          Statement s = c.createStatement()) {
        s.execute("create database " + name);
      }
      return "jdbc:postgresql://localhost:" + postgres.getPort() + "/" + name;
    } catch (IOException | SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  private Path metricsPassword() {
    try {
      return Files.writeString(folder.resolve("metrics-password"), METRICS_PASSWORD);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private TestRequester requester(int index, String name, String algorithm) {
    KeyPair pair = keyPair(algorithm);
    Path pem = folder.resolve(name + ".pem");
    try {
      Files.writeString(pem, TestPki.pem(pair.getPublic()));
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    arguments.add("--coterie.coordinator.requesters[" + index + "].name=" + name);
    arguments.add("--coterie.coordinator.requesters[" + index + "].public-key=" + pem);
    return new TestRequester(this, name, pair.getPrivate());
  }

  private static KeyPair keyPair(String algorithm) {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
      if (algorithm.equals("EC")) {
        generator.initialize(256);
      }
      return generator.generateKeyPair();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  /** Below those that the system gives to connections, one of which might take it first. */
  static int freePort() {
    while (true) {
      int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
      try (ServerSocket free = new ServerSocket(port)) {
        return free.getLocalPort();
      } catch (IOException e) {
        // Somebody listens on it.
        continue;
      }
    }
  }

  TestInstallation start(String... more) {
    ChannelOpener opener =
        receiver -> {
          SecureChannel channel = network.channel(replica);
          channel.onMessage(receiver);
          channel.start();
          return channel;
        };
    List<String> all = new ArrayList<>(arguments);
    all.add("--coterie.coordinator.replica=" + replica);
    all.add("--spring.grpc.server.port=" + port);
    all.add("--server.port=" + managementPort);
    all.addAll(List.of(more));
    context =
        CoordinatorApplication.builder()
            .initializers(
                c -> {
                  GenericApplicationContext generic = (GenericApplicationContext) c;
                  generic.registerBean("testChannel", ChannelOpener.class, () -> opener);
                  generic.registerBean("testCore", MpcCore.class, () -> usedCore);
                })
            .run(all.toArray(String[]::new));
    Calls.eventually(() -> bean(ChannelConnector.class).channel().isPresent());
    return this;
  }

  ConfigurableApplicationContext context() {
    return context;
  }

  <T> T bean(Class<T> type) {
    return context.getBean(type);
  }

  /**
   * As abruptly as one JVM allows: database and channel are cut first, so that nothing can finish,
   * and nobody is told.
   */
  void kill() {
    context.getBeansOfType(HikariDataSource.class).values().forEach(HikariDataSource::close);
    bean(io.coterie.coordinator.session.Sessions.class).stop();
    bean(ChannelConnector.class).close();
    context.close();
  }

  void stop() {
    context.close();
  }

  ManagedChannel client(String commonName, GeneralName... alternatives) {
    return client(pki, commonName, alternatives);
  }

  ManagedChannel client(TestPki authority, String commonName, GeneralName... alternatives) {
    TestPki.Leaf leaf = authority.leaf(folder, commonName, alternatives);
    try {
      ManagedChannel channel =
          NettyChannelBuilder.forAddress("localhost", port)
              .sslContext(
                  GrpcSslContexts.forClient()
                      .trustManager(pki.ca)
                      .keyManager(leaf.certificate().toFile(), leaf.privateKey().toFile())
                      .build())
              .build();
      clients.add(channel);
      return channel;
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  ManagedChannel backend() {
    return client("backend", new GeneralName(GeneralName.dNSName, "backend.example"));
  }

  static KeyServiceGrpc.KeyServiceBlockingStub keys(Channel channel) {
    return KeyServiceGrpc.newBlockingStub(channel).withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  static SigningServiceGrpc.SigningServiceBlockingStub signing(ManagedChannel channel) {
    return SigningServiceGrpc.newBlockingStub(channel).withDeadlineAfter(20, TimeUnit.SECONDS);
  }

  static KeyIntent.Builder keyIntent(String name, int threshold, String... parties) {
    return KeyIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey("keys/" + name)
        .setScheme(Scheme.SCHEME_BLS12381)
        .setThreshold(threshold)
        .addAllParties(List.of(parties))
        .setPurpose("test")
        .setNotAfter(inSeconds(120));
  }

  static SigningIntent.Builder signingIntent(String key, String message) {
    return SigningIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey("keys/" + key)
        .setScheme(Scheme.SCHEME_BLS12381)
        .setMessage(ByteString.copyFromUtf8(message))
        .setPurpose("test")
        .setNotAfter(inSeconds(120));
  }

  static RefreshIntent.Builder refreshIntent(String key, Scheme scheme, int epoch) {
    return RefreshIntent.newBuilder()
        .setRequestId(RequestId.next())
        .setKey("keys/" + key)
        .setScheme(scheme)
        .setEpoch(epoch)
        .setPurpose("test")
        .setNotAfter(inSeconds(120));
  }

  /** A key without the parties' word for it. */
  static Key facts(Key key) {
    return key.toBuilder().clearAttestation().build();
  }

  static Timestamp inSeconds(double seconds) {
    Instant instant = Instant.now().plusMillis((long) (seconds * 1000));
    return Timestamp.newBuilder()
        .setSeconds(instant.getEpochSecond())
        .setNanos(instant.getNano())
        .build();
  }

  static CreateKeyRequest createKey(SignedIntent signed) {
    return CreateKeyRequest.newBuilder().setSignedIntent(signed).build();
  }

  static SignRequest sign(SignedIntent signed) {
    return SignRequest.newBuilder().setSignedIntent(signed).build();
  }

  /** Creates a key with parties p1 to pn. */
  Key createKey(ManagedChannel client, String name, int threshold, int n) {
    String[] names = new String[n];
    for (int i = 0; i < n; i++) {
      names[i] = "p" + (i + 1);
    }
    return keys(client)
        .createKey(createKey(wallet.sign(keyIntent(name, threshold, names).build())));
  }

  /** Creates an ECDSA key with these parties. */
  Key createEcdsaKey(ManagedChannel client, String name, int threshold, String... names) {
    return keys(client)
        .createKey(
            createKey(
                wallet.sign(
                    keyIntent(name, threshold, names)
                        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                        .build())));
  }

  /** The number of rows, to see that nothing changed. */
  String rows() {
    return query(
        "select (select count(*) from keys) || ' keys, ' || (select count(*) from signings) || '"
            + " signings'");
  }

  /** The parties' word for a key that is ACTIVE. */
  Optional<Attestation> attestation(String key) {
    String hex =
        query(
            "select encode(attestation, 'hex') from keys where state = 2 and name = '" + key + "'");
    try {
      return hex.isEmpty()
          ? Optional.empty()
          : Optional.of(Attestation.parseFrom(HexFormat.of().parseHex(hex)));
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  void execute(String sql) {
    try (Connection c = java.sql.DriverManager.getConnection(database, "postgres", "");
        Statement s = c.createStatement()) {
      s.execute(sql);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  String query(String sql) {
    try (Connection c = java.sql.DriverManager.getConnection(database, "postgres", "");
        Statement s = c.createStatement();
        ResultSet r = s.executeQuery(sql)) {
      return r.next() ? r.getString(1) : "";
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void close() {
    clients.forEach(ManagedChannel::shutdownNow);
    if (context != null) {
      context.close();
    }
    if (first) {
      parties.close();
      network.close();
    }
  }
}
