package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.cli.terminal.ExitCode;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
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

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
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
    String[] create = {"keys", "create", "hot", "--scheme", "bls12381", "--threshold", "2"};
    List<String> all = new ArrayList<>(List.of(create));
    all.addAll(List.of("--parties", "p1,p2,p3"));
    assertThat(coterie(all.toArray(String[]::new)).exitCode()).isZero();
    SignedIntent created = coordinator.intents.getLast();
    Key honest = coordinator.key(NAME);
    coordinator.renews = false;
    SignedIntent forged = reshare("1", "p1", "1");
    SignedIntent last = reshare("2", "p1,p2,p3", "3");

    coordinator.aboutKeys =
        answer ->
            coordinator.calls.getLast().equals("getKey")
                ? answer
                : shown(created, forged, last, honest);
    Run refresh = coterie("keys", "refresh", "hot", "--epoch", "2");
    assertThat(refresh.exitCode()).as(refresh.out()).isEqualTo(ExitCode.REFUSED);
    assertThat(refresh.out()).isEmpty();
    assertThat(refresh.err())
        .contains(
            "keys/hot is not known to have new shares by this intent: it shows epoch 4 by another"
                + " one, or by this one for fewer parties than the trust file asks for now");
  }

  /** The refresh lies between the two reshares. */
  private static Key shown(
      SignedIntent created, SignedIntent forged, SignedIntent last, Key honest) {
    TestHolding holding = new TestHolding(NAME, Scheme.SCHEME_BLS12381, honest.getRequestId());
    holding.complete(created, 1, 2, List.of(1, 2, 3));
    holding.complete(forged, 2, 1, List.of(1));
    holding.complete(coordinator.intents.getLast(), 3, 1, List.of(1));
    holding.complete(last, 4, 2, List.of(1, 2, 3));
    return holding.answer();
  }
}
