package io.coterie.channel;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.signal.libsignal.protocol.IdentityKeyPair;
import org.signal.libsignal.protocol.SignalProtocolAddress;

/** The key exchange with a hostile peer, over links that were never connected. */
class KeyExchangeTest {
  private TestServer server;
  private ProtocolStore store;
  private SignalProtocolAddress self;
  private Peer peer;
  private KeyExchange exchange;

  @BeforeEach
  void makeExchange() throws Exception {
    server = new TestServer();
    ChannelConfig config = ChannelConfig.of(server.uri(), server.caPem(), server.trustRootPublic());
    ChannelAccount account = server.enrol("+15550001000");
    Member own = Enrolment.member(account, "p1", Member.Role.PARTY, 1, "test", new byte[32]);
    Member other =
        Enrolment.member(
            server.enrol("+15550001001"), "p2", Member.Role.PARTY, 2, "test", new byte[32]);
    store =
        new ProtocolStore(new IdentityKeyPair(account.identityKeyPair()), account.registrationId());
    ChannelMetrics metrics = new ChannelMetrics(new SimpleMeterRegistry(), () -> 0);
    Link link =
        new Link(
            "none", config, PinnedTls.context(config.caPem()), null, null, Runnable::run, metrics);
    Messaging messaging = new Messaging(link, link, config, Runnable::run);
    Certificates certificates = new Certificates(own, config.trustRoot(), messaging);
    Outbox outbox = new Outbox(store, messaging, certificates, own, Runnable::run);
    self = new SignalProtocolAddress(own.aci().toString(), own.deviceId());
    peer = new Peer(other, Runnable::run, config, new AtomicLong());
    exchange =
        new KeyExchange(
            config, store, outbox, certificates, metrics, Runnable::run, own, List.of(peer));
  }

  @AfterEach
  void stopServer() throws Exception {
    server.close();
  }

  /** A peer names four keys of its own invention in each of many hellos. */
  @Test
  void keysThatWereNeverMadeAreNotRemembered() {
    UUID ours = exchange.senderKey().id();
    for (int i = 1; i <= 100; i++) {
      List<UUID> holds = new ArrayList<>(List.of(ours));
      Stream.generate(UUID::randomUUID).limit(3).forEach(holds::add);
      exchange.received(peer, new Frame.Hello(7, i, false, false, holds, List.of()));
    }
    assertThat(peer.offered).containsExactly(ours);
    assertThat(peer.holds).containsExactly(ours);
  }

  @Test
  void keyThatIsReplacedBeforeItsUseIsForgotten() {
    UUID current = exchange.senderKey().id();
    for (int i = 0; i < 5; i++) {
      exchange.rotate();
    }
    exchange.tick(System.nanoTime());
    assertThat(store.senderKeys(self)).hasSize(2).contains(current);
  }
}
