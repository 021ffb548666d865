package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.acceptance.SteadyLoad.Answered;
import io.coterie.acceptance.cluster.OutsideVerifier;
import io.coterie.proto.custody.v1.GetKeyRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * {@code make cluster-chaos}: the faults of the simulation on the Kubernetes of {@code KUBECONFIG},
 * while clients ask for signatures. Pods are killed, members are cut off by network policies, disks
 * are slow and clocks are wrong. In the end every request has one valid signature, and the records
 * of all parties keep the promises of the threat model.
 */
@EnabledIfSystemProperty(named = "coterie.cluster-chaos", matches = "true")
class ClusterChaosTest {
  private static final Path FOLDER = Path.of("target", "cluster-test");
  private static final String KEY = "ecdsa";
  private static final String REQUESTER = "wallet";
  private static final int REQUESTS_A_SECOND = 4;
  private static final String CONTROL = KubernetesInstallation.CONTROL;
  private static final List<String> PARTIES = KubernetesInstallation.PARTIES;

  /** How long a fault lasts that the installation is to bear. */
  private static final Duration WHILE = Duration.ofSeconds(12);

  /** Each flush of a slow disk takes so much longer. */
  private static final int SLOW_MS = 200;

  /** Within what parties allow for, and far beyond. */
  private static final int SKEW_MS = 800;

  private static final int JUMP_MS = 120_000;

  /** A party whose clock is off by more is not ready. */
  private static final double MOST_OFF_SECONDS = 30;

  private static final JsonMapper JSON = JsonMapper.builder().build();
  private static final long STARTED = System.nanoTime();

  private static KubernetesInstallation installation;
  private static Kube kube;
  private static OutsideVerifier outside;

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
        Locale.ROOT,
        "progress: chaos, %3d s: %s%n",
        Duration.ofNanos(System.nanoTime() - STARTED).toSeconds(),
        format.formatted(arguments));
  }

  @Test
  void every_request_has_one_signature_whatever_fails() throws IOException {
    installation.install(KEY);
    PARTIES.forEach(ClusterChaosTest::addFaults);
    KubernetesTest.awaitEverything(installation);
    ByteString publicKey =
        installation
            .wallet()
            .attested(
                installation
                    .wallet()
                    .keys()
                    .getKey(GetKeyRequest.newBuilder().setName("keys/" + KEY).build()))
            .getPublicKey();
    SteadyLoad load = SteadyLoad.start(installation.wallet(), KEY, REQUESTS_A_SECOND);
    try {
      disksAreSlow();
      clocksAreWrong();
      everyPodIsKilled();
      aPartyIsCutOff(load);
      allAtOnce();
    } finally {
      load.end();
    }
    assertThat(load.failed()).isEmpty();
    SteadyLoad.Verdict verdict = load.judge(outside, publicKey);
    assertThat(verdict.wrong()).isEmpty();
    assertThat(verdict.twice()).isEmpty();
    assertThat(verdict.verified()).isEqualTo(load.asked());
    progress(
        "%d requests: all signed and valid, each the same when asked again; asked again meanwhile:"
            + " %s; longest %.1f s",
        load.asked(),
        load.retries(),
        load.answered().stream().mapToDouble(a -> a.took().toMillis() / 1e3).max().orElse(0));
    recordsKeepTheirPromises(load.answered());
  }

  // ---- the means -------------------------------------------------------------------------------

  /** Puts deploy/chaos/faults.c into a party's pod, and a container that tells it what to do. */
  private static void addFaults(String party) {
    Path library = FOLDER.resolve("faults.so").toAbsolutePath();
    kube.run(
        List.of(
            "cc",
            "-std=c11",
            "-O2",
            "-shared",
            "-fPIC",
            "-o",
            library.toString(),
            ProjectRoot.PATH.resolve("deploy/chaos/faults.c").toString()));
    kube.kubectl(party, "create", "configmap", "faults", "--from-file=" + library);
    kube.kubectl(
        party,
        "patch",
        KubernetesInstallation.SIGNER_WORKLOAD,
        "--patch",
        """
        spec:
          template:
            metadata:
              annotations: {kubectl.kubernetes.io/default-container: signer}
            spec:
              containers:
                - name: signer
                  env: [{name: LD_PRELOAD, value: /opt/faults/faults.so}]
                  volumeMounts:
                    - {name: library, mountPath: /opt/faults, readOnly: true}
                    - {name: faults, mountPath: /faults, readOnly: true}
                - name: faults
                  image: %s
                  imagePullPolicy: IfNotPresent
                  command: [/bin/busybox, sh, -c, "%s"]
                  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
                  volumeMounts: [{name: faults, mountPath: /faults}]
              volumes:
                - {name: library, configMap: {name: faults}}
                - {name: faults, emptyDir: {}}
        """
            .formatted(installation.image("postgres"), KubernetesTest.WAIT));
    kube.rollout(party, KubernetesInstallation.SIGNER_WORKLOAD);
    progress("%s: its clock and its disk may fail", party);
  }

  /** Sets a fault of a party's pod; 0 ends it. */
  private static void fault(String party, String name, int value) {
    kube.kubectl(
        party,
        "exec",
        "signer-0",
        "--container=faults",
        "--",
        "/bin/busybox",
        "sh",
        "-c",
        "echo %d >/faults/new && busybox mv /faults/new /faults/%s".formatted(value, name));
  }

  private static void pass(Duration time) {
    long end = System.nanoTime() + time.toNanos();
    while (System.nanoTime() < end) {
      LockSupport.parkNanos(end - System.nanoTime());
    }
  }

  /**
   * A pod of ours that is not on its way out.
   *
   * @param identity another one has another, even of the same name
   */
  private record Pod(String name, String identity, boolean ready) {}

  private static List<Pod> pods(String namespace) {
    List<Pod> pods = new ArrayList<>();
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
        boolean ready = false;
        for (JsonNode condition : pod.path("status").path("conditions")) {
          ready |=
              condition.path("type").asString().equals("Ready")
                  && condition.path("status").asString().equals("True");
        }
        pods.add(new Pod(metadata.path("name").asString(), metadata.path("uid").asString(), ready));
      }
    }
    return pods;
  }

  /** Ends a pod without a word. */
  private static void kill(String namespace, String pod) {
    kube.kubectl(namespace, "delete", "pod", pod, "--force", "--grace-period=0");
  }

  /** Waits until other pods have taken the place of these, and are ready. */
  private static void awaitOthers(String namespace, int pods, List<Pod> gone) {
    Set<String> identities = gone.stream().map(Pod::identity).collect(Collectors.toSet());
    KubernetesTest.await(
        namespace + " has other pods than " + gone,
        () -> {
          List<Pod> now = pods(namespace);
          return now.size() == pods
              && now.stream().allMatch(pod -> pod.ready() && !identities.contains(pod.identity()));
        });
  }

  /** A metric of a party; of several the smallest. */
  private static double metric(String party, String name) {
    return KubernetesTest.value(installation.metrics(party, "signer-0", name).orElse("").lines());
  }

  private static boolean isReady(String party) {
    return kube.field(
            party, "pod/signer-0", ".status.containerStatuses[?(@.name==\"signer\")].ready")
        .equals("true");
  }

  // ---- the faults ------------------------------------------------------------------------------

  private static void disksAreSlow() {
    for (String party : PARTIES) {
      double before = metric(party, "coterie_store_commit_seconds_sum");
      double commits = metric(party, "coterie_store_commit_seconds_count");
      fault(party, "disk-ms", SLOW_MS);
      pass(WHILE);
      double mean =
          (metric(party, "coterie_store_commit_seconds_sum") - before)
              / (metric(party, "coterie_store_commit_seconds_count") - commits);
      fault(party, "disk-ms", 0);
      assertThat(mean).as("seconds of a commit of " + party).isGreaterThan(SLOW_MS / 2e3);
      progress("%s: its disk was slow, %.0f ms a commit", party, 1e3 * mean);
    }
  }

  private static void clocksAreWrong() {
    String behind = PARTIES.getFirst();
    fault(behind, "clock-ms", -SKEW_MS);
    pass(WHILE);
    fault(behind, "clock-ms", 0);
    progress("%s: its clock was %d ms behind", behind, SKEW_MS);
    for (int jump : List.of(JUMP_MS, -JUMP_MS)) {
      String party = PARTIES.getLast();
      fault(party, "clock-ms", jump);
      KubernetesTest.await(
          party + " is not ready with such a clock",
          () ->
              Math.abs(metric(party, "coterie_clock_ahead_seconds")) > MOST_OFF_SECONDS
                  && !isReady(party));
      pass(WHILE);
      fault(party, "clock-ms", 0);
      KubernetesTest.await(party + " is ready with its clock set right", () -> isReady(party));
      progress("%s: its clock was off by %d s, and it was not ready", party, jump / 1_000);
    }
    KubernetesTest.awaitEverything(installation);
  }

  private static void everyPodIsKilled() {
    for (String namespace : KubernetesInstallation.namespaces()) {
      List<Pod> pods = pods(namespace);
      for (Pod pod : pods) {
        kill(namespace, pod.name());
        awaitOthers(namespace, pods.size(), List.of(pod));
        KubernetesTest.awaitEverything(installation);
        progress("killed: %s/%s", namespace, pod.name());
      }
    }
  }

  /**
   * Forbids a party to reach messaging, and ends the connections that it has: a policy is about new
   * ones alone.
   */
  private static void aPartyIsCutOff(SteadyLoad load) {
    String party = PARTIES.get(1);
    String policy = policy(party);
    forbid(party);
    List<Pod> pods = pods(CONTROL);
    List<Pod> messaging = pods.stream().filter(pod -> pod.name().startsWith("messaging")).toList();
    messaging.forEach(pod -> kill(CONTROL, pod.name()));
    awaitOthers(CONTROL, pods.size(), messaging);
    KubernetesTest.await("the coordinators miss " + party, () -> margin() == 0);
    long cut = Instant.now().getEpochSecond();
    pass(WHILE);
    List<Answered> meanwhile =
        load.answered().stream()
            .filter(each -> each.signing().getCreateTime().getSeconds() > cut)
            .toList();
    kube.apply(party, policy);
    assertThat(meanwhile).isNotEmpty();
    assertThat(meanwhile)
        .allSatisfy(each -> assertThat(each.signing().getSigningSetList()).doesNotContain(party));
    KubernetesTest.awaitEverything(installation);
    progress("%s: was cut off; the others signed %d meanwhile", party, meanwhile.size());
  }

  private static String policy(String party) {
    JsonNode all =
        JSON.readTree(kube.kubectl(party, "get", "networkpolicy", "signer", "-o", "json"));
    return """
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
         "metadata": {"name": "signer"}, "spec": %s}
        """
        .formatted(all.path("spec"));
  }

  private static void forbid(String party) {
    kube.kubectl(
        party,
        "patch",
        "networkpolicy",
        "signer",
        "--type=json",
        "--patch=[{\"op\": \"replace\", \"path\": \"/spec/egress\", \"value\": []}]");
  }

  /** How many parties a coordinator reaches beyond those that it needs: the most of all. */
  private static double margin() {
    return KubernetesInstallation.COORDINATORS.stream()
        .flatMap(pod -> installation.metrics(CONTROL, pod, "coterie_quorum_margin").stream())
        .mapToDouble(metrics -> KubernetesTest.value(metrics.lines()))
        .max()
        .orElse(Double.NaN);
  }

  /** A slow disk here, a wrong clock there, a third party killed, and both coordinators. */
  private static void allAtOnce() {
    fault(PARTIES.getFirst(), "disk-ms", SLOW_MS);
    fault(PARTIES.get(1), "clock-ms", SKEW_MS);
    kill(PARTIES.getLast(), "signer-0");
    KubernetesInstallation.COORDINATORS.forEach(pod -> kill(CONTROL, pod));
    pass(WHILE);
    fault(PARTIES.getFirst(), "disk-ms", 0);
    fault(PARTIES.get(1), "clock-ms", 0);
    KubernetesTest.awaitEverything(installation);
    progress("a slow disk, a wrong clock, a party and both coordinators killed: all at once");
  }

  // ---- the checks ------------------------------------------------------------------------------

  private static void recordsKeepTheirPromises(List<Answered> answered) {
    PartyRecords records = new PartyRecords(KubernetesInstallation.THRESHOLD);
    for (String party : PARTIES) {
      records.add(
          party,
          kube.kubectl(
              party,
              "exec",
              "signer-0",
              "--container=signer",
              "--",
              "java",
              "@java.args",
              "records",
              "/data/party",
              "1"));
    }
    assertThat(records.problems(REQUESTER, answered.stream().map(Answered::signing).toList()))
        .isEmpty();
    assertThat(records.sessions()).isGreaterThanOrEqualTo(answered.size());
    progress(
        "%d audit records of %d parties, of %d sessions: no promise is broken",
        records.size(), PARTIES.size(), records.sessions());
  }
}
