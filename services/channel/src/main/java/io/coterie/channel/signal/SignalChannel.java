package io.coterie.channel.signal;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SendMode;
import io.coterie.channel.keys.Certificates;
import io.coterie.channel.keys.OwnSenderKey;
import io.coterie.channel.keys.PreKeys;
import io.coterie.channel.keys.ProtocolStore;
import io.coterie.channel.link.Link;
import io.coterie.channel.link.Messaging;
import io.coterie.channel.link.PinnedTls;
import io.coterie.channel.link.Rest;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.channel.telemetry.ChannelMetrics.Mode;
import io.coterie.channel.wire.Frame;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The secure channel over a Signal messaging service. docs/protocols/channel.md says what goes over
 * the wire and why.
 *
 * <p>Identity key, registration id and account are durable; prekeys, sessions and sender keys are
 * made afresh by each process and forgotten with it (ADR 0005).
 */
public final class SignalChannel implements SecureChannel {
  private static final Logger LOG = LoggerFactory.getLogger(SignalChannel.class);
  private static final Duration TICK = Duration.ofMillis(50);
  private static final Duration SLOW_TICK = Duration.ofSeconds(1);
  private static final Duration CLOSE_PATIENCE = Duration.ofSeconds(2);

  /** Telling the peers about the end takes one round trip to the service. */
  private static final Duration FAREWELL_PATIENCE = Duration.ofSeconds(1);

  private final ChannelConfig config;
  private final AtomicLong reassemblyBytes = new AtomicLong();
  private final Member self;
  private final Map<Inbox.Address, Peer> peers = new ConcurrentHashMap<>();
  private final ExecutorService pool;
  private final ScheduledExecutorService timer;
  private final ChannelMetrics metrics;
  private final ProtocolStore store;
  private final Link authenticated;
  private final Link anonymous;
  private final @Nullable Rest rest;
  private final OwnAccount account;
  private final Messaging messaging;
  private final Certificates certificates;
  private final PreKeys preKeys;
  private final Outbox outbox;
  private final GroupOutbox broadcasts;
  private final KeyExchange exchange;
  private final Bodies bodies;
  private final Inbox inbox;

  private volatile Roster roster;
  private volatile @Nullable Consumer<InboundMessage> receiver;
  private volatile boolean started;
  private volatile boolean closed;
  private long preKeyCheckNanos;
  private long heartbeatNanos;
  private long slowTickNanos;

  /**
   * Prepares a channel; {@link #start} connects it.
   *
   * @throws IllegalArgumentException when the roster does not contain exactly this account, or a
   *     key is not readable
   */
  public static SignalChannel open(
      ChannelConfig config, ChannelAccount account, Roster roster, MeterRegistry registry) {
    return new SignalChannel(config, account, roster, registry);
  }

  private SignalChannel(
      ChannelConfig config, ChannelAccount account, Roster roster, MeterRegistry registry) {
    this.config = config;
    this.roster = roster;
    this.self =
        roster
            .byAddress(account.aci(), account.deviceId())
            .orElseThrow(
                () -> new IllegalArgumentException("the roster does not contain " + account));
    this.account = new OwnAccount(account, roster);
    IdentityKeyPair identity = this.account.identity();
    if (!Arrays.equals(identity.getPublicKey().serialize(), self.identityKey())) {
      throw new IllegalArgumentException(
          "the roster pins another identity key for " + self.name() + " than this account has");
    }
    String name = self.name();
    this.pool =
        new ThreadPoolExecutor(
            config.limits().cryptoThreads(),
            config.limits().cryptoThreads(),
            0,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            Thread.ofPlatform().name("channel-" + name + "-", 0).daemon().factory(),
            // After close a thread with something left to finish, mostly a future, does it itself.
            (task, executor) -> task.run());
    this.timer =
        Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().name("channel-" + name + "-timer").daemon().factory());
    this.store = new ProtocolStore(identity, account.registrationId());
    this.metrics = new ChannelMetrics(registry, () -> reachable().size());
    SSLContext tls = PinnedTls.context(config.caPem(), config.client());
    metrics.certificates(PinnedTls.end(config.caPem(), config.client()));
    this.authenticated =
        new Link(
            name + "-in", config, tls, this.account.authorization(), new Incoming(), pool, metrics);
    this.anonymous = new Link(name + "-out", config, tls, null, new Outgoing(), pool, metrics);
    this.rest =
        config.sendMode() == SendMode.NAMED_STORED
            ? new Rest(config, tls, this.account.authorization(), pool, metrics)
            : null;
    this.messaging = new Messaging(authenticated, anonymous, rest, config, pool);
    this.certificates = new Certificates(self, config.trustRoot(), messaging::senderCertificate);
    this.preKeys = new PreKeys(store, messaging, config.limits().preKeyBatch());
    Waiters waiters = new Waiters(pool);
    this.outbox =
        new Outbox(store, messaging, certificates, self, waiters, config.timing(), pool, metrics);
    this.broadcasts =
        new GroupOutbox(store, messaging, outbox, this::ownSenderKey, self, config, pool, metrics);
    this.exchange =
        new KeyExchange(
            config,
            store,
            outbox,
            certificates,
            metrics,
            pool,
            self,
            this.account::accessKey,
            waiters,
            peers.values());
    this.bodies = new Bodies(config, exchange, outbox, broadcasts);
    this.inbox =
        new Inbox(config, store, certificates, exchange, metrics, pool, peers, this::deliver);
    for (Member member : roster.members()) {
      if (!member.equals(self)) {
        admit(member);
      }
    }
  }

  private OwnSenderKey ownSenderKey() {
    return exchange.senderKey();
  }

  private Peer admit(Member member) {
    Peer peer = new Peer(member, exchange.with(member), pool, config, reassemblyBytes);
    store.pin(peer.address, peer.identity);
    peers.put(new Inbox.Address(member.aci(), member.deviceId()), peer);
    return peer;
  }

  @Override
  public Member self() {
    return self;
  }

  @Override
  public Roster roster() {
    return roster;
  }

  /**
   * Takes a newer roster into use. Members that are gone, or pinned otherwise, are cut off at once:
   * nothing they send is accepted, nothing is sent to them, and callers that wait for one of them
   * fail with UNTRUSTED. The sender key is replaced as soon as the reachable members confirm the
   * new one, at the latest after {@code rotation}; until then a former member that the messaging
   * service helps can still read broadcasts. New members are greeted. This account gets another
   * access key, which the peers are told.
   *
   * <p>Each process has a roster of its own: a member that has not updated it still talks to those
   * that have left.
   *
   * @throws IllegalArgumentException when the version is not newer, or the entry of this member is
   *     not the same
   */
  public synchronized void updateRoster(Roster newer) {
    if (newer.version() <= roster.version()) {
      throw new IllegalArgumentException(
          "roster version " + newer.version() + " is not above " + roster.version());
    }
    if (!newer.members().contains(self)) {
      throw new IllegalArgumentException("the roster does not contain this member as it is");
    }
    List<Peer> gone =
        peers.values().stream().filter(peer -> !newer.members().contains(peer.member)).toList();
    for (Peer peer : gone) {
      peer.gone = true;
      peers.remove(new Inbox.Address(peer.member.aci(), peer.member.deviceId()));
      store.unpin(peer.address);
    }
    roster = newer;
    account.follow(newer);
    publishAccessKeySoon();
    exchange.left(gone);
    for (Member member : newer.members()) {
      if (!member.equals(self)
          && !peers.containsKey(new Inbox.Address(member.aci(), member.deviceId()))) {
        exchange.joined(admit(member));
      }
    }
  }

  @Override
  public void onMessage(Consumer<InboundMessage> consumer) {
    if (receiver != null || started) {
      throw new IllegalStateException("there is a receiver already, or the channel has started");
    }
    receiver = consumer;
  }

  @Override
  public void start() {
    if (started || closed) {
      throw new IllegalStateException("a channel starts once");
    }
    started = true;
    authenticated.start();
    anonymous.start();
    long now = System.nanoTime();
    preKeyCheckNanos = now + config.timing().preKeyCheck().toNanos();
    heartbeatNanos = now + config.timing().heartbeat().toNanos();
    slowTickNanos = now;
    timer.scheduleWithFixedDelay(
        this::tick, TICK.toMillis(), TICK.toMillis(), TimeUnit.MILLISECONDS);
  }

  /** Sends frames as they are: for tests of what a hostile member might send. */
  CompletableFuture<Void> sendFrames(Member to, List<byte[]> frames, boolean underSenderKey) {
    List<Peer> peer = new ArrayList<>();
    resolve(List.of(to), peer);
    return underSenderKey
        ? broadcasts.send(Mode.GROUP, peer, frames, SendOptions.online(null))
        : outbox.pairwise(Mode.PAIRWISE, peer.getFirst(), frames, SendOptions.online(null));
  }

  /** Distribution id of the sender key in use; says nothing about the key. */
  UUID senderKey() {
    return exchange.senderKey().id();
  }

  /** Whether both connections to the messaging service are up. */
  public boolean connected() {
    return authenticated.connected() && anonymous.connected();
  }

  @Override
  public CompletionStage<Void> established(Collection<Member> members) {
    List<Peer> needed = new ArrayList<>();
    ChannelException unknown = resolve(members, needed);
    return unknown != null
        ? CompletableFuture.failedFuture(unknown)
        : exchange.when(needed, Peer::established, null);
  }

  @Override
  public Set<Member> reachable() {
    long now = System.nanoTime();
    return peers.values().stream()
        .filter(peer -> peer.keys.reachable(now))
        .map(peer -> peer.member)
        .collect(Collectors.toUnmodifiableSet());
  }

  @Override
  public CompletionStage<Void> broadcast(
      Collection<Member> recipients, byte[] body, SendOptions options) {
    Mode mode = Mode.of(config.sendMode());
    long start = System.nanoTime();
    List<Peer> to = new ArrayList<>();
    ChannelException refusal = refusal(recipients, to, body);
    if (refusal == null && to.isEmpty()) {
      return CompletableFuture.completedFuture(null);
    }
    return counted(
        mode,
        start,
        refusal != null
            ? CompletableFuture.failedFuture(refusal)
            : bodies.broadcast(to, body, options));
  }

  @Override
  public CompletionStage<Void> send(Member recipient, byte[] body, SendOptions options) {
    long start = System.nanoTime();
    List<Peer> to = new ArrayList<>();
    ChannelException refusal = refusal(List.of(recipient), to, body);
    if (refusal == null && to.isEmpty()) {
      refusal = new ChannelException(Cause.UNTRUSTED, "a member does not send to itself");
    }
    return counted(
        Mode.PAIRWISE,
        start,
        refusal != null
            ? CompletableFuture.failedFuture(refusal)
            : bodies.send(to.getFirst(), body, options));
  }

  private CompletableFuture<Void> counted(Mode mode, long start, CompletableFuture<Void> sent) {
    // A future of its own, so that the caller sees the ChannelException and no wrapper.
    CompletableFuture<Void> outcome = new CompletableFuture<>();
    sent.whenComplete(
        (done, failure) -> {
          metrics.sent(mode, start, failure);
          if (failure == null) {
            outcome.complete(null);
          } else {
            outcome.completeExceptionally(ChannelException.of(failure));
          }
        });
    return outcome;
  }

  /** Puts the peers of those members in {@code to}, self left out, and checks everything else. */
  private @Nullable ChannelException refusal(
      Collection<Member> recipients, List<Peer> to, byte[] body) {
    if (closed || !started) {
      return new ChannelException(Cause.CLOSED, "the channel is not open");
    }
    if (body.length > config.limits().maxBody()) {
      return new ChannelException(
          Cause.TOO_LARGE,
          "a body of " + body.length + " bytes is above the limit of " + config.limits().maxBody());
    }
    return resolve(recipients, to);
  }

  private @Nullable ChannelException resolve(Collection<Member> members, List<Peer> to) {
    for (Member member : members) {
      if (member.equals(self)) {
        continue;
      }
      Peer peer = peers.get(new Inbox.Address(member.aci(), member.deviceId()));
      if (peer == null || !peer.member.equals(member)) {
        return new ChannelException(Cause.UNTRUSTED, member.name() + " is not in the roster");
      }
      if (!to.contains(peer)) {
        to.add(peer);
      }
    }
    return null;
  }

  private void deliver(InboundMessage message) {
    Consumer<InboundMessage> consumer = receiver;
    if (consumer != null && !closed) {
      consumer.accept(message);
    }
  }

  /** The socket with the account: messages come here. */
  private final class Incoming implements Link.Listener {
    @Override
    public void onConnected() {
      certificates.renew();
      // Hellos wait for both, so that the first answer already uses keys of this process.
      CompletableFuture.allOf(publishAccessKey(), preKeys.replenish())
          .whenComplete((done, failure) -> exchange.start());
    }

    @Override
    public void onRequest(
        Link.Connection from, WebSocketRequestMessage request, int bytes, long nanos) {
      if (request.getVerb().equals("PUT") && request.getPath().equals("/api/v1/message")) {
        inbox.accept(from, request, bytes, nanos);
      } else {
        from.respond(request.getId(), 200);
      }
    }
  }

  private void publishAccessKeySoon() {
    pool.execute(
        () -> {
          var unused = publishAccessKey();
        });
  }

  private CompletableFuture<Void> publishAccessKey() {
    return account
        .publish(messaging)
        .thenAccept(
            news -> {
              if (news) {
                exchange.tellOwnKeys();
              }
            });
  }

  /** The socket without the account. */
  private static final class Outgoing implements Link.Listener {
    @Override
    public void onRequest(
        Link.Connection from, WebSocketRequestMessage request, int bytes, long nanos) {
      from.respond(request.getId(), 404);
    }
  }

  /** Supervises the sockets, so it never writes to one: sending runs on the pool. */
  private void tick() {
    try {
      long now = System.nanoTime();
      authenticated.tick();
      anonymous.tick();
      exchange.tick(now);
      if (now - slowTickNanos >= 0) {
        slowTickNanos = now + SLOW_TICK.toNanos();
        inbox.tick(now);
        if (authenticated.connected()) {
          pool.execute(certificates::renew);
          if (account.unpublished()) {
            publishAccessKeySoon();
          }
          if (now - preKeyCheckNanos >= 0 || preKeys.low()) {
            preKeyCheckNanos = now + config.timing().preKeyCheck().toNanos();
            pool.execute(
                () -> {
                  var unused = preKeys.replenish();
                });
          }
        }
      }
      if (now - heartbeatNanos >= 0) {
        heartbeatNanos = now + config.timing().heartbeat().toNanos();
        heartbeat();
      }
    } catch (RuntimeException e) {
      LOG.error("the channel's timer failed", e);
    }
  }

  private void heartbeat() {
    var unused = tellAll(Frame.heartbeat());
  }

  /** Broadcasts to all peers that can read it and are reached without a name. */
  private CompletableFuture<Void> tellAll(byte[] frame) {
    List<Peer> to =
        peers.values().stream()
            .filter(peer -> peer.offered() && peer.keys.access().isPresent())
            .toList();
    return to.isEmpty()
        ? CompletableFuture.completedFuture(null)
        : broadcasts.send(Mode.CONTROL, to, List.of(frame), SendOptions.online(null));
  }

  /**
   * Takes leave of the peers, so that none sends this process what the next one could not read,
   * disconnects, and fails what is under way with CLOSED.
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    timer.shutdownNow();
    if (connected()) {
      // A peer that does not hear of it notices that the heartbeats stay away.
      tellAll(exchange.farewell())
          .orTimeout(FAREWELL_PATIENCE.toMillis(), TimeUnit.MILLISECONDS)
          .exceptionally(failure -> null)
          .join();
    }
    exchange.close();
    certificates.close();
    authenticated.close();
    anonymous.close();
    if (rest != null) {
      rest.close();
    }
    pool.shutdown();
    try {
      if (!pool.awaitTermination(CLOSE_PATIENCE.toMillis(), TimeUnit.MILLISECONDS)) {
        pool.shutdownNow();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      pool.shutdownNow();
    }
  }
}
