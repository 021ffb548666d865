package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * One corrupt party and a thief of the wallet's key show an earlier reshare of the key to that
 * party alone, and what the wallet asks for as done by it.
 */
class ForgedReshareTest {
  private static final String NAME = "keys/hot";

  @TempDir static Path folder;
  private static FakeCoordinator coordinator;
  private static SignedIntent created;
  private static Key honest;

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    String[] create = {"keys", "create", "hot", "--scheme", "bls12381", "--threshold", "2"};
    List<String> all = new ArrayList<>(List.of(create));
    all.addAll(List.of("--parties", "p1,p2,p3"));
    assertThat(coterie(all.toArray(String[]::new)).exitCode()).isZero();
    created = coordinator.intents.getLast();
    honest = coordinator.key(NAME);
  }

  @BeforeEach
  void honest() {
    coordinator.honest();
    coordinator.renews = false;
  }

  @AfterAll
  static void stop() throws Exception {
    coordinator.close();
  }

  private static Run coterie(String... args) {
    return Run.ofWallet(
        question -> Optional.of("y"),
        folder.resolve("trust.json"),
        coordinator.port(),
        List.of(args));
  }

  private static SignedIntent reshare(String threshold, String parties, String epoch) {
    coterie(
        "keys", "reshare", "hot", "--threshold", threshold, "--parties", parties, "--epoch", epoch);
    return coordinator.intents.getLast();
  }

  @Test
  void a_refresh_that_only_those_parties_have_signed_is_not_reported() {
    SignedIntent forged = reshare("1", "p1", "1");
    SignedIntent last = reshare("2", "p1,p2,p3", "3");

    coordinator.aboutKeys =
        answer -> coordinator.calls.getLast().equals("getKey") ? answer : shown(forged, last);
    Run refresh = coterie("keys", "refresh", "hot", "--epoch", "2");
    assertThat(refresh.exitCode()).as(refresh.out()).isEqualTo(ExitCode.REFUSED);
    assertThat(refresh.out()).isEmpty();
    assertThat(refresh.err())
        .contains(
            "keys/hot is not known to have new shares by this intent: it shows epoch 4 by another"
                + " one, or by this one for fewer parties than the trust file asks for now");
  }

  @Test
  void a_reshare_to_fewer_than_the_trust_file_asks_for_is_not_reported() {
    SignedIntent last = reshare("2", "p1,p2,p3", "2");
    coordinator.aboutKeys =
        answer ->
            coordinator.calls.getLast().equals("getKey")
                ? answer
                : shown(coordinator.intents.getLast(), 1, last);
    String[] reshare = {"keys", "reshare", "hot", "--threshold", "1", "--parties", "p1"};
    List<String> args = new ArrayList<>(List.of(reshare));
    args.addAll(List.of("--epoch", "1"));
    Run run = coterie(args.toArray(String[]::new));
    assertThat(run.exitCode()).as(run.out()).isEqualTo(ExitCode.REFUSED);
    assertThat(run.out()).isEmpty();
    assertThat(run.err())
        .contains(
            "keys/hot was not given to these parties by this intent, or they are fewer than the"
                + " trust file asks for now");
  }

  @Test
  void the_coordinators_word_counts_for_no_party_that_only_those_have_named() {
    SignedIntent forged = reshare("1", "p4", "1");
    SignedIntent last = reshare("2", "p1,p2,p3", "2");
    coordinator.aboutKeys = _ -> shown(forged, 4, last);
    Map<String, String> said =
        Map.of(StatusErrors.PARTY, "p2,p4", StatusErrors.CAUSE, "REFUSAL_REASON_ON_HOLD");
    coordinator.aboutSignings =
        _ -> {
          throw StatusErrors.of(new CustodyException(ErrorReason.ON_HOLD, said, List.of()));
        };
    Run run = coterie("sign", "hot", "-m", "hello", "--scheme", "bls12381");
    assertThat(run.err())
        .contains("the coordinator says that party p2 refused: ON_HOLD")
        .doesNotContain("that party p4");
  }

  private static Key shown(SignedIntent forged, int party, SignedIntent last) {
    TestHolding holding = new TestHolding(NAME, Scheme.SCHEME_BLS12381, honest.getRequestId());
    holding.complete(created, 1, 2, List.of(1, 2, 3));
    holding.complete(forged, 2, 1, List.of(party));
    holding.complete(last, 3, 2, List.of(1, 2, 3));
    return holding.answer();
  }

  /** The refresh lies between the two reshares. */
  private static Key shown(SignedIntent forged, SignedIntent last) {
    TestHolding holding = new TestHolding(NAME, Scheme.SCHEME_BLS12381, honest.getRequestId());
    holding.complete(created, 1, 2, List.of(1, 2, 3));
    holding.complete(forged, 2, 1, List.of(1));
    holding.complete(coordinator.intents.getLast(), 3, 1, List.of(1));
    holding.complete(last, 4, 2, List.of(1, 2, 3));
    return holding.answer();
  }
}
