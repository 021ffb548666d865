package io.coterie.simulation;

import io.coterie.channel.ChannelException;
import io.coterie.channel.InboundMessage;
import io.coterie.channel.SecureChannel;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The channel and messaging: hostile messaging loses, delays, repeats and reorders what it cannot
 * read, and decides who reaches whom. Each link draws its fates from a stream of its own.
 */
final class SimulatedNetwork {
  /** Faults of the network. */
  enum Fault {
    DROPPED,
    DELAYED,
    DUPLICATED,
    REORDERED,
    CUT_OFF,
    UNAVAILABLE
  }

  /** Sees every message at its sender, and may put others in its place. */
  interface Tap {
    /** The bodies that leave in the place of this one. */
    List<byte[]> sent(Member from, Member to, byte[] body, boolean broadcast);

    /** A message has come to a member. */
    void arrived(Member from, Member to, byte[] body);
  }

  private static final long MIN_LATENCY_NANOS = 300_000;
  private static final long MAX_LATENCY_NANOS = 30_000_000;
  private static final long MAX_DELAY_NANOS = 3_000_000_000L;

  /** The time between two looks whether members can be reached. */
  private static final long LOOK_NANOS = 100_000_000;

  private final Timeline timeline;
  private final Roster roster;
  private final Chance chance;
  private final Faults faults;
  private final Coverage coverage;
  private final Tap tap;
  private final Map<String, Link> links = new HashMap<>();
  private final Map<String, Set<Endpoint>> connected = new HashMap<>();
  private final Set<String> cut = new HashSet<>();

  /** So many of 1000 messages meet each fault but a cut. */
  private int faultsPerMille;

  private static final class Link {
    final Chance chance;
    long lastArrivalNanos;
    int messages;

    Link(Chance chance) {
      this.chance = chance;
    }

    /** The fate of the next message, by a stream of its own. */
    Chance fate() {
      return chance.part(Integer.toString(++messages));
    }
  }

  SimulatedNetwork(
      Timeline timeline, Roster roster, Chance chance, Faults faults, Coverage coverage, Tap tap) {
    this.timeline = timeline;
    this.roster = roster;
    this.chance = chance;
    this.faults = faults;
    this.coverage = coverage;
    this.tap = tap;
  }

  Roster roster() {
    return roster;
  }

  void faultsPerMille(int now) {
    faultsPerMille = now;
  }

  /** From now on nothing goes from one member to another. */
  void cut(String from, String to) {
    cut.add(from + ">" + to);
  }

  /** Everybody reaches everybody. */
  void heal() {
    cut.clear();
  }

  /** The channel of a process of a member; connected when it is started. */
  SecureChannel channel(Member self) {
    return new Endpoint(self);
  }

  private void transmit(
      Endpoint sender, Member to, byte[] body, boolean broadcast, @Nullable String traceparent) {
    String way = sender.self.name() + ">" + to.name();
    for (byte[] leaving : tap.sent(sender.self, to, body, broadcast)) {
      Link link = link(way);
      Chance fate = link.fate();
      if (cut.contains(way)) {
        coverage.count("fault " + Fault.CUT_OFF);
      } else if (!hit(fate, Fault.DROPPED, way)) {
        carry(link, fate, sender.self, to, leaving, broadcast, traceparent);
        if (hit(fate, Fault.DUPLICATED, way)) {
          carry(link, fate, sender.self, to, leaving, broadcast, traceparent);
        }
      }
    }
  }

  private Link link(String way) {
    return links.computeIfAbsent(way, name -> new Link(chance.part(name)));
  }

  private void carry(
      Link link,
      Chance fate,
      Member from,
      Member to,
      byte[] body,
      boolean broadcast,
      @Nullable String traceparent) {
    String way = from.name() + ">" + to.name();
    long latency = fate.between(MIN_LATENCY_NANOS, MAX_LATENCY_NANOS);
    long delay = fate.between(0, MAX_DELAY_NANOS);
    if (hit(fate, Fault.DELAYED, way)) {
      latency += delay;
    }
    long at = timeline.nanos() + latency;
    if (!hit(fate, Fault.REORDERED, way)) {
      at = Math.max(at, link.lastArrivalNanos);
      link.lastArrivalNanos = at;
    }
    timeline.in(at - timeline.nanos(), () -> arrive(from, to, body, broadcast, traceparent));
  }

  private void arrive(
      Member from, Member to, byte[] body, boolean broadcast, @Nullable String traceparent) {
    Set<Endpoint> receivers = connected.getOrDefault(to.name(), Set.of());
    if (receivers.isEmpty()) {
      return;
    }
    tap.arrived(from, to, body);
    for (Endpoint endpoint : List.copyOf(receivers)) {
      Consumer<InboundMessage> receiver = endpoint.receiver;
      if (receiver != null) {
        receiver.accept(
            new InboundMessage(from, body.clone(), broadcast, timeline.nanos(), traceparent));
      }
    }
  }

  /** Whether a fault hits a message. */
  private boolean hit(Chance fate, Fault fault, String way) {
    if (!fate.perMille(faultsPerMille) || !faults.strikes(fault + " " + way)) {
      return false;
    }
    coverage.count("fault " + fault);
    return true;
  }

  private final class Endpoint implements SecureChannel {
    private final Member self;
    private @Nullable Consumer<InboundMessage> receiver;

    Endpoint(Member self) {
      this.self = self;
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
      connected.computeIfAbsent(self.name(), _ -> new LinkedHashSet<>()).add(this);
    }

    @Override
    public CompletionStage<Void> established(Collection<Member> members) {
      CompletableFuture<Void> reached = new CompletableFuture<>();
      look(members, reached);
      return reached;
    }

    private void look(Collection<Member> members, CompletableFuture<Void> reached) {
      if (reachable().containsAll(members)) {
        reached.complete(null);
      } else if (isConnected()) {
        timeline.in(LOOK_NANOS, () -> look(members, reached));
      }
    }

    private boolean isConnected() {
      return connected.getOrDefault(self.name(), Set.of()).contains(this);
    }

    @Override
    public Set<Member> reachable() {
      Set<Member> reachable = new LinkedHashSet<>();
      for (Member member : roster.members()) {
        if (!member.equals(self)
            && !connected.getOrDefault(member.name(), Set.of()).isEmpty()
            && !cut.contains(member.name() + ">" + self.name())) {
          reachable.add(member);
        }
      }
      return reachable;
    }

    @Override
    public CompletionStage<Void> broadcast(
        Collection<Member> recipients, byte[] body, SendOptions options) {
      return accept(List.copyOf(recipients), body, true, options);
    }

    @Override
    public CompletionStage<Void> send(Member recipient, byte[] body, SendOptions options) {
      return accept(List.of(recipient), body, false, options);
    }

    private CompletionStage<Void> accept(
        List<Member> to, byte[] body, boolean broadcast, SendOptions options) {
      if (!isConnected()) {
        return CompletableFuture.failedFuture(
            new ChannelException(ChannelException.Cause.CLOSED, "the process is gone"));
      }
      if (hit(link(self.name()).fate(), Fault.UNAVAILABLE, self.name())) {
        return CompletableFuture.failedFuture(
            new ChannelException(ChannelException.Cause.UNAVAILABLE, "messaging is away"));
      }
      for (Member member : new ArrayList<>(to)) {
        transmit(this, member, body.clone(), broadcast, options.traceparent());
      }
      return CompletableFuture.completedFuture(null);
    }

    @Override
    public void close() {
      connected.getOrDefault(self.name(), new HashSet<>()).remove(this);
    }
  }
}
