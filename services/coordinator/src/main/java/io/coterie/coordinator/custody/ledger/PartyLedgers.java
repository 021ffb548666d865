package io.coterie.coordinator.custody.ledger;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.custody.key.KeyDirectory;
import io.coterie.coordinator.custody.ledger.LedgerStore.Remembered;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.session.LedgerKeeper;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.ledger.LedgerPosition.Judgement;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Remembers how far the ledgers of the parties have come, and answers each with that. A party whose
 * store went back to an earlier state learns it from the answer, and takes part in no session of an
 * ECDSA key before the key has new shares.
 *
 * <p>A statement is answered once it is durable. While the database is away there is no answer, and
 * the party states its position again. At most one statement of each party is being looked at; of
 * those that wait the latest counts. Thread-safe.
 */
public final class PartyLedgers implements LedgerKeeper {
  private static final Logger log = LoggerFactory.getLogger(PartyLedgers.class);

  /**
   * After a contradiction of a party has been written down, its others are only answered so long.
   */
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private record Statement(Member party, ClaimCount count) {}

  private final LedgerStore store;
  private final KeyDirectory keys;
  private final PartyLink link;
  private final Executor threads;
  private final CoordinatorMetrics metrics;
  private final LongSupplier nanoTime;

  /** By party id, the latest statement that was not looked at. */
  private final Map<Integer, Statement> waiting = new ConcurrentHashMap<>();

  /** Parties of which a statement is being looked at. */
  private final Set<Integer> busy = ConcurrentHashMap.newKeySet();

  /** By party id, when its last contradiction was written down. */
  private final Map<Integer, Long> contradicted = new ConcurrentHashMap<>();

  /**
   * A keeper that has heard nothing yet.
   *
   * @param threads starts a thread for each task; they wait for the database
   * @param nanoTime monotonic clock, ns
   */
  public PartyLedgers(
      LedgerStore store,
      KeyDirectory keys,
      PartyLink link,
      Executor threads,
      CoordinatorMetrics metrics,
      LongSupplier nanoTime) {
    this.store = store;
    this.keys = keys;
    this.link = link;
    this.threads = threads;
    this.metrics = metrics;
    this.nanoTime = nanoTime;
  }

  @Override
  public void stated(Member party, ClaimCount count) {
    if (count.getParty() != party.partyId()) {
      metrics.dropped("unexpected");
      return;
    }
    waiting.put(party.partyId(), new Statement(party, count));
    begin(party.partyId());
  }

  private void begin(int party) {
    if (busy.add(party)) {
      threads.execute(() -> lookAtAll(party));
    }
  }

  private void lookAtAll(int party) {
    try {
      for (Statement next = waiting.remove(party); next != null; next = waiting.remove(party)) {
        lookAt(next.party(), next.count());
      }
    } finally {
      busy.remove(party);
    }
    if (waiting.containsKey(party)) {
      begin(party);
    }
  }

  private void lookAt(Member party, ClaimCount count) {
    Optional<SecureChannel> channel = link.channel();
    if (channel.isEmpty()) {
      return; // no answer could be sent
    }
    LedgerHead head = LedgerHead.of(channel.get().roster().installation(), count).orElse(null);
    if (head == null) {
      metrics.dropped("malformed");
      return;
    }
    if (!head.isSigned(count.getSignature(), party.evidenceKey())) {
      metrics.dropped("bad_evidence_signature");
      return;
    }
    LedgerPosition position = head.position();
    try {
      // Unknown fields are left out, so that a stored statement has a bounded size.
      ClaimCount statement = head.count(count.getSignature());
      Remembered remembered =
          store.remember(position, statement, ByteString.copyFrom(party.evidenceKey()));
      if (position.against(remembered.position()) == Judgement.CONTRADICTS) {
        wentBack(party, position, remembered.position());
      }
      answer(party, remembered);
    } catch (StoreUnavailableException e) {
      log.warn(
          "the database did not take the claims of {}, which will state them again: {}",
          party.name(),
          e.getMessage());
    } catch (RuntimeException e) {
      log.error("a statement of {} could not be looked at", party.name(), e);
    }
  }

  /** Before the answer: a party that has learned of it contradicts nothing any more. */
  private void wentBack(Member party, LedgerPosition says, LedgerPosition said) {
    Long last = contradicted.get(party.partyId());
    long now = nanoTime.getAsLong();
    if (last == null || now - last >= PAUSE_NANOS) {
      log.error(
          "the store of {} went back to an earlier state: it has said {} and says {}",
          party.name(),
          said,
          says);
      keys.wentBack(party.partyId());
      contradicted.put(party.partyId(), now);
    }
  }

  private void answer(Member party, Remembered remembered) {
    ClaimMemory.Builder memory = ClaimMemory.newBuilder();
    if (!remembered.before().isEmpty()) {
      memory.addRemembered(parse(remembered.before()));
    }
    memory.addRemembered(parse(remembered.statement()));
    byte[] message = PartyMessage.newBuilder().setClaimMemory(memory).build().toByteArray();
    link.channel()
        .ifPresent(
            channel ->
                channel.send(party, message, SendOptions.online(null)).exceptionally(_ -> null));
  }

  private static ClaimCount parse(ByteString statement) {
    try {
      return ClaimCount.parseFrom(statement);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored statement does not decode", e);
    }
  }
}
