package io.coterie.signer;

import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A secure channel in memory: messages of one sender to one receiver stay in order, everything else
 * is as fast as threads are. Members can be cut off, and messages held back or altered.
 */
public final class MemoryNetwork implements AutoCloseable {
  /** Looks at a message on its way; may alter it, or drop it by returning null. */
  public interface Tap {
    byte @Nullable [] pass(Member from, Member to, byte[] body);
  }

  private final Roster roster;
  private final Map<String, Endpoint> connected = new ConcurrentHashMap<>();
  private volatile Tap tap = (_, _, body) -> body;

  public MemoryNetwork(Roster roster) {
    this.roster = roster;
  }

  public Roster roster() {
    return roster;
  }

  public void tap(Tap tap) {
    this.tap = tap;
  }

  /** The channel of a member; connected when it is started. */
  public SecureChannel channel(String name) {
    return new Endpoint(roster.byName(name).orElseThrow());
  }

  @Override
  public void close() {
    List.copyOf(connected.values()).forEach(Endpoint::close);
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
    }

    @Override
    public CompletionStage<Void> established(Collection<Member> members) {
      return CompletableFuture.completedFuture(null);
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
      recipients.forEach(to -> transmit(to, body, true, options));
      return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletionStage<Void> send(Member recipient, byte[] body, SendOptions options) {
      transmit(recipient, body, false, options);
      return CompletableFuture.completedFuture(null);
    }

    private void transmit(Member to, byte[] body, boolean broadcast, SendOptions options) {
      byte[] passed = tap.pass(self, to, body.clone());
      Endpoint target = connected.get(to.name());
      if (passed == null || target == null || !connected.containsKey(self.name())) {
        return;
      }
      try {
        target.inbox.execute(
            () -> {
              Consumer<InboundMessage> receiver = target.receiver;
              if (receiver != null) {
                receiver.accept(
                    new InboundMessage(
                        self, passed, broadcast, System.nanoTime(), options.traceparent()));
              }
            });
      } catch (RejectedExecutionException e) {
        // The receiver is gone: the message is lost, as on a real network.
      }
    }

    @Override
    public void close() {
      connected.remove(self.name(), this);
      inbox.shutdownNow();
    }
  }
}
