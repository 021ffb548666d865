package io.coterie.coordinator.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.proto.party.v1.RefusalReason;
import org.junit.jupiter.api.Test;

/** The refusals for which a party is asked later than others. */
class RefusalScopeTest {
  @Test
  void a_refusal_is_of_the_party_unless_the_request_or_its_requester_is_the_reason() {
    assertThat(RefusalScope.isOfParty(RefusalReason.REFUSAL_REASON_OVERLOADED)).isTrue();
    assertThat(RefusalScope.isOfParty(RefusalReason.REFUSAL_REASON_REQUESTER_OVERLOADED)).isFalse();
    assertThat(RefusalScope.isOfParty(RefusalReason.REFUSAL_REASON_FORBIDDEN)).isFalse();
  }
}
