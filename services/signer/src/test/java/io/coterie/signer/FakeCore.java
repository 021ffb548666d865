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
import io.coterie.signer.session.ProtocolCore;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Protocols without cryptography, with the rounds and the step contract of the real ones: four
 * rounds for a key, one for a signature. For tests that need a run to misbehave on command.
 */
public final class FakeCore implements ProtocolCore {
  /** An envelope that makes the receiving run abort and blame its sender. */
  public static final byte[] POISON = "poison".getBytes(StandardCharsets.UTF_8);

  /** An envelope that makes the receiving run abort and give up the key. */
  public static final byte[] FREEZE = "freeze".getBytes(StandardCharsets.UTF_8);

  /** An envelope that makes the receiving run throw. */
  public static final byte[] BUG = "bug".getBytes(StandardCharsets.UTF_8);

  public final AtomicInteger started = new AtomicInteger();
  public final AtomicInteger open = new AtomicInteger();

  /** What runs were started with. */
  public final Queue<SessionConfig> configs = new ConcurrentLinkedQueue<>();

  @Override
  public Run start(SessionConfig config, ByteString sealedShare) {
    started.incrementAndGet();
    open.incrementAndGet();
    configs.add(config);
    return new FakeRun(config, sealedShare);
  }

  private final class FakeRun implements Run {
    private final SessionConfig config;
    private final ByteString share;
    private final boolean keygen;
    private final Set<Integer> peers = new TreeSet<>();
    private final List<Set<Integer>> heard = List.of(set(), set(), set(), set(), set());
    private int round = 1;

    FakeRun(SessionConfig config, ByteString share) {
      this.config = config;
      this.share = share;
      this.keygen = config.getProtocol() == ProtocolId.PROTOCOL_ID_BLS_KEYGEN_1;
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
      if (text.equals("poison") || text.equals("freeze")) {
        return Step.newBuilder()
            .setRound(0)
            .setAbort(
                Abort.newBuilder()
                    .setRound(round)
                    .setCause(AbortCause.ABORT_CAUSE_WRONG_SHARE)
                    .addCulprits(sender)
                    .setAdvice(
                        text.equals("poison")
                            ? Advice.ADVICE_EXCLUDE_PARTY
                            : Advice.ADVICE_FREEZE_KEY))
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
      if (round == 3) {
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
        if (round == (keygen ? 4 : 1)) {
          return step.setRound(0).setDone(keygen ? key() : signature());
        }
        round++;
        emit(step);
      }
      Set<Integer> missing = new TreeSet<>(peers);
      missing.removeAll(heard.get(round));
      return step.setRound(round).setWaiting(Waiting.newBuilder().addAllMissing(missing));
    }

    private Done key() {
      KeyPublic keyPublic =
          KeyPublic.newBuilder()
              .setPublicKey(ByteString.copyFromUtf8("pk " + config.getSessionId().hashCode()))
              .setThreshold(config.getThreshold())
              .setKeyId(config.getKeyId())
              .setEpoch(config.getEpoch())
              .build();
      return Done.newBuilder()
          .setKeyPublic(keyPublic)
          .setSealedShare(ByteString.copyFromUtf8("sealed share of " + config.getSelf()))
          .build();
    }

    private Done signature() {
      if (share.isEmpty()) {
        throw new IllegalStateException("signing without a share");
      }
      return Done.newBuilder().setSignature(config.getPayload().concat(share)).build();
    }

    @Override
    public void close() {
      open.decrementAndGet();
    }
  }
}
