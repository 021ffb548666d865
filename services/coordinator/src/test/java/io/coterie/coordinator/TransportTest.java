package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.keys;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.platform.error.ErrorReason;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.asn1.x509.GeneralName;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which clients are let in, and what the ports show to others. */
class TransportTest {
  @TempDir static Path folder;
  static TestInstallation installation;

  @BeforeAll
  static void start() {
    installation =
        new TestInstallation(folder, 2, "--coterie.coordinator.edges[0]=dns:edge.example").start();
  }

  @AfterAll
  static void stop() {
    installation.close();
  }

  @Test
  void no_certificate_no_connection() throws Exception {
    ManagedChannel channel =
        NettyChannelBuilder.forAddress("localhost", installation.port)
            .sslContext(GrpcSslContexts.forClient().trustManager(installation.pki.ca).build())
            .build();
    try {
      unavailable(channel);
    } finally {
      channel.shutdownNow();
    }
  }

  @Test
  void a_certificate_of_another_authority_is_no_certificate() {
    unavailable(installation.client(new TestPki("another"), "mallory"));
  }

  private static void unavailable(ManagedChannel channel) {
    assertThatThrownBy(() -> keys(channel).listKeys(ListKeysRequest.getDefaultInstance()))
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE));
  }

  @Test
  void a_client_that_is_not_configured_may_do_nothing() {
    fails(
        ErrorReason.CLIENT_NOT_ALLOWED,
        () -> keys(installation.client("nobody")).listKeys(ListKeysRequest.getDefaultInstance()));
  }

  @Test
  void an_edge_is_believed_when_it_says_who_calls() throws Exception {
    ManagedChannel edge =
        installation.client("edge", new GeneralName(GeneralName.dNSName, "edge.example"));
    String backend =
        certificate("forwarded", new GeneralName(GeneralName.dNSName, "backend.example"));
    String element = "Hash=" + "ab".repeat(32) + ";Cert=\"" + encoded(backend) + "\"";
    assertThat(
            keys(forwarding(edge, element))
                .listKeys(ListKeysRequest.getDefaultInstance())
                .getNextPageToken())
        .isEmpty();
    // Of anybody else the header is noise, on both sides of what it would change.
    keys(forwarding(installation.backend(), "Cert=\"x\""))
        .listKeys(ListKeysRequest.getDefaultInstance());
    notAllowed(forwarding(installation.client("nobody"), element));
  }

  @Test
  void an_edge_that_does_not_say_who_calls_may_do_nothing() throws Exception {
    ManagedChannel edge =
        installation.client("edge", new GeneralName(GeneralName.dNSName, "edge.example"));
    String backend =
        encoded(certificate("b", new GeneralName(GeneralName.dNSName, "backend.example")));
    String element = "Cert=\"" + backend + "\"";
    notAllowed(edge);
    for (String header :
        new String[] {
          "",
          "Subject=\"CN=backend\";DNS=backend.example",
          "Cert=\"" + encoded(certificate("nobody2")) + "\"",
          "Cert=\"" + backend.substring(0, backend.length() / 2) + "\"",
          "Cert=" + backend,
          element + "," + element,
          element + ";" + element,
          "Xert=\"" + backend + "\"",
          "Cert=\"%zz\"",
        }) {
      notAllowed(forwarding(edge, header));
    }
    notAllowed(forwarding(edge, element, element));
  }

  private static void notAllowed(Channel channel) {
    fails(
        ErrorReason.CLIENT_NOT_ALLOWED,
        () -> keys(channel).listKeys(ListKeysRequest.getDefaultInstance()));
  }

  private static String certificate(String commonName, GeneralName... names) throws Exception {
    return Files.readString(installation.pki.leaf(folder, commonName, names).certificate());
  }

  /** As Envoy encodes a certificate. */
  private static String encoded(String pem) {
    return pem.replace("\n", "%0A")
        .replace(" ", "%20")
        .replace("+", "%2B")
        .replace("/", "%2F")
        .replace("=", "%3D");
  }

  private static Channel forwarding(ManagedChannel channel, String... values) {
    Metadata headers = new Metadata();
    for (String value : values) {
      headers.put(
          Metadata.Key.of("x-forwarded-client-cert", Metadata.ASCII_STRING_MARSHALLER), value);
    }
    return ClientInterceptors.intercept(
        channel, MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  @Test
  void nothing_older_than_tls_1_3() throws Exception {
    for (int port : new int[] {installation.port, installation.managementPort}) {
      for (String version : new String[] {"TLSv1.2", "TLSv1.3"}) {
        try (SSLSocket socket =
            (SSLSocket) trusting().getSocketFactory().createSocket("localhost", port)) {
          socket.setEnabledProtocols(new String[] {version});
          if (version.equals("TLSv1.3")) {
            socket.startHandshake();
            assertThat(socket.getSession().getProtocol()).isEqualTo("TLSv1.3");
          } else {
            assertThatThrownBy(socket::startHandshake)
                .isInstanceOf(javax.net.ssl.SSLException.class);
          }
        }
      }
    }
  }

  @Test
  void reflection_is_off() {
    CompletableFuture<Status> ended = new CompletableFuture<>();
    StreamObserver<ServerReflectionRequest> calls =
        ServerReflectionGrpc.newStub(installation.backend())
            .withDeadlineAfter(10, TimeUnit.SECONDS)
            .serverReflectionInfo(
                new StreamObserver<ServerReflectionResponse>() {
                  @Override
                  public void onNext(ServerReflectionResponse value) {
                    ended.complete(Status.OK);
                  }

                  @Override
                  public void onError(Throwable t) {
                    ended.complete(Status.fromThrowable(t));
                  }

                  @Override
                  public void onCompleted() {}
                });
    calls.onNext(ServerReflectionRequest.newBuilder().setListServices("").build());
    assertThat(ended.join().getCode()).isEqualTo(Status.Code.UNIMPLEMENTED);
  }

  @Test
  void the_health_service_answers_every_certificate_of_the_installation() {
    HealthGrpc.HealthBlockingStub health =
        HealthGrpc.newBlockingStub(installation.client("prober"))
            .withDeadlineAfter(20, TimeUnit.SECONDS);
    eventually(
        () ->
            health.check(HealthCheckRequest.getDefaultInstance()).getStatus()
                == ServingStatus.SERVING);
  }

  @Test
  void health_and_metrics_over_tls() throws Exception {
    assertThat(get("/actuator/health/liveness")).contains("\"UP\"");
    eventually(
        () -> {
          try {
            return get("/actuator/health/readiness").contains("\"UP\"");
          } catch (Exception e) {
            throw new IllegalStateException(e);
          }
        });
    installation.createKey(installation.backend(), "measured", 1, 2);
    TestInstallation.signing(installation.backend())
        .sign(
            TestInstallation.sign(
                installation.wallet.sign(TestInstallation.signingIntent("measured", "m").build())));
    assertThat(get("/actuator/health/readiness")).as("for everybody").doesNotContain("channel");
    assertThat(asUser("/actuator/health/readiness")).contains("channel", "db");
    assertThat(answer("/actuator/prometheus").statusCode()).isEqualTo(401);
    String metrics = asUser("/actuator/prometheus");
    assertThat(metrics)
        .contains("coterie_signings_total{outcome=\"ok\",scheme=\"bls12381\"} 1.0")
        .contains("coterie_key_creations_total{outcome=\"ok\",scheme=\"bls12381\"} 1.0")
        .contains(
            "coterie_protocol_round_seconds_bucket{party=\"coordinator\",protocol=\"bls_sign\",region=\"local\",round=\"1\",le=\"0.025\"}")
        .contains(
            "coterie_protocol_wait_seconds_count{protocol=\"bls_sign\",round=\"1\",straggler=\"p")
        .contains(
            "coterie_sessions_total{cause=\"none\",outcome=\"completed\",protocol=\"bls_sign\"}"
                + " 1.0")
        .contains("coterie_coordinator_requests_seconds_count{method=\"Sign\"")
        .contains("coterie_quorum_margin ", "coterie_coordinator_presignatures_wanted ")
        .contains(
            "coterie_coordinator_replicas 1.0",
            "coterie_coordinator_taken_over_total{work=\"signing\"} 0.0")
        .contains(
            "coterie_coordinator_requester_runs{requester=\"wallet\"} 0.0",
            "coterie_coordinator_requester_waiting{requester=\"treasury\"} 0.0",
            "coterie_coordinator_requester_refused_total{reason=\"requester_overloaded\","
                + "requester=\"wallet\"} 0.0")
        .contains("jvm_memory_used_bytes");
    for (String path : new String[] {"/", "/actuator/env", "/actuator/heapdump", "/error"}) {
      assertThat(answer(path).statusCode()).as(path).isEqualTo(401);
      assertThat(asUser(path)).doesNotContain("Exception", "trace");
    }
  }

  @Test
  void the_audit_trail_tells_who_asked_for_what_and_its_chain_holds() {
    installation.createKey(installation.backend(), "audited", 1, 1);
    eventually(
        () ->
            installation
                .query(
                    "select actor || ' ' || action || ' ' || outcome from audit_records where"
                        + " fields like '%keys/audited%'")
                .equals("backend CreateKey OK"));
    assertThat(
            new io.coterie.platform.audit.AuditTrail(
                    "coordinator",
                    new io.coterie.coordinator.storage.JdbcAuditStore(
                        installation.bean(javax.sql.DataSource.class), "coordinator"),
                    java.time.Clock.systemUTC())
                .verify())
        .isInstanceOf(io.coterie.platform.audit.AuditTrail.Verification.Intact.class);
  }

  private static String get(String path) throws Exception {
    return answer(path).body();
  }

  private static String asUser(String path) throws Exception {
    String credentials = "metrics:" + TestInstallation.METRICS_PASSWORD;
    return answer(
            path,
            "Authorization",
            "Basic " + Base64.getEncoder().encodeToString(credentials.getBytes(UTF_8)))
        .body();
  }

  private static HttpResponse<String> answer(String path, String... headers) throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(
            URI.create("https://localhost:" + installation.managementPort + path));
    if (headers.length > 0) {
      request.headers(headers);
    }
    try (HttpClient http = HttpClient.newBuilder().sslContext(trusting()).build()) {
      return http.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }
  }

  private static SSLContext trusting() throws Exception {
    KeyStore trust = KeyStore.getInstance(KeyStore.getDefaultType());
    trust.load(null, null);
    trust.setCertificateEntry("ca", installation.pki.ca);
    TrustManagerFactory managers =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(trust);
    SSLContext tls = SSLContext.getInstance("TLS");
    tls.init(null, managers.getTrustManagers(), null);
    return tls;
  }
}
