package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationLies.honest;
import static io.coterie.platform.attestation.AttestationProblem.*;
import static io.coterie.platform.attestation.TestSession.KEY;
import static io.coterie.platform.attestation.TestSession.trust;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.platform.attestation.AttestationLies.Lie;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every lie about a key that a coordinator could tell, alone or with parties. */
class AttestationLiesTest {
  static List<Lie> lies() {
    return Stream.of(
            AttestationLies.answers(),
            AttestationLies.intents(),
            PartyLies.statements(),
            PartyLies.publicData(),
            PartyLies.chains())
        .flatMap(List::stream)
        .toList();
  }

  @ParameterizedTest
  @MethodSource("lies")
  void a_lie_is_refused_for_what_it_is(Lie lie) throws Exception {
    assertThat(AttestedKey.of(KEY, honest(), trust()).epoch()).isEqualTo(2);
    assertThatThrownBy(() -> AttestedKey.of(KEY, lie.key(), trust()))
        .isInstanceOfSatisfying(
            AttestationException.class,
            e -> {
              assertThat(e.problem()).as(e.getMessage()).isEqualTo(lie.problem());
              assertThat(e.getMessage()).hasLineCount(1).endsWith(".").doesNotContain("%");
            });
  }

  @Test
  void every_problem_has_a_lie_that_shows_it() {
    Set<AttestationProblem> shown =
        lies().stream()
            .map(Lie::problem)
            .collect(Collectors.toCollection(() -> EnumSet.noneOf(AttestationProblem.class)));
    // The name is the caller's, and ambiguity is a fault of the trust file: see AttestedKeyTest.
    shown.addAll(Set.of(NAME_MALFORMED, PARTIES_AMBIGUOUS));
    shown.addAll(CurrentProofTest.problems());
    shown.addAll(NeverProofTest.problems());
    shown.addAll(TrustedGroupTest.problems());
    assertThat(shown).containsExactlyInAnyOrder(AttestationProblem.values());
  }

  @Test
  void a_name_that_is_none_is_not_asked_about() {
    for (String name : List.of("", "hot-1", "keys/", "keys/A", "keys/a\nb", "keys/a/b")) {
      assertThatThrownBy(
              () -> AttestedKey.of(name, honest().toBuilder().setName(name).build(), trust()))
          .isInstanceOfSatisfying(
              AttestationException.class, e -> assertThat(e.problem()).isEqualTo(NAME_MALFORMED));
    }
  }
}
