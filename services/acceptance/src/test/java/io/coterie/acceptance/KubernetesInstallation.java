package io.coterie.acceptance;

import io.coterie.acceptance.Runbooks.Section;
import io.coterie.acceptance.cluster.InstallationCa;
import io.coterie.acceptance.cluster.WalletBackend;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import org.springframework.util.FileSystemUtils;

/**
 * An installation on Kubernetes, by the commands of docs/runbooks/install.md: the control plane in
 * one namespace, each of three parties in its own. This class makes certificates and PostgreSQL,
 * which the page takes as given.
 */
final class KubernetesInstallation implements AutoCloseable {
  static final String CONTROL = "coterie";
  static final int THRESHOLD = 2;
  static final List<String> PARTIES =
      IntStream.rangeClosed(1, 3).mapToObj(party -> "party-" + party).toList();

  /** Pods of the coordinator. */
  static final List<String> COORDINATORS = List.of("coordinator-0", "coordinator-1");

  /** Where Prometheus would be, and where nobody is expected to call from. */
  static final String MONITORING = "cluster-test-monitoring";

  static final String STRANGERS = "cluster-test-strangers";

  /** Workloads of the control plane. */
  static final List<String> CONTROL_WORKLOADS =
      List.of("deployment/messaging", "statefulset/coordinator", "deployment/edge");

  static final String SIGNER_WORKLOAD = "statefulset/signer";

  /** Marks the namespaces that a later run may delete. */
  private static final String MARK = "coterie.io/cluster-test=true";

  private static final List<String> REGIONS = List.of("eu-central", "us-east", "ap-south");
  private static final String INSTALLATION = "cluster-test";
  private static final String WALLET = "wallet";
  private static final int SECRET_BYTES = 24;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Path root;
  private final Path folder;
  private final Consumer<String> progress;
  private final Kube kube;
  private final Runbooks runbooks;
  private final InstallationCa ca;
  private final InstallationCa.Leaf walletCertificate;
  private final String node;
  private Optional<WalletBackend> wallet = Optional.empty();

  /**
   * Prepares an installation; {@link #install} makes it.
   *
   * @param root of the project, after {@code make images charts}
   * @param folder for everything that is made; emptied first
   */
  KubernetesInstallation(Path root, Path folder, Consumer<String> progress) throws IOException {
    this.root = root;
    FileSystemUtils.deleteRecursively(folder);
    this.folder = Files.createDirectories(folder).toAbsolutePath();
    this.progress = progress;
    kube = new Kube(this.folder);
    runbooks = new Runbooks(kube, this::variables);
    ca = InstallationCa.create(this.folder.resolve("tls"));
    walletCertificate = ca.client(WALLET);
    node =
        kube.run(
                List.of(
                    "kubectl",
                    "get",
                    "nodes",
                    "--output",
                    "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}"))
            .strip();
  }

  Kube kube() {
    return kube;
  }

  Runbooks runbooks() {
    return runbooks;
  }

  WalletBackend wallet() {
    return wallet.orElseThrow(() -> new IllegalStateException("nothing is installed"));
  }

  /** Mutual TLS as the wallet backend. */
  SSLContext clientTls() {
    return ca.tls(walletCertificate);
  }

  /** Address of a node. */
  String node() {
    return node;
  }

  /** Where wallet backends call the edge: a port of the node. */
  String edge() {
    return node
        + ":"
        + kube.field(
            CONTROL, "service/edge-external", ".spec.ports[?(@.name==\"clients\")].nodePort");
  }

  static List<String> namespaces() {
    List<String> all = new ArrayList<>(List.of(CONTROL));
    all.addAll(PARTIES);
    return all;
  }

  /** From nothing to ready, with an ECDSA key of all parties. */
  void install(String key) throws IOException {
    removeNamespaces(true);
    certificates();
    try {
      runbooks.run(Section.NAMESPACES, Map.of());
    } finally {
      namespaces().forEach(name -> kube.attempt(labelled(name, MARK)));
    }
    for (String name : List.of(MONITORING, STRANGERS)) {
      kube.run(List.of("kubectl", "create", "namespace", name));
      kube.run(labelled(name, MARK));
      kube.run(labelled(name, "pod-security.kubernetes.io/enforce=restricted"));
    }
    Files.writeString(folder.resolve("database-user"), "postgres");
    Files.writeString(folder.resolve("database-password"), secret());
    runbooks.run(Section.SECRETS, Map.of());
    database();
    progress.accept("namespaces, Secrets and PostgreSQL are there");
    runbooks.run(Section.CONTROL_PLANE, Map.of());
    for (String party : PARTIES) {
      runbooks.run(Section.A_PARTY, party(party));
    }
    progress.accept("helm install: messaging, coordinator, edge, three signers");
    runbooks.run(Section.THE_TRUST_FILE, Map.of());
    progress.accept("all members have enrolled, are pinned and ready");
    runbooks.run(
        Section.THE_FIRST_KEY, Map.of("KEY", key, "THRESHOLD", Integer.toString(THRESHOLD)));
    wallet =
        Optional.of(
            new WalletBackend(
                WALLET,
                folder.resolve(WALLET + "-requester.pem"),
                INSTALLATION,
                folder.resolve("trust.json"),
                ca,
                walletCertificate,
                edge()));
  }

  private static List<String> labelled(String namespace, String label) {
    return List.of("kubectl", "label", "namespace", namespace, label);
  }

  /** Variables that every page's commands may use. */
  private Map<String, String> variables() {
    Map<String, String> all = new TreeMap<>();
    all.put("FILES", folder.toString());
    all.put("INSTALLATION", INSTALLATION);
    all.put("CONTROL", CONTROL);
    all.put("MONITORING", MONITORING);
    all.put(
        "COORDINATORS",
        COORDINATORS.stream().map(pod -> CONTROL + "/" + pod).collect(Collectors.joining(" ")));
    all.put("PARTIES", String.join(" ", PARTIES));
    all.put(
        "MEMBERS",
        Stream.concat(
                COORDINATORS.stream().map(pod -> member(pod) + "=" + number(pod)),
                PARTIES.stream().map(party -> party + "=" + number(party)))
            .collect(Collectors.joining(" ")));
    // Of BLS keys, of the load, and of the check of the first key
    all.put("PAYLOADS", "message, digest, ethereum-message");
    all.put("DATABASE", "postgres:5432");
    all.put("TOOLS", image("postgres"));
    all.put("COTERIE_PROFILE", folder.resolve("profile.properties").toString());
    kube.attemptKubectl(CONTROL, "get", "service", "edge-external")
        .ifPresent(there -> all.put("EDGE", edge()));
    return all;
  }

  /** Further variables of the commands about one party. */
  Map<String, String> party(String party) {
    return Map.of(
        "PARTY", party,
        "PARTY_ID", Integer.toString(id(party)),
        "REGION", REGIONS.get(id(party) - 1),
        "NUMBER", number(party));
  }

  private void certificates() {
    certificate(CONTROL, "messaging");
    certificate(CONTROL, "coordinator");
    certificate(CONTROL, "edge");
    ca.client(CONTROL + "-edge-client", "edge");
    PARTIES.forEach(party -> certificate(party, "signer"));
  }

  /** Issues a release's certificate, the first one or another, to where the commands find it. */
  Path certificate(String namespace, String release) {
    String[] names = {release, release + "." + namespace + ".svc"};
    if (release.equals("edge")) {
      names = Arrays.copyOf(names, names.length + 1);
      names[names.length - 1] = node;
    }
    String file = namespace + "-" + release;
    InstallationCa.Leaf leaf =
        release.equals("signer") ? ca.managementOf(file, names) : ca.listening(file, names);
    return leaf.certificate();
  }

  private static int id(String party) {
    return PARTIES.indexOf(party) + 1;
  }

  /** The name of a coordinator's pod on the channel: the first one's is that of the release. */
  private static String member(String pod) {
    return pod.replaceFirst("-0$", "");
  }

  private static String number(String partyOrPod) {
    return COORDINATORS.contains(partyOrPod)
        ? "+1555001000" + COORDINATORS.indexOf(partyOrPod)
        : "+1555000000" + id(partyOrPod);
  }

  /** A PostgreSQL of the test's own: in production it is somebody else's. */
  private void database() throws IOException {
    kube.apply(
        CONTROL,
        Files.readString(root.resolve("deploy/helm/test/postgres.yaml"))
            .replace("@IMAGE@\"", image("postgres") + "\""));
    kube.rollout(CONTROL, "statefulset/postgres");
  }

  /** Name and tag of an image, as {@code make images} left them. */
  String image(String name) {
    try {
      return Files.readString(root.resolve("build/images/" + name + ".ref")).strip();
    } catch (IOException e) {
      throw new UncheckedIOException("there is no image of " + name + ": run make cluster-test", e);
    }
  }

  private static String secret() {
    byte[] bytes = new byte[SECRET_BYTES];
    RANDOM.nextBytes(bytes);
    return Base64.getUrlEncoder().encodeToString(bytes);
  }

  /** The metrics of one pod that begin so, if it tells them. */
  Optional<String> metrics(String namespace, String pod, String name) {
    return kube.attempt(
        List.of(root.resolve("deploy/metrics").toString(), namespace + "/" + pod, name));
  }

  /** The traces of a failure: pods, warnings, last lines. */
  String describe() {
    StringBuilder text = new StringBuilder();
    for (String namespace : namespaces()) {
      append(text, namespace, "get", "pods", "--output", "wide");
      append(
          text,
          namespace,
          "get",
          "events",
          "--field-selector=type=Warning",
          "--sort-by=.lastTimestamp",
          "--output=custom-columns=OBJECT:.involvedObject.name,REASON:.reason,MESSAGE:.message");
      for (String pod : readyOfPods(namespace).lines().toList()) {
        String[] words = pod.split(" ", -1);
        boolean ready = words[1].equals("true");
        if (!words[2].equals("0")) {
          text.append("-- ").append(words[0]).append(" before its restart\n");
          append(text, namespace, "logs", words[0], "--previous", "--tail=8");
        }
        text.append("-- ").append(words[0]).append(ready ? "\n" : " is not ready\n");
        append(text, namespace, "logs", words[0], "--tail=" + (ready ? 3 : 12));
      }
    }
    return text.toString();
  }

  private String readyOfPods(String namespace) {
    return kube.attemptKubectl(
            namespace,
            "get",
            "pods",
            "--output",
            "jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].ready}"
                + " {.status.containerStatuses[0].restartCount}{\"\\n\"}{end}")
        .orElse("");
  }

  private void append(StringBuilder text, String namespace, String... words) {
    String output = kube.attemptKubectl(namespace, words).orElse("");
    output.lines().forEach(line -> text.append(abbreviate(line)).append('\n'));
  }

  private static String abbreviate(String line) {
    int most = 400;
    return line.length() <= most ? line : line.substring(0, most) + "...";
  }

  /** Takes everything away again, without waiting for it. */
  void remove() {
    removeNamespaces(false);
  }

  private void removeNamespaces(boolean wait) {
    kube.run(List.of("kubectl", "delete", "namespace", "--selector", MARK, "--wait=" + wait));
  }

  @Override
  public void close() {
    wallet.ifPresent(WalletBackend::close);
  }
}
