package io.coterie.acceptance.cluster;

import io.coterie.cli.profile.RequesterKeyFile;
import io.coterie.coordinator.CoordinatorApplication;
import io.coterie.messaging.MessagingApplication;
import io.coterie.proto.custody.v1.Key;
import io.coterie.signer.SignerApplication;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A whole installation on this machine: PostgreSQL, messaging, coordinator and n signers, with a
 * certificate authority of its own, real TLS between them, and identities that were enrolled and
 * pinned.
 *
 * <pre>{@code
 * try (Cluster cluster = Cluster.of(3).threshold(2).start()) {
 *   cluster.createKey("treasury");
 *   cluster.wallet().sign("treasury", "hello");
 * }
 * }</pre>
 */
public final class Cluster implements AutoCloseable {
  /** The requester whom every service allows every key. */
  public static final String WALLET = "wallet";

  /** The requester for whom no signer signs unless two of {@link #APPROVERS} approve it. */
  public static final String TREASURY = "treasury";

  /** The group of approvers that signers ask for; it is there once the wallet has it made. */
  public static final String APPROVERS = "treasurers";

  /** The requester whom every service allows only keys named {@code audit-*}, and no digests. */
  public static final String AUDITOR = "auditor";

  /** Name of the client's site, which is that of this JVM and PostgreSQL too. */
  public static final String CLIENT = "client";

  private static final Duration START_TIMEOUT = Duration.ofSeconds(120);
  public static final String MESSAGING_NAME = "messaging";
  private static final List<String> REGIONS = List.of("eu-central", "us-east", "ap-south");

  private static final Service.Program MESSAGING =
      new Service.Program(MessagingApplication::start, MessagingApplication.class, "160m");
  private static final Service.Program COORDINATOR =
      new Service.Program(CoordinatorApplication::start, CoordinatorApplication.class, "160m");
  private static final Service.Program SIGNER =
      new Service.Program(SignerApplication::start, SignerApplication.class, "96m");

  private final ClusterPlan plan;
  private final Path folder;
  private final InstallationCa ca;
  private final MetricsUser metricsUser;
  private final Settings settings;
  private final Database database;
  private final Service messaging;
  private final List<Service> coordinators = new ArrayList<>();
  private final Map<String, Service> signers = new LinkedHashMap<>();
  private final Map<String, WalletBackend> backends = new LinkedHashMap<>();
  private final Members members;
  private final List<Settings.Requester> requesters;
  private final List<Integer> apiPorts;
  private final @Nullable Edge edge;
  private final int messagingPort;

  /** Starts describing an installation of n parties. */
  public static ClusterPlan of(int parties) {
    return new ClusterPlan(parties);
  }

  Cluster(ClusterPlan plan) {
    this.plan = plan;
    this.folder = plan.folder.toAbsolutePath().normalize();
    empty(folder);
    ca = InstallationCa.create(folder.resolve("ca"));
    metricsUser = MetricsUser.create(folder.resolve("metrics"));
    int edgePorts = 3 + plan.parties + 2 * plan.coordinators;
    List<Integer> ports = FreePorts.find(edgePorts + 4);
    messagingPort = ports.get(1);
    apiPorts = ports.subList(3 + plan.parties, 3 + plan.parties + plan.coordinators);
    HttpClient http = httpClient();
    edge =
        plan.edge == null ? null : edge(plan.edge, ports.subList(edgePorts, edgePorts + 4), http);
    List<String> names = new ArrayList<>(partyNames());
    names.addAll(coordinatorNames());
    names.addAll(plan.strangers);
    settings =
        new Settings(
            folder,
            ca,
            metricsUser,
            messagingUri(),
            edge == null ? messagingUri() : edge.parties(),
            plan.sendMode,
            plan.home != Service.Home.CONTEXT,
            plan.sites,
            names);
    members = new Members(ca, settings, messagingUri());
    requesters =
        List.of(
            requester(WALLET, "*", true, false),
            requester(AUDITOR, "keys/audit-*", false, false),
            requester(TREASURY, "keys/*", false, true));
    for (Settings.Requester requester : requesters) {
      backends.put(requester.name(), newBackend(requester.name(), 0));
    }
    database =
        Database.start(folder.resolve("database"), ports.get(0), plan.sites.apply(CLIENT).direct());
    database.create("messaging");
    database.create("coordinator");

    messaging =
        service(
            MESSAGING_NAME,
            MESSAGING,
            settings.messaging(messagingPort, ports.get(2), database, edge != null),
            ports.get(2),
            http);
    for (int replica = 0; replica < plan.coordinators; replica++) {
      String name = coordinatorNames().get(replica);
      int port = ports.get(3 + plan.parties + plan.coordinators + replica);
      List<String> arguments =
          settings.coordinator(name, apiPorts.get(replica), port, database, requesters);
      coordinators.add(service(name, COORDINATOR, arguments, port, http));
    }
    for (int party = 1; party <= plan.parties; party++) {
      String name = partyName(party);
      int port = ports.get(2 + party);
      String region = REGIONS.get((party - 1) % REGIONS.size());
      List<String> arguments = settings.signer(name, party, region, port, requesters);
      signers.put(name, service(name, SIGNER, arguments, port, http));
    }
  }

  private Edge edge(Edge.Plan edge, List<Integer> ports, HttpClient http) {
    if (plan.home == Service.Home.RESIDENT) {
      throw new IllegalStateException("the edge is on this machine, the services need not be");
    }
    return Edge.prepare(
        edge,
        folder.resolve(Edge.NAME),
        ca,
        metricsUser,
        new Edge.Ports(ports.get(0), ports.get(1), ports.get(2), ports.get(3)),
        new Edge.Upstream("localhost", apiPorts.getFirst()),
        new Edge.Upstream("localhost", messagingPort),
        http);
  }

  private Service service(
      String name, Service.Program program, List<String> arguments, int port, HttpClient http) {
    List<String> all = new ArrayList<>(arguments);
    all.addAll(plan.more.getOrDefault(name, List.of()));
    return new Service(
        name,
        program,
        all,
        folder.resolve(name),
        port,
        http,
        plan.home,
        plan.sites.apply(name),
        plan.launches.get(name));
  }

  void startServices() {
    plan.progress.accept("PostgreSQL runs, fsync on");
    messaging.start();
    messaging.awaitReady(START_TIMEOUT);
    plan.progress.accept("messaging is ready at " + messagingUri());
    coordinators.forEach(Service::start);
    if (edge != null) {
      edge.start();
      plan.progress.accept("Envoy is ready at " + edge.clients() + " and " + edge.parties());
    }
    if (plan.home == Service.Home.RESIDENT) {
      signers.values().parallelStream().forEach(Service::start);
    } else {
      signers.values().forEach(Service::start);
    }
    Map<Service, Path> holders = new LinkedHashMap<>();
    signers.values().forEach(signer -> holders.put(signer, signer.folder().resolve("data")));
    coordinators.forEach(coordinator -> holders.put(coordinator, coordinator.folder()));
    members.pin(holders, requesters, trustFile(), plan.secondCoordinator, START_TIMEOUT);
    int pinned = members.roster().members().size();
    plan.progress.accept(pinned + " identities enrolled, collected and pinned");
    for (Service service : services()) {
      service.awaitReady(START_TIMEOUT);
    }
    plan.progress.accept("coordinator is ready at " + coordinatorAddress(0));
    plan.progress.accept("signers are ready: " + String.join(", ", signers.keySet()));
  }

  /** Creates {@code keys/key} among all parties with the cluster's threshold. */
  public Key createKey(String key) {
    return wallet().createKey(key, plan.threshold, partyNames());
  }

  public int threshold() {
    return plan.threshold;
  }

  /** Names of all parties, in the order of their ids. */
  public List<String> partyNames() {
    List<String> names = new ArrayList<>();
    for (int party = 1; party <= plan.parties; party++) {
      names.add(partyName(party));
    }
    return names;
  }

  public static String partyName(int party) {
    return "party-" + party;
  }

  /** The requester who may do everything. */
  public WalletBackend wallet() {
    return backend(WALLET);
  }

  public WalletBackend backend(String requester) {
    WalletBackend backend = backends.get(requester);
    if (backend == null) {
      throw new IllegalArgumentException("no requester " + requester);
    }
    return backend;
  }

  public Service messaging() {
    return messaging;
  }

  /** The first coordinator. */
  public Service coordinator() {
    return coordinators.getFirst();
  }

  /** All coordinators. */
  public List<Service> coordinators() {
    return List.copyOf(coordinators);
  }

  private List<String> coordinatorNames() {
    List<String> names = new ArrayList<>(List.of(Settings.COORDINATOR));
    for (int replica = 1; replica < plan.coordinators; replica++) {
      names.add(Settings.COORDINATOR + "-" + replica);
    }
    return names;
  }

  /** The requester who may do everything, calling that one of {@link #coordinators}. */
  public WalletBackend walletAt(int replica) {
    return replica == 0
        ? wallet()
        : backends.computeIfAbsent(WALLET + "@" + replica, key -> newBackend(WALLET, replica));
  }

  private WalletBackend newBackend(String requester, int replica) {
    return new WalletBackend(
        requester,
        keyFile(requester),
        Members.INSTALLATION,
        trustFile(),
        ca,
        ca.client(requester),
        endpoint(replica));
  }

  /** The signer of a party, {@code party-1} to {@code party-n}. */
  public Service signer(String party) {
    Service signer = signers.get(party);
    if (signer == null) {
      throw new IllegalArgumentException("no party " + party);
    }
    return signer;
  }

  public List<Service> signers() {
    return List.copyOf(signers.values());
  }

  /** Messaging, coordinators, signers. */
  public List<Service> services() {
    List<Service> all = new ArrayList<>(List.of(messaging));
    all.addAll(coordinators);
    all.addAll(signers.values());
    return all;
  }

  /** Accounts of members, and the roster that all pin. */
  public Members members() {
    return members;
  }

  /** Envoy, if there is one in front. */
  public Optional<Edge> edge() {
    return Optional.ofNullable(edge);
  }

  public Database database() {
    return database;
  }

  public InstallationCa ca() {
    return ca;
  }

  public Path folder() {
    return folder;
  }

  /** Where wallet backends call. */
  public String endpoint() {
    return endpoint(0);
  }

  private String endpoint(int replica) {
    return edge == null ? coordinatorAddress(replica) : edge.clients().getAuthority();
  }

  private String coordinatorAddress(int replica) {
    return plan.sites.apply(coordinatorNames().get(replica)).address()
        + ":"
        + apiPorts.get(replica);
  }

  private URI messagingUri() {
    return URI.create(
        "https://" + plan.sites.apply(MESSAGING_NAME).address() + ":" + messagingPort);
  }

  public int apiPort() {
    return apiPorts.getFirst();
  }

  public int messagingPort() {
    return messagingPort;
  }

  /** Ends a party as {@code kill -9} does. */
  public void kill(String party) {
    signer(party).kill();
  }

  /** Starts a killed party and waits until it is ready. */
  public void restart(String party) {
    signer(party).restart(START_TIMEOUT);
  }

  /** The user who may read the metrics, as Prometheus does. */
  public MetricsUser metricsUser() {
    return metricsUser;
  }

  /** One reading of all services' metrics. */
  public Metrics metrics() {
    return Metrics.union(services().stream().map(Service::metrics).toList());
  }

  /** A profile with which {@code bin/coterie} speaks to this installation as a requester. */
  public Path writeProfile(String requester) {
    WalletBackend backend = backend(requester);
    try {
      return Files.writeString(
          folder.resolve("profile.properties"),
          """
          endpoint=%s
          management=%s
          ca=%s
          cert=%s
          key=%s
          requester=%s
          requester-key=%s
          trust=%s
          """
              .formatted(
                  endpoint(0),
                  coordinator().management(),
                  ca.certificateFile(),
                  backend.certificate().certificate(),
                  backend.certificate().key(),
                  requester,
                  keyFile(requester),
                  trustFile()));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Path trustFile() {
    return folder.resolve("trust.json");
  }

  private Settings.Requester requester(
      String name, String keys, boolean digests, boolean approved) {
    RequesterKeyFile.create(RequesterKeyFile.Algorithm.ED25519, keyFile(name));
    return new Settings.Requester(
        name,
        RequesterKeyFile.publicFile(keyFile(name)),
        keys,
        digests,
        plan.fewestParties,
        approved);
  }

  private Path keyFile(String requester) {
    return folder.resolve(requester + "-requester.pem");
  }

  /** Stops everything in order: those who call before those who are called. */
  @Override
  public void close() {
    backends.values().forEach(WalletBackend::close);
    coordinators.forEach(Service::close);
    signers.values().forEach(Service::close);
    if (edge != null) {
      edge.close();
    }
    messaging.close();
    database.close();
  }

  private HttpClient httpClient() {
    return HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .sslContext(ca.tls())
        .authenticator(metricsUser.authenticator())
        .connectTimeout(Duration.ofSeconds(5))
        .build();
  }

  private static void empty(Path folder) {
    try {
      if (Files.exists(folder)) {
        try (Stream<Path> files = Files.walk(folder)) {
          for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
            Files.delete(file);
          }
        }
      }
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
