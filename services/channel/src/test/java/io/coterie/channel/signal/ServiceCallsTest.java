package io.coterie.channel.signal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.coterie.channel.link.Link;
import io.coterie.channel.telemetry.ChannelMetrics;
import io.coterie.proto.signal.Envelope;
import io.coterie.trust.Roster;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.management.LockInfo;
import java.lang.management.ManagementFactory;
import java.lang.management.MonitorInfo;
import java.lang.management.ThreadInfo;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;

/**
 * A service that does not read stops the thread that writes to it: no such thread may hold a lock
 * that others need, or be the timer, which supervises the sockets.
 */
class ServiceCallsTest extends ServerFixture {
  private static final Duration PATIENCE = Duration.ofSeconds(TestGroup.PATIENCE_SECONDS);

  /** Sees the thread of each request that goes to the service, at the moment it is counted. */
  private static final class Probe extends SimpleMeterRegistry {
    final Set<String> threads = ConcurrentHashMap.newKeySet();
    final Set<String> locks = ConcurrentHashMap.newKeySet();

    @Override
    protected Counter newCounter(Meter.Id id) {
      Counter counter = super.newCounter(id);
      if (!id.getName().equals(ChannelMetrics.REQUESTS)) {
        return counter;
      }
      return new Counter() {
        @Override
        public void increment(double amount) {
          look();
          counter.increment(amount);
        }

        @Override
        public double count() {
          return counter.count();
        }

        @Override
        public Meter.Id getId() {
          return id;
        }
      };
    }

    private void look() {
      Thread thread = Thread.currentThread();
      threads.add(thread.getName());
      ThreadInfo info =
          ManagementFactory.getThreadMXBean()
              .getThreadInfo(new long[] {thread.threadId()}, true, true)[0];
      for (MonitorInfo monitor : info.getLockedMonitors()) {
        String holder = monitor.getLockedStackFrame().getClassName();
        // Link puts a request in its queue under its own lock, and writes afterwards.
        if (holder.startsWith("io.coterie.") && !holder.equals(Link.class.getName())) {
          locks.add(monitor.getClassName() + " of " + monitor.getLockedStackFrame());
        }
      }
      for (LockInfo lock : info.getLockedSynchronizers()) {
        if (lock.getClassName().startsWith(ReentrantLock.class.getName())) {
          locks.add(lock.toString());
        }
      }
    }
  }

  @Test
  void noLockIsHeldWhileTheServiceIsCalled() throws Exception {
    try (TestGroup group = new TestGroup(server, 3, config -> config)) {
      Probe probe = new Probe();
      group.registries = () -> probe;
      List<Envelope> sent = new CopyOnWriteArrayList<>();
      server.tap =
          envelope -> {
            sent.add(envelope);
            return List.of(envelope);
          };
      group.member(0).start();
      group.member(1).start();
      group.awaitEstablished(group.all.subList(0, 2));
      sent.clear();
      group.member(0).send(group.member(1), "under a session that ends");
      await().atMost(PATIENCE).until(() -> !group.member(1).received.isEmpty());
      List<Envelope> old = List.copyOf(sent);
      server.tap = List::of;
      group.member(1).stop();
      group.member(1).start();
      group.awaitEstablished(group.all.subList(0, 2));

      // Messages that the new process cannot read make it open another session.
      TestServer.Account account = server.accounts.get(group.member(1).entry().aci());
      int before = server.count("GET keys");
      await()
          .atMost(PATIENCE)
          .until(
              () -> {
                old.forEach(envelope -> server.deliver(account, envelope, true, null));
                return server.count("GET keys") > before;
              });
      group.member(2).start();
      Roster smaller =
          new Roster("test", 2, List.of(group.member(0).entry(), group.member(1).entry()));
      group.member(0).channel.updateRoster(smaller);
      group.member(0).channel.updateRoster(new Roster("test", 3, group.roster.members()));
      group.awaitEstablished();
      assertThat(probe.locks).isEmpty();
    }
  }

  @Test
  void timerWritesToNoSocket() throws Exception {
    server.certificateLifetime = Duration.ofSeconds(2);
    try (TestGroup group = new TestGroup(server, 2, config -> config.withTiming(Timings.busy()))) {
      Probe probe = new Probe();
      group.registries = () -> probe;
      // The other member is not there, so that hellos are repeated and sessions opened anew.
      group.member(0).start();
      int certificates = server.count("GET certificate");
      await().atMost(PATIENCE).until(() -> server.count("GET keepalive") >= 3);
      await().atMost(PATIENCE).until(() -> server.count("GET certificate") >= certificates + 2);
      await().atMost(PATIENCE).until(() -> server.count("GET keys") >= 3);
      group.member(1).start();
      group.awaitEstablished();
      assertThat(probe.threads).isNotEmpty().noneMatch(name -> name.endsWith("-timer"));
    }
  }
}
