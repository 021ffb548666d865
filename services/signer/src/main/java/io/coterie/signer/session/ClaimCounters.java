package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.Member;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.PartyMessage;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices parties whose store was put back to an earlier state. Such a party has forgotten whom it
 * excludes and how often it died, so that each time gives a corrupt peer new guesses at its
 * secrets. Every party tells the others how many sessions it has claimed ever; who remembers more
 * multiplies with it no more and tells it so, and it stops by itself.
 */
final class ClaimCounters {
  private static final Logger log = LoggerFactory.getLogger(ClaimCounters.class);
  private static final byte[] STATEMENT = "coterie/claims/1".getBytes(StandardCharsets.US_ASCII);

  /** How often a count that has grown is told. */
  private static final long TELL_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final PartyNetwork network;
  private final ClaimLedger claims;
  private final ShownClaims memory;
  private final ProtocolCore core;
  private final Consumer<String> changed;
  private final long life;
  private final Map<Integer, ShownClaims.Shown> shown = new ConcurrentHashMap<>();

  // Touched by the timer alone.
  private Set<Integer> told = Set.of();
  private long toldCount = -1;
  private long toldNanos;

  /**
   * @param life when this process began, milliseconds since 1970
   * @param changed told the keys with which somebody is excluded now
   */
  ClaimCounters(
      PartyNetwork network,
      ClaimLedger claims,
      ShownClaims memory,
      ProtocolCore core,
      long life,
      Consumer<String> changed) {
    this.network = network;
    this.claims = claims;
    this.memory = memory;
    this.core = core;
    this.life = life;
    this.changed = changed;
    memory.shown().forEach(s -> shown.put(s.party(), s));
  }

  /** This party's count, for an envelope. */
  ClaimCount mine() {
    return unsigned(claims.claimed());
  }

  private ClaimCount unsigned(long count) {
    return ClaimCount.newBuilder()
        .setParty(network.self().partyId())
        .setLife(life)
        .setCount(count)
        .build();
  }

  /** What a party signs. Everything after the tag has a fixed length. */
  static ByteString statement(ClaimCount count) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.write(STATEMENT);
      out.writeLong(count.getLife());
      out.writeLong(count.getCount());
      out.writeInt(count.getParty());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return ByteString.copyFrom(bytes.toByteArray());
  }

  /**
   * Tells the parties that have come back, and all of them a count that has grown. On the timer's
   * thread.
   */
  void tick(long nowNanos) {
    Set<Integer> reachable = new HashSet<>();
    network.reachable().stream()
        .filter(m -> m.role() == Member.Role.PARTY)
        .forEach(m -> reachable.add(m.partyId()));
    reachable.remove(network.self().partyId());
    boolean due = nowNanos - toldNanos >= TELL_NANOS;
    if (reachable.equals(told) && !due) {
      return;
    }
    long count = claims.claimed();
    Set<Integer> to = new HashSet<>(reachable);
    if (count == toldCount) {
      to.removeAll(told);
    }
    told = reachable;
    toldCount = count;
    toldNanos = nowNanos;
    if (to.isEmpty()) {
      return;
    }
    ClaimCount bare = unsigned(count);
    ClaimCount signed = bare.toBuilder().setSignature(core.signStatement(statement(bare))).build();
    PartyMessage message = PartyMessage.newBuilder().setClaimCount(signed).build();
    network.broadcast(
        to.stream().flatMap(id -> network.roster().byPartyId(id).stream()).toList(), message, null);
  }

  /** What a party says by itself: its own count, or one that this party has shown it. */
  void told(Member sender, ClaimCount count) {
    if (sender.role() != Member.Role.PARTY
        || count.getSignature().size() != Certificate.SIGNATURE_BYTES) {
      return;
    }
    if (count.getParty() == network.self().partyId()) {
      toldBack(sender, count);
    } else if (Certificate.verifies(sender, statement(count), count.getSignature())) {
      shows(sender, count);
    }
  }

  /**
   * A party shows its count. The channel proves that it comes from it; a lie harms the liar alone.
   *
   * @return false if it has shown a higher one in an earlier life
   */
  boolean shows(Member sender, ClaimCount count) {
    if (sender.role() != Member.Role.PARTY || count.getParty() != sender.partyId()) {
      return true;
    }
    ByteString statement = count.getSignature().isEmpty() ? ByteString.EMPTY : count.toByteString();
    ShownClaims.Shown now =
        new ShownClaims.Shown(sender.partyId(), count.getLife(), count.getCount(), statement);
    ShownClaims.Shown[] higher = new ShownClaims.Shown[1];
    shown.compute(
        sender.partyId(),
        (_, before) -> {
          if (before == null) {
            memory.show(now);
            return now;
          }
          // Messages of one life overtake each other, and one of an earlier life says nothing new.
          boolean proves = !statement.isEmpty() && before.statement().isEmpty();
          if (now.life() < before.life()
              || now.life() == before.life()
                  && (now.claims() < before.claims()
                      || now.claims() == before.claims() && !proves)) {
            return before;
          }
          if (now.claims() < before.claims()) {
            higher[0] = before;
          }
          ShownClaims.Shown next =
              statement.isEmpty() && higher[0] == null
                  ? new ShownClaims.Shown(now.party(), now.life(), now.claims(), before.statement())
                  : now;
          memory.show(next);
          return next;
        });
    ShownClaims.Shown before = higher[0];
    if (before == null) {
      return true;
    }
    log.error(
        "the store of {} went back: it has shown {} claims and now shows {}",
        sender.name(),
        before.claims(),
        now.claims());
    exclude(sender.partyId());
    tellBack(sender, before);
    return false;
  }

  private void tellBack(Member sender, ShownClaims.Shown before) {
    if (before.statement().isEmpty()) {
      return;
    }
    try {
      network.send(
          sender,
          PartyMessage.newBuilder().setClaimCount(ClaimCount.parseFrom(before.statement())).build(),
          null);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored count does not decode", e);
    }
  }

  /** Somebody remembers more of this party than it does itself, and can prove it. */
  private void toldBack(Member sender, ClaimCount count) {
    long mine = claims.claimed();
    if (count.getCount() <= mine
        || !Certificate.verifies(network.self(), statement(count), count.getSignature())) {
      return;
    }
    log.error(
        "this party's own store went back: {} remembers {} claims, here are {}",
        sender.name(),
        count.getCount(),
        mine);
    exclude(KeyShareStore.ITSELF);
  }

  private void exclude(int party) {
    memory
        .wentBack(party)
        .whenComplete(
            (keys, failure) -> {
              if (failure != null) {
                log.error("that a store went back could not be stored", failure);
              } else {
                List.copyOf(keys).forEach(changed);
              }
            });
  }
}
