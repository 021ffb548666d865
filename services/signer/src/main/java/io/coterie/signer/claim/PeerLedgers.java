package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.trust.Member;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Remembers how far the ledgers of the other parties have come, answers each with that, and
 * excludes one whose store went back to an earlier state. Everything but {@link #stated}, which
 * only keeps the latest statement of each sender, happens in one lane.
 */
final class PeerLedgers {
  private static final Logger log = LoggerFactory.getLogger(PeerLedgers.class);

  /**
   * After a contradiction of a peer has been written down, its others are only answered so long.
   */
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final PartyNetwork network;
  private final ShownClaims memory;
  private final Executor lane;
  private final Consumer<CompletionStage<List<String>>> excluding;
  private final LongSupplier nanos;

  /** The latest statement of each party that was not looked at. */
  private final Map<Integer, ClaimCount> statements = new ConcurrentHashMap<>();

  private final Map<Integer, ShownClaims.Shown> shown = new HashMap<>();

  /** Parties of which something is on its way to the disk. */
  private final Set<Integer> writing = new HashSet<>();

  /** When the last contradiction of each peer was looked at. */
  private final Map<Integer, Long> contradicted = new HashMap<>();

  /**
   * @param lane shared with {@link ClaimWitnesses}
   * @param excluding told of each exclusion that is on its way to the disk
   * @param nanos a clock that only goes forward
   */
  PeerLedgers(
      PartyNetwork network,
      ShownClaims memory,
      Executor lane,
      Consumer<CompletionStage<List<String>>> excluding,
      LongSupplier nanos) {
    this.network = network;
    this.memory = memory;
    this.lane = lane;
    this.excluding = excluding;
    this.nanos = nanos;
    memory.shown().forEach(s -> shown.put(s.party(), s));
  }

  /** Another party states how far it has come. Of several statements the last one counts. */
  void stated(Member sender, ClaimCount count) {
    if (sender.role() == Member.Role.PARTY
        && count.getParty() == sender.partyId()
        && statements.put(sender.partyId(), count) == null) {
      lane.execute(() -> stated(sender));
    }
  }

  private void stated(Member sender) {
    if (writing.contains(sender.partyId())) {
      return; // looked at when that is written
    }
    ClaimCount count = statements.remove(sender.partyId());
    LedgerHead now = count == null ? null : head(count);
    if (count == null || now == null) {
      return;
    }
    ShownClaims.Shown before = shownBy(sender, now.position());
    switch (now.position().against(before == null ? null : before.position())) {
      case KNOWN -> answer(sender, before);
      case LATER -> {
        if (now.isSigned(count.getSignature(), sender.evidenceKey())) {
          remember(sender, now, count, before);
        }
      }
      case CONTRADICTS -> {
        Long last = contradicted.get(sender.partyId());
        long nowNanos = nanos.getAsLong();
        if (last != null && nowNanos - last < PAUSE_NANOS) {
          answer(sender, before);
        } else if (now.isSigned(count.getSignature(), sender.evidenceKey())) {
          contradicted.put(sender.partyId(), nowNanos);
          log.error(
              "the store of {} went back to an earlier state: it has said {} and says {}",
              sender.name(),
              before == null ? "nothing" : before.position(),
              now.position());
          answer(sender, before);
          writing.add(sender.partyId());
          excluding.accept(
              memory
                  .wentBack(sender.partyId())
                  .whenComplete((_, _) -> lane.execute(() -> written(sender))));
        }
      }
    }
  }

  private @Nullable LedgerHead head(ClaimCount count) {
    return LedgerHead.of(network.roster().installation(), count).orElse(null);
  }

  /** The remembered position of a party, unless it has enrolled anew since. */
  private ShownClaims.@Nullable Shown shownBy(Member sender, LedgerPosition now) {
    ShownClaims.Shown before = shown.get(sender.partyId());
    return before == null
            || now.mark().equals(before.position().mark())
            || isSigned(parse(before.statement()), sender)
        ? before
        : null;
  }

  private boolean isSigned(ClaimCount count, Member sender) {
    LedgerHead head = head(count);
    return head != null && head.isSigned(count.getSignature(), sender.evidenceKey());
  }

  private void remember(
      Member sender, LedgerHead now, ClaimCount count, ShownClaims.@Nullable Shown before) {
    ByteString earlier = ByteString.EMPTY;
    if (before != null) {
      earlier =
          before.position().mark().equals(now.position().mark())
              ? before.before()
              : before.statement();
    }
    ShownClaims.Shown next =
        new ShownClaims.Shown(
            sender.partyId(),
            now.position(),
            // Unknown fields are left out, so that a stored statement has a bounded size.
            now.count(count.getSignature()).toByteString(),
            earlier);
    writing.add(sender.partyId());
    memory
        .show(next)
        .whenComplete((_, failure) -> lane.execute(() -> remembered(sender, next, failure)));
  }

  private void remembered(Member sender, ShownClaims.Shown next, @Nullable Throwable failure) {
    if (failure == null) {
      shown.put(sender.partyId(), next);
      answer(sender, next);
    } else {
      log.error("this party could not store the claims of {}", sender.name(), failure);
    }
    written(sender);
  }

  private void written(Member sender) {
    writing.remove(sender.partyId());
    stated(sender);
  }

  private void answer(Member sender, ShownClaims.@Nullable Shown remembered) {
    if (remembered == null) {
      return;
    }
    ClaimMemory.Builder answer = ClaimMemory.newBuilder();
    if (!remembered.before().isEmpty()) {
      answer.addRemembered(parse(remembered.before()));
    }
    answer.addRemembered(parse(remembered.statement()));
    network.send(sender, PartyMessage.newBuilder().setClaimMemory(answer).build(), null);
  }

  private static ClaimCount parse(ByteString statement) {
    try {
      return ClaimCount.parseFrom(statement);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored statement does not decode", e);
    }
  }
}
