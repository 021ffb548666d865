package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.Runbooks.Section;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.trust.FormerParty;
import io.coterie.trust.Roster;
import io.coterie.trust.TrustFile;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.stream.Stream;
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
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

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
  private static final int REQUESTS_A_SECOND = 10;
  private static final long MAX_IMAGE_BYTES = 250_000_000;

  /** From the start of a signer's container to ready, with everything else running. */
  private static final Duration MAX_START = Duration.ofSeconds(15);

  private static final String FIRST = KubernetesInstallation.PARTIES.getFirst();
  private static final String LAST = KubernetesInstallation.PARTIES.getLast();

  /** How well an end that is told in seconds from now is known. */
  private static final long CLOCK_SECONDS = 20;

  private static final JsonMapper JSON = JsonMapper.builder().build();

  /** The kubelet brings a new Secret into a pod within some minutes. */
  private static final Duration PATIENCE = Duration.ofMinutes(4);

  private static final Duration LOOK = Duration.ofMillis(500);

  /** The metrics that an upgrade waits for, as deploy/metrics is asked for it. */
  static final String SETTLED = "coterie_\\(coordinator_waiting\\|quorum_margin\\)";

  private static final Predicate<String> WAITING = line -> line.contains("waiting");

  private static final long STARTED = System.nanoTime();
  private static KubernetesInstallation installation;
  private static Kube kube;
  private static Runbooks runbooks;
  private static OutsideVerifier outside;
  private static boolean installed;
  private static ByteString publicKey = ByteString.EMPTY;

  /** Says what the cluster looked like when a test failed; .ci/cluster-test shows it last. */
  static final class Diagnosis implements TestWatcher {
    @Override
    public void testFailed(ExtensionContext context, Throwable cause) {
      // The rest would fail for this reason, each part with its own patience.
      installed = false;
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
    runbooks = installation.runbooks();
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
    for (String service : List.of("messaging", "coordinator", "signer")) {
      assertThat(ProjectRoot.PATH.resolve("build/images/" + service + ".tar").toFile().length())
          .as("bytes of the image of %s", service)
          .isPositive()
          .isLessThan(MAX_IMAGE_BYTES);
    }
    installation.install(ECDSA);
    WalletBackend wallet = installation.wallet();
    Key bls =
        wallet.createKey(BLS, KubernetesInstallation.THRESHOLD, KubernetesInstallation.PARTIES);
    Key ecdsa = key(ECDSA);
    assertThat(List.of(bls.getState(), ecdsa.getState())).containsOnly(Key.State.ACTIVE);
    assertThat(ecdsa.getPartiesList()).isEqualTo(KubernetesInstallation.PARTIES);
    publicKey = ecdsa.getPublicKey();
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
    try (HttpClient http = HttpClient.newBuilder().sslContext(installation.clientTls()).build()) {
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
  static final String WAIT = "trap 'exit 0' TERM; while true; do busybox sleep 1 & wait $!; done";

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
  @Order(5)
  void noRequestFailsWhileEverythingIsUpgradedAndEveryPodIsDeletedInTurn() throws Exception {
    assumeTrue(installed);
    Map<String, String> key = Map.of("KEY", ECDSA, "RATE", "1", "DURATION", "60");
    Map<String, String> before = pods();
    SteadyLoad load = SteadyLoad.start(installation.wallet(), ECDSA, REQUESTS_A_SECOND);
    try (ExecutorService terminal = Executors.newSingleThreadExecutor()) {
      runbooks.run(Section.BEFORE_AN_UPGRADE, Map.of());
      Future<String> second = runbooks.run(terminal, Section.LOAD, key);
      Map<String, String> change = Map.of("CHANGE", "--set podAnnotations.cluster-test=upgraded");
      runbooks.run(Section.UPGRADE_CONTROL_PLANE, change);
      progress("upgraded: messaging, coordinator, edge");
      runbooks.run(Section.UPGRADE_PARTIES, change);
      progress("upgraded: %s", String.join(", ", KubernetesInstallation.PARTIES));
      Map<String, String> after = pods();
      assertThat(after.values()).doesNotContainAnyElementsOf(before.values());
      runbooks.run(
          Section.BACK,
          release(KubernetesInstallation.CONTROL, "edge", "deployment/edge", "deployment/edge"));
      assertThat(second.get()).contains("requests 60, signed and verified 60, failed 0");
      progress("rolled back: edge; coterie load: %s", second.get().lines().findFirst().orElse(""));

      for (String pod : pods().keySet()) {
        String namespace = pod.substring(0, pod.indexOf('/'));
        kube.kubectl(namespace, "delete", "pod", pod.substring(pod.indexOf('/') + 1));
        awaitEverything();
        boolean signer = !namespace.equals(KubernetesInstallation.CONTROL);
        progress(
            "deleted: %s%s",
            pod, signer ? ", from its container's start to ready " + startToReady(namespace) : "");
      }
    } finally {
      load.end();
    }
    assertThat(load.failed()).isEmpty();
    SteadyLoad.Verdict verdict = load.judge(outside, publicKey);
    assertThat(verdict.wrong()).isEmpty();
    assertThat(verdict.twice()).isEmpty();
    assertThat(verdict.verified()).isEqualTo(load.asked());
    progress(
        "%d requests, %d a second: all signed and valid, each the same when asked again; asked"
            + " again meanwhile: %s; longest %.1f s",
        load.asked(),
        REQUESTS_A_SECOND,
        load.retries(),
        load.answered().stream().mapToDouble(a -> a.took().toMillis() / 1e3).max().orElse(0));
  }

  /** Every pod of ours that is not on its way out: its namespace and name, and its identity. */
  private static Map<String, String> pods() {
    Map<String, String> pods = new TreeMap<>();
    for (String namespace : KubernetesInstallation.namespaces()) {
      String json =
          kube.kubectl(
              namespace,
              "get",
              "pods",
              "--selector=app.kubernetes.io/part-of=coterie",
              "--output=json");
      for (JsonNode pod : JSON.readTree(json).path("items")) {
        JsonNode metadata = pod.path("metadata");
        if (!metadata.has("deletionTimestamp")) {
          pods.put(
              namespace + "/" + metadata.path("name").asString(), metadata.path("uid").asString());
        }
      }
    }
    return pods;
  }

  /**
   * Waits until every workload is ready, each coordinator reaches more parties than it needs, and
   * no request waits for its turn.
   */
  private static void awaitEverything() {
    awaitEverything(installation);
  }

  static void awaitEverything(KubernetesInstallation installation) {
    Kube kube = installation.kube();
    for (String workload : KubernetesInstallation.CONTROL_WORKLOADS) {
      kube.rollout(KubernetesInstallation.CONTROL, workload);
    }
    for (String party : KubernetesInstallation.PARTIES) {
      kube.rollout(party, KubernetesInstallation.SIGNER_WORKLOAD);
    }
    for (String coordinator : KubernetesInstallation.COORDINATORS) {
      await(
          coordinator + " reaches every party, and nothing waits",
          () ->
              installation
                  .metrics(KubernetesInstallation.CONTROL, coordinator, SETTLED)
                  .filter(metrics -> metrics.lines().count() == 2)
                  .filter(metrics -> value(metrics.lines().filter(WAITING)) == 0)
                  .filter(metrics -> value(metrics.lines().filter(WAITING.negate())) >= 1)
                  .isPresent());
    }
  }

  /** The smallest number in the metrics. */
  static double value(Stream<String> metrics) {
    return metrics
        .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
        .min()
        .orElse(Double.NaN);
  }

  static void await(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as(what).isLessThan(end);
      LockSupport.parkNanos(LOOK.toNanos());
    }
  }

  /** Variables of the commands about one release. */
  private static Map<String, String> release(
      String namespace, String release, String workload, String pod) {
    return Map.of("NAMESPACE", namespace, "RELEASE", release, "WORKLOAD", workload, "POD", pod);
  }

  /** Variables of the commands about a party's release. */
  private static Map<String, String> signer(String party) {
    return release(party, "signer", KubernetesInstallation.SIGNER_WORKLOAD, "signer-0");
  }

  @Test
  @Order(6)
  void aPartyIsRestoredFromItsBackupAndReadyInTime() {
    assumeTrue(installed);
    for (String party : KubernetesInstallation.PARTIES) {
      runbooks.run(Section.BACK_UP_A_PARTY, installation.party(party));
    }
    runbooks.run(Section.BACK_UP_CONTROL_PLANE, Map.of());
    String identity = rosterEntry(LAST);
    runbooks.run(Section.RESTORE_A_PARTY, installation.party(LAST));
    assertThat(rosterEntry(LAST)).isEqualTo(identity);
    Duration start = startToReady(LAST);
    assertThat(start).as("from the start of a signer's container to ready").isLessThan(MAX_START);
    progress("%s: restored; from its container's start to ready %d s", LAST, start.toSeconds());
  }

  private static String rosterEntry(String party) {
    return kube.kubectl(party, "exec", "signer-0", "--", "cat", "/data/party/roster-entry.json");
  }

  @Test
  @Order(7)
  void sharesAndCertificatesAreRotated() throws Exception {
    assumeTrue(installed);
    int epoch = key(ECDSA).getEpoch();
    runbooks.run(Section.SHARES, Map.of("KEY", ECDSA));
    assertThat(key(ECDSA).getEpoch()).isEqualTo(epoch + 1);
    assertThat(key(ECDSA).getPublicKey()).isEqualTo(publicKey);
    progress("refreshed: %s", ECDSA);

    Map<String, String> messaging =
        release(
            KubernetesInstallation.CONTROL,
            "messaging",
            "deployment/messaging",
            "deployment/messaging");
    Instant messagingsEnd = newCertificate(messaging);
    Instant signersEnd = newCertificate(signer(FIRST));
    // While the first party restarts, the restored one is needed.
    awaitEverything();
    SteadyLoad load = SteadyLoad.start(installation.wallet(), ECDSA, 2);
    try {
      runbooks.run(Section.A_RESTART, signer(FIRST));
    } finally {
      load.end();
    }
    assertThat(load.failed()).isEmpty();
    assertThat(load.judge(outside, publicKey).wrong()).isEmpty();
    assertThat(load.answered())
        .anySatisfy(
            answer ->
                assertThat(answer.signing().getSigningSetList())
                    .contains(LAST)
                    .doesNotContain(FIRST));
    assertThat(presentedUntil(runbooks.run(Section.VALID_NOW, signer(FIRST))))
        .isCloseTo(signersEnd, within(CLOCK_SECONDS, ChronoUnit.SECONDS));
    progress("%s presents its new certificate; meanwhile %s, restored, has signed", FIRST, LAST);

    await(
        "messaging takes its new certificate over",
        () ->
            Duration.between(validUntil(messaging), messagingsEnd).abs().toSeconds()
                < CLOCK_SECONDS);
    progress("messaging presents its new certificate");
  }

  /** Issues a release's next certificate and puts it where the release finds it. */
  private static Instant newCertificate(Map<String, String> release) throws Exception {
    Instant before = validUntil(release);
    Path file = installation.certificate(release.get("NAMESPACE"), release.get("RELEASE"));
    Instant end;
    try (InputStream in = Files.newInputStream(file)) {
      end =
          ((X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(in))
              .getNotAfter()
              .toInstant();
    }
    assertThat(end).isAfter(before.plus(3 * CLOCK_SECONDS, ChronoUnit.SECONDS));
    runbooks.run(Section.A_NEW_CERTIFICATE, release);
    return end;
  }

  /** When the certificate ends that a release presents now, by its own metrics. */
  private static Instant validUntil(Map<String, String> release) {
    String name = release.get("NAMESPACE") + "/" + release.get("POD");
    return installation
        .metrics(release.get("NAMESPACE"), release.get("POD"), "ssl_chain_expiry_seconds")
        .map(KubernetesTest::presentedUntil)
        .orElseThrow(() -> new IllegalStateException(name + " tells no metrics"));
  }

  private static Instant presentedUntil(String metrics) {
    // Not that of an authority that it believes, which is told too.
    Stream<String> own = metrics.lines().filter(line -> line.contains("source=\"keystore\""));
    return Instant.now().plusSeconds((long) value(own));
  }

  @Test
  @Order(8)
  void aCoordinatorThatHasLostItsVolumeGoesOn() {
    assumeTrue(installed);
    String control = KubernetesInstallation.CONTROL;
    String pod = KubernetesInstallation.COORDINATORS.getFirst();
    kube.kubectl(control, "delete", "pvc", "data-" + pod, "--wait=false");
    kube.kubectl(control, "delete", "pod", pod);
    kube.kubectl(control, "wait", "--for=create", "pod/" + pod, "--timeout=60s");
    kube.kubectl(
        control,
        "wait",
        "--for=jsonpath={.status.containerStatuses[0].started}=true",
        "pod/" + pod,
        "--timeout=120s");
    assertThat(kube.field(control, "pod/" + pod, ".status.containerStatuses[0].ready"))
        .isEqualTo("false");
    runbooks.run(Section.LOST_COORDINATOR, Map.of("POD", pod));
    awaitEverything();
    signs(Set.of());
    progress("%s: its volume was lost, and it goes on", pod);
  }

  @Test
  @Order(9)
  void theOthersGiveALostPartyNewSharesAndDoWithoutABrokenOne() throws IOException {
    assumeTrue(installed);
    Map<String, String> key =
        Map.of("KEY", ECDSA, "THRESHOLD", Integer.toString(KubernetesInstallation.THRESHOLD));
    String identity = rosterEntry(LAST);
    int epoch = key(ECDSA).getEpoch();
    Map<String, String> lost = new TreeMap<>(installation.party(LAST));
    lost.put("EPOCH", highestEpoch());
    runbooks.run(Section.LOST_PARTY, lost);
    assertThat(rosterEntry(LAST)).isNotEqualTo(identity);
    progress("%s: its volume was lost, it has enrolled anew and everybody knows it", LAST);
    runbooks.run(Section.LOST_SHARES, key);
    assertThat(key(ECDSA).getEpoch()).isEqualTo(epoch + 1);
    progress("%s: has new shares", LAST);

    List<String> others =
        KubernetesInstallation.PARTIES.stream().filter(party -> !party.equals(FIRST)).toList();
    Map<String, String> broken = new TreeMap<>(key);
    broken.putAll(installation.party(FIRST));
    broken.put("OTHERS", String.join(",", others));
    broken.put("EPOCH", highestEpoch());
    runbooks.run(Section.BROKEN_INTO, broken);
    Key left = key(ECDSA);
    assertThat(left.getPartiesList()).isEqualTo(others);
    assertThat(left.getPublicKey()).isEqualTo(publicKey);
    Roster roster = TrustFile.read(FOLDER.resolve("trust.json")).verified().trust().roster();
    assertThat(roster.version()).isEqualTo(3);
    assertThat(roster.former()).extracting(FormerParty::name).containsExactly(LAST, FIRST);
    signs(Set.copyOf(others));
    progress("%s: stopped, and without a share; %s sign", FIRST, String.join(" and ", others));
  }

  @Test
  @Order(10)
  void everyCommandOfTheRunbooksWasRun() {
    assumeTrue(installed);
    assertThat(runbooks.left()).isEmpty();
  }

  /** The ECDSA key signs, and these parties are in the signing set. */
  private static void signs(Set<String> parties) {
    SteadyLoad load = SteadyLoad.start(installation.wallet(), ECDSA, 1);
    await("a signature comes", () -> load.answers() > 0);
    load.end();
    assertThat(load.failed()).isEmpty();
    assertThat(load.judge(outside, publicKey).wrong()).isEmpty();
    assertThat(load.answered().getFirst().signing().getSigningSetList()).containsAll(parties);
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

  /** All parties have a share of every key. */
  private static String highestEpoch() {
    return Integer.toString(Math.max(key(ECDSA).getEpoch(), key(BLS).getEpoch()));
  }

  /** The key, checked as clients do. The wallet backend's next intents name its last reshare. */
  private static Key key(String name) {
    WalletBackend wallet = installation.wallet();
    return wallet.attested(
        wallet.keys().getKey(GetKeyRequest.newBuilder().setName("keys/" + name).build()));
  }
}
