package io.coterie.acceptance;

import io.coterie.cli.RequesterKeyFile;
import io.coterie.messaging.certificate.SenderCertificates;
import io.coterie.messaging.certificate.SenderCertificates.CertificateFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.springframework.boot.ssl.SslBundle;
import org.springframework.boot.ssl.pem.PemSslStoreBundle;
import org.springframework.boot.ssl.pem.PemSslStoreDetails;
import org.springframework.util.FileSystemUtils;
import tools.jackson.databind.json.JsonMapper;

/**
 * An installation on Kubernetes, put together as docs/runbooks/install.md says: the control plane
 * in one namespace, each of three parties in its own, everything by {@code helm} and the scripts in
 * {@code deploy/}.
 */
final class KubernetesInstallation implements AutoCloseable {
  static final String CONTROL = "coterie";
  static final int THRESHOLD = 2;
  static final List<String> PARTIES =
      IntStream.rangeClosed(1, 3).mapToObj(party -> "party-" + party).toList();

  /** Where Prometheus would be, and where nobody is expected to call from. */
  static final String MONITORING = "cluster-test-monitoring";

  static final String STRANGERS = "cluster-test-strangers";

  /** What the control plane's releases are made of. */
  static final List<String> CONTROL_WORKLOADS =
      List.of("deployment/messaging", "statefulset/coordinator", "deployment/edge");

  static final String SIGNER_WORKLOAD = "statefulset/signer";

  /** Marks the namespaces that a later run may delete. */
  private static final String MARK = "coterie.io/cluster-test";

  private static final List<String> REGIONS = List.of("eu-central", "us-east", "ap-south");
  private static final String WALLET = "wallet";
  private static final String COORDINATOR_NUMBER = "+15550000000";
  private static final int SERVER_CERTIFICATE_ID = 7;
  private static final int SECRET_BYTES = 24;
  private static final Duration ENROLMENT = Duration.ofMinutes(4);
  private static final Duration LOOK = Duration.ofMillis(500);
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final JsonMapper JSON = JsonMapper.builder().build();

  private final Path root;
  private final Path folder;
  private final Consumer<String> progress;
  private final Kube kube;
  private final InstallationCa ca;
  private final CertificateFiles certificates;
  private final Path walletKey;
  private final List<Map<String, ?>> enrolments = new ArrayList<>();
  private String node = "";
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
    ca = InstallationCa.create(this.folder.resolve("ca"));
    certificates =
        SenderCertificates.generate(this.folder.resolve("messaging"), SERVER_CERTIFICATE_ID);
    walletKey = this.folder.resolve("wallet-requester.pem");
    RequesterKeyFile.create(RequesterKeyFile.Algorithm.ED25519, walletKey);
  }

  Kube kube() {
    return kube;
  }

  WalletBackend wallet() {
    return wallet.orElseThrow(() -> new IllegalStateException("nothing is installed"));
  }

  /** Mutual TLS as the wallet backend. */
  SslBundle clientTls() {
    return SslBundle.of(
        new PemSslStoreBundle(
            PemSslStoreDetails.forCertificate(
                    wallet().certificate().certificate().toUri().toString())
                .withPrivateKey(wallet().certificate().key().toUri().toString()),
            PemSslStoreDetails.forCertificate(ca.certificateFile().toUri().toString())));
  }

  /** Address of a node. */
  String node() {
    return node;
  }

  /** Where wallet backends call the edge: a port of the node. */
  String edge() {
    return node
        + ":"
        + kube.field(CONTROL, "service/edge", ".spec.ports[?(@.name==\"clients\")].nodePort");
  }

  static List<String> namespaces() {
    List<String> all = new ArrayList<>(List.of(CONTROL));
    all.addAll(PARTIES);
    return all;
  }

  /** From nothing to ready. */
  void install() throws IOException {
    node =
        kube.run(
                List.of(
                    "kubectl",
                    "get",
                    "nodes",
                    "--output",
                    "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}"))
            .strip();
    removeNamespaces(true);
    for (String namespace : namespaces()) {
      namespace(namespace, "restricted");
    }
    namespace(MONITORING, "restricted");
    namespace(STRANGERS, "restricted");
    secrets();
    database();
    progress.accept("namespaces, Secrets and PostgreSQL are there");
    control();
    for (String party : PARTIES) {
      signer(party);
    }
    progress.accept("helm install: messaging, coordinator, edge, three signers");
    Path roster = collectRoster();
    progress.accept("all members have enrolled; pinning them");
    upgrade(CONTROL, "coordinator", "--set-file", "roster=" + roster);
    for (String party : PARTIES) {
      upgrade(party, "signer", "--set-file", "roster=" + roster);
    }
    for (String workload : CONTROL_WORKLOADS) {
      kube.rollout(CONTROL, workload);
    }
    for (String party : PARTIES) {
      kube.rollout(party, SIGNER_WORKLOAD);
    }
    wallet = Optional.of(new WalletBackend(WALLET, walletKey, ca, ca.client(WALLET), edge()));
  }

  /** A namespace that admits only pods of a standard of pod security. */
  private void namespace(String name, String standard) {
    kube.run(List.of("kubectl", "create", "namespace", name));
    kube.run(
        List.of(
            "kubectl",
            "label",
            "namespace",
            name,
            MARK + "=true",
            "pod-security.kubernetes.io/enforce=" + standard));
  }

  private void secrets() throws IOException {
    tls(CONTROL, "messaging", "messaging", "messaging." + CONTROL + ".svc");
    tls(CONTROL, "coordinator", "coordinator");
    tls(CONTROL, "edge", "edge", "edge." + CONTROL + ".svc", node);
    kube.secret(
        CONTROL,
        "messaging-certificates",
        Map.of(
            "trust-root", certificates.trustRoot(),
            "server-certificate", certificates.serverCertificate(),
            "server-private-key", certificates.serverPrivateKey()));
    Path password = secretFile("database");
    Path user = Files.writeString(folder.resolve("database-user"), "postgres");
    for (String service : List.of("messaging", "coordinator")) {
      kube.secret(CONTROL, service + "-database", Map.of("username", user, "password", password));
    }
    enrolment(CONTROL, "coordinator", COORDINATOR_NUMBER);
    kube.secret(CONTROL, "coordinator-passphrase", Map.of("passphrase", secretFile("coordinator")));
    for (String party : PARTIES) {
      tls(party, "signer", "signer", "signer." + party + ".svc");
      enrolment(party, "signer", number(party));
      kube.secret(party, "signer-passphrase", Map.of("passphrase", secretFile(party)));
    }
  }

  private void tls(String namespace, String name, String... names) {
    InstallationCa.Leaf leaf = ca.service(namespace + "-" + name, names);
    kube.secret(
        namespace,
        name + "-tls",
        Map.of(
            "tls.crt", leaf.certificate(), "tls.key", leaf.key(), "ca.crt", ca.certificateFile()));
  }

  private static int id(String party) {
    return PARTIES.indexOf(party) + 1;
  }

  private static String number(String party) {
    return "+1555000000" + id(party);
  }

  private void enrolment(String namespace, String name, String number) {
    Path token = folder.resolve(namespace + "-token");
    String line =
        kube.run(List.of(root.resolve("deploy/new-token").toString(), number, token.toString()));
    String hash = line.replaceFirst("(?s).*tokenSha256: \"([0-9a-f]{64})\".*", "$1");
    enrolments.add(Map.of("number", number, "tokenSha256", hash));
    kube.secret(namespace, name + "-enrolment", Map.of("token", token));
  }

  /** A PostgreSQL of the test's own: in production it is somebody else's. */
  private void database() throws IOException {
    kube.apply(
        CONTROL,
        Files.readString(root.resolve("deploy/helm/test/postgres.yaml"))
            .replace("@IMAGE@\"", image("postgres") + "\""));
    kube.rollout(CONTROL, "statefulset/postgres");
  }

  private void control() throws IOException {
    Map<String, Object> database = Map.of("pods", Map.of("app", "postgres"));
    List<Map<String, String>> parties =
        PARTIES.stream().map(party -> Map.of("namespace", party)).toList();
    install(
        CONTROL,
        "messaging",
        Map.of(
            "enrolments",
            enrolments,
            "database",
            Map.of("url", "jdbc:postgresql://postgres:5432/messaging"),
            "networkPolicy",
            Map.of("database", database, "clients", parties)));
    Map<String, Object> coordinator = new LinkedHashMap<>();
    coordinator.put("database", Map.of("url", "jdbc:postgresql://postgres:5432/coordinator"));
    coordinator.put("channel", Map.of("number", COORDINATOR_NUMBER, "trustRoot", trustRoot()));
    coordinator.put("networkPolicy", Map.of("database", database));
    coordinator.put("edges", List.of("dns:edge"));
    coordinator.put("requesters", List.of(Map.of("name", WALLET, "publicKey", publicKey())));
    coordinator.put(
        "clients",
        List.of(
            Map.of(
                "name",
                WALLET,
                "certificates",
                List.of("dns:" + WALLET),
                "submitFor",
                List.of(WALLET),
                "readKeys",
                List.of("*"))));
    install(CONTROL, "coordinator", coordinator);
    install(CONTROL, "edge", Map.of("service", Map.of("type", "NodePort")));
  }

  private void signer(String party) throws IOException {
    install(
        party,
        "signer",
        Map.of(
            "party",
            Map.of("name", party, "id", id(party), "region", REGIONS.get(id(party) - 1)),
            "channel",
            Map.of(
                "messaging",
                "https://messaging." + CONTROL + ".svc:8443",
                "number",
                number(party),
                "trustRoot",
                trustRoot()),
            "networkPolicy",
            Map.of("messaging", Map.of("namespace", CONTROL)),
            "metrics",
            Map.of("namespace", MONITORING),
            "requesters",
            List.of(
                Map.of(
                    "name",
                    WALLET,
                    "publicKey",
                    publicKey(),
                    "keys",
                    List.of("*"),
                    "mayCreateKeys",
                    true,
                    "schemes",
                    List.of("bls12381", "ecdsa-secp256k1"),
                    "payloads",
                    List.of("message", "digest")))));
  }

  private String trustRoot() throws IOException {
    return Files.readString(certificates.trustRoot()).strip();
  }

  private String publicKey() throws IOException {
    return Files.readString(RequesterKeyFile.publicFile(walletKey)).strip() + "\n";
  }

  private void install(String namespace, String release, Map<String, ?> values) throws IOException {
    String image = image(release.equals("edge") ? "envoy" : release);
    int colon = image.lastIndexOf(':');
    Map<String, Object> all = new LinkedHashMap<>(values);
    all.put(
        "image",
        Map.of("repository", image.substring(0, colon), "tag", image.substring(colon + 1)));
    Path file = folder.resolve(namespace + "-" + release + ".json");
    Files.writeString(file, JSON.writeValueAsString(all));
    kube.helm(namespace, "install", release, chart(release), "--values", file.toString());
  }

  private String chart(String release) {
    return root.resolve("build/charts/coterie-" + release + "-0.1.0.tgz").toString();
  }

  /** The operator's part: every member's own entry, collected out of band. */
  private Path collectRoster() throws IOException {
    List<String> command = new ArrayList<>();
    command.add(root.resolve("deploy/roster").toString());
    command.add(CONTROL + "/coordinator-0");
    PARTIES.forEach(party -> command.add(party + "/signer-0"));
    long end = System.nanoTime() + ENROLMENT.toNanos();
    Optional<String> roster = kube.attempt(command);
    while (roster.isEmpty() && System.nanoTime() < end) {
      LockSupport.parkNanos(LOOK.toNanos());
      roster = kube.attempt(command);
    }
    String text = roster.isPresent() ? roster.get() : kube.run(command);
    return Files.writeString(folder.resolve("roster.json"), text);
  }

  /** {@code helm upgrade} with the values that are there and a change to them. */
  void upgrade(String namespace, String release, String... change) {
    List<String> words =
        new ArrayList<>(List.of("upgrade", release, chart(release), "--reuse-values"));
    words.addAll(List.of(change));
    kube.helm(namespace, words.toArray(String[]::new));
  }

  /** Name and tag of an image, as {@code make images} left them. */
  String image(String name) {
    try {
      return Files.readString(root.resolve("build/images/" + name + ".ref")).strip();
    } catch (IOException e) {
      throw new UncheckedIOException("there is no image of " + name + ": run make cluster-test", e);
    }
  }

  private Path secretFile(String name) throws IOException {
    byte[] bytes = new byte[SECRET_BYTES];
    RANDOM.nextBytes(bytes);
    return Files.writeString(
        folder.resolve(name + "-secret"), Base64.getUrlEncoder().encodeToString(bytes));
  }

  /** What somebody needs who looks for the reason of a failure: pods, warnings, last lines. */
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
    kube.run(
        List.of("kubectl", "delete", "namespace", "--selector", MARK + "=true", "--wait=" + wait));
  }

  @Override
  public void close() {
    wallet.ifPresent(WalletBackend::close);
  }
}
