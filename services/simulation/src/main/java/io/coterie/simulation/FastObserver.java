package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.Dropped;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.proto.core.v1.VerifyCall;
import io.coterie.proto.core.v1.Waiting;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The core of a coordinator without cryptography: it combines what {@link FastRun} contributes. */
final class FastObserver implements MpcCore {
  @Override
  public Vault openVault(byte[] dataKey) {
    throw new UnsupportedOperationException("a coordinator has no vault");
  }

  @Override
  public MpcSession observe(SessionConfig config) {
    return new Observation(config);
  }

  /** Nothing that the fast core says is evidence for others. */
  @Override
  public Verdict judge(SessionConfig config, Accusation accusation) {
    return Verdict.VERDICT_REFUTED;
  }

  @Override
  public boolean verify(VerifyCall call) {
    return call.getClaimsList().stream()
        .allMatch(claim -> FastRun.signs(claim.getPayload(), claim.getSignature()));
  }

  private static final class Observation implements MpcSession {
    /** The result with a wrong contribution at which nobody looks. */
    private static final ByteString NO_SIGNATURE = ByteString.copyFromUtf8("no signature");

    private final SessionConfig config;
    private final Protocol protocol;
    private final Set<Integer> parties = new TreeSet<>();
    private final Set<List<Integer>> heard = new HashSet<>();
    private final Map<Integer, Long> runs = new TreeMap<>();
    private boolean allTrue = true;
    private boolean over;

    Observation(SessionConfig config) {
      this.config = config;
      this.protocol = Protocol.of(config.getProtocol()).orElseThrow();
      config.getPartiesList().stream().map(Party::getId).forEach(parties::add);
    }

    @Override
    public Step firstStep() {
      return waiting(missing());
    }

    private List<Integer> missing() {
      List<Integer> missing = new ArrayList<>(parties);
      missing.removeIf(party -> heard.contains(List.of(party, protocol.lastRound())));
      return missing;
    }

    private static Step waiting(List<Integer> missing) {
      return Step.newBuilder()
          .setRound(1)
          .setWaiting(Waiting.newBuilder().addAllMissing(missing))
          .build();
    }

    @Override
    public Step handle(int sender, byte[] bytes) {
      FastEnvelope envelope = FastEnvelope.decode(bytes);
      if (over || envelope == null || !fits(sender, envelope)) {
        return dropped(RejectReason.REJECT_REASON_MALFORMED);
      }
      if (heard.contains(List.of(sender, envelope.round()))) {
        return dropped(RejectReason.REJECT_REASON_DUPLICATE);
      }
      Long known = runs.putIfAbsent(sender, envelope.run());
      if (known != null && known != envelope.run()) {
        return aborted(AbortCause.ABORT_CAUSE_PARTY_RESTARTED, List.of(), Advice.ADVICE_RETRY);
      }
      if (!envelope.isTrue() && !config.getUnverified()) {
        return aborted(
            AbortCause.ABORT_CAUSE_WRONG_PARTIAL_SIGNATURE,
            List.of(sender),
            Advice.ADVICE_EXCLUDE_PARTY);
      }
      allTrue &= envelope.isTrue();
      heard.add(List.of(sender, envelope.round()));
      List<Integer> missing = missing();
      if (!missing.isEmpty()) {
        return waiting(missing);
      }
      over = true;
      return Step.newBuilder()
          .setDone(
              Done.newBuilder()
                  .setSignature(allTrue ? FastRun.signature(config, runs) : NO_SIGNATURE))
          .build();
    }

    private boolean fits(int sender, FastEnvelope envelope) {
      return envelope.protocol() == config.getProtocolValue()
          && envelope.session().equals(config.getSessionId())
          && envelope.sender() == sender
          && parties.contains(sender)
          && envelope.recipient() == 0
          && envelope.round() >= 1
          && envelope.round() <= protocol.lastRound();
    }

    private Step aborted(AbortCause cause, List<Integer> culprits, Advice advice) {
      over = true;
      return Step.newBuilder()
          .setAbort(
              Abort.newBuilder()
                  .setRound(1)
                  .setCause(cause)
                  .addAllCulprits(culprits)
                  .setAdvice(advice))
          .build();
    }

    private static Step dropped(RejectReason reason) {
      return Step.newBuilder()
          .setRound(1)
          .setDropped(Dropped.newBuilder().setReason(reason))
          .build();
    }

    @Override
    public void close() {
      over = true;
    }
  }
}
