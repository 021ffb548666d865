package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestWatcher;

/**
 * {@code make cluster-test}: a control plane and three parties on the Kubernetes of {@code
 * KUBECONFIG}, by the charts and as the runbook says.
 */
@EnabledIfSystemProperty(named = "coterie.cluster-test", matches = "true")
@ExtendWith(KubernetesTest.Diagnosis.class)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class KubernetesTest {
  private static final Path FOLDER = Path.of("target", "cluster-test");
  private static final String BLS = "bls";
  private static final String ECDSA = "ecdsa";
  private static final int SIGNATURES = 500;
  private static final int CALLERS = 4;

  private static final Duration PATIENCE = Duration.ofMinutes(2);
  private static final Duration LOOK = Duration.ofMillis(500);

  private static final long STARTED = System.nanoTime();
  private static KubernetesInstallation installation;
  private static Kube kube;
  private static OutsideVerifier outside;
  private static boolean installed;

  /** Says what the cluster looked like when a test failed; .ci/cluster-test shows it last. */
  static final class Diagnosis implements TestWatcher {
    @Override
    public void testFailed(ExtensionContext context, Throwable cause) {
      try {
        String text =
            "%s failed: %s%n%s"
                .formatted(context.getDisplayName(), cause.getMessage(), installation.describe());
        Files.writeString(FOLDER.resolve("diagnosis"), text);
      } catch (IOException | RuntimeException e) {
        cause.addSuppressed(e);
      }
    }
  }

  @BeforeAll
  static void prepare() throws IOException {
    installation =
        new KubernetesInstallation(ProjectRoot.PATH, FOLDER, line -> progress("%s", line));
    kube = installation.kube();
    outside = OutsideVerifier.start(ProjectRoot.PATH);
  }

  @AfterAll
  static void leave() {
    if (outside != null) {
      outside.close();
    }
    if (installation != null) {
      installation.close();
      if (System.getenv().getOrDefault("KEEP", "").isBlank()) {
        installation.remove();
      }
    }
  }

  private static void progress(String format, Object... arguments) {
    System.out.printf(
        "progress: cluster, %3d s: %s%n",
        Duration.ofNanos(System.nanoTime() - STARTED).toSeconds(), format.formatted(arguments));
  }

  @Test
  @Order(1)
  void aControlPlaneAndThreePartiesAreInstalledByHelmAndMakeKeys() throws IOException {
    installation.install();
    progress("everything is ready");
    WalletBackend wallet = installation.wallet();
    Key bls =
        wallet.createKey(BLS, KubernetesInstallation.THRESHOLD, KubernetesInstallation.PARTIES);
    Key ecdsa =
        wallet.createEcdsaKey(
            ECDSA, KubernetesInstallation.THRESHOLD, KubernetesInstallation.PARTIES);
    assertThat(List.of(bls.getState(), ecdsa.getState())).containsOnly(Key.State.ACTIVE);
    progress("keys: %s, %s", bls.getName(), ecdsa.getName());
    installed = true;
  }

  @Test
  @Order(2)
  void fiveHundredSignaturesThroughTheEdgeAreValid() throws Exception {
    assumeTrue(installed);
    byte[] publicKey = key(BLS).getPublicKey().toByteArray();
    long begin = System.nanoTime();
    List<Future<Boolean>> valid = new ArrayList<>();
    try (ExecutorService callers = Executors.newFixedThreadPool(CALLERS)) {
      for (int i = 0; i < SIGNATURES; i++) {
        byte[] message = ("cluster " + i).getBytes(StandardCharsets.UTF_8);
        valid.add(
            callers.submit(
                () -> {
                  Signing signing = installation.wallet().sign(BLS, message);
                  byte[] signature = signing.getSignature().toByteArray();
                  return outside.verify(publicKey, message, signature).valid();
                }));
      }
    }
    for (Future<Boolean> each : valid) {
      assertThat(each.get()).isTrue();
    }
    progress("%d signatures, all valid, in %.1f s", SIGNATURES, (System.nanoTime() - begin) / 1e9);
  }

  @Test
  @Order(3)
  void theEdgeSpeaksJsonAndRefusesWhatIsNotInTheContract() throws Exception {
    assumeTrue(installed);
    String base = "https://" + installation.edge() + "/v1/";
    try (HttpClient http =
        HttpClient.newBuilder().sslContext(installation.clientTls().createSslContext()).build()) {
      HttpResponse<String> found = get(http, base + "keys/" + BLS);
      assertThat(found.statusCode()).isEqualTo(200);
      assertThat(found.body()).contains("\"state\":\"ACTIVE\"");
      assertThat(found.headers().firstValue("x-request-id")).isPresent();
      assertThat(get(http, base + "keys/no-such").statusCode()).isEqualTo(404);
      assertThat(get(http, base + "keys?x=1").statusCode()).isEqualTo(400);
      assertThat(get(http, base + "nothing").statusCode()).isEqualTo(404);
    }
  }

  private static HttpResponse<String> get(HttpClient http, String uri) throws Exception {
    return http.send(
        HttpRequest.newBuilder(URI.create(uri)).timeout(Duration.ofSeconds(60)).build(),
        HttpResponse.BodyHandlers.ofString());
  }

  @Test
  @Order(4)
  void helmTestFindsEveryReleaseReady() {
    assumeTrue(installed);
    kube.helm(KubernetesInstallation.CONTROL, "test", "messaging");
    kube.helm(KubernetesInstallation.CONTROL, "test", "coordinator");
    for (String party : KubernetesInstallation.PARTIES) {
      kube.helm(party, "test", "signer");
    }
    progress("helm test: all releases are ready");
  }

  @Test
  @Order(5)
  void aSignerReachesMessagingAndDnsOnlyAndOnlyPrometheusReachesIt() {
    assumeTrue(installed);
    String control = KubernetesInstallation.CONTROL;
    String first = KubernetesInstallation.PARTIES.getFirst();
    String second = KubernetesInstallation.PARTIES.get(1);
    String own = kube.field(first, "pod/signer-0", ".status.podIP") + " 9443";
    String messaging = address(control, "messaging") + " 8443";
    // All of them answer somebody.
    Map<String, String> elsewhere = new LinkedHashMap<>();
    elsewhere.put("PostgreSQL", address(control, "postgres") + " 5432");
    elsewhere.put("the edge", address(control, "edge") + " 8443");
    elsewhere.put("the API server", address("default", "kubernetes") + " 443");
    elsewhere.put("the kubelet", installation.node() + " 10250");

    String monitoring = KubernetesInstallation.MONITORING;
    String strangers = KubernetesInstallation.STRANGERS;
    toolbox(monitoring);
    toolbox(strangers);
    kube.kubectl(
        first,
        "debug",
        "signer-0",
        "--image=" + installation.image("postgres"),
        "--image-pull-policy=IfNotPresent",
        "--profile=restricted",
        "--container=toolbox",
        "--quiet",
        "--",
        "/bin/busybox",
        "sh",
        "-c",
        WAIT);

    elsewhere.forEach((what, target) -> reaches(strangers, "toolbox", what, target, true));
    elsewhere.put("messaging's metrics", address(control, "messaging") + " 9443");
    elsewhere.put("the coordinator", address(control, "coordinator") + " 9090");
    elsewhere.put("another party", kube.field(second, "pod/signer-0", ".status.podIP") + " 9443");
    reaches(first, "signer-0", "messaging", messaging, true);
    elsewhere.forEach((what, target) -> reaches(first, "signer-0", what, target, false));
    // A name that is resolved: DNS is reachable.
    inside(first, "signer-0", "nslookup", "messaging." + control + ".svc.cluster.local");
    progress(
        "from a signer's pod: messaging and DNS; not %s", String.join(", ", elsewhere.keySet()));

    reaches(monitoring, "toolbox", "a signer's metrics", own, true);
    reaches(strangers, "toolbox", "a signer's metrics", own, false);
    reaches(strangers, "toolbox", "messaging", messaging, false);
    progress("to a signer's pod: metrics, from the namespace of Prometheus and no other");
  }

  /** Ends at once when its pod does. */
  private static final String WAIT =
      "trap 'exit 0' TERM; while true; do busybox sleep 1 & wait $!; done";

  /** A pod from which connections are tried. */
  private static void toolbox(String namespace) {
    kube.apply(
        namespace,
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: toolbox}
        spec:
          automountServiceAccountToken: false
          securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
          containers:
            - name: toolbox
              image: %s
              imagePullPolicy: IfNotPresent
              command: [/bin/busybox, sh, -c, "%s"]
              securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        """
            .formatted(installation.image("postgres"), WAIT));
  }

  private static String address(String namespace, String service) {
    return kube.field(namespace, "service/" + service, ".spec.clusterIP");
  }

  /**
   * Tries to connect, until it is as it should be: a policy takes effect some moments after the
   * start of a pod.
   */
  private static void reaches(
      String namespace, String pod, String what, String target, boolean wanted) {
    List<String> words =
        new ArrayList<>(
            List.of("exec", pod, "--container=toolbox", "--", "/bin/busybox", "nc", "-w", "3"));
    words.addAll(List.of(target.split(" ")));
    words.addAll(List.of("-e", "/bin/busybox", "true"));
    long end = System.nanoTime() + PATIENCE.toNanos();
    // The container itself must answer, or nothing was tried.
    while (kube.attemptKubectl(
                namespace, "exec", pod, "--container=toolbox", "--", "/bin/busybox", "true")
            .isEmpty()
        || kube.attemptKubectl(namespace, words.toArray(String[]::new)).isPresent() != wanted) {
      assertThat(System.nanoTime())
          .as(
              "%s/%s %s %s (%s)",
              namespace, pod, wanted ? "reaches" : "does not reach", what, target)
          .isLessThan(end);
      LockSupport.parkNanos(LOOK.toNanos());
    }
  }

  private static void inside(String namespace, String pod, String... words) {
    List<String> all =
        new ArrayList<>(List.of("exec", pod, "--container=toolbox", "--", "/bin/busybox"));
    all.addAll(List.of(words));
    kube.kubectl(namespace, all.toArray(String[]::new));
  }

  @Test
  @Order(6)
  void aSignerWhosePodIsDeletedIsBackWithItsShares() {
    assumeTrue(installed);
    String party = KubernetesInstallation.PARTIES.getLast();
    kube.kubectl(party, "delete", "pod", "signer-0");
    kube.rollout(party, KubernetesInstallation.SIGNER_WORKLOAD);
    progress(
        "%s: from the start of its container to ready %d s",
        party, startToReady(party).toSeconds());
    // Without the first party, the restarted one is needed.
    String away = KubernetesInstallation.PARTIES.getFirst();
    kube.kubectl(away, "scale", KubernetesInstallation.SIGNER_WORKLOAD, "--replicas=0");
    kube.kubectl(away, "wait", "--for=delete", "pod/signer-0", "--timeout=120s");
    try {
      SteadyLoad load = SteadyLoad.start(installation.wallet(), ECDSA, 1);
      awaitAnswers(load, 1);
      load.end();
      assertThat(load.failed()).isEmpty();
      assertThat(load.answered().getFirst().signing().getSigningSetList()).contains(party);
    } finally {
      kube.kubectl(away, "scale", KubernetesInstallation.SIGNER_WORKLOAD, "--replicas=1");
      kube.rollout(away, KubernetesInstallation.SIGNER_WORKLOAD);
    }
    progress("%s signs again", party);
  }

  /** Kubernetes tells both times in whole seconds. */
  private static Duration startToReady(String party) {
    Instant started =
        Instant.parse(
            kube.field(
                party, "pod/signer-0", ".status.containerStatuses[0].state.running.startedAt"));
    Instant ready =
        Instant.parse(
            kube.field(
                party,
                "pod/signer-0",
                ".status.conditions[?(@.type==\"Ready\")].lastTransitionTime"));
    return Duration.between(started, ready);
  }

  private static void awaitAnswers(SteadyLoad load, int number) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (load.answers() < number) {
      assertThat(load.failed()).isEmpty();
      assertThat(System.nanoTime()).as("signatures come").isLessThan(end);
      LockSupport.parkNanos(LOOK.toNanos());
    }
  }

  private static Key key(String name) {
    return installation
        .wallet()
        .keys()
        .getKey(
            io.coterie.proto.custody.v1.GetKeyRequest.newBuilder().setName("keys/" + name).build());
  }
}
