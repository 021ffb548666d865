package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.Member;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
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

  /** So long after its peers each session waits for those outside it, whatever they did before. */
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  /**
   * One party outside the sessions holds them up for so long beyond that, and then is on probation.
   */
  private static final long CREDIT_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** In which of so many parts of the time it regains one. */
  private static final int REGAIN = 100;

  /**
   * So many sessions that wait longer than {@link #GRACE_NANOS} use up the credit at once: the
   * first messages of their peers lie in {@link QueuedBytes} meanwhile.
   */
  private static final int MAX_OVERDUE = 32;

  /**
   * After a contradiction of a peer has been written down, its others are only answered so long.
   */
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);

  /** Statements in one answer. */
  private static final int MAX_REMEMBERED = 2;

  private final PartyNetwork network;
  private final ClaimLedger claims;
  private final ShownClaims memory;
  private final ProtocolCore core;
  private final Executor lane;
  private final Runnable changed;
  private final LongSupplier nanos;

  private final Map<Integer, ClaimCount> statements = new ConcurrentHashMap<>();
  private final Map<Integer, ClaimMemory> answers = new ConcurrentHashMap<>();

  /** Peers that a session waits for; read by other threads too. */
  private final Map<SessionId, Set<Integer>> lacking = new ConcurrentHashMap<>();

  private final Map<Integer, ShownClaims.Shown> shown = new HashMap<>();
  private final Set<Integer> writing = new HashSet<>();
  private final Map<Integer, Witness> witnesses = new HashMap<>();
  private final Map<SessionId, Waiting> waiting = new LinkedHashMap<>();

  /** For each peer the last one that it told of and that this party's ledger was at. */
  private final Map<Integer, LedgerPosition> known = new HashMap<>();

  /** When the last contradiction of each peer was looked at. */
  private final Map<Integer, Long> contradicted = new HashMap<>();

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

    /** Has used up its credit; has answered since. */
    private boolean probation;

    private boolean answered;
    private long credit = CREDIT_NANOS;
    private long chargedNanos;

    /** It holds up a session, and pays for it from a time on. */
    private boolean holds;

    private long holdsFromNanos;

    Witness(long nowNanos) {
      chargedNanos = nowNanos;
    }

    /** A session that has begun before waits for it. At a start its credit does not count. */
    boolean waitedFor(boolean fresh) {
      return !silent && (fresh || !probation);
    }

    /** Takes or gives credit for the time since the last call. */
    void charge(long nowNanos) {
      if (!holds) {
        credit = Math.min(CREDIT_NANOS, credit + (nowNanos - chargedNanos) / REGAIN);
      } else if (nowNanos - holdsFromNanos > 0) {
        credit -= nowNanos - holdsFromNanos;
        holdsFromNanos = nowNanos;
      }
      chargedNanos = nowNanos;
      if (probation && answered && credit == CREDIT_NANOS) {
        probation = false;
      }
    }

    /**
     * From now on it holds up these sessions.
     *
     * @param since when each has begun to wait for those outside it alone
     * @return whether it is not waited for any more because of that
     */
    boolean hold(List<Long> since, long nowNanos) {
      holds = !since.isEmpty();
      int overdue = 0;
      long longest = 0;
      for (long from : since) {
        overdue += nowNanos - from > GRACE_NANOS ? 1 : 0;
        longest = Math.max(longest, nowNanos - from);
      }
      holdsFromNanos = nowNanos + Math.max(0, GRACE_NANOS - longest);
      if (holds && (credit <= 0 || overdue > MAX_OVERDUE)) {
        credit = Math.min(credit, 0);
        probation = true;
        answered = false;
        holds = false;
        return true;
      }
      return false;
    }

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
        answered = true;
        remembers = remembered;
      }
    }
  }

  private static final class Waiting {
    /** The others must remember so many. */
    final long claims;

    /** The other parties of the session. */
    final List<Integer> peers;

    final Runnable then;

    /** Since when it waits for those outside it alone. */
    @Nullable Long heldNanos;

    Waiting(long claims, List<Integer> peers, Runnable then) {
      this.claims = claims;
      this.peers = peers;
      this.then = then;
    }
  }

  /**
   * @param lane of this object alone
   * @param changed told that somebody may be excluded from any key now
   * @param nanos a clock that only goes forward
   */
  ClaimWitnesses(
      PartyNetwork network,
      ClaimLedger claims,
      ShownClaims memory,
      ProtocolCore core,
      Executor lane,
      Runnable changed,
      LongSupplier nanos) {
    this.network = network;
    this.claims = claims;
    this.memory = memory;
    this.core = core;
    this.lane = lane;
    this.changed = changed;
    this.nanos = nanos;
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
          state(nanos.getAsLong());
          release();
        });
  }

  /** A session waits no more. */
  void forget(SessionId session) {
    lane.execute(
        () -> {
          lacking.remove(session);
          if (waiting.remove(session) != null) {
            release();
          }
        });
  }

  /** Peers that have not said that they remember the claim of a session that waits. */
  Set<Integer> lacking(SessionId session) {
    return lacking.getOrDefault(session, Set.of());
  }

  /** States what has not been answered, also to those who have come back. */
  void tick() {
    lane.execute(
        () -> {
          long nowNanos = nanos.getAsLong();
          witnesses.values().forEach(w -> w.tick(nowNanos));
          state(nowNanos);
          release();
        });
  }

  /** To everybody who is not being asked: whoever is learns of what has grown meanwhile with it. */
  private void state(long nowNanos) {
    LedgerPosition now = claims.position();
    Set<Integer> others = reachable();
    waiting.values().forEach(w -> others.addAll(w.peers));
    for (int other : others) {
      Witness witness = witness(other);
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

  private Witness witness(int party) {
    return witnesses.computeIfAbsent(party, _ -> new Witness(nanos.getAsLong()));
  }

  /** Lets go on whoever waits for no witness any more. */
  private void release() {
    long now = nanos.getAsLong();
    witnesses.values().forEach(w -> w.charge(now));
    do {
      letGo();
    } while (hold(now));
  }

  private void letGo() {
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
              if (!enough(head, session.claims, session.peers, reachable, fresh, witnesses)) {
                return false;
              }
              metAt = head;
              session.then.run();
              return true;
            });
  }

  /**
   * Notes which sessions wait for nobody but parties outside them, and at whose expense.
   *
   * @return whether one of these is not waited for any more
   */
  private boolean hold(long now) {
    ByteString head = claims.position().head();
    Map<Integer, List<Long>> held = new HashMap<>();
    if (!waiting.isEmpty() && metAt.equals(head)) {
      Set<Integer> reachable = reachable();
      for (Waiting session : waiting.values()) {
        if (!lacking(head, session).isEmpty()) {
          session.heldNanos = null;
          continue;
        }
        Long since = session.heldNanos;
        if (since == null) {
          since = now;
          session.heldNanos = since;
        }
        for (int other : reachable) {
          Witness witness = witnesses.get(other);
          if (!session.peers.contains(other) && witness != null && witness.waitedFor(false)) {
            held.computeIfAbsent(other, _ -> new ArrayList<>()).add(since);
          }
        }
      }
    }
    boolean fewer = false;
    for (Map.Entry<Integer, Witness> witness : witnesses.entrySet()) {
      fewer |= witness.getValue().hold(held.getOrDefault(witness.getKey(), List.of()), now);
    }
    return fewer;
  }

  private Set<Integer> lacking(ByteString head, Waiting session) {
    Set<Integer> lacking = new HashSet<>();
    for (int peer : session.peers) {
      Witness witness = witnesses.get(peer);
      if (witness == null || !witness.covers(head, session.claims)) {
        lacking.add(peer);
      }
    }
    return Set.copyOf(lacking);
  }

  /**
   * Those who matter remember enough: every peer of the session; of the others who can be reached
   * and are waited for all at a start, and one after that.
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
      if (!peers.contains(other) && (witness == null || witness.waitedFor(fresh))) {
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
      if (!current && !told.equals(known.get(sender.partyId()))) {
        // The signature first: it costs less than the disk, and nobody else can make one.
        if (!verifies(network.self(), told, count)) {
          return;
        }
        if (!claims.remembers(told)) {
          wentBack(sender, told, now);
          return;
        }
        known.put(sender.partyId(), told);
      }
    }
    witness(sender.partyId()).answers(latest);
    release();
    state(nanos.getAsLong());
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
    witness(sender.partyId()).contradicts();
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
          lane.execute(() -> state(nanos.getAsLong()));
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
        Long last = contradicted.get(sender.partyId());
        long nowNanos = nanos.getAsLong();
        if (last != null && nowNanos - last < PAUSE_NANOS) {
          answer(sender, before);
        } else if (verifies(sender, now, count)) {
          contradicted.put(sender.partyId(), nowNanos);
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
