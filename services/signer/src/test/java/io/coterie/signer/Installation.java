package io.coterie.signer;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.Requester;
import io.coterie.platform.intent.RequesterDirectory;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.channel.ChannelNetwork;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.order.NeededApprovals;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.PresignatureLimits;
import io.coterie.signer.order.SessionLimits;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.party.ThreadWorkPool;
import io.coterie.signer.party.WorkPool;
import io.coterie.signer.policy.ConfiguredPolicy;
import io.coterie.signer.policy.PathPrefix;
import io.coterie.signer.policy.RequesterRule;
import io.coterie.signer.policy.ShareFloor;
import io.coterie.signer.session.SessionPorts;
import io.coterie.signer.session.SessionService;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.storage.PartyStore;
import io.coterie.signer.telemetry.SignerMetrics;
import io.coterie.trust.Glob;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Three signers, two more in the roster that do not run by themselves, and a coordinator over a
 * network in memory, and a requester called wallet.
 */
public final class Installation implements AutoCloseable {
  /** The process of the coordinator that presigning orders come from. */
  public static final ByteString INCARNATION = ByteString.copyFrom(new byte[16]);

  /** Of all parties in the roster, ids 1 to 5. */
  public static final List<String> NAMES = List.of("alpha", "bravo", "charlie", "delta", "echo");

  public static final Duration PATIENCE = Duration.ofSeconds(60);
  public static final PresignatureLimits POOL =
      new PresignatureLimits(64, 100, 16, 4, Duration.ofHours(1));
  public static final SessionLimits LIMITS =
      new SessionLimits(
          256, 256, Duration.ofSeconds(60), Duration.ofMillis(500), Duration.ofMillis(20), POOL);

  /** The same, with deadlines that count at once. */
  public static SessionLimits quick() {
    return new SessionLimits(
        256, 256, Duration.ofSeconds(60), Duration.ZERO, Duration.ofMillis(5), POOL);
  }

  private static final SecureRandom RANDOM = new SecureRandom();

  public final KeyPair wallet = ed25519();
  public final MemoryNetwork network;
  public final List<Party> parties = new ArrayList<>();
  public final Coordinator coordinator;
  private final Path folder;
  private final Function<String, ProtocolCore> cores;

  /** By how much the clocks of all parties differ from the real one. */
  public volatile Duration clockOffset = Duration.ZERO;

  /** Of all parties. */
  public final TestTime time = new TestTime();

  public SessionLimits limits = LIMITS;

  /** Puts something between a party that starts and its claims. */
  public BiFunction<String, ClaimLedger, ClaimLedger> claims = (_, ledger) -> ledger;

  /** The approvals that a party needs from now on, by name; it needs none if it is not here. */
  public final Map<String, NeededApprovals> needed = new ConcurrentHashMap<>();

  /** Called when a party begins to judge an intent, in the order's lane. */
  public volatile BiConsumer<String, SignedIntent> judging = (_, _) -> {};

  /**
   * @param evidence public evidence key of each party
   */
  public Installation(
      Path folder, Map<String, byte[]> evidence, Function<String, ProtocolCore> cores) {
    this.folder = folder;
    this.cores = cores;
    List<Member> members = new ArrayList<>();
    int id = 0;
    for (String name : NAMES) {
      id++;
      members.add(member(name, Member.Role.PARTY, id, evidence.getOrDefault(name, new byte[32])));
    }
    members.add(member("coordinator", Member.Role.COORDINATOR, 0, new byte[0]));
    members.add(member("coordinator-2", Member.Role.COORDINATOR, 0, new byte[0]));
    network = new MemoryNetwork(new Roster("test", 1, members));
    coordinator = new Coordinator("coordinator");
  }

  /** With protocols that compute nothing. */
  public static Installation faked(Path folder) {
    return with(folder, new FakeCore());
  }

  /** With one fake core for all. */
  public static Installation with(Path folder, FakeCore core) {
    return new Installation(
        folder, TestEvidence.publicKeys(), name -> core.of(NAMES.indexOf(name) + 1));
  }

  public Installation start() {
    NAMES.subList(0, 3).forEach(this::join);
    return this;
  }

  /** Starts one more of the roster's parties. */
  public void join(String name) {
    parties.add(startParty(name));
  }

  public Party startParty(String name) {
    return new Party(name, cores.apply(name));
  }

  public Party party(String name) {
    return parties.stream().filter(p -> p.name.equals(name)).findFirst().orElseThrow();
  }

  /** Kills a party and starts it again with nothing, as after the loss of its disk. */
  public Party lose(String name) {
    party(name).kill();
    empty(folder.resolve(name));
    return startAgain(name);
  }

  /** Kills a party and starts it again on what it had stored. */
  public Party restart(String name) {
    party(name).kill();
    return startAgain(name);
  }

  /** The share that a party has on disk now; it is restarted for that. */
  public Path copy(String name) {
    restart(name); // so that everything is in its file, and the copy is whole
    party(name).kill();
    Path copy = folder.resolve("copy of " + name);
    copy(folder.resolve(name), copy);
    startAgain(name);
    return copy;
  }

  /** Kills a party and starts it again on what {@link #copy} has copied. */
  public Party putBack(String name, Path copy) {
    party(name).kill();
    empty(folder.resolve(name));
    copy(copy, folder.resolve(name));
    return startAgain(name);
  }

  private Party startAgain(String name) {
    Party fresh = startParty(name);
    parties.set(parties.indexOf(party(name)), fresh);
    return fresh;
  }

  private static void empty(Path data) {
    try (Stream<Path> files = Files.list(data)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void copy(Path from, Path to) {
    try (Stream<Path> files = Files.list(from)) {
      Files.createDirectories(to);
      for (Path file : files.toList()) {
        Files.copy(file, to.resolve(file.getFileName()));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Member member(String name, Member.Role role, int partyId, byte[] evidence) {
    return new Member(name, role, partyId, "here", UUID.randomUUID(), 1, new byte[33], evidence);
  }

  static KeyPair ed25519() {
    try {
      return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  public static String requestId() {
    return RequestId.next();
  }

  /** Waits until something holds, without a guess how long it takes. */
  public static void until(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > end) {
        throw new AssertionError("did not happen: " + what);
      }
      Thread.onSpinWait();
      try {
        TimeUnit.MILLISECONDS.sleep(2);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  @Override
  public void close() {
    parties.forEach(Party::kill);
    network.close();
  }

  /** One signer, wired as in production but for the channel. */
  public final class Party {
    public final String name;
    public final int id;
    public final PartyStore store;
    public final SessionService driver;
    public final SimpleMeterRegistry meters = new SimpleMeterRegistry();
    private final SecureChannel channel;
    private final WorkPool pool;
    private final TestGroups groups;

    Party(String name, ProtocolCore core) {
      this.name = name;
      this.id = network.roster().byName(name).orElseThrow().partyId();
      SignerMetrics metrics = new SignerMetrics(meters, name, "here");
      InstantSource source = () -> Instant.now().plus(clockOffset);
      Clock clock = source.withZone(ZoneOffset.UTC);
      store = PartyStore.open(folder.resolve(name), name, clock, metrics::committed);
      pool = new ThreadWorkPool(name, 2, limits.combineDelay(), time.timer(name));
      channel = network.channel(name);
      ChannelNetwork net = new ChannelNetwork(channel, pool, metrics, false);
      ConfiguredPolicy policy =
          new ConfiguredPolicy(
              new RequesterDirectory(List.of(new Requester("wallet", wallet.getPublic()))),
              Map.of(
                  "wallet",
                  new RequesterRule(
                      List.of(
                          new Glob("keys/treasury-*"), new Glob("keys/main"), new Glob("groups/*")),
                      Set.of(
                          Scheme.SCHEME_BLS12381,
                          Scheme.SCHEME_ECDSA_SECP256K1,
                          Scheme.SCHEME_ED25519,
                          Scheme.SCHEME_ED25519_EXACT,
                          Scheme.SCHEME_BIP340_SECP256K1),
                      true,
                      true,
                      true,
                      true,
                      true,
                      true,
                      new ShareFloor(2, 2, Set.of()),
                      Set.of(PayloadKind.values()),
                      List.of(PathPrefix.parse("m")),
                      List.of(new Glob("*")),
                      1024,
                      RequesterRule.Lapse.AFTER_DEADLINE,
                      null)));
      ClaimLedger ledger = claims.apply(name, store.claims());
      PolicyGate gate =
          TestGroups.gate(policy, intent -> judging.accept(name, intent), () -> needed.get(name));
      driver =
          new SessionService(
              new SessionPorts(
                  net,
                  gate,
                  TestGroups.approvals(core, store, network.roster(), pool),
                  new SessionPorts.Ledgers(
                      ledger,
                      store.shares(),
                      store.shownClaims(),
                      store.holds(),
                      store.exactNonces()),
                  core,
                  store.audit(),
                  metrics,
                  clock),
              limits,
              _ -> Duration.ZERO,
              pool);
      groups = new TestGroups(core, net, gate, store, ledger, driver, limits, metrics, clock, pool);
      net.deliverTo(driver);
      channel.start();
    }

    public SecureChannel channel() {
      return channel;
    }

    /** Sessions that have not ended. */
    public int live() {
      return (int) meters.get("coterie.sessions.live").gauge().value();
    }

    /** Orders that were refused so far. */
    public double refused() {
      return meters.find("coterie.sessions").tag("outcome", "refused").counters().stream()
          .mapToDouble(Counter::count)
          .sum();
    }

    public boolean hasActive(String key) {
      return store.shares().find(key).filter(s -> s.state() == KeyShare.State.ACTIVE).isPresent();
    }

    /** Ends abruptly; only the disk remains. */
    public void kill() {
      channel.close();
      groups.close();
      driver.close();
      pool.close();
      store.close();
    }
  }

  /** The coordinator: it orders and collects reports. */
  public final class Coordinator {
    public final Member self;
    private final SecureChannel channel;
    private final LinkedBlockingQueue<Incoming> reports = new LinkedBlockingQueue<>();
    public final LinkedBlockingQueue<Envelope> envelopes = new LinkedBlockingQueue<>();
    public final LinkedBlockingQueue<EpochAnswer> epochs = new LinkedBlockingQueue<>();
    final LinkedBlockingQueue<InboundMessage> groupReports = new LinkedBlockingQueue<>();
    final LinkedBlockingQueue<InboundMessage> groupEnvelopes = new LinkedBlockingQueue<>();

    private final Map<Member, List<ClaimCount>> ledgers = new HashMap<>();

    /** The answer to a party that states its position; null for none. */
    public volatile BiFunction<Member, ClaimCount, @Nullable ClaimMemory> memory =
        (party, stated) -> remembers(party, stated).orElse(null);

    public record Incoming(Member sender, SessionReport report) {}

    public record Envelope(Member sender, ByteString session, byte[] envelope) {}

    Coordinator(String name) {
      self = network.roster().byName(name).orElseThrow();
      channel = network.channel(name);
      channel.onMessage(this::receive);
      channel.start();
    }

    public SecureChannel channel() {
      return channel;
    }

    private void receive(InboundMessage message) {
      PartyMessage body = parse(message.body());
      if (body.hasReport()) {
        reports.add(new Incoming(message.sender(), body.getReport()));
      } else if (body.hasClaimCount()) {
        remembered(message.sender(), body.getClaimCount())
            .ifPresent(
                memory -> {
                  PartyMessage answer = PartyMessage.newBuilder().setClaimMemory(memory).build();
                  channel.send(
                      message.sender(),
                      answer.toByteArray(),
                      SecureChannel.SendOptions.online(null));
                });
      } else if (body.hasEpochAnswer()) {
        epochs.add(body.getEpochAnswer());
      } else if (body.hasGroupReport()) {
        groupReports.add(message);
      } else if (body.hasGroupEnvelope()) {
        groupEnvelopes.add(message);
      } else if (body.hasEnvelope()) {
        envelopes.add(
            new Envelope(
                message.sender(),
                body.getEnvelope().getSessionId(),
                body.getEnvelope().getEnvelope().toByteArray()));
      }
    }

    /** As an honest one does, and never less than before. */
    public synchronized Optional<ClaimMemory> remembers(Member party, ClaimCount stated) {
      List<ClaimCount> before = ledgers.getOrDefault(party, List.of());
      LedgerHead head = LedgerHead.of("test", stated).orElse(null);
      if (head == null || !head.isSigned(stated.getSignature(), party.evidenceKey())) {
        return Optional.empty();
      }
      LedgerPosition now = head.position();
      LedgerPosition latest =
          before.isEmpty() ? null : LedgerHead.position(before.getLast()).orElseThrow();
      if (now.against(latest) == LedgerPosition.Judgement.LATER) {
        List<ClaimCount> next = new ArrayList<>(before);
        if (latest != null && (before.size() == 2 || latest.mark().equals(now.mark()))) {
          next.remove(latest.mark().equals(now.mark()) ? before.getLast() : before.getFirst());
        }
        next.add(stated);
        ledgers.put(party, List.copyOf(next));
      }
      return Optional.of(ClaimMemory.newBuilder().addAllRemembered(ledgers.get(party)).build());
    }

    private Optional<ClaimMemory> remembered(Member party, ClaimCount stated) {
      return Optional.ofNullable(memory.apply(party, stated));
    }

    public Order.Builder keygenOrder(SignedIntent intent, String key, int threshold, int... set) {
      Order.Builder order = order(ProtocolId.PROTOCOL_ID_BLS_KEYGEN, intent, key, threshold);
      for (int id : set) {
        order.addSigningSet(id);
      }
      return order;
    }

    public Order.Builder signOrder(SignedIntent intent, String key, int threshold, int... set) {
      Order.Builder order = order(ProtocolId.PROTOCOL_ID_BLS_SIGN, intent, key, threshold);
      for (int id : set) {
        order.addSigningSet(id);
      }
      return order;
    }

    private Order.Builder order(
        ProtocolId protocol, SignedIntent intent, String key, int threshold) {
      return order(protocol, key, threshold).setSignedIntent(intent);
    }

    /** An order that nobody has asked for; its purpose is to be added. */
    public Order.Builder order(ProtocolId protocol, String key, int threshold, int... set) {
      byte[] nonce = new byte[32];
      RANDOM.nextBytes(nonce);
      return Order.newBuilder()
          .setCoordinatorNonce(ByteString.copyFrom(nonce))
          .setProtocol(protocol)
          .setKey(key)
          .setEpoch(1)
          .setThreshold(threshold)
          .addAllSigningSet(Arrays.stream(set).boxed().toList())
          .setDeadline(in(Duration.ofSeconds(20)));
    }

    /** Sends an order to its signing set. */
    public SessionId give(Order order) {
      return giveBytes(
          order.toByteString(),
          order.getSigningSetList().stream()
              .map(id -> network.roster().byPartyId(id).orElseThrow())
              .toList());
    }

    public SessionId giveBytes(ByteString order, Collection<Member> to) {
      tell(PartyMessage.newBuilder().setOrder(order).build(), to);
      return SessionId.ofOrder(order);
    }

    public void tell(PartyMessage message, Collection<Member> to) {
      channel.broadcast(to, message.toByteArray(), SecureChannel.SendOptions.online(null));
    }

    /** The first report that fits and was not taken yet. */
    public Incoming await(String what, Predicate<Incoming> wanted) {
      List<Incoming> found = new ArrayList<>();
      until(
          "report: " + what,
          () -> {
            reports.stream().filter(wanted).findFirst().ifPresent(found::add);
            return !found.isEmpty();
          });
      reports.remove(found.getFirst());
      return found.getFirst();
    }

    /** Envelopes of a session that came here. */
    public long partials(SessionId session) {
      return envelopes.stream().filter(e -> e.session().equals(session.bytes())).count();
    }

    /** Takes all reports that came so far. */
    public void drainReports() {
      reports.clear();
    }

    /** Whether a party has reported an end of a session. */
    public boolean hasReport(String party, SessionId session) {
      return reports.stream()
          .anyMatch(
              r ->
                  r.sender().name().equals(party)
                      && r.report().getSessionId().equals(session.bytes()));
    }

    public Incoming awaitFrom(String party, SessionId session) {
      return await(
          party + " about " + session,
          r ->
              r.sender().name().equals(party) && r.report().getSessionId().equals(session.bytes()));
    }
  }

  /** bravo is corrupt: it confirms each head that alpha states, and tells of no other. */
  void bravoConceals() {
    Member alpha = network.roster().byPartyId(1).orElseThrow();
    network.tap(
        (from, to, body) -> {
          PartyMessage message = parse(body);
          if (from.partyId() != 1 || to.partyId() != 2 || !message.hasClaimCount()) {
            return body;
          }
          ClaimMemory receipt =
              ClaimMemory.newBuilder().addRemembered(message.getClaimCount()).build();
          party("bravo")
              .channel()
              .send(
                  alpha,
                  PartyMessage.newBuilder().setClaimMemory(receipt).build().toByteArray(),
                  SecureChannel.SendOptions.online(null));
          return null;
        });
  }

  static PartyMessage parse(byte[] body) {
    try {
      return PartyMessage.parseFrom(body);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  public static Timestamp in(Duration time) {
    Instant at = Instant.now().plus(time);
    return Timestamp.newBuilder().setSeconds(at.getEpochSecond()).setNanos(at.getNano()).build();
  }

  public KeyIntent.Builder keyIntent(String requestId, String key, int threshold) {
    return KeyIntent.newBuilder()
        .setRequestId(requestId)
        .setKey(key)
        .setScheme(Scheme.SCHEME_BLS12381)
        .setThreshold(threshold)
        .addAllParties(List.of("alpha", "bravo", "charlie"))
        .setNotAfter(in(Duration.ofMinutes(5)));
  }

  public SigningIntent.Builder signingIntent(String requestId, String key, String message) {
    return SigningIntent.newBuilder()
        .setRequestId(requestId)
        .setKey(key)
        .setScheme(Scheme.SCHEME_BLS12381)
        .setMessage(ByteString.copyFromUtf8(message))
        .setPurpose("test")
        .setNotAfter(in(Duration.ofMinutes(5)));
  }

  public SignedIntent signed(KeyIntent.Builder intent) {
    return signer().sign(intent.setInstallation(network.roster().installation()).build());
  }

  public SignedIntent signed(SigningIntent.Builder intent) {
    return sign(named(intent));
  }

  /** The intent with the installation and the key that it is for. */
  public SigningIntent named(SigningIntent.Builder intent) {
    return intent
        .setInstallation(network.roster().installation())
        .setKeyFingerprint(fingerprint(intent.getKey()))
        .setReshareEpoch(reshareEpoch(intent.getKey()))
        .build();
  }

  public SignedIntent sign(SigningIntent intent) {
    return signer().sign(intent);
  }

  public SignedIntent signed(RefreshIntent.Builder intent) {
    return signer()
        .sign(
            intent
                .setInstallation(network.roster().installation())
                .setKeyFingerprint(fingerprint(intent.getKey()))
                .build());
  }

  public SignedIntent signed(ReshareIntent.Builder intent) {
    return signer().sign(intent.setInstallation(network.roster().installation()).build());
  }

  private IntentSigner signer() {
    return new IntentSigner("wallet", wallet.getPrivate());
  }

  /** Of the key as any party has it; some bytes if none has. */
  private ByteString fingerprint(String key) {
    return parties.stream()
        .flatMap(party -> party.store.shares().find(key).stream())
        .findFirst()
        .map(share -> KeyFingerprint.of(share.keyPublic()))
        .orElse(ByteString.copyFrom(new byte[IntentVerifier.FINGERPRINT_BYTES]));
  }

  /** As the party with the latest share of the key has it; 0 if none has. */
  private int reshareEpoch(String key) {
    return parties.stream()
        .flatMap(party -> party.store.shares().find(key).stream())
        .mapToInt(KeyShare::reshareEpoch)
        .max()
        .orElse(0);
  }

  /** Creates an ECDSA key of all three parties and waits until it is active everywhere. */
  public void createEcdsaKey(String key, int threshold) {
    createKey(key, Scheme.SCHEME_ECDSA_SECP256K1, ProtocolId.PROTOCOL_ID_ECDSA_KEYGEN, threshold);
  }

  /** Creates a key of all three parties and waits until it is active everywhere. */
  public void createKey(String key, Scheme scheme, ProtocolId protocol, int threshold) {
    SignedIntent intent = signed(keyIntent(requestId(), key, threshold).setScheme(scheme));
    coordinator.give(
        coordinator.order(protocol, key, threshold, 1, 2, 3).setSignedIntent(intent).build());
    until(key + " is active", () -> parties.stream().allMatch(p -> p.hasActive(key)));
  }

  /** A digest to be signed by a descendant of an ECDSA key. */
  public SigningIntent.Builder digestIntent(String key, ByteString digest, Integer... path) {
    return SigningIntent.newBuilder()
        .setRequestId(requestId())
        .setKey(key)
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .addAllDerivationPath(List.of(path))
        .setDigest(digest)
        .setNotAfter(in(Duration.ofMinutes(5)));
  }

  /** Creates a key of all three parties and waits until it is active everywhere. */
  public void createKey(String key, int threshold) {
    SignedIntent intent = signed(keyIntent(requestId(), key, threshold));
    coordinator.give(coordinator.keygenOrder(intent, key, threshold, 1, 2, 3).build());
    until(key + " is active", () -> parties.stream().allMatch(p -> p.hasActive(key)));
  }
}
