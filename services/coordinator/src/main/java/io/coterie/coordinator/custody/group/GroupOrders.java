package io.coterie.coordinator.custody.group;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.session.GroupListener;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.GroupOrder;
import io.coterie.proto.party.v1.GroupReport;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.trust.Member;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/**
 * Gives orders about groups to parties and collects their reports. Nothing of a report is believed
 * here but who sent it. Thread-safe.
 */
public final class GroupOrders implements GroupListener {
  /** Once a party has not done an order, how long the others may show whose fault it is. */
  private static final Duration AFTERTHOUGHT = Duration.ofSeconds(1);

  private static final int NONCE_BYTES = 32;

  private final Map<ByteString, Waiting> waiting = new ConcurrentHashMap<>();
  private final Map<ByteString, Carrier> carriers = new ConcurrentHashMap<>();
  private final CoordinatorMetrics metrics;
  private final ReplicaTime time;
  private final SecureRandom random;

  public GroupOrders(CoordinatorMetrics metrics, ReplicaTime time, SecureRandom random) {
    this.metrics = metrics;
    this.time = time;
    this.random = random;
  }

  /** One order, and the reports that came of it. */
  private static final class Waiting {
    final Set<Integer> asked;
    final Map<Integer, GroupReport> reports = new TreeMap<>();

    /** Completes when each has reported, or one has not done it. */
    final CompletableFuture<Void> settled = new CompletableFuture<>();

    /** Completes when each has reported. */
    final CompletableFuture<Void> complete = new CompletableFuture<>();

    Waiting(Set<Integer> asked) {
      this.asked = asked;
    }

    /** Keeps a report; one that names a culprit takes the place of one that does not. */
    synchronized boolean take(int party, GroupReport report) {
      GroupReport before = reports.get(party);
      if (!asked.contains(party) || (before != null && !explains(report))) {
        return false;
      }
      if (before == null || (!explains(before) && !GroupFailures.isDone(before))) {
        reports.put(party, report);
      }
      boolean all = reports.keySet().containsAll(asked);
      if (all || !GroupFailures.isDone(report)) {
        settled.complete(null);
      }
      if (all) {
        complete.complete(null);
      }
      return true;
    }

    private static boolean explains(GroupReport report) {
      return report.getAborted().getCulpritsCount() > 0;
    }

    synchronized Map<Integer, GroupReport> reports() {
      return new TreeMap<>(reports);
    }
  }

  /**
   * An order that was given, and what came of it.
   *
   * @param reports by party; those that have not reported are missing
   */
  record Given(SessionId session, Map<Integer, GroupReport> reports) {}

  /** Takes the envelopes of issuers for the member of a join. Does not block. */
  @FunctionalInterface
  interface Carrier {
    /**
     * Takes an envelope.
     *
     * @param party that the channel has proved as the sender
     */
    void take(Member party, ByteString envelope);
  }

  /**
   * Hands over the envelopes of a session from now on.
   *
   * @return false if another one takes them
   */
  boolean carry(ByteString session, Carrier carrier) {
    return carriers.putIfAbsent(session, carrier) == null;
  }

  /** Nobody takes the envelopes of a session any more. */
  void leave(ByteString session, Carrier carrier) {
    carriers.remove(session, carrier);
  }

  /**
   * Gives an order and waits for the report of every party.
   *
   * @param order without nonce and deadline
   * @param patience how long reports are waited for
   * @param deadline of the order: the parties end its session then
   */
  Given give(
      SecureChannel channel,
      Collection<Member> parties,
      GroupOrder.Builder order,
      Duration patience,
      Instant deadline,
      String traceparent)
      throws InterruptedException {
    byte[] nonce = new byte[NONCE_BYTES];
    random.nextBytes(nonce);
    ByteString bytes =
        order
            .setCoordinatorNonce(ByteString.copyFrom(nonce))
            .setDeadline(
                Timestamp.newBuilder()
                    .setSeconds(deadline.getEpochSecond())
                    .setNanos(deadline.getNano()))
            .build()
            .toByteString();
    SessionId session = SessionId.ofOrder(bytes);
    Waiting reports =
        new Waiting(parties.stream().map(Member::partyId).collect(Collectors.toUnmodifiableSet()));
    // Before the order leaves, so that no report finds nobody.
    waiting.put(session.bytes(), reports);
    try {
      byte[] message = PartyMessage.newBuilder().setGroupOrder(bytes).build().toByteArray();
      channel.broadcast(parties, message, SendOptions.online(traceparent)).exceptionally(_ -> null);
      boolean settled = time.await(reports.settled, patience.toNanos());
      if (settled) {
        // The first to accuse somebody may be the one that deviates.
        boolean _ = time.await(reports.complete, AFTERTHOUGHT.toNanos());
      }
      return new Given(session, reports.reports());
    } finally {
      waiting.remove(session.bytes());
    }
  }

  @Override
  public void reported(Member party, GroupReport report) {
    Waiting order = waiting.get(report.getSessionId());
    if (order == null || !order.take(party.partyId(), report)) {
      metrics.dropped("unexpected");
    }
  }

  @Override
  public void enveloped(Member party, SessionEnvelope envelope) {
    Carrier carrier = carriers.get(envelope.getSessionId());
    if (carrier == null) {
      metrics.dropped("unexpected");
    } else {
      carrier.take(party, envelope.getEnvelope());
    }
  }
}
