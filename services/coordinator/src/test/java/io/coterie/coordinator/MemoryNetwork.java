package io.coterie.coordinator;

import io.coterie.channel.ChannelException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A secure channel in memory: messages of one sender to one receiver stay in order. */
final class MemoryNetwork implements AutoCloseable {
  private final Roster roster;
  private final Map<String, Endpoint> connected = new ConcurrentHashMap<>();
  private final Map<String, CompletableFuture<Void>> arrivals = new ConcurrentHashMap<>();

  /** While set, nothing is accepted for sending. */
  volatile boolean down;

  /** Members whose accounts are not what the roster says: the service refuses what is for them. */
  final Set<String> changed = ConcurrentHashMap.newKeySet();

  /** Requests made by the coordinator. */
  final AtomicInteger coordinatorSends = new AtomicInteger();

  MemoryNetwork(Roster roster) {
    this.roster = roster;
  }

  Roster roster() {
    return roster;
  }

  /** The channel of a member; connected when it is started. */
  SecureChannel channel(String name) {
    return new Endpoint(roster.byName(name).orElseThrow());
  }

  @Override
  public void close() {
    Set.copyOf(connected.values()).forEach(Endpoint::close);
  }

  private final class Endpoint implements SecureChannel {
    private final Member self;
    private final ExecutorService inbox;
    private volatile @Nullable Consumer<InboundMessage> receiver;

    Endpoint(Member self) {
      this.self = self;
      this.inbox =
          Executors.newSingleThreadExecutor(
              Thread.ofPlatform().daemon().name("net-" + self.name()).factory());
    }

    @Override
    public Member self() {
      return self;
    }

    @Override
    public Roster roster() {
      return roster;
    }

    @Override
    public void onMessage(Consumer<InboundMessage> receiver) {
      this.receiver = receiver;
    }

    @Override
    public void start() {
      connected.put(self.name(), this);
      arrival(self).complete(null);
    }

    private CompletableFuture<Void> arrival(Member member) {
      return arrivals.computeIfAbsent(member.name(), n -> new CompletableFuture<>());
    }

    @Override
    public CompletionStage<Void> established(Collection<Member> members) {
      return CompletableFuture.allOf(
          members.stream().map(this::arrival).toArray(CompletableFuture[]::new));
    }

    @Override
    public Set<Member> reachable() {
      Set<Member> reachable = new HashSet<>();
      for (Member member : roster.members()) {
        if (!member.equals(self) && connected.containsKey(member.name())) {
          reachable.add(member);
        }
      }
      return reachable;
    }

    @Override
    public CompletionStage<Void> broadcast(
        Collection<Member> recipients, byte[] body, SendOptions options) {
      if (down) {
        return CompletableFuture.failedFuture(
            new ChannelException(ChannelException.Cause.UNAVAILABLE, "down"));
      }
      if (self.role() == Member.Role.COORDINATOR) {
        coordinatorSends.incrementAndGet();
      }
      boolean refused = false;
      for (Member to : recipients) {
        if (changed.contains(to.name())) {
          refused = true;
        } else {
          transmit(to, body, true, options);
        }
      }
      return refused
          ? CompletableFuture.failedFuture(
              new ChannelException(ChannelException.Cause.UNAUTHENTICATED, "another access key"))
          : CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletionStage<Void> send(Member recipient, byte[] body, SendOptions options) {
      transmit(recipient, body, false, options);
      return CompletableFuture.completedFuture(null);
    }

    private void transmit(Member to, byte[] body, boolean broadcast, SendOptions options) {
      Endpoint target = connected.get(to.name());
      if (target == null || !connected.containsKey(self.name())) {
        return;
      }
      byte[] copy = body.clone();
      try {
        target.inbox.execute(
            () -> {
              Consumer<InboundMessage> to2 = target.receiver;
              if (to2 != null) {
                to2.accept(
                    new InboundMessage(
                        self, copy, broadcast, System.nanoTime(), options.traceparent()));
              }
            });
      } catch (RejectedExecutionException e) {
        // The receiver is gone: the message is lost, as on a real network.
      }
    }

    @Override
    public void close() {
      connected.remove(self.name(), this);
      arrivals.remove(self.name());
      inbox.shutdownNow();
    }
  }
}
