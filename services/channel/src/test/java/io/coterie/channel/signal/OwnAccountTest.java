package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.channel.ChannelConfig;
import io.coterie.channel.link.Link;
import io.coterie.channel.link.Messaging;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.proto.signal.WebSocketRequestMessage;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class OwnAccountTest {
  private static final class Nobody implements Link.Listener {
    @Override
    public void onRequest(
        Link.Connection from, WebSocketRequestMessage request, int bytes, long nanos) {
      throw new AssertionError("nobody is connected");
    }
  }

  @Test
  void while_the_service_does_not_answer_two_settings_of_the_key_are_all_there_is()
      throws Exception {
    try (TestServer server = new TestServer();
        TestGroup group = new TestGroup(server, 2, config -> config)) {
      ChannelConfig config =
          ChannelConfig.of(server.uri(), server.caPem(), server.trustRootPublic());
      OwnAccount account = new OwnAccount(group.accounts.getFirst(), group.roster);
      // It is never started, so what is asked waits.
      try (Link link =
          new Link(
              "waiting",
              config,
              server.pinned(),
              account.authorization(),
              new Nobody(),
              Runnable::run,
              new ChannelMetrics(new SimpleMeterRegistry(), () -> 0))) {
        Messaging messaging = new Messaging(link, link, null, config, Runnable::run);
        Set<CompletableFuture<Boolean>> asked = Collections.newSetFromMap(new IdentityHashMap<>());
        for (int i = 0; i < 1_000; i++) {
          asked.add(account.publish(messaging));
        }
        assertThat(asked).hasSize(2);
        assertThat(account.unpublished()).as("while a request is under way").isFalse();
      }
      // The end of the connection ends both, and then it is asked anew.
      assertThat(account.unpublished()).isTrue();
    }
  }
}
