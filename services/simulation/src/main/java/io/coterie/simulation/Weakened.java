package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ShownClaims;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The ports of a signer with one rule less. */
final class Weakened {
  private Weakened() {}

  static PolicyGate policy(PolicyGate policy, Mutant mutant) {
    return mutant == Mutant.ADMITS_ALL ? Weakened::believe : policy;
  }

  private static VerifiedIntent believe(SignedIntent signed) {
    try {
      return IntentVerifier.verify(signed, Identities.requesters());
    } catch (IntentException e) {
      return believeSigning(signed);
    }
  }

  /** As if the requester had signed it. */
  private static VerifiedIntent believeSigning(SignedIntent signed) {
    try {
      SigningIntent intent = SigningIntent.parseFrom(signed.getPayload());
      return IntentVerifier.verify(Identities.intents().sign(intent), Identities.requesters());
    } catch (IntentException | InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  static ClaimLedger claims(ClaimLedger claims, Mutant mutant) {
    return switch (mutant) {
      case CLAIMS_TWICE, FORGETS_REQUESTS, BINDS_NOTHING, CLAIMS_BEFORE_DISK ->
          new Claims(claims, mutant, new HashSet<>());
      default -> claims;
    };
  }

  static KeyShareStore shares(KeyShareStore shares, Mutant mutant) {
    return mutant == Mutant.ERASES_EXCLUSIONS ? new Shares(shares) : shares;
  }

  static ShownClaims shown(ShownClaims shown, Mutant mutant) {
    return mutant == Mutant.FORGETS_LEDGERS ? new Lenient(shown) : shown;
  }

  private record Claims(ClaimLedger claims, Mutant mutant, Set<SessionId> known)
      implements ClaimLedger {
    private CompletionStage<Outcome> weaken(SessionId session, CompletionStage<Outcome> outcome) {
      return switch (mutant) {
        case CLAIMS_TWICE -> outcome.thenApply(was -> instead(was, Outcome.SESSION_REPLAYED));
        case FORGETS_REQUESTS -> outcome.thenApply(was -> instead(was, Outcome.REQUEST_ID_REUSED));
        case BINDS_NOTHING -> outcome.thenApply(was -> instead(was, Outcome.REQUEST_BOUND));
        default ->
            known.add(session) ? CompletableFuture.completedFuture(Outcome.CLAIMED) : outcome;
      };
    }

    private static Outcome instead(Outcome was, Outcome of) {
      return was == of ? Outcome.CLAIMED : was;
    }

    @Override
    public CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted) {
      Claim weaker =
          mutant == Mutant.BINDS_NOTHING
              ? new Claim(
                  claim.session(),
                  claim.requester(),
                  claim.requestId(),
                  claim.intentDigest(),
                  null,
                  null,
                  claim.multiplication(),
                  claim.signedIntent(),
                  claim.again())
              : claim;
      return weaken(claim.session(), claims.claimOnce(weaker, accepted));
    }

    @Override
    public CompletionStage<Outcome> claimSession(
        SessionId session, String account, @Nullable Multiplication multiplication) {
      return weaken(session, claims.claimSession(session, account, multiplication));
    }

    @Override
    public void multiplied(SessionId session) {
      claims.multiplied(session);
    }

    @Override
    public LedgerPosition position() {
      return claims.position();
    }

    @Override
    public boolean remembers(LedgerPosition position) {
      return claims.remembers(position);
    }

    @Override
    public CompletionStage<Boolean> decline(
        SessionId session, String account, @Nullable String requestId) {
      return claims.decline(session, account, requestId);
    }

    @Override
    public CompletionStage<Never> never(
        String requester,
        String requestId,
        @Nullable SessionId over,
        ByteString cancellation,
        ByteString digest,
        AuditEvent said) {
      return claims.never(requester, requestId, over, cancellation, digest, said);
    }

    @Override
    public List<Binding> bindings(int limit) {
      return claims.bindings(limit);
    }

    @Override
    public Room room() {
      return claims.room();
    }

    @Override
    public void forgetRequests(Duration running) {
      claims.forgetRequests(running);
    }
  }

  /** Holds nothing against a peer whose store went back. */
  private record Lenient(ShownClaims claims) implements ShownClaims {
    @Override
    public List<ShownClaims.Shown> shown() {
      return claims.shown();
    }

    @Override
    public CompletionStage<Boolean> show(ShownClaims.Shown peer) {
      return claims.show(peer);
    }

    @Override
    public CompletionStage<List<String>> wentBack(int party) {
      return CompletableFuture.completedFuture(List.of());
    }

    @Override
    public CompletionStage<List<String>> wentBack(LedgerPosition forgotten) {
      return claims.wentBack(forgotten);
    }
  }

  /** Answers a peer's statement with that statement. */
  static PartyNetwork network(
      PartyNetwork network, Mutant mutant, Function<Member, @Nullable ClaimCount> latest) {
    return mutant == Mutant.FORGETS_LEDGERS ? new Echo(network, latest) : network;
  }

  private record Echo(PartyNetwork network, Function<Member, @Nullable ClaimCount> latest)
      implements PartyNetwork {
    @Override
    public Roster roster() {
      return network.roster();
    }

    @Override
    public Member self() {
      return network.self();
    }

    @Override
    public Set<Member> reachable() {
      return network.reachable();
    }

    @Override
    public void broadcast(
        Collection<Member> recipients, PartyMessage message, @Nullable String traceparent) {
      network.broadcast(recipients, message, traceparent);
    }

    @Override
    public void send(Member recipient, PartyMessage message, @Nullable String traceparent) {
      ClaimCount stated = latest.apply(recipient);
      boolean answers = message.hasClaimMemory() && stated != null;
      network.send(
          recipient,
          answers
              ? PartyMessage.newBuilder()
                  .setClaimMemory(ClaimMemory.newBuilder().addRemembered(stated))
                  .build()
              : message,
          traceparent);
    }
  }

  static ProtocolCore core(ProtocolCore core, Mutant mutant) {
    return mutant == Mutant.CONVICTS_FOR_DUPLICATES ? new Core(core) : core;
  }

  private record Core(ProtocolCore core) implements ProtocolCore {
    @Override
    public Run start(SessionConfig config, ByteString sealedShare) throws RefusedException {
      Run run = core.start(config, sealedShare);
      return new Run() {
        @Override
        public Step firstStep() {
          return run.firstStep();
        }

        @Override
        public Step handle(int sender, byte[] envelope) {
          Step step = run.handle(sender, envelope);
          return step.getDropped().getReason() == RejectReason.REJECT_REASON_DUPLICATE
              ? Step.newBuilder().setAbort(convicts(sender)).build()
              : step;
        }

        @Override
        public void close() {
          run.close();
        }
      };
    }

    private static Abort convicts(int sender) {
      return Abort.newBuilder()
          .setRound(1)
          .setCause(AbortCause.ABORT_CAUSE_EQUIVOCATION)
          .addCulprits(sender)
          .setAdvice(Advice.ADVICE_EXCLUDE_PARTY)
          .build();
    }

    @Override
    public void discardPresignature(ByteString id) {
      core.discardPresignature(id);
    }

    @Override
    public ByteString signStatement(ByteString statement) {
      return core.signStatement(statement);
    }
  }

  private static final class Shares implements KeyShareStore {
    private final KeyShareStore shares;
    private final Map<String, Set<Integer>> excluded = new HashMap<>();

    Shares(KeyShareStore shares) {
      this.shares = shares;
    }

    @Override
    public Set<Integer> excluded(String key) {
      Set<Integer> all = new HashSet<>(shares.excluded(key));
      all.addAll(excluded.getOrDefault(key, Set.of()));
      return all;
    }

    @Override
    public CompletionStage<Boolean> exclude(Exclusion exclusion) {
      excluded.computeIfAbsent(exclusion.key(), _ -> new HashSet<>()).addAll(exclusion.parties());
      return CompletableFuture.completedFuture(true);
    }

    @Override
    public Optional<KeyShare> find(String key) {
      return shares.find(key);
    }

    @Override
    public Optional<KeyShare> pending(String key) {
      return shares.pending(key);
    }

    @Override
    public List<KeyShare> undecided() {
      return shares.undecided();
    }

    @Override
    public boolean keepsAnother(KeyShare share) {
      return shares.keepsAnother(share);
    }

    @Override
    public Optional<KeyShare> ofSession(SessionId session) {
      return shares.ofSession(session);
    }

    @Override
    public Set<Integer> decliners(String key) {
      return shares.decliners(key);
    }

    @Override
    public CompletionStage<Boolean> storeProvisional(KeyShare share, AuditEvent completed) {
      return shares.storeProvisional(share, completed);
    }

    @Override
    public CompletionStage<Boolean> storeNext(KeyShare share, boolean dealt, AuditEvent completed) {
      return shares.storeNext(share, dealt, completed);
    }

    @Override
    public CompletionStage<Boolean> decline(String key, SessionId session) {
      return shares.decline(key, session);
    }

    @Override
    public CompletionStage<Boolean> abandon(KeyShare share, int decliner, AuditEvent abandoned) {
      return shares.abandon(share, decliner, abandoned);
    }

    @Override
    public CompletionStage<Boolean> activate(
        KeyShare share, Certificate proof, AuditEvent activated) {
      return shares.activate(share, proof, activated);
    }

    @Override
    public CompletionStage<Boolean> unfreeze(String key) {
      return shares.unfreeze(key);
    }

    @Override
    public List<KeyTrouble> troubles() {
      return shares.troubles();
    }

    @Override
    public void housekeep() {
      shares.housekeep();
    }
  }
}
