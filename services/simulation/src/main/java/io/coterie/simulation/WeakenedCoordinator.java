package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.session.CancelListener;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.mpc.MpcCore;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.attestation.Receipts;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.VerificationShare;
import io.coterie.proto.core.v1.Waiting;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionReport;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;

/** The ports of the coordinator's requests with one rule less. */
final class WeakenedCoordinator {
  private WeakenedCoordinator() {}

  /** Signings as a replica keeps them. */
  static SigningStore signings(SigningStore store, Mutant mutant) {
    return switch (mutant) {
      case TAKES_OVER_AT_ONCE -> takingOverOnce(store);
      case TAKES_UP_NOTHING ->
          Port.with(SigningStore.class, store, Map.of("takeAll", (_, _) -> List.of()));
      case TAKES_UP_ALL ->
          Port.with(SigningStore.class, store, Map.of("takeAll", (_, _) -> store.takeAll(true)));
      case LOSES_ENDS ->
          Port.with(SigningStore.class, store, Map.of("finish", (_, given) -> given[0]));
      default -> store;
    };
  }

  /**
   * Each request of another replica once: one that has expired is refused at once, which only its
   * own replica may store, and would be taken over again at the same time for ever.
   */
  private static SigningStore takingOverOnce(SigningStore store) {
    Set<UUID> takenOver = new HashSet<>();
    return Port.with(
        SigningStore.class,
        store,
        Map.of(
            "take",
            (_, given) -> {
              UUID id = (UUID) given[0];
              if (store.take(id).isPresent()) {
                return store.find(id);
              }
              return takenOver.add(id)
                  ? store.find(id).filter(record -> record.state() == Signing.State.PENDING)
                  : Optional.empty();
            }));
  }

  /** The way to the parties. */
  static SecureChannel channel(SecureChannel channel, Mutant mutant) {
    return switch (mutant) {
      case LEAVES_UNSETTLED -> carryingOnce(channel);
      case GIVES_UP_ORDERING -> givingUp(channel);
      default -> channel;
    };
  }

  private static SecureChannel carryingOnce(SecureChannel channel) {
    Set<PartyMessage> ordered = new HashSet<>();
    return Port.with(
        SecureChannel.class,
        channel,
        Map.of(
            "broadcast",
            (real, given) -> {
              PartyMessage message = Messages.parse((byte[]) given[1]);
              return message.hasOrder() && !ordered.add(message)
                  ? CompletableFuture.completedFuture(null)
                  : real.call(given);
            }));
  }

  private static SecureChannel givingUp(SecureChannel channel) {
    AtomicReference<CompletionStage<?>> refused = new AtomicReference<>();
    return Port.with(
        SecureChannel.class,
        channel,
        Map.of(
            "broadcast",
            (real, given) -> {
              if (!Messages.parse((byte[]) given[1]).hasOrder()) {
                return real.call(given);
              }
              CompletionStage<?> known = refused.get();
              if (known != null) {
                return known;
              }
              CompletionStage<?> taken = real.later(given);
              if (taken.toCompletableFuture().isCompletedExceptionally()) {
                refused.set(taken);
              }
              return taken;
            }));
  }

  /** The time in which callers wait. */
  static ReplicaTime time(ReplicaTime time, Mutant mutant) {
    return mutant == Mutant.WAITS_LONGER
        ? Port.with(
            ReplicaTime.class,
            time,
            Map.of("await", (real, given) -> real.call(given[0], 3 * (Long) given[1])))
        : time;
  }

  /** The core of a replica that clients ask. */
  static MpcCore observer(MpcCore core, Mutant mutant) {
    return switch (mutant) {
      case ANSWERS_EARLY -> Weakened.observer(core, Weakened::combined);
      case FORGETS_WITNESSES -> forgettingWitnesses(core);
      default -> core;
    };
  }

  /** Says of a session that is observed again that nobody has contributed. */
  private static MpcCore forgettingWitnesses(MpcCore core) {
    Set<ByteString> observed = new HashSet<>();
    Set<ByteString> again = new HashSet<>();
    MpcCore noticing =
        Port.with(
            MpcCore.class,
            core,
            Map.of(
                "observe",
                (real, given) -> {
                  ByteString session = ((SessionConfig) given[0]).getSessionId();
                  if (!observed.add(session)) {
                    again.add(session);
                  }
                  return real.call(given);
                }));
    return Weakened.observer(
        noticing,
        (config, step) ->
            step.hasWaiting() && again.contains(config.getSessionId())
                ? step.toBuilder()
                    .setWaiting(
                        Waiting.newBuilder()
                            .addAllMissing(
                                config.getPartiesList().stream().map(Party::getId).toList()))
                    .build()
                : step);
  }

  /**
   * As if all others said, too, that they have stored theirs, when a party says so of its share.
   * The lying coordinator hears it.
   */
  static List<InboundMessage> alsoHeard(World world, InboundMessage message) {
    PartyMessage body = Messages.parse(message.body());
    if (world.mutant() != Mutant.BELIEVES_ONE_FOR_ALL
        || !body.getReport().getCompleted().hasKeyPublic()) {
      return List.of();
    }
    SessionReport report = body.getReport();
    KeyPublic key = report.getCompleted().getKeyPublic();
    CompletedStatement stored =
        CompletedStatement.stored(
            Identities.INSTALLATION,
            report.getSessionId(),
            key,
            report.getCompleted().getIntentDigest());
    List<Integer> holders =
        key.getVerificationSharesList().stream().map(VerificationShare::getParty).toList();
    List<InboundMessage> heard = new ArrayList<>();
    for (int holder : holders) {
      Completed.Builder completed =
          report.getCompleted().toBuilder()
              .setActive(true)
              .setEvidenceSignature(Identities.sign(holder, stored.of(holder)))
              .setUseSignature(Identities.sign(holder, stored.inUse().of(holder)))
              .clearCertificate();
      holders.forEach(
          party ->
              completed.addCertificate(
                  EvidenceSignature.newBuilder()
                      .setParty(party)
                      .setSignature(Identities.sign(party, stored.of(party)))));
      heard.add(
          new InboundMessage(
              world.network().roster().byPartyId(holder).orElseThrow(),
              body.toBuilder()
                  .setReport(report.toBuilder().setCompleted(completed))
                  .build()
                  .toByteArray(),
              message.broadcast(),
              message.receivedNanos(),
              message.traceparent()));
    }
    return heard;
  }

  /** The way of the answers of parties to a cancellation. */
  static CancelListener answers(CancelListener answers, World world) {
    return world.mutant() == Mutant.TAKES_REFUSALS_FOR_RECEIPTS
        ? (party, answer) ->
            answers.cancelled(
                party, answer.hasRefused() ? never(world, party.partyId(), answer) : answer)
        : answers;
  }

  /** Turns the answer into one that says that the party never signs. */
  private static CancelAnswer never(World world, int party, CancelAnswer answer) {
    Receipt receipt =
        Receipts.about(
                Receipt.Kind.NEVER,
                world.requests().checker().cancellation(answer.getIntentDigest()),
                party)
            .build();
    return CancelAnswer.newBuilder()
        .setIntentDigest(answer.getIntentDigest())
        .setReceipt(Receipts.signed(receipt, Identities.sign(party, Receipts.statement(receipt))))
        .build();
  }
}
