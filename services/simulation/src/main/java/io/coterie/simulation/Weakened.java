package io.coterie.simulation;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.mpc.MpcCore;
import io.coterie.mpc.MpcSession;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Done;
import io.coterie.proto.core.v1.RejectReason;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.claim.ClaimLedger.Claim;
import io.coterie.signer.claim.ClaimLedger.Outcome;
import io.coterie.signer.claim.ShownClaims;
import io.coterie.signer.order.Hold;
import io.coterie.signer.order.Holds;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.signer.share.KeyShare;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.KeyTrouble;
import io.coterie.trust.Member;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.IntFunction;
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

  /** Believes the intent as if the requester had signed it. */
  private static VerifiedIntent believeSigning(SignedIntent signed) {
    try {
      SigningIntent intent = SigningIntent.parseFrom(signed.getPayload());
      return IntentVerifier.verify(Identities.intents().sign(intent), Identities.requesters());
    } catch (IntentException | InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  // ---- claims ----------------------------------------------------------------------------------

  static ClaimLedger claims(ClaimLedger claims, Mutant mutant) {
    Map<String, Port.Instead> instead = ofClaims(mutant);
    return instead.isEmpty() ? claims : Port.with(ClaimLedger.class, claims, instead);
  }

  private static Map<String, Port.Instead> ofClaims(Mutant mutant) {
    return switch (mutant) {
      case CLAIMS_TWICE -> claimed(Outcome.SESSION_REPLAYED);
      case FORGETS_REQUESTS -> claimed(Outcome.REQUEST_ID_REUSED);
      case IGNORES_FENCE -> claimed(Outcome.FENCED);
      case BINDS_NOTHING ->
          Map.of(
              "claimOnce",
              (real, given) ->
                  real.<Outcome>later(unbound((Claim) given[0]), given[1])
                      .thenApply(was -> instead(was, Outcome.REQUEST_BOUND)));
      case BELIEVES_FAILED_COMMITS ->
          both((real, given) -> real.<Outcome>later(given).exceptionally(_ -> Outcome.CLAIMED));
      case CLAIMS_BEFORE_DISK -> {
        Set<SessionId> known = new HashSet<>();
        yield both(
            (real, given) -> {
              Object outcome = real.call(given);
              SessionId session =
                  given[0] instanceof Claim claim ? claim.session() : (SessionId) given[0];
              return known.add(session)
                  ? CompletableFuture.completedFuture(Outcome.CLAIMED)
                  : outcome;
            });
      }
      case AUDITS_NO_SESSION ->
          Map.of(
              "claimOnce",
              (real, given) -> {
                AuditEvent event = (AuditEvent) given[1];
                return real.call(
                    given[0],
                    AuditEvent.of(event.actor(), event.action(), event.outcome(), Map.of()));
              });
      case LEAVES_MULTIPLICATIONS_OPEN -> Map.of("multiplied", (_, _) -> null);
      case CLAIMS_NO_MULTIPLICATION ->
          Map.of(
              "claimOnce",
              (real, given) -> real.call(singly((Claim) given[0]), given[1]),
              "claimSession",
              (real, given) -> real.call(given[0], given[1], null));
      case DECLINES_IN_WORDS ->
          Map.of("decline", (_, _) -> CompletableFuture.completedFuture(true));
      case SAYS_NEVER_IN_WORDS ->
          Map.of(
              "never",
              (_, _) -> CompletableFuture.completedFuture(new ClaimLedger.Never.Said(true)));
      default -> Map.of();
    };
  }

  private static Map<String, Port.Instead> both(Port.Instead instead) {
    return Map.of("claimOnce", instead, "claimSession", instead);
  }

  /** A claim that is refused for one reason counts as claimed. */
  private static Map<String, Port.Instead> claimed(Outcome refused) {
    return both(
        (real, given) -> real.<Outcome>later(given).thenApply(was -> instead(was, refused)));
  }

  private static Outcome instead(Outcome was, Outcome of) {
    return was == of ? Outcome.CLAIMED : was;
  }

  private static Claim unbound(Claim claim) {
    return new Claim(
        claim.session(),
        claim.requester(),
        claim.requestId(),
        claim.intentDigest(),
        null,
        null,
        claim.multiplication(),
        claim.signedIntent(),
        claim.again());
  }

  private static Claim singly(Claim claim) {
    return new Claim(
        claim.session(),
        claim.requester(),
        claim.requestId(),
        claim.intentDigest(),
        claim.binding(),
        claim.instead(),
        null,
        claim.signedIntent(),
        claim.again());
  }

  // ---- shares ----------------------------------------------------------------------------------

  static KeyShareStore shares(KeyShareStore shares, Mutant mutant) {
    Map<String, Port.Instead> instead = ofShares(shares, mutant);
    return instead.isEmpty() ? shares : Port.with(KeyShareStore.class, shares, instead);
  }

  private static Map<String, Port.Instead> ofShares(KeyShareStore shares, Mutant mutant) {
    return switch (mutant) {
      case ERASES_EXCLUSIONS -> {
        Map<String, Set<Integer>> excluded = new HashMap<>();
        yield Map.of(
            "excluded",
            (real, given) -> {
              Set<Integer> all = ids(real.call(given));
              all.addAll(excluded.getOrDefault(given[0], Set.of()));
              return all;
            },
            "exclude",
            (_, given) -> {
              KeyShareStore.Exclusion exclusion = (KeyShareStore.Exclusion) given[0];
              excluded
                  .computeIfAbsent(exclusion.key(), _ -> new HashSet<>())
                  .addAll(exclusion.parties());
              return CompletableFuture.completedFuture(true);
            });
      }
      case EXCLUDES_EARLY ->
          Map.of(
              "excluded",
              (real, given) -> {
                Set<Integer> all = ids(real.call(given));
                shares.troubles().stream()
                    .filter(t -> t.key().equals(given[0]) && t.ends() >= KeyTrouble.WARN_AT)
                    .forEach(trouble -> all.add(trouble.party()));
                return all;
              });
      case MEETS_EXCLUDED ->
          Map.of(
              "excluded",
              (real, given) -> {
                Set<Integer> all = ids(real.call(given));
                all.removeIf(party -> party > 0);
                return all;
              });
      case IGNORES_OWN_ROLLBACK ->
          Map.of(
              "excluded",
              (real, given) -> {
                Set<Integer> all = ids(real.call(given));
                all.remove(KeyShareStore.ITSELF);
                return all;
              });
      case TELLS_OF_SHARES_EARLY -> {
        Map<Object, KeyShare> told = new HashMap<>();
        Port.Instead early =
            (real, given) -> {
              KeyShare share = (KeyShare) given[0];
              told.put(share.session(), share);
              real.call(given);
              return CompletableFuture.completedFuture(true);
            };
        // Nothing is told of a share that the store does not have.
        Port.Instead found =
            (real, given) ->
                share(real.call(given)).or(() -> Optional.ofNullable(told.get(given[0])));
        yield Map.of("storeProvisional", early, "storeNext", early, "ofSession", found);
      }
      case USES_OLD_SHARES -> {
        Map<Object, KeyShare> first = new HashMap<>();
        Port.Instead old =
            (real, given) -> {
              Optional<KeyShare> found = share(real.call(given));
              found
                  .filter(share -> share.state() == KeyShare.State.ACTIVE)
                  .ifPresent(share -> first.putIfAbsent(given[0], share));
              return Optional.ofNullable(first.get(given[0])).or(() -> found);
            };
        yield Map.of("find", old);
      }
      case USES_SHARES_EARLY ->
          Map.of(
              "find",
              (real, given) ->
                  shares
                      .pending((String) given[0])
                      .map(share -> share.activated(null))
                      .or(() -> share(real.call(given))));
      case FREEZES_FOR_ONE ->
          Map.of("exclude", (real, given) -> real.call(frozen((KeyShareStore.Exclusion) given[0])));
      case LOSES_ABANDONED_SHARES ->
          Map.of(
              "activate",
              (real, given) ->
                  ((KeyShare) given[0]).state() == KeyShare.State.ABANDONED
                      ? CompletableFuture.completedFuture(false)
                      : real.call(given));
      default -> Map.of();
    };
  }

  @SuppressWarnings("unchecked")
  private static Set<Integer> ids(@Nullable Object answer) {
    return new HashSet<>((Set<Integer>) Objects.requireNonNull(answer));
  }

  @SuppressWarnings("unchecked")
  private static Optional<KeyShare> share(@Nullable Object answer) {
    return (Optional<KeyShare>) Objects.requireNonNull(answer);
  }

  private static KeyShareStore.Exclusion frozen(KeyShareStore.Exclusion exclusion) {
    return new KeyShareStore.Exclusion(
        exclusion.key(),
        Set.of(KeyShareStore.EVERY_PARTY),
        exclusion.session(),
        exclusion.share(),
        exclusion.epoch(),
        exclusion.sealed());
  }

  /** The holds of the operator, from the start of a process on. */
  static Holds holds(Holds holds, Mutant mutant) {
    return switch (mutant) {
      case IGNORES_HOLDS -> List::of;
      case KEEPS_HOLDS -> {
        Set<Hold> ever = new LinkedHashSet<>();
        yield () -> {
          ever.addAll(holds.all());
          return List.copyOf(ever);
        };
      }
      default -> holds;
    };
  }

  // ---- ledgers of peers ------------------------------------------------------------------------

  static ShownClaims shown(ShownClaims shown, Mutant mutant) {
    return mutant == Mutant.FORGETS_LEDGERS
        ? Port.with(
            ShownClaims.class,
            shown,
            // This is about a peer's ledger; another argument stands for this party's own.
            Map.of(
                "wentBack",
                (real, given) ->
                    given[0] instanceof Integer
                        ? CompletableFuture.completedFuture(List.<String>of())
                        : real.call(given)))
        : shown;
  }

  // ---- the network -----------------------------------------------------------------------------

  /**
   * @param latest statement of a peer about its ledger; null before the first
   */
  static PartyNetwork network(
      PartyNetwork network, Mutant mutant, Function<Member, @Nullable ClaimCount> latest) {
    return switch (mutant) {
      // It answers a statement with that statement.
      case FORGETS_LEDGERS ->
          Port.with(
              PartyNetwork.class,
              network,
              Map.of(
                  "send",
                  (real, given) -> {
                    ClaimCount stated = latest.apply((Member) given[0]);
                    return ((PartyMessage) given[1]).hasClaimMemory() && stated != null
                        ? real.call(given[0], remembered(stated), given[2])
                        : real.call(given);
                  }));
      case LEAKS_PRIVATE ->
          Port.with(
              PartyNetwork.class,
              network,
              Map.of(
                  "send",
                  (real, given) -> {
                    if (((PartyMessage) given[1]).hasEnvelope()) {
                      for (Member member : network.roster().members()) {
                        if (!member.equals(network.self())) {
                          real.call(member, given[1], given[2]);
                        }
                      }
                      return null;
                    }
                    return real.call(given);
                  }));
      default -> network;
    };
  }

  private static PartyMessage remembered(ClaimCount stated) {
    return PartyMessage.newBuilder()
        .setClaimMemory(ClaimMemory.newBuilder().addRemembered(stated))
        .build();
  }

  // ---- the core --------------------------------------------------------------------------------

  static ProtocolCore core(ProtocolCore core, Mutant mutant) {
    return switch (mutant) {
      case CONVICTS_FOR_DUPLICATES -> atDuplicates(core, Weakened::convicts);
      case FAILS_ON_DUPLICATES -> atDuplicates(core, _ -> FAILURE);
      case REPEATS_PRESIGNATURE_NAMES -> new RepeatedNames(core).weakened();
      default -> core;
    };
  }

  private static final Abort FAILURE =
      Abort.newBuilder()
          .setRound(1)
          .setCause(AbortCause.ABORT_CAUSE_INTERNAL)
          .setAdvice(Advice.ADVICE_RETRY)
          .build();

  /** A run ends where the same message comes twice. */
  private static ProtocolCore atDuplicates(ProtocolCore core, IntFunction<Abort> end) {
    Port.Instead ending =
        (real, given) -> {
          Step step = (Step) Objects.requireNonNull(real.call(given));
          return step.getDropped().getReason() == RejectReason.REJECT_REASON_DUPLICATE
              ? Step.newBuilder().setAbort(end.apply((Integer) given[0])).build()
              : step;
        };
    return Port.with(
        ProtocolCore.class,
        core,
        Map.of(
            "start",
            (real, given) ->
                Port.with(
                    ProtocolCore.Run.class,
                    (ProtocolCore.Run) Objects.requireNonNull(real.call(given)),
                    Map.of("handle", ending))));
  }

  private static Abort convicts(int sender) {
    return Abort.newBuilder()
        .setRound(1)
        .setCause(AbortCause.ABORT_CAUSE_EQUIVOCATION)
        .addCulprits(sender)
        .setAdvice(Advice.ADVICE_EXCLUDE_PARTY)
        .build();
  }

  /** The core of a coordinator. */
  static MpcCore observer(MpcCore core, Mutant mutant) {
    return mutant == Mutant.COMBINES_EARLY ? observer(core, Weakened::combined) : core;
  }

  /**
   * A core whose steps are others.
   *
   * @param instead of a step of a session
   */
  static MpcCore observer(MpcCore core, BiFunction<SessionConfig, Step, Step> instead) {
    return Port.with(
        MpcCore.class,
        core,
        Map.of(
            "observe",
            (real, given) ->
                Port.with(
                    MpcSession.class,
                    (MpcSession) Objects.requireNonNull(real.call(given)),
                    Map.of(
                        "handle",
                        (heard, envelope) ->
                            instead.apply(
                                (SessionConfig) given[0],
                                (Step) Objects.requireNonNull(heard.call(envelope)))))));
  }

  /** Takes what it has for the signature. */
  static Step combined(SessionConfig config, Step step) {
    return step.hasWaiting()
        ? Step.newBuilder()
            .setDone(
                Done.newBuilder()
                    .setSignature(
                        ByteString.copyFrom(Identities.hash(config.getPayload().toByteArray()))))
            .build()
        : step;
  }
}
