package io.coterie.channel.signal;

import io.coterie.channel.ChannelConfig;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A messaging service of its own for each test. */
abstract class ServerFixture {
  TestServer server;

  @BeforeEach
  void startServer() throws Exception {
    server = new TestServer();
  }

  @AfterEach
  void stopServer() throws Exception {
    server.close();
  }

  /** What the service keeps for a member. */
  TestServer.Account account(TestGroup.TestMember each) {
    return server.accounts.get(each.entry().aci());
  }

  /** The default limits but two. */
  static ChannelConfig.Limits limits(int maxQueued, int senderKeyMessages) {
    ChannelConfig.Limits d = ChannelConfig.Limits.DEFAULT;
    return new ChannelConfig.Limits(
        d.maxBody(),
        d.chunk(),
        d.maxWebSocketMessage(),
        maxQueued,
        d.maxRequests(),
        d.maxInbound(),
        d.maxReassemblies(),
        d.maxReassemblyBytes(),
        d.maxHeld(),
        d.maxHeldBytes(),
        d.preKeyBatch(),
        senderKeyMessages,
        d.cryptoThreads());
  }
}
