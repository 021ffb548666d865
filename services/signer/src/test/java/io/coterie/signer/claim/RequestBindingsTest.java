package io.coterie.signer.claim;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.signer.claim.ClaimLedger.Binding;
import io.coterie.signer.claim.RequestBindings.Standing;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A contribution that has left is not forgotten, however many other requests come. */
class RequestBindingsTest {
  private static final List<Integer> PARTIES = List.of(1, 2);

  private final RequestBindings bindings = new RequestBindings();

  private static SessionId session(int number) {
    return new SessionId(ByteString.copyFrom(ByteBuffer.allocate(32).putInt(number).rewind()));
  }

  private static Binding binding(String request, int session) {
    return new Binding(
        "wallet",
        request,
        session(session),
        ByteString.EMPTY,
        ByteString.EMPTY,
        Instant.parse("2026-11-26T08:00:00Z"));
  }

  private void others() {
    for (int i = 0; i < RequestBindings.MAX; i++) {
      bindings.bound(binding("other-" + i, 100 + i), PARTIES, null);
    }
  }

  @Test
  void what_was_given_in_a_session_before_is_given_although_that_was_forgotten() {
    bindings.bound(binding("asked", 1), PARTIES, null);
    assertThat(bindings.sent(session(1), ByteString.copyFromUtf8("contribution"), true)).isTrue();
    assertThat(bindings.declined(session(1), 1)).as("session 2 may take its place").isTrue();
    // Between the judgement of session 2 and its claim.
    others();
    assertThat(bindings.standing("wallet", "asked")).isEqualTo(new Standing.Unknown());
    bindings.bound(binding("asked", 2), PARTIES, session(1));
    bindings.ended(session(2));
    assertThat(bindings.standing("wallet", "asked")).isEqualTo(new Standing.Given());
  }

  @Test
  void a_request_whose_only_session_gave_nothing_is_over() {
    bindings.bound(binding("asked", 1), PARTIES, null);
    bindings.ended(session(1));
    bindings.bound(binding("asked", 2), PARTIES, session(1));
    bindings.ended(session(2));
    assertThat(bindings.standing("wallet", "asked")).isEqualTo(new Standing.Over(session(2)));
    others();
    assertThat(bindings.standing("wallet", "asked")).isEqualTo(new Standing.Unknown());
  }
}
