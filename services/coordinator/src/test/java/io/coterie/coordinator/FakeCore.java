package io.coterie.coordinator;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Dropped;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.core.v1.VerifyCall;
import io.coterie.proto.core.v1.Waiting;
import java.math.BigInteger;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An observer whose envelopes are bare partial signatures, or, where those cannot be had simply,
 * what stands for one: a share, digest and presignature id. It can be told to lie.
 */
final class FakeCore implements MpcCore {
  /** While set, what is combined is not a signature of the message. */
  volatile boolean lying;

  /**
   * While set, partial signatures are combined unseen, which costs what the real core's way costs.
   */
  volatile boolean trusting;

  /** Advice given with a wrong partial signature. */
  volatile Advice advice = Advice.ADVICE_EXCLUDE_PARTY;

  final AtomicInteger open = new AtomicInteger();

  @Override
  public Vault openVault(byte[] dataKey) {
    throw new UnsupportedOperationException("a coordinator has no vault");
  }

  @Override
  public MpcSession observe(SessionConfig config) {
    open.incrementAndGet();
    return new Observer(config);
  }

  /** Evidence that convicts that party, as this core judges. */
  static ByteString proof(int party) {
    return ByteString.copyFromUtf8("proof against " + party);
  }

  @Override
  public Verdict judge(SessionConfig config, Accusation accusation) {
    return accusation.getEvidenceList().contains(proof(accusation.getAccused()))
        ? Verdict.VERDICT_PROVEN
        : Verdict.VERDICT_REFUTED;
  }

  @Override
  public boolean verify(VerifyCall call) {
    return call.getClaimsList().stream()
        .allMatch(
            claim ->
                TestBls.verifies(
                    claim.getPublicKey(),
                    claim.getPayload().toByteArray(),
                    claim.getSignature().toByteArray()));
  }

  private final class Observer implements MpcSession {
    private final SessionConfig config;
    private final Map<Integer, byte[]> partials = new TreeMap<>();
    private final Set<Integer> missing = new TreeSet<>();

    Observer(SessionConfig config) {
      this.config = config;
      config.getPartiesList().stream().map(Party::getId).forEach(missing::add);
    }

    @Override
    public Step firstStep() {
      return waiting();
    }

    private Step waiting() {
      return Step.newBuilder()
          .setRound(1)
          .setWaiting(Waiting.newBuilder().addAllMissing(missing))
          .build();
    }

    @Override
    public Step handle(int sender, byte[] envelope) {
      if (!missing.contains(sender)) {
        return dropped(RejectReason.REJECT_REASON_DUPLICATE);
      }
      if (config.getProtocol() != ProtocolId.PROTOCOL_ID_BLS_SIGN) {
        return handleEcdsa(sender, envelope);
      }
      if (envelope.length != 96) {
        return dropped(RejectReason.REJECT_REASON_MALFORMED);
      }
      byte[] message = config.getPayload().toByteArray();
      ByteString share =
          config.getKeyPublic().getVerificationSharesList().stream()
              .filter(s -> s.getParty() == sender)
              .map(VerificationShare::getPoint)
              .findFirst()
              .orElseThrow();
      if (!trusting && !config.getUnverified() && !TestBls.verifies(share, message, envelope)) {
        return Step.newBuilder()
            .setAbort(
                Abort.newBuilder()
                    .setRound(1)
                    .setCause(AbortCause.ABORT_CAUSE_WRONG_PARTIAL_SIGNATURE)
                    .addCulprits(sender)
                    .setAdvice(advice))
            .build();
      }
      partials.put(sender, envelope);
      missing.remove(sender);
      if (!missing.isEmpty()) {
        return waiting();
      }
      byte[] signature = lying ? envelope : TestBls.combine(partials);
      return Step.newBuilder()
          .setDone(Done.newBuilder().setSignature(ByteString.copyFrom(signature)))
          .build();
    }

    private Step handleEcdsa(int sender, byte[] envelope) {
      ByteString rest = config.getPayload().concat(config.getPresignatureId());
      if (envelope.length != 32 + rest.size()) {
        return dropped(RejectReason.REJECT_REASON_MALFORMED);
      }
      partials.put(sender, envelope);
      missing.remove(sender);
      if (!missing.isEmpty()) {
        return waiting();
      }
      Map<Integer, BigInteger> shares = new TreeMap<>();
      boolean good = true;
      for (Map.Entry<Integer, byte[]> partial : partials.entrySet()) {
        BigInteger share = new BigInteger(1, partial.getValue(), 0, 32);
        shares.put(partial.getKey(), share);
        good &=
            ByteString.copyFrom(partial.getValue()).substring(32).equals(rest)
                && config.getKeyPublic().getVerificationSharesList().stream()
                    .anyMatch(
                        v ->
                            v.getParty() == partial.getKey()
                                && v.getPoint().equals(TestEcdsa.point(share)));
      }
      if (!good) {
        return Step.newBuilder()
            .setAbort(
                Abort.newBuilder()
                    .setRound(3)
                    .setCause(AbortCause.ABORT_CAUSE_INVALID_SIGNATURE)
                    .setAdvice(Advice.ADVICE_RETRY))
            .build();
      }
      TestEcdsa.Signed signed =
          TestEcdsa.sign(
              shares, config.getKeyPublic(), config.getDerivationPathList(), config.getPayload());
      return Step.newBuilder()
          .setDone(
              Done.newBuilder()
                  .setSignature(signed.bytes())
                  .setRecoveryId(signed.recoveryId() ^ (lying ? 1 : 0)))
          .build();
    }

    private Step dropped(RejectReason reason) {
      return Step.newBuilder()
          .setRound(1)
          .setDropped(Dropped.newBuilder().setReason(reason))
          .build();
    }

    @Override
    public void close() {
      open.decrementAndGet();
    }
  }
}
