package io.coterie.channel.signal;

import io.coterie.channel.ChannelAccount;
import io.coterie.channel.ChannelConfig;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.link.Enrolment;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/** Members of one roster, each with a channel, at one test server. */
final class TestGroup implements AutoCloseable {
  static final long PATIENCE_SECONDS = 60;

  final TestServer server;
  final List<ChannelAccount> accounts = new ArrayList<>();
  final Roster roster;
  final List<TestMember> all = new ArrayList<>();

  /** Makes the registry of each channel that is started from here on. */
  Supplier<SimpleMeterRegistry> registries = SimpleMeterRegistry::new;

  private final UnaryOperator<ChannelConfig> configure;

  /** One member: its channel of the moment and all it has received, over all its processes. */
  final class TestMember {
    final int index;
    final List<InboundMessage> received = new CopyOnWriteArrayList<>();
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    SignalChannel channel;

    TestMember(int index) {
      this.index = index;
    }

    Member entry() {
      return roster.byAddress(accounts.get(index).aci(), 1).orElseThrow();
    }

    void start() {
      start(received::add);
    }

    void start(Consumer<InboundMessage> receiver) {
      registry = registries.get();
      channel =
          SignalChannel.open(
              configure.apply(
                  ChannelConfig.of(server.uri(), server.caPem(), server.trustRootPublic())),
              accounts.get(index),
              roster,
              registry);
      channel.onMessage(receiver);
      channel.start();
    }

    void stop() {
      channel.close();
    }

    void broadcast(String text) throws Exception {
      broadcast(roster.members(), text);
    }

    void broadcast(Collection<Member> to, String text) throws Exception {
      channel
          .broadcast(
              to, text.getBytes(StandardCharsets.UTF_8), SecureChannel.SendOptions.online(null))
          .toCompletableFuture()
          .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    void send(TestMember to, String text) throws Exception {
      channel
          .send(
              to.entry(),
              text.getBytes(StandardCharsets.UTF_8),
              SecureChannel.SendOptions.online(null))
          .toCompletableFuture()
          .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    List<String> texts() {
      return received.stream().map(m -> new String(m.body(), StandardCharsets.UTF_8)).toList();
    }

    double rejected(ChannelMetrics.Rejection cause) {
      return registry
          .counter(
              ChannelMetrics.REJECTED, "cause", cause.name().toLowerCase(java.util.Locale.ROOT))
          .count();
    }
  }

  TestGroup(TestServer server, int size, UnaryOperator<ChannelConfig> configure) {
    this.server = server;
    this.configure = configure;
    List<Member> members = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      ChannelAccount account = server.enrol("+1555000" + (1000 + i));
      accounts.add(account);
      members.add(
          Enrolment.member(account, "p" + (i + 1), Member.Role.PARTY, i + 1, "test", new byte[32]));
      all.add(new TestMember(i));
    }
    roster = new Roster("test", 1, members);
  }

  static TestGroup started(TestServer server, int size) throws Exception {
    return started(server, size, config -> config);
  }

  static TestGroup started(TestServer server, int size, UnaryOperator<ChannelConfig> configure)
      throws Exception {
    TestGroup group = new TestGroup(server, size, configure);
    group.all.forEach(TestMember::start);
    group.awaitEstablished();
    return group;
  }

  TestMember member(int index) {
    return all.get(index);
  }

  void awaitEstablished() throws Exception {
    awaitEstablished(all);
  }

  void awaitEstablished(Collection<TestMember> among) throws Exception {
    List<Member> members = among.stream().map(TestMember::entry).toList();
    for (TestMember each : among) {
      each.channel
          .established(members)
          .toCompletableFuture()
          .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }
  }

  static List<Integer> range(int size) {
    return IntStream.range(0, size).boxed().toList();
  }

  @Override
  public void close() {
    all.forEach(
        each -> {
          if (each.channel != null) {
            each.channel.close();
          }
        });
  }
}
