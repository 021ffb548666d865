package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.ChannelException;
import io.coterie.channel.ChannelException.Cause;
import io.coterie.channel.SendMode;
import io.coterie.channel.link.Enrolment;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** A service that answers calls over REST without end. */
class LongAnswersTest {
  private static final TestServer.Answer LONG =
      new TestServer.Answer(
          200, List.of(), new byte[ChannelConfig.Limits.DEFAULT.maxWebSocketMessage() + 1]);

  @Test
  void an_answer_to_a_message_has_a_bound() throws Exception {
    try (TestServer server = new TestServer();
        TestGroup group =
            TestGroup.started(server, 2, config -> config.withSendMode(SendMode.NAMED_STORED))) {
      group.member(0).broadcast("first");
      server.intercept =
          request -> request.is("PUT", "/v1/messages/") ? Optional.of(LONG) : Optional.empty();
      assertThatThrownBy(() -> group.member(0).broadcast("second"))
          .cause()
          .isInstanceOfSatisfying(
              ChannelException.class, e -> assertThat(e.reason()).isEqualTo(Cause.UNAVAILABLE));
    }
  }

  @Test
  void an_answer_to_an_enrolment_has_a_bound() throws Exception {
    try (TestServer server = new TestServer()) {
      server.intercept =
          request -> request.is("POST", "/v1/registration") ? Optional.of(LONG) : Optional.empty();
      assertThatThrownBy(
              () -> Enrolment.enrol(server.uri(), server.caPem(), null, "+15550000001", "dG9rZW4="))
          .isInstanceOfSatisfying(
              ChannelException.class, e -> assertThat(e.reason()).isEqualTo(Cause.UNAVAILABLE))
          .hasMessageContaining("cannot be reached");
    }
  }
}
