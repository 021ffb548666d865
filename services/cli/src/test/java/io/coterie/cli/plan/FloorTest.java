package io.coterie.cli.plan;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.cli.plan.Floor.Operation;
import io.coterie.cli.plan.Floor.Places;
import io.coterie.cli.plan.Floor.Sending;
import java.util.List;
import java.util.function.ToDoubleBiFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class FloorTest {
  private static final ToDoubleBiFunction<String, String> ONE = (from, to) -> 1;

  private static Places apart(int parties) {
    return new Places(
        "client",
        "coordinator",
        "messaging",
        IntStream.rangeClosed(1, parties).mapToObj(p -> "party-" + p).toList());
  }

  private static double millis(Operation operation, Sending sending, Places places) {
    return new Floor(ONE, sending).millis(operation, places);
  }

  @ParameterizedTest
  @EnumSource(Operation.class)
  void groupMessagesTakeTheSameTimeForAnyNumberOfParties(Operation operation) {
    for (int parties : new int[] {2, 3, 20}) {
      assertThat(millis(operation, Sending.AT_ONCE, apart(parties)))
          .isEqualTo(operation.oneWayDelays());
    }
  }

  @Test
  void whatEachOperationNeeds() {
    // There and back from the client, the order by way of messaging, and each round likewise.
    assertThat(Operation.SIGN.oneWayDelays()).isEqualTo(6);
    assertThat(Operation.SIGN_PRESIGNED.oneWayDelays()).isEqualTo(6);
    assertThat(Operation.SIGN_FROST.oneWayDelays()).isEqualTo(8);
    assertThat(Operation.SIGN_ECDSA.oneWayDelays()).isEqualTo(10);
    assertThat(Operation.KEYGEN_BLS.oneWayDelays()).isEqualTo(14);
  }

  /**
   * By hand: the order leaves for the last after 2 (n - 1), its partial for the coordinator too.
   */
  @ParameterizedTest
  @CsvSource({"2, 10", "3, 14", "4, 18", "5, 22", "14, 58"})
  void oneAfterAnotherCostsARoundTripForEachFurtherRecipient(int parties, double expected) {
    assertThat(millis(Operation.SIGN_PRESIGNED, Sending.ONE_AFTER_ANOTHER, apart(parties)))
        .isEqualTo(expected);
    // With BLS the partial leaves for the coordinator alone.
    assertThat(millis(Operation.SIGN, Sending.ONE_AFTER_ANOTHER, apart(parties)))
        .isEqualTo(expected - 2 * (parties - 1));
  }

  @Test
  void privateMessagesLeaveAtOnceInEachMode() {
    // Order 2 + 2, two private rounds of 2, the last round 2 + 4, and the client's 2.
    assertThat(millis(Operation.SIGN_ECDSA, Sending.ONE_AFTER_ANOTHER, apart(3))).isEqualTo(18);
  }

  @Test
  void whoIsTogetherHasNoDistance() {
    Places home = new Places("home", "home", "home", List.of("party-1", "party-2"));
    assertThat(millis(Operation.SIGN, Sending.AT_ONCE, home)).isEqualTo(2);
    assertThat(millis(Operation.SIGN_PRESIGNED, Sending.ONE_AFTER_ANOTHER, home)).isEqualTo(4);
    Places all = new Places("home", "home", "home", List.of("home", "home"));
    assertThat(millis(Operation.KEYGEN_BLS, Sending.ONE_AFTER_ANOTHER, all)).isZero();
  }

  @Test
  void theFurthestPartyDecides() {
    ToDoubleBiFunction<String, String> distance =
        (from, to) -> from.equals("far") ? 40 : to.equals("far") ? 50 : 1;
    Floor floor = new Floor(distance, Sending.AT_ONCE);
    assertThat(
            floor.millis(
                Operation.SIGN, new Places("client", "home", "hub", List.of("near", "far"))))
        .isEqualTo(1 + 1 + 50 + 40 + 1 + 1);
    assertThat(floor.millis(Operation.SIGN, new Places("client", "home", "hub", List.of("near"))))
        .isEqualTo(6);
  }
}
