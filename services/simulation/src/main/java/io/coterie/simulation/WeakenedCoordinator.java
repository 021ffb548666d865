package io.coterie.simulation;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.coordinator.session.CancelListener;
import io.coterie.platform.attestation.Receipts;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.PartyMessage;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

/** The ports of the coordinator's requests with one rule less. */
final class WeakenedCoordinator {
  private WeakenedCoordinator() {}

  /** Signings as a replica keeps them. */
  static SigningStore signings(SigningStore store, Mutant mutant) {
    return switch (mutant) {
      case TAKES_OVER_AT_ONCE ->
          Port.with(
              SigningStore.class,
              store,
              Map.of("take", (_, given) -> pending(store, (UUID) given[0])));
      case TAKES_UP_ALL ->
          Port.with(SigningStore.class, store, Map.of("takeAll", (_, _) -> store.takeAll(true)));
      case LOSES_ENDS ->
          Port.with(SigningStore.class, store, Map.of("finish", (_, given) -> given[0]));
      default -> store;
    };
  }

  private static Optional<SigningRecord> pending(SigningStore store, UUID id) {
    return store.take(id).isPresent()
        ? store.find(id)
        : store.find(id).filter(record -> record.state() == Signing.State.PENDING);
  }

  /** The way to the parties, which carries each order once. */
  static SecureChannel channel(SecureChannel channel, Mutant mutant) {
    if (mutant != Mutant.LEAVES_UNSETTLED) {
      return channel;
    }
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
