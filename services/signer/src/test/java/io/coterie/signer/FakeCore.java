package io.coterie.signer;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Dropped;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.signer.party.ProtocolCore;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Protocols without cryptography, with the rounds and the step contract of the real ones. For tests
 * that need a run to misbehave on command.
 */
public final class FakeCore {
  /** An envelope that makes the receiving run abort and blame its sender. */
  public static final byte[] POISON = "poison".getBytes(StandardCharsets.UTF_8);

  /** An envelope that makes the receiving run abort and advise to freeze the key. */
  public static final byte[] FREEZE = "freeze".getBytes(StandardCharsets.UTF_8);

  /** An envelope that makes the receiving run abort and give its share anew, without its sender. */
  public static final byte[] CHEAT = "cheat".getBytes(StandardCharsets.UTF_8);

  /** An envelope that makes the receiving run abort because of an error of its own. */
  public static final byte[] BROKEN = "broken".getBytes(StandardCharsets.UTF_8);

  /** An envelope that makes the receiving run abort and suspect its sender. */
  public static final byte[] SUSPECT = "suspect".getBytes(StandardCharsets.UTF_8);

  /** An envelope that makes the receiving run throw. */
  public static final byte[] BUG = "bug".getBytes(StandardCharsets.UTF_8);

  /** Whether a presignature that is to be dropped makes the core throw. */
  public volatile boolean discardFails;

  public final AtomicInteger started = new AtomicInteger();
  public final AtomicInteger open = new AtomicInteger();

  /** The public key of every ECDSA key: the generator of secp256k1. */
  public static final ByteString ECDSA_KEY =
      ByteString.copyFrom(
          HexFormat.of()
              .parseHex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"));

  /** The public key of every Ed25519 key: that of RFC 8032's first test. */
  private static final ByteString ED25519_KEY =
      ByteString.fromHex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");

  /** How many rounds a protocol has, and which of them are private. */
  private record Shape(int rounds, Set<Integer> hidden) {}

  private static final Map<ProtocolId, Shape> SHAPES =
      Map.of(
          ProtocolId.PROTOCOL_ID_BLS_KEYGEN, new Shape(4, Set.of(3)),
          ProtocolId.PROTOCOL_ID_BLS_SIGN, new Shape(1, Set.of()),
          ProtocolId.PROTOCOL_ID_ED25519_KEYGEN, new Shape(4, Set.of(3)),
          ProtocolId.PROTOCOL_ID_ECDSA_KEYGEN, new Shape(6, Set.of(3, 4, 5)),
          ProtocolId.PROTOCOL_ID_ECDSA_SIGN, new Shape(3, Set.of(1, 2)),
          ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, new Shape(2, Set.of(1, 2)),
          ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED, new Shape(1, Set.of()),
          ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, new Shape(6, Set.of(3, 4, 5)),
          ProtocolId.PROTOCOL_ID_ECDSA_RESHARE, new Shape(6, Set.of(3, 4, 5)));

  /** Presignatures that exist: party and id. Used and abandoned ones are gone. */
  public final Set<String> presignatures = ConcurrentHashMap.newKeySet();

  /** While set, all presignatures have the same id. */
  public volatile boolean oneId;

  /** The configurations of the runs. */
  public final Queue<SessionConfig> configs = new ConcurrentLinkedQueue<>();

  /** The core of one party, with its evidence key. */
  public ProtocolCore of(int party) {
    return new ProtocolCore() {
      @Override
      public Run start(SessionConfig config, ByteString sealedShare) {
        return FakeCore.this.start(config, sealedShare);
      }

      @Override
      public void discardPresignature(ByteString id) {
        if (discardFails) {
          throw new IllegalStateException("as told");
        }
        presignatures.removeIf(name -> name.endsWith(name(0, id).substring(1)));
      }

      @Override
      public ByteString signStatement(ByteString statement) {
        return TestEvidence.sign(party, statement);
      }
    };
  }

  private ProtocolCore.Run start(SessionConfig config, ByteString sealedShare) {
    started.incrementAndGet();
    open.incrementAndGet();
    configs.add(config);
    if (!config.getPresignatureId().isEmpty()
        && !presignatures.remove(name(config.getSelf(), config.getPresignatureId()))) {
      throw new IllegalStateException("a presignature that does not exist");
    }
    return new FakeRun(config, sealedShare);
  }

  private static String name(int party, ByteString id) {
    return party + " " + HexFormat.of().formatHex(id.toByteArray());
  }

  private final class FakeRun implements ProtocolCore.Run {
    private final SessionConfig config;
    private final ByteString share;
    private final Shape shape;
    private final Set<Integer> peers = new TreeSet<>();
    private final List<Set<Integer>> heard =
        List.of(set(), set(), set(), set(), set(), set(), set());
    private int round = 1;

    FakeRun(SessionConfig config, ByteString share) {
      this.config = config;
      this.share = share;
      this.shape = SHAPES.get(config.getProtocol());
      for (Party party : config.getPartiesList()) {
        if (party.getId() != config.getSelf()) {
          peers.add(party.getId());
        }
      }
    }

    private static Set<Integer> set() {
      return new HashSet<>();
    }

    @Override
    public Step firstStep() {
      Step.Builder step = Step.newBuilder();
      emit(step);
      return advance(step).build();
    }

    @Override
    public Step handle(int sender, byte[] envelope) {
      String text = new String(envelope, StandardCharsets.UTF_8);
      if (text.equals("bug")) {
        throw new IllegalStateException("as told");
      }
      if (text.equals("poison") || text.equals("freeze") || text.equals("cheat")) {
        Abort.Builder abort =
            Abort.newBuilder()
                .setRound(round)
                .setCause(AbortCause.ABORT_CAUSE_WRONG_SHARE)
                .addCulprits(sender)
                .setAdvice(
                    text.equals("freeze") ? Advice.ADVICE_FREEZE_KEY : Advice.ADVICE_EXCLUDE_PARTY);
        if (text.equals("cheat")) {
          abort
              .setCause(AbortCause.ABORT_CAUSE_TRANSFER_CHECK_FAILED)
              .setSealedShare(share.concat(ByteString.copyFromUtf8(" without " + sender)));
        }
        return Step.newBuilder().setRound(0).setAbort(abort).build();
      }
      if (text.equals("broken")) {
        return Step.newBuilder()
            .setAbort(
                Abort.newBuilder()
                    .setRound(round)
                    .setCause(AbortCause.ABORT_CAUSE_INTERNAL)
                    .setAdvice(Advice.ADVICE_RETRY))
            .build();
      }
      if (text.equals("suspect")) {
        return Step.newBuilder()
            .setAbort(
                Abort.newBuilder()
                    .setRound(round)
                    .setCause(AbortCause.ABORT_CAUSE_BROADCAST_MISMATCH)
                    .addSuspects(sender)
                    .setAdvice(Advice.ADVICE_RETRY))
            .build();
      }
      if (!text.startsWith("round ") || !peers.contains(sender)) {
        return Step.newBuilder()
            .setRound(round)
            .setDropped(Dropped.newBuilder().setReason(RejectReason.REJECT_REASON_MALFORMED))
            .build();
      }
      heard.get(Integer.parseInt(text.substring(6))).add(sender);
      return advance(Step.newBuilder()).build();
    }

    private void emit(Step.Builder step) {
      ByteString body = ByteString.copyFromUtf8("round " + round);
      if (shape.hidden().contains(round)) {
        for (int peer : peers) {
          step.addOutgoing(
              Outgoing.newBuilder().setRecipient(peer).setRound(round).setEnvelope(body));
        }
      } else {
        step.addOutgoing(Outgoing.newBuilder().setRound(round).setEnvelope(body));
      }
    }

    private Step.Builder advance(Step.Builder step) {
      while (heard.get(round).containsAll(peers)) {
        if (round == shape.rounds()) {
          return step.setRound(0).setDone(done());
        }
        round++;
        emit(step);
      }
      Set<Integer> missing = new TreeSet<>(peers);
      missing.removeAll(heard.get(round));
      return step.setRound(round).setWaiting(Waiting.newBuilder().addAllMissing(missing));
    }

    private Done done() {
      return switch (config.getProtocol()) {
        case PROTOCOL_ID_BLS_KEYGEN ->
            key(
                ByteString.copyFromUtf8("pk " + config.getSessionId().hashCode()),
                config.getEpoch());
        case PROTOCOL_ID_ED25519_KEYGEN -> key(ED25519_KEY, config.getEpoch());
        case PROTOCOL_ID_ECDSA_KEYGEN -> key(ECDSA_KEY, config.getEpoch());
        case PROTOCOL_ID_ECDSA_REFRESH -> {
          requireShare();
          yield key(ECDSA_KEY, config.getEpoch() + 1);
        }
        case PROTOCOL_ID_ECDSA_RESHARE -> {
          if (config.getDealersList().contains(config.getSelf()) == share.isEmpty()) {
            throw new IllegalStateException("who deals has a share, who does not has none");
          }
          Done done = key(ECDSA_KEY, config.getEpoch() + 1);
          yield config.getReceiversList().contains(config.getSelf())
              ? done
              : done.toBuilder().clearSealedShare().build();
        }
        case PROTOCOL_ID_ECDSA_PRESIGN -> {
          requireShare();
          Done.Builder done = Done.newBuilder();
          for (int place = 0; place < config.getPresignatureCount(); place++) {
            ByteString id = presignatureId(place);
            presignatures.add(name(config.getSelf(), id));
            done.addPresignaturesBuilder()
                .setId(id)
                .setSealed(ByteString.copyFromUtf8("contribution of " + config.getSelf()));
          }
          yield done.build();
        }
        case PROTOCOL_ID_ECDSA_SIGN_PRESIGNED ->
            Done.newBuilder()
                .setSignature(config.getPayload().concat(config.getSealedPresignature()))
                .build();
        default -> {
          requireShare();
          yield Done.newBuilder().setSignature(config.getPayload().concat(share)).build();
        }
      };
    }

    /** The same at all parties. */
    private ByteString presignatureId(int place) {
      ByteString session = config.getSessionId();
      return oneId
          ? ByteString.copyFrom(new byte[session.size()])
          : session.substring(1).concat(ByteString.copyFrom(new byte[] {(byte) place}));
    }

    private Done key(ByteString publicKey, int epoch) {
      KeyPublic keyPublic =
          KeyPublic.newBuilder()
              .setPublicKey(publicKey)
              .setThreshold(config.getThreshold())
              .setKeyId(config.getKeyId())
              .setEpoch(epoch)
              .setChainCode(
                  publicKey.equals(ECDSA_KEY)
                      ? ByteString.copyFrom(new byte[32])
                      : ByteString.EMPTY)
              .build();
      return Done.newBuilder()
          .setKeyPublic(keyPublic)
          .setSealedShare(
              ByteString.copyFromUtf8("sealed share of " + config.getSelf() + ", epoch " + epoch))
          .build();
    }

    private void requireShare() {
      if (share.isEmpty()) {
        throw new IllegalStateException("no share");
      }
    }

    @Override
    public void close() {
      open.decrementAndGet();
    }
  }
}
