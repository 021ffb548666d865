package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Dropped;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.signer.party.ProtocolCore;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * One run of a protocol without its cryptography, with the rounds and the step contract of the real
 * one. Every body depends on its session, round, sender and recipient and on a number that its
 * sender draws for the run, so a wrong body shows, and names its sender as the real core does.
 */
final class FastRun implements ProtocolCore.Run {
  /** The generator of secp256k1: a public key that can be derived from. */
  private static final ByteString CURVE_KEY =
      ByteString.copyFrom(
          HexFormat.of()
              .parseHex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"));

  private final SessionConfig config;
  private final ByteString share;
  private final Protocol protocol;
  private final Set<Integer> privateRounds;
  private final FastCore core;
  private final Set<Integer> peers = new TreeSet<>();

  /** The envelopes that it has heard, by sender and round. */
  private final Map<Integer, Map<Integer, FastEnvelope>> heard = new TreeMap<>();

  /** The number of each party's run; this party's own too. */
  private final Map<Integer, Long> runs = new TreeMap<>();

  private int round = 1;
  private boolean over;

  FastRun(SessionConfig config, ByteString share, FastCore core, long number) {
    this.config = config;
    this.share = share;
    this.core = core;
    this.protocol = Protocol.of(config.getProtocol()).orElseThrow();
    this.privateRounds = privateRounds(protocol);
    for (Party party : config.getPartiesList()) {
      if (party.getId() != config.getSelf()) {
        peers.add(party.getId());
        heard.put(party.getId(), new TreeMap<>());
      }
    }
    runs.put(config.getSelf(), number);
  }

  private static Set<Integer> privateRounds(Protocol protocol) {
    if (protocol.operation().makesShare()) {
      return protocol.lastRound() == 4 ? Set.of(3) : Set.of(3, 4, 5);
    }
    return protocol.multiplies() && protocol.lastRound() > 1 ? Set.of(1, 2) : Set.of();
  }

  @Override
  public Step firstStep() {
    Step.Builder step = Step.newBuilder();
    emit(step);
    return advance(step).build();
  }

  @Override
  public Step handle(int sender, byte[] bytes) {
    FastEnvelope envelope = FastEnvelope.decode(bytes);
    Map<Integer, FastEnvelope> before = heard.get(sender);
    if (envelope == null || before == null || over) {
      return dropped(RejectReason.REJECT_REASON_MALFORMED);
    }
    RejectReason reason = reject(sender, envelope, before);
    if (reason != null) {
      return dropped(reason);
    }
    Long known = runs.putIfAbsent(sender, envelope.run());
    if (known != null && known != envelope.run()) {
      return aborted(AbortCause.ABORT_CAUSE_PARTY_RESTARTED, List.of(), Advice.ADVICE_RETRY);
    }
    if (!envelope.isTrue()) {
      return wrong(sender);
    }
    before.put(envelope.round(), envelope);
    return advance(Step.newBuilder()).build();
  }

  private @Nullable RejectReason reject(
      int sender, FastEnvelope envelope, Map<Integer, FastEnvelope> before) {
    boolean hidden = privateRounds.contains(envelope.round());
    if (envelope.protocol() != config.getProtocolValue()) {
      return RejectReason.REJECT_REASON_PROTOCOL;
    }
    if (!envelope.session().equals(config.getSessionId())) {
      return RejectReason.REJECT_REASON_SESSION;
    }
    if (envelope.sender() != sender) {
      return RejectReason.REJECT_REASON_SENDER;
    }
    if (envelope.recipient() != (hidden ? config.getSelf() : 0)) {
      return RejectReason.REJECT_REASON_RECIPIENT;
    }
    if (envelope.round() < 1 || envelope.round() > protocol.lastRound()) {
      return RejectReason.REJECT_REASON_MALFORMED;
    }
    return before.containsKey(envelope.round()) ? RejectReason.REJECT_REASON_DUPLICATE : null;
  }

  /** The end of a run in which a peer's body is not the one that is due. */
  private Step wrong(int sender) {
    if (protocol.multiplies()) {
      return aborted(
          AbortCause.ABORT_CAUSE_TRANSFER_CHECK_FAILED,
          List.of(sender),
          Advice.ADVICE_EXCLUDE_PARTY);
    }
    return aborted(
        protocol.operation().signs()
            ? AbortCause.ABORT_CAUSE_WRONG_PARTIAL_SIGNATURE
            : AbortCause.ABORT_CAUSE_WRONG_SHARE,
        List.of(sender),
        protocol.operation().signs() ? Advice.ADVICE_EXCLUDE_PARTY : Advice.ADVICE_RETRY);
  }

  private Step aborted(AbortCause cause, List<Integer> culprits, Advice advice) {
    over = true;
    Abort.Builder abort =
        Abort.newBuilder()
            .setRound(round)
            .setCause(cause)
            .addAllCulprits(culprits)
            .setAdvice(advice);
    if (cause == AbortCause.ABORT_CAUSE_TRANSFER_CHECK_FAILED && !share.isEmpty()) {
      abort.setSealedShare(share.concat(ByteString.copyFromUtf8(" without " + culprits)));
    }
    return Step.newBuilder().setRound(0).setAbort(abort).build();
  }

  private Step dropped(RejectReason reason) {
    return Step.newBuilder()
        .setRound(round)
        .setDropped(Dropped.newBuilder().setReason(reason))
        .build();
  }

  private void emit(Step.Builder step) {
    if (privateRounds.contains(round)) {
      for (int peer : peers) {
        step.addOutgoing(
            Outgoing.newBuilder().setRecipient(peer).setRound(round).setEnvelope(due(peer)));
      }
    } else {
      step.addOutgoing(Outgoing.newBuilder().setRound(round).setEnvelope(due(0)));
    }
  }

  private ByteString due(int recipient) {
    return FastEnvelope.due(
            config.getProtocolValue(),
            config.getSessionId(),
            round,
            config.getSelf(),
            recipient,
            runs.getOrDefault(config.getSelf(), 0L))
        .encode();
  }

  private Step.Builder advance(Step.Builder step) {
    while (missing().isEmpty()) {
      if (round == protocol.lastRound()) {
        over = true;
        return step.setRound(0).setDone(done());
      }
      round++;
      emit(step);
    }
    return step.setRound(round).setWaiting(Waiting.newBuilder().addAllMissing(missing()));
  }

  private List<Integer> missing() {
    List<Integer> missing = new ArrayList<>();
    heard.forEach(
        (peer, envelopes) -> {
          if (!envelopes.containsKey(round)) {
            missing.add(peer);
          }
        });
    return missing;
  }

  /** The same at all parties of the session, and another one in every session. */
  private ByteString agreed(String label) {
    return agreed(config, runs, label);
  }

  private static ByteString agreed(SessionConfig config, Map<Integer, Long> runs, String label) {
    String text = label + HexFormat.of().formatHex(config.getSessionId().toByteArray()) + runs;
    return ByteString.copyFrom(Identities.hash(text.getBytes(StandardCharsets.US_ASCII)));
  }

  /**
   * The signature of a session; a scheme that signs at random makes another one in each session.
   *
   * @param runs the number of each party's run
   */
  static ByteString signature(SessionConfig config, Map<Integer, Long> runs) {
    ByteString signed = ByteString.copyFrom(Identities.hash(config.getPayload().toByteArray()));
    boolean random = Protocol.of(config.getProtocol()).filter(Protocol::signsAtRandom).isPresent();
    return random ? signed.concat(agreed(config, runs, "signature")) : signed;
  }

  /** Whether it is a signature of a payload. */
  static boolean signs(ByteString payload, ByteString signature) {
    return signature.startsWith(ByteString.copyFrom(Identities.hash(payload.toByteArray())));
  }

  private Done done() {
    return switch (protocol.operation()) {
      case KEYGEN, IMPORT -> key(config.getEpoch());
      case REFRESH, RESHARE -> key(config.getEpoch() + 1);
      case PRESIGN -> presignatures();
      case SIGN, SIGN_PRESIGNED -> Done.newBuilder().setSignature(signature(config, runs)).build();
    };
  }

  private Done presignatures() {
    Done.Builder done = Done.newBuilder();
    for (int place = 0; place < config.getPresignatureCount(); place++) {
      ByteString id = agreed("presignature " + place);
      core.keep(id);
      done.addPresignaturesBuilder().setId(id).setSealed(ByteString.copyFromUtf8("sealed"));
    }
    return done.build();
  }

  private Done key(int epoch) {
    boolean derives =
        protocol.scheme() == Scheme.SCHEME_ECDSA_SECP256K1
            || protocol.scheme() == Scheme.SCHEME_BIP340_SECP256K1;
    boolean leaves =
        protocol.operation() == Protocol.Operation.RESHARE
            && !config.getReceiversList().contains(config.getSelf());
    ByteString publicKey =
        derives
            ? CURVE_KEY
            : ByteString.copyFrom(
                Identities.hash(config.getKeyId().getBytes(StandardCharsets.US_ASCII)));
    List<Integer> holders =
        protocol.operation() == Protocol.Operation.RESHARE
            ? config.getReceiversList()
            : config.getPartiesList().stream().map(Party::getId).toList();
    return Done.newBuilder()
        .setKeyPublic(
            KeyPublic.newBuilder()
                .addAllVerificationShares(holders.stream().map(FastRun::share).toList())
                .setPublicKey(publicKey)
                .setThreshold(config.getThreshold())
                .setKeyId(config.getKeyId())
                .setEpoch(epoch)
                .setChainCode(derives ? ByteString.copyFrom(new byte[32]) : ByteString.EMPTY))
        .setSealedShare(
            leaves
                ? ByteString.EMPTY
                : ByteString.copyFromUtf8("share of " + config.getSelf() + " in epoch " + epoch))
        .build();
  }

  private static VerificationShare share(int party) {
    return VerificationShare.newBuilder()
        .setParty(party)
        .setPoint(ByteString.copyFrom(Identities.hash(new byte[] {(byte) party})))
        .build();
  }

  @Override
  public void close() {
    over = true;
  }
}
