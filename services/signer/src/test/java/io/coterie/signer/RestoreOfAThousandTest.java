package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A drill: alpha's store is put back in silence in the middle of a thousand signatures. Bravo and
 * the coordinator are hostile, and charlie alone tells alpha. Nothing that alpha has forgotten
 * comes back: no claim, no binding, no exclusion.
 */
@Timeout(300)
class RestoreOfAThousandTest {
  private static final String BLS = "keys/main";
  private static final String ECDSA = "keys/treasury-1";
  private static final int SIGNATURES = 1_000;

  /** Every so many of them is of the ECDSA key, whose signatures are random. */
  private static final int RANDOM = 20;

  @TempDir Path folder;
  private Installation i;

  /**
   * @param intent that was signed
   * @param order of its session
   */
  private record Made(SigningIntent intent, Order order, boolean random) {
    SessionId session() {
      return SessionId.ofOrder(order.toByteString());
    }
  }

  @BeforeEach
  void start() {
    i = Installation.faked(folder).start();
    i.createKey(BLS, 2);
    i.createEcdsaKey(ECDSA, 2);
  }

  @AfterEach
  void stop() {
    i.close();
  }

  private SigningIntent intent(int number, String requestId) {
    return i.named(
        number % RANDOM == 0
            ? i.digestIntent(ECDSA, ByteString.copyFrom(new byte[32])).setRequestId(requestId)
            : i.signingIntent(requestId, BLS, "message " + number));
  }

  private Order order(int number, SignedIntent intent) {
    // With charlie and with bravo by turns.
    int other = number % 2 == 0 ? 3 : 2;
    return number % RANDOM == 0
        ? i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, ECDSA, 2, 1, other)
            .setSignedIntent(intent)
            .build()
        : i.coordinator.signOrder(intent, BLS, 2, 1, other).build();
  }

  /** Of the random ones every other: its contribution is on disk with its claim. */
  private static boolean isPresigned(int number) {
    return number % (2 * RANDOM) == RANDOM;
  }

  private Order presigned(Order order) {
    SessionId session =
        i.coordinator.give(
            i.coordinator
                .order(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, ECDSA, 2, 1, 3)
                .setPresignatureCount(1)
                .setCoordinatorIncarnation(Installation.INCARNATION)
                .build());
    i.coordinator.awaitFrom("alpha", session);
    SessionReport report = i.coordinator.awaitFrom("charlie", session).report();
    return order.toBuilder()
        .setProtocol(ProtocolId.PROTOCOL_ID_ECDSA_SIGN_PRESIGNED)
        .setPresignatureId(report.getCompleted().getPresignatureIds(0))
        .build();
  }

  private Made sign(int number) {
    SigningIntent intent = intent(number, Installation.requestId());
    Order order = order(number, i.sign(intent));
    if (isPresigned(number)) {
      order = presigned(order);
    }
    Made made = new Made(intent, order, number % RANDOM == 0);
    i.coordinator.give(order);
    Installation.until("both shares", () -> i.coordinator.partials(made.session()) == 2);
    i.coordinator.envelopes.clear();
    return made;
  }

  /** Bravo and the coordinator confirm each head that alpha states, and tell of no other. */
  private void allConceal() {
    i.bravoConceals();
    i.coordinator.memory = (_, stated) -> ClaimMemory.newBuilder().addRemembered(stated).build();
  }

  @Test
  void nothing_that_was_forgotten_comes_back() {
    List<Made> all = new ArrayList<>();
    for (int number = 0; number < SIGNATURES / 2; number++) {
      all.add(sign(number));
    }
    Path copy = i.copy("alpha");
    i.party("alpha")
        .store
        .shares()
        .exclude(
            new KeyShareStore.Exclusion(
                ECDSA,
                Set.of(2),
                all.getFirst().session(),
                i.party("alpha").store.shares().find(ECDSA).orElseThrow().session(),
                1,
                ByteString.EMPTY))
        .toCompletableFuture()
        .join();
    for (int number = SIGNATURES / 2; number < SIGNATURES; number++) {
      // Not with bravo by the ECDSA key, from which it is excluded now.
      all.add(sign(number % RANDOM == 0 ? number : number | 1));
    }
    long claims = i.party("alpha").store.claims().position().claims();
    Installation.until(
        "charlie knows of all claims",
        () ->
            i.party("charlie").store.shownClaims().shown().stream()
                .anyMatch(shown -> shown.party() == 1 && shown.position().claims() == claims));

    allConceal();
    i.putBack("alpha", copy);
    assertThat(i.party("alpha").store.claims().bindings(SIGNATURES))
        .as("contributions of before")
        .filteredOn(binding -> !binding.envelope().isEmpty())
        .isNotEmpty();
    i.coordinator.drainReports();
    i.coordinator.envelopes.clear();
    int fenced = 0;
    List<Member> alpha = List.of(i.network.roster().byPartyId(1).orElseThrow());
    for (Made made : all) {
      // The identical order, and another intent under the same request id. To alpha alone: another
      // party that declines would end a session that still waits for the start.
      i.coordinator.giveBytes(made.order.toByteString(), alpha);
      SigningIntent.Builder other = made.intent.toBuilder().setPurpose("another");
      Order second = order(made.random ? 0 : 1, i.sign(other.build()));
      SessionId session = i.coordinator.giveBytes(second.toByteString(), alpha);
      SessionReport answer = i.coordinator.awaitFrom("alpha", session).report();
      assertThat(answer.hasRefused()).as("%s", answer).isTrue();
      assertThat(answer.getRefused().getReason())
          .isIn(RefusalReason.REFUSAL_REASON_FENCED, RefusalReason.REFUSAL_REASON_NEEDS_REFRESH);
      fenced += answer.getRefused().getReason() == RefusalReason.REFUSAL_REASON_FENCED ? 1 : 0;
      SessionReport first = i.coordinator.awaitFrom("alpha", made.session()).report();
      // Its deadline may be over before alpha's start is.
      assertThat(first.hasRefused() || first.hasTimedOut()).as("%s", first).isTrue();
    }
    assertThat(fenced).isEqualTo(SIGNATURES - SIGNATURES / RANDOM);
    assertThat(i.coordinator.envelopes.stream().filter(e -> e.sender().partyId() == 1))
        .as("what alpha said in all those sessions")
        .isEmpty();
    assertThat(i.party("alpha").store.shares().excluded(ECDSA))
        .as("whom it excluded it has forgotten, and that it has")
        .contains(KeyShareStore.ITSELF);
    assertThat(i.party("alpha").store.claims().position().log().number()).isEqualTo(2);
    sign(1);
  }
}
