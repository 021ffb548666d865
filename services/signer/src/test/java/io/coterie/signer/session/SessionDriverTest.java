package io.coterie.signer.session;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;

/**
 * Runs the tests of every kind of session. Together they take every line of the table of states.
 */
class SessionDriverTest {
  @Nested
  class OfSigning extends SigningTest {}

  @Nested
  class OfBoundSigning extends BoundSigningTest {}

  @Nested
  class OfPresigning extends PresigningTest {}

  @Nested
  class OfMultiplication extends MultiplicationTest {}

  @Nested
  class OfNextEpoch extends NextEpochTest {}

  @Nested
  class OfKeyGeneration extends KeyGenerationTest {}

  @Nested
  class OfEndOfService extends EndOfServiceTest {}

  @AfterAll
  static void every_transition_was_visited() {
    assertThat(SessionFixture.VISITED)
        .containsExactlyInAnyOrderElementsOf(SessionLifecycle.TRANSITIONS);
  }
}
