package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Timestamp;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.session.ResultVerifier.Claim;
import io.coterie.coordinator.session.SessionPlan.Work;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.mpc.MpcCore;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.telemetry.ProtocolMetrics;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.ImportedShares;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionCancel;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import java.security.SecureRandom;
import java.util.Collection;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** All running sessions of this replica, and the way of a message to its session. Thread-safe. */
public final class Sessions {
  /** Bytes of {@code Order.coordinator_nonce}. */
  public static final int NONCE_BYTES = 32;

  /** Bytes of {@code Order.presignature_id}. */
  public static final int PRESIGNATURE_ID_BYTES = 32;

  private static final int INCARNATION_BYTES = 16;

  /** Bytes of a message: a core envelope is below this for every protocol and party set. */
  static final int MAX_MESSAGE = 1024 * 1024;

  /** Sessions of shares that have ended and are remembered. */
  private static final int MAX_ENDED = 64;

  private final ConcurrentHashMap<ByteString, ObservedSession> running = new ConcurrentHashMap<>();

  /**
   * By key name, key generation, refresh and reshare: a party may answer with the report of an
   * earlier session of the same request.
   */
  private final ConcurrentHashMap<String, KeygenSession> keygens = new ConcurrentHashMap<>();

  /** The last sessions of shares to end, since evidence may come late. Guarded by itself. */
  private final Map<ByteString, KeygenSession> ended =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<ByteString, KeygenSession> eldest) {
          return size() > MAX_ENDED;
        }
      };

  private volatile @Nullable GroupListener groups;

  private final AtomicBoolean stopping = new AtomicBoolean();
  private final MpcCore core;
  private final Map<Scheme, ResultVerifier> verifiers;

  /** Of the schemes whose signatures are checked together. */
  private final Map<Scheme, SignatureChecks> checks = new EnumMap<>(Scheme.class);

  private final EvidenceKeeper evidence;
  private final LedgerKeeper ledgers;
  private final EpochListener epochs;
  private final CancelListener cancels;
  private final PartyHealth health;
  private final Executor pool;
  private final SessionTimer timer;
  private final ProtocolMetrics metrics;
  private final CoordinatorMetrics telemetry;
  private final SecureRandom random;

  /** Tells this process from others that had the same account. */
  private final ByteString incarnation;

  /**
   * The sessions of one coordinator.
   *
   * @param verifiers one for each scheme that this coordinator serves
   * @param pool bounded, of platform threads: where the core and the verifier run
   */
  public Sessions(
      MpcCore core,
      EvidenceKeeper evidence,
      LedgerKeeper ledgers,
      EpochListener epochs,
      CancelListener cancels,
      Map<Scheme, ResultVerifier> verifiers,
      PartyHealth health,
      Executor pool,
      ProtocolMetrics metrics,
      CoordinatorMetrics telemetry,
      SecureRandom random) {
    this(
        core,
        evidence,
        ledgers,
        epochs,
        cancels,
        verifiers,
        health,
        pool,
        SessionTimer.of(pool),
        metrics,
        telemetry,
        random);
  }

  /** The same by another time than this machine's. */
  public Sessions(
      MpcCore core,
      EvidenceKeeper evidence,
      LedgerKeeper ledgers,
      EpochListener epochs,
      CancelListener cancels,
      Map<Scheme, ResultVerifier> verifiers,
      PartyHealth health,
      Executor pool,
      SessionTimer timer,
      ProtocolMetrics metrics,
      CoordinatorMetrics telemetry,
      SecureRandom random) {
    this.core = core;
    this.evidence = evidence;
    this.ledgers = ledgers;
    this.epochs = epochs;
    this.cancels = cancels;
    this.verifiers = Map.copyOf(verifiers);
    verifiers.forEach(
        (scheme, verifier) -> {
          if (verifier.verifiesTogether()) {
            ProtocolId protocol = Protocol.of(scheme, Protocol.Operation.SIGN).orElseThrow().id();
            checks.put(scheme, new SignatureChecks(protocol, verifier, core::verify, pool));
          }
        });
    this.health = health;
    this.pool = pool;
    this.timer = timer;
    this.metrics = metrics;
    this.telemetry = telemetry;
    this.random = random;
    this.incarnation = random(INCARNATION_BYTES);
  }

  private ByteString random(int size) {
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    return ByteString.copyFrom(bytes);
  }

  /** Hands reports about groups over from now on. */
  public void reportGroupsTo(GroupListener listener) {
    groups = listener;
  }

  /** Sends the order of a session and follows it. */
  public ObservedSession start(SecureChannel channel, SessionPlan plan) {
    Protocol protocol =
        Protocol.of(plan.scheme(), plan.work().operation())
            .orElseThrow(
                () ->
                    new IllegalArgumentException(
                        "no protocol for " + plan.work().operation() + " of " + plan.scheme()));
    ByteString order = order(plan, protocol);
    return follow(
        switch (plan.work()) {
          case Work.Sign sign ->
              new SigningSession(order, plan, sign, false, protocol, this, channel);
          case Work.Presign presign ->
              new PresignSession(order, plan, presign, protocol, this, channel);
          case Work.Keygen keygen -> new KeygenSession(order, plan, protocol, this, channel);
          case Work.Import taken -> new KeygenSession(order, plan, protocol, this, channel);
          case Work.Refresh refresh -> new KeygenSession(order, plan, protocol, this, channel);
          case Work.Reshare reshare -> new KeygenSession(order, plan, protocol, this, channel);
        });
  }

  /**
   * Sends the order of a signing session once more and follows it: parties that contributed send
   * their contribution again.
   *
   * @param plan of the order; its deadline is not used
   */
  public ObservedSession again(
      SecureChannel channel, SessionPlan plan, SessionPlan.Work.Sign work, ByteString order) {
    Protocol protocol = Protocol.of(plan.scheme(), work.operation()).orElseThrow();
    return follow(new SigningSession(order, plan, work, true, protocol, this, channel));
  }

  private ObservedSession follow(ObservedSession session) {
    // Before the order leaves, so that no answer finds nobody.
    running.put(session.id().bytes(), session);
    switch (session) {
      case SigningSession signing -> signing.observe();
      case KeygenSession keygen -> keygens.put(keygen.plan.key(), keygen);
      case PresignSession presigning -> {}
    }
    if (stopping.get()) {
      session.end(new SessionOutcome.Stopped());
    } else {
      session.sendOrder();
    }
    return session;
  }

  private ByteString order(SessionPlan plan, Protocol protocol) {
    Order.Builder order =
        Order.newBuilder()
            .setCoordinatorNonce(random(NONCE_BYTES))
            .setProtocol(protocol.id())
            .setKey(plan.key())
            .setEpoch(plan.epoch())
            .setThreshold(plan.threshold())
            .setDeadline(
                Timestamp.newBuilder()
                    .setSeconds(plan.deadline().getEpochSecond())
                    .setNanos(plan.deadline().getNano()));
    plan.parties().forEach(m -> order.addSigningSet(m.partyId()));
    if (plan.intent() != null) {
      order.setSignedIntent(plan.intent());
    }
    switch (plan.work()) {
      case Work.Sign sign -> {
        order.addAllApprovals(sign.approvals());
        if (sign.presignature() != null) {
          order.setPresignatureId(sign.presignature());
        }
      }
      case Work.Presign presign -> {
        presign.target().into(order);
        order.setPresignatureCount(presign.count()).setMessageBlocks(presign.messageBlocks());
        order.setCoordinatorIncarnation(incarnation);
      }
      case Work.Keygen keygen -> {}
      case Work.Import taken -> {
        if (!taken.shares().isEmpty()) {
          order.setImported(ImportedShares.newBuilder().addAllShares(taken.shares()));
        }
      }
      case Work.Refresh refresh -> {}
      case Work.Reshare reshare ->
          order.addAllDealers(reshare.dealers()).setKeyPublic(reshare.current());
    }
    return order.build().toByteString();
  }

  /**
   * Tells parties that nobody wants what a session makes, or has made. They also notice by
   * themselves.
   *
   * @param traceparent of the request that it was for; null if it was for none
   */
  public void cancel(
      SecureChannel channel,
      SessionId id,
      Collection<Member> parties,
      @Nullable String traceparent) {
    if (parties.isEmpty()) {
      return;
    }
    byte[] cancel =
        PartyMessage.newBuilder()
            .setCancel(SessionCancel.newBuilder().setSessionId(id.bytes()))
            .build()
            .toByteArray();
    channel
        .broadcast(parties, cancel, SendOptions.online(traceparent))
        .exceptionally(failure -> null);
  }

  /**
   * Takes a message off the channel. Does not block. The channel has proved the sender; everything
   * else about the message may be hostile.
   */
  public void receive(InboundMessage inbound) {
    if (inbound.sender().role() != Member.Role.PARTY || inbound.body().length > MAX_MESSAGE) {
      telemetry.dropped("unexpected");
      return;
    }
    PartyMessage message;
    try {
      message = PartyMessage.parseFrom(inbound.body());
    } catch (InvalidProtocolBufferException e) {
      telemetry.dropped("malformed");
      return;
    }
    switch (message.getBodyCase()) {
      case ENVELOPE -> {
        ObservedSession session = running.get(message.getEnvelope().getSessionId());
        if (session != null && session.isParty(inbound.sender())) {
          session.onEnvelope(inbound.sender(), message.getEnvelope(), inbound.receivedNanos());
        }
      }
      case REPORT -> {
        SessionReport report = message.getReport();
        ObservedSession session = running.get(report.getSessionId());
        if (session == null && report.hasCompleted()) {
          session = keygens.get(report.getCompleted().getKeyPublic().getKeyId());
        } else if (session == null && report.hasAborted()) {
          synchronized (ended) {
            session = ended.get(report.getSessionId());
          }
        }
        if (session != null && session.isParty(inbound.sender())) {
          session.onReport(inbound.sender(), report);
        }
      }
      case CLAIM_COUNT -> ledgers.stated(inbound.sender(), message.getClaimCount());
      case EPOCH_ANSWER -> epochs.answered(inbound.sender(), message.getEpochAnswer());
      case CANCEL_ANSWER -> cancels.cancelled(inbound.sender(), message.getCancelAnswer());
      case GROUP_REPORT -> {
        GroupListener listener = groups;
        if (listener != null) {
          listener.reported(inbound.sender(), message.getGroupReport());
        }
      }
      case GROUP_ENVELOPE -> {
        GroupListener listener = groups;
        if (listener != null) {
          listener.enveloped(inbound.sender(), message.getGroupEnvelope());
        }
      }
      case ORDER,
          GROUP_ORDER,
          CANCEL,
          CANCEL_QUESTION,
          CLAIM_MEMORY,
          EPOCH_QUESTION,
          CLOCK_QUESTION,
          CLOCK_ANSWER,
          BODY_NOT_SET ->
          telemetry.dropped("unexpected");
    }
  }

  /**
   * Ends all sessions and every later one at once; their requests are resumed after the restart.
   */
  public void stop() {
    stopping.set(true);
    running.values().forEach(s -> s.end(new SessionOutcome.Stopped()));
  }

  void ended(ObservedSession session) {
    if (session instanceof KeygenSession keygen) {
      synchronized (ended) {
        ended.put(session.id().bytes(), keygen);
      }
      keygens.remove(session.plan.key(), keygen);
    }
    running.remove(session.id().bytes());
  }

  /** Whether a signature that did not come out of a session here is valid. */
  public boolean isValid(Scheme scheme, ToSign what, Signature signature) {
    return verifier(scheme).verifies(what.publicKey(), what.payload(), signature);
  }

  MpcCore core() {
    return core;
  }

  EvidenceKeeper evidence() {
    return evidence;
  }

  /** Whether the core leaves it to {@link #check} to verify what it combines. */
  boolean checksTogether(Scheme scheme) {
    return checks.containsKey(scheme);
  }

  /**
   * Checks a signature that a session here has made: at once, or soon and together with others.
   *
   * @param then is told whether it is valid
   */
  void check(Scheme scheme, ToSign what, Signature signature, Consumer<Boolean> then) {
    SignatureChecks together = checks.get(scheme);
    if (together == null) {
      then.accept(isValid(scheme, what, signature));
    } else {
      together.check(new Claim(what.publicKey(), what.payload(), signature), then);
    }
  }

  ResultVerifier verifier(Scheme scheme) {
    ResultVerifier verifier = verifiers.get(scheme);
    if (verifier == null) {
      throw new IllegalArgumentException("no verifier for " + scheme);
    }
    return verifier;
  }

  PartyHealth health() {
    return health;
  }

  Executor pool() {
    return pool;
  }

  /** The time by which sessions here end. */
  public SessionTimer timer() {
    return timer;
  }

  ProtocolMetrics metrics() {
    return metrics;
  }

  CoordinatorMetrics telemetry() {
    return telemetry;
  }
}
