package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.Member;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices that a store was put back to an earlier state: such a party has forgotten whom it
 * excludes and how often it died, so that each time gives a corrupt peer new guesses at its
 * secrets. This party states to the others how far its ledger has come before it multiplies; they
 * remember it and answer with what they remember, which this one's own ledger must know.
 *
 * <p>Everything but {@link #stated} and {@link #answered}, which only keep the latest message of
 * each sender, happens in one lane.
 */
final class ClaimWitnesses {
  private static final Logger log = LoggerFactory.getLogger(ClaimWitnesses.class);

  /** A statement is sent again, and its receiver not waited for any more, after this long. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(2);

  /** Statements in one answer. */
  private static final int MAX_REMEMBERED = 2;

  private final PartyNetwork network;
  private final ClaimLedger claims;
  private final ShownClaims memory;
  private final ProtocolCore core;
  private final WorkPool.Lane lane;
  private final Runnable changed;

  private final Map<Integer, ClaimCount> statements = new ConcurrentHashMap<>();
  private final Map<Integer, ClaimMemory> answers = new ConcurrentHashMap<>();

  /** Peers that a session waits for; read by other threads too. */
  private final Map<SessionId, Set<Integer>> lacking = new ConcurrentHashMap<>();

  private final Map<Integer, ShownClaims.Shown> shown = new HashMap<>();
  private final Set<Integer> writing = new HashSet<>();
  private final Map<Integer, Witness> witnesses = new HashMap<>();
  private final Map<SessionId, Waiting> waiting = new LinkedHashMap<>();
  private LedgerPosition signed = LedgerPosition.NONE;
  private ClaimCount statement = ClaimCount.getDefaultInstance();

  /** The start at which everybody who could be reached has answered. */
  private ByteString metAt = ByteString.EMPTY;

  /** The answers of one other party to this party's statements. */
  static final class Witness {
    private LedgerPosition remembers = LedgerPosition.NONE;

    /** The statement that has no answer yet. */
    private @Nullable LedgerPosition asked;

    private long askedNanos;

    /** Has let a statement wait too long; not waited for until it answers. */
    private boolean silent;

    boolean covers(ByteString head, long claims) {
      return remembers.head().equals(head) && remembers.claims() >= claims;
    }

    void ask(LedgerPosition now, long nowNanos) {
      asked = now;
      askedNanos = nowNanos;
    }

    void tick(long nowNanos) {
      if (asked != null && nowNanos - askedNanos >= PATIENCE_NANOS) {
        asked = null;
        silent = true;
      }
    }

    /** It remembers another start: what it was asked for is out of date. */
    void contradicts() {
      asked = null;
    }

    /** Anything but what it was asked for is no answer. */
    void answers(LedgerPosition remembered) {
      if (asked != null
          && asked.head().equals(remembered.head())
          && asked.claims() <= remembered.claims()) {
        asked = null;
        silent = false;
        remembers = remembered;
      }
    }
  }

  /**
   * @param claims that the others must remember
   * @param peers the other parties of the session
   */
  private record Waiting(long claims, List<Integer> peers, Runnable then) {}

  /**
   * @param lane of this object alone
   * @param changed told that somebody may be excluded from any key now
   */
  ClaimWitnesses(
      PartyNetwork network,
      ClaimLedger claims,
      ShownClaims memory,
      ProtocolCore core,
      WorkPool.Lane lane,
      Runnable changed) {
    this.network = network;
    this.claims = claims;
    this.memory = memory;
    this.core = core;
    this.lane = lane;
    this.changed = changed;
    memory.shown().forEach(s -> shown.put(s.party(), s));
  }

  // ---- this party's own ledger -----------------------------------------------------------------

  /**
   * Waits until others remember the claims that are on disk now.
   *
   * @param then run in this object's lane
   */
  void await(SessionId session, List<Integer> peers, Runnable then) {
    long now = claims.position().claims();
    lane.execute(
        () -> {
          waiting.put(session, new Waiting(now, peers, then));
          state(System.nanoTime());
          release();
        });
  }

  /** A session waits no more. */
  void forget(SessionId session) {
    lane.execute(
        () -> {
          waiting.remove(session);
          lacking.remove(session);
        });
  }

  /** Peers that have not said that they remember the claim of a session that waits. */
  Set<Integer> lacking(SessionId session) {
    return lacking.getOrDefault(session, Set.of());
  }

  /** States what has not been answered, also to those who have come back. */
  void tick(long nowNanos) {
    lane.execute(
        () -> {
          witnesses.values().forEach(w -> w.tick(nowNanos));
          state(nowNanos);
          release();
        });
  }

  /** To everybody who is not being asked: whoever is learns of what has grown meanwhile with it. */
  private void state(long nowNanos) {
    LedgerPosition now = claims.position();
    Set<Integer> others = reachable();
    waiting.values().forEach(w -> others.addAll(w.peers()));
    for (int other : others) {
      Witness witness = witnesses.computeIfAbsent(other, _ -> new Witness());
      if (witness.asked == null && !witness.covers(now.head(), now.claims())) {
        witness.ask(now, nowNanos);
        PartyMessage message = PartyMessage.newBuilder().setClaimCount(sign(now)).build();
        network.roster().byPartyId(other).ifPresent(member -> network.send(member, message, null));
      }
    }
  }

  private ClaimCount sign(LedgerPosition now) {
    if (!now.equals(signed)) {
      int self = network.self().partyId();
      statement = now.count(self, core.signStatement(now.statement(self)));
      signed = now;
    }
    return statement;
  }

  private Set<Integer> reachable() {
    Set<Integer> reachable = new HashSet<>();
    for (Member member : network.reachable()) {
      if (member.role() == Member.Role.PARTY) {
        reachable.add(member.partyId());
      }
    }
    reachable.remove(network.self().partyId());
    return reachable;
  }

  /** Lets go on whoever waits for no witness any more. */
  private void release() {
    if (waiting.isEmpty()) {
      return;
    }
    ByteString head = claims.position().head();
    Set<Integer> reachable = reachable();
    waiting.forEach((id, session) -> lacking.put(id, lacking(head, session)));
    waiting
        .values()
        .removeIf(
            session -> {
              boolean fresh = !metAt.equals(head);
              if (!enough(head, session.claims(), session.peers(), reachable, fresh, witnesses)) {
                return false;
              }
              metAt = head;
              session.then().run();
              return true;
            });
  }

  private Set<Integer> lacking(ByteString head, Waiting session) {
    Set<Integer> lacking = new HashSet<>();
    for (int peer : session.peers()) {
      Witness witness = witnesses.get(peer);
      if (witness == null || !witness.covers(head, session.claims())) {
        lacking.add(peer);
      }
    }
    return Set.copyOf(lacking);
  }

  /**
   * Whether those who matter remember enough: every peer of the session; of the others who can be
   * reached and are not silent all at a start, and one after that.
   */
  static boolean enough(
      ByteString head,
      long claims,
      Collection<Integer> peers,
      Set<Integer> reachable,
      boolean fresh,
      Map<Integer, Witness> witnesses) {
    for (int peer : peers) {
      Witness witness = witnesses.get(peer);
      if (witness == null || !witness.covers(head, claims)) {
        return false;
      }
    }
    int outside = 0;
    int covering = 0;
    for (int other : reachable) {
      Witness witness = witnesses.get(other);
      if (!peers.contains(other) && (witness == null || !witness.silent)) {
        outside++;
        covering += witness != null && witness.covers(head, claims) ? 1 : 0;
      }
    }
    return fresh ? covering == outside : outside == 0 || covering > 0;
  }

  /** Takes what another party remembers of this one. Of several answers the last one counts. */
  void answered(Member sender, ClaimMemory remembered) {
    if (sender.role() == Member.Role.PARTY
        && remembered.getRememberedCount() <= MAX_REMEMBERED
        && answers.put(sender.partyId(), remembered) == null) {
      lane.execute(() -> answered(sender));
    }
  }

  private void answered(Member sender) {
    ClaimMemory answer = answers.remove(sender.partyId());
    if (answer == null) {
      return;
    }
    LedgerPosition now = claims.position();
    LedgerPosition latest = LedgerPosition.NONE;
    for (ClaimCount count : answer.getRememberedList()) {
      LedgerPosition told = LedgerPosition.of(count);
      if (told == null || count.getParty() != network.self().partyId()) {
        return;
      }
      latest = told;
      boolean current = told.head().equals(now.head()) && told.claims() <= now.claims();
      if (!current && !claims.remembers(told)) {
        if (verifies(network.self(), told, count)) {
          wentBack(sender, told, now);
        }
        return;
      }
    }
    Witness witness = witnesses.computeIfAbsent(sender.partyId(), _ -> new Witness());
    witness.answers(latest);
    release();
    state(System.nanoTime());
  }

  private void wentBack(Member sender, LedgerPosition told, LedgerPosition now) {
    log.error(
        "this party's own store went back to an earlier state: {} remembers start {} with {} claims,"
            + " here is start {} with {}",
        sender.name(),
        told.starts(),
        told.claims(),
        now.starts(),
        now.claims());
    witnesses.computeIfAbsent(sender.partyId(), _ -> new Witness()).contradicts();
    excluding(memory.wentBack(told));
  }

  private void excluding(CompletionStage<List<String>> write) {
    // It counts in memory already.
    changed.run();
    write.whenComplete(
        (_, failure) -> {
          if (failure != null) {
            log.error("that a store went back is not on disk yet; tried again", failure);
          }
          changed.run();
          lane.execute(() -> state(System.nanoTime()));
        });
  }

  // ---- the ledgers of others -------------------------------------------------------------------

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
    LedgerPosition now = count == null ? null : LedgerPosition.of(count);
    if (count == null || now == null) {
      return;
    }
    ShownClaims.Shown before = shownBy(sender, now);
    switch (now.against(before == null ? null : before.position())) {
      case KNOWN -> answer(sender, before);
      case LATER -> {
        if (verifies(sender, now, count)) {
          remember(sender, now, count, before);
        }
      }
      case CONTRADICTS -> {
        if (verifies(sender, now, count)) {
          log.error("the store of {} went back to an earlier state", sender.name());
          answer(sender, before);
          writing.add(sender.partyId());
          excluding(
              memory
                  .wentBack(sender.partyId())
                  .whenComplete((_, _) -> lane.execute(() -> written(sender))));
        }
      }
    }
  }

  /** The remembered position of a party, unless it has enrolled anew since. */
  private ShownClaims.@Nullable Shown shownBy(Member sender, LedgerPosition now) {
    ShownClaims.Shown before = shown.get(sender.partyId());
    return before == null
            || now.head().equals(before.position().head())
            || verifies(sender, before.position(), parse(before.statement()))
        ? before
        : null;
  }

  private void remember(
      Member sender, LedgerPosition now, ClaimCount count, ShownClaims.@Nullable Shown before) {
    ByteString earlier = ByteString.EMPTY;
    if (before != null) {
      earlier = before.position().head().equals(now.head()) ? before.before() : before.statement();
    }
    ShownClaims.Shown next =
        new ShownClaims.Shown(sender.partyId(), now, count.toByteString(), earlier);
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
      log.error("what {} has claimed could not be remembered", sender.name(), failure);
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

  private static boolean verifies(Member party, LedgerPosition position, ClaimCount count) {
    return Certificate.verifies(party, position.statement(party.partyId()), count.getSignature());
  }

  private static ClaimCount parse(ByteString statement) {
    try {
      return ClaimCount.parseFrom(statement);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException("a stored statement does not decode", e);
    }
  }
}
