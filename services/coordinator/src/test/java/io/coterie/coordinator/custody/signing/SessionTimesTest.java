package io.coterie.coordinator.custody.signing;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.coordinator.custody.request.RunLimits;
import io.coterie.coordinator.session.AdaptiveTimeout;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.RefusalReason;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The parties that were asked more than they can do. */
class SessionTimesTest {
  private static final Instant NOW = Instant.parse("2030-01-01T00:00:00Z");
  private static final Duration SECOND = Duration.ofSeconds(1);

  private static SessionTimes times(Scheme scheme) {
    SigningIntent intent =
        SigningIntent.newBuilder()
            .setRequestId(RequestId.next())
            .setScheme(scheme)
            .setNotAfter(Timestamp.newBuilder().setSeconds(NOW.getEpochSecond() + 60))
            .build();
    return new SessionTimes(
        new AdaptiveTimeout(SECOND, SECOND, SECOND),
        new RunLimits(1, 1, 1, SECOND),
        Clock.fixed(NOW, ZoneOffset.UTC),
        null,
        new VerifiedIntent.Signing(
            "wallet", ByteString.EMPTY, SignedIntent.getDefaultInstance(), intent));
  }

  private static SessionOutcome refused(int party, RefusalReason reason) {
    return new SessionOutcome.Refused(Map.of(party, reason), Map.of());
  }

  @Test
  void a_party_that_does_not_answer_is_one_of_them_where_others_can_tell() {
    SessionOutcome silence = new SessionOutcome.TimedOut(1, Set.of(1, 2));
    assertThat(times(Scheme.SCHEME_ED25519).overloaded(silence)).contains(Set.of(1, 2));
    assertThat(times(Scheme.SCHEME_ED25519_EXACT).overloaded(silence))
        .as("one of the two may have been kept waiting by the other")
        .isEmpty();
  }

  @Test
  void a_party_that_says_so_is_one_of_them() {
    for (Scheme scheme : Set.of(Scheme.SCHEME_ED25519, Scheme.SCHEME_ED25519_EXACT)) {
      SessionTimes times = times(scheme);
      assertThat(times.overloaded(refused(2, RefusalReason.REFUSAL_REASON_OVERLOADED)))
          .contains(Set.of(2));
      assertThat(times.overloaded(refused(2, RefusalReason.REFUSAL_REASON_INTENT_EXPIRED)))
          .as("the order came late")
          .contains(Set.of(2));
      assertThat(times.overloaded(refused(2, RefusalReason.REFUSAL_REASON_FORBIDDEN))).isEmpty();
    }
  }
}
