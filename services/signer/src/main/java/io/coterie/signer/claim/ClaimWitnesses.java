package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices that a store was put back to an earlier state: such a party has forgotten for which
 * requests it did what, whom it excludes and how often it died, so that each time gives a corrupt
 * peer new guesses at its secrets. This party states to the others and to coordinators how far its
 * ledger has come: at a start before it claims earlier requests, before it multiplies, and else
 * soon. They remember it and answer with what they remember, which this one's own ledger must know.
 *
 * <p>Everything but {@link #stated} and {@link #answered}, which only keep the latest message of
 * each sender, happens in one lane.
 */
public final class ClaimWitnesses {
  private static final Logger log = LoggerFactory.getLogger(ClaimWitnesses.class);

  /** Statements in one answer. */
  private static final int MAX_REMEMBERED = 2;

  private final PartyNetwork network;
  private final ClaimLedger claims;
  private final ShownClaims memory;
  private final ProtocolCore core;
  private final Executor lane;
  private final Runnable changed;
  private final InstantSource clock;
  private final LongSupplier nanos;

  /** The first request id of which this process knows all that it did. */
  private final String firstKnown;

  /** The latest answer of each member that was not looked at. */
  private final Map<Member, Answer> answers = new ConcurrentHashMap<>();

  /** Peers that a session waits for; read by other threads too. */
  private final Map<SessionId, Set<Integer>> lacking = new ConcurrentHashMap<>();

  private final PeerLedgers peers;
  private final Map<Integer, Witness> witnesses = new HashMap<>();
  private final Map<Member, Witness> coordinators = new HashMap<>();
  private final Map<SessionId, Waiting> waiting = new LinkedHashMap<>();

  /** Each member's last position that was once the position of this party's own ledger. */
  private final Map<Member, LedgerPosition> known = new HashMap<>();

  /** Positions that this party's own ledger has forgotten and is being told at this moment. */
  private final Set<LedgerPosition> learning = new HashSet<>();

  /** Positions that it has been told and that are not on disk: the first write may have failed. */
  private final Set<LedgerPosition> unlearned = new HashSet<>();

  private LedgerPosition signed = LedgerPosition.NONE;
  private ClaimCount statement = ClaimCount.getDefaultInstance();

  private final Start start;

  private record Answer(ClaimMemory remembered, long nanos) {}

  /**
   * @param lane of this object alone
   * @param changed told that somebody may be excluded from any key now
   * @param clock of this party
   * @param nanos a clock that only goes forward
   */
  public ClaimWitnesses(
      PartyNetwork network,
      ClaimLedger claims,
      ShownClaims memory,
      ProtocolCore core,
      Executor lane,
      Runnable changed,
      InstantSource clock,
      LongSupplier nanos) {
    this.network = network;
    this.claims = claims;
    this.memory = memory;
    this.core = core;
    this.lane = lane;
    this.changed = changed;
    this.clock = clock;
    this.nanos = nanos;
    this.firstKnown = RequestId.first(clock.instant());
    this.start = new Start(network);
    this.peers = new PeerLedgers(network, memory, lane, this::excluding, nanos);
  }

  // ---- this party's own ledger -----------------------------------------------------------------

  /**
   * Whether a request may have been claimed here before this start without the store knowing of it,
   * because nobody who would know has been asked yet.
   *
   * @param requestId null if it is not known which request it is
   */
  public boolean mayHaveForgotten(@Nullable String requestId) {
    return !start.wasMet() && (requestId == null || requestId.compareTo(firstKnown) < 0);
  }

  /**
   * Calls when everybody who can be reached has been asked: in this object's lane, soon, and at
   * most five seconds after anybody can be reached. By then the store has its fence if anybody has
   * shown that it went back.
   */
  public void whenMet(Runnable then) {
    lane.execute(
        () -> {
          start.whenMet(then);
          start.reached(nanos.getAsLong());
          release();
        });
  }

  /**
   * Waits until others remember the claims that are on disk now.
   *
   * @param peers ids of the other parties of the session
   * @param holders ids of the parties that hold a share of its key, as far as they are known
   * @param coordinator that ordered the session
   * @param then run in this object's lane
   */
  public void await(
      SessionId session,
      List<Integer> peers,
      List<Integer> holders,
      Member coordinator,
      Runnable then) {
    long now = claims.position().claims();
    lane.execute(
        () -> {
          waiting.put(session, new Waiting(now, peers, holders, coordinator, then));
          start.reached(nanos.getAsLong());
          release();
        });
  }

  /** A session waits no more. */
  public void forget(SessionId session) {
    lane.execute(
        () -> {
          lacking.remove(session);
          if (waiting.remove(session) != null) {
            release();
          }
        });
  }

  /** Peers that have not said that they remember the claim of a session that waits. */
  public Set<Integer> lacking(SessionId session) {
    return lacking.getOrDefault(session, Set.of());
  }

  /** States what has not been answered, also to those who have come back. */
  public void tick() {
    lane.execute(
        () -> {
          long nowNanos = nanos.getAsLong();
          lookAtAnswers();
          witnesses.values().forEach(w -> w.tick(nowNanos));
          coordinators.values().forEach(w -> w.tick(nowNanos));
          release();
        });
  }

  /** States the position to peers that are not being asked; a question tells the others. */
  private void state(long nowNanos) {
    if (!learning.isEmpty()) {
      return; // it is about to have another position
    }
    LedgerPosition now = claims.position();
    Set<Integer> others = reachable();
    Map<Integer, Long> needed = needed(others, nowNanos);
    waiting.values().forEach(w -> others.addAll(w.peers));
    Set<Member> told = new HashSet<>(reachableCoordinators());
    waiting.values().forEach(w -> told.add(w.coordinator));
    others.forEach(other -> network.roster().byPartyId(other).ifPresent(told::add));
    for (Member member : told) {
      Witness witness = witness(member);
      long claimsNeeded =
          member.role() == Member.Role.PARTY
              ? needed.getOrDefault(member.partyId(), 0L)
              : needed(member, waiting.values());
      if (witness.mayAsk() && isDue(witness, claimsNeeded, now, nowNanos)) {
        PartyMessage stated = PartyMessage.newBuilder().setClaimCount(sign(now)).build();
        witness.ask(now, nowNanos);
        network.send(member, stated, null);
      }
    }
  }

  /**
   * At a start, or if a session may wait for it, at once; else once in a while.
   *
   * @param needed the last claim of which a session may wait for this member's word
   */
  private static boolean isDue(Witness witness, long needed, LedgerPosition now, long nowNanos) {
    if (witness.covers(now.mark(), now.claims())) {
      return false;
    }
    return !witness.covers(now.mark(), Math.max(needed, now.base())) || witness.isDue(nowNanos);
  }

  /** Up to which claim each party has to remember, so that the sessions that wait can go on. */
  private Map<Integer, Long> needed(Set<Integer> reachable, long nowNanos) {
    Map<Integer, Long> needed = new HashMap<>();
    for (Waiting session : waiting.values()) {
      for (int party : session.toldAtOnce(outside(session, reachable), reachable, nowNanos)) {
        needed.merge(party, session.claims, Math::max);
      }
    }
    return needed;
  }

  private static long needed(Member coordinator, Collection<Waiting> sessions) {
    return sessions.stream()
        .filter(session -> session.coordinator.equals(coordinator))
        .mapToLong(session -> session.claims)
        .max()
        .orElse(0);
  }

  private ClaimCount sign(LedgerPosition now) {
    if (!now.equals(signed)) {
      LedgerHead head =
          new LedgerHead(
              network.roster().installation(), network.self().partyId(), now, clock.millis());
      statement = head.count(core.signStatement(head.statement()));
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

  private List<Member> reachableCoordinators() {
    return network.reachable().stream()
        .filter(member -> member.role() == Member.Role.COORDINATOR)
        .toList();
  }

  private Witness witness(Member member) {
    long now = nanos.getAsLong();
    return member.role() == Member.Role.PARTY
        ? witnesses.computeIfAbsent(member.partyId(), _ -> new Witness(now))
        : coordinators.computeIfAbsent(member, _ -> new Witness(now));
  }

  /** Lets go on whoever waits for no witness any more, and tells those that are waited for. */
  private void release() {
    long now = nanos.getAsLong();
    lookAtAnswers();
    witnesses.values().forEach(w -> w.charge(now));
    // The store tries again by itself after a write that failed.
    unlearned.removeIf(position -> !learning.contains(position) && remembers(position));
    start.look(
        claims.position(),
        !unlearned.isEmpty(),
        now,
        reachable(),
        witnesses,
        reachableCoordinators().stream().map(this::witness).toList());
    do {
      letGo();
    } while (hold(now));
    // The sessions may wait for others now than before, who were not told. Their time begins now,
    // however long the disk took above.
    state(nanos.getAsLong());
  }

  private void letGo() {
    if (waiting.isEmpty()) {
      return;
    }
    ByteString mark = claims.position().mark();
    waiting.forEach((id, session) -> lacking.put(id, lacking(mark, session)));
    if (!start.isOver(mark)) {
      return;
    }
    Set<Integer> reachable = reachable();
    waiting
        .values()
        .removeIf(
            session -> {
              if (!coordinatorRemembers(mark, session)
                  || !Witness.enough(
                      mark,
                      session.claims,
                      session.peers,
                      outside(session, reachable),
                      witnesses)) {
                return false;
              }
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
    ByteString mark = claims.position().mark();
    Map<Integer, List<Long>> held = new HashMap<>();
    long tellNanos = nanos.getAsLong();
    if (!waiting.isEmpty() && start.isOver(mark)) {
      Set<Integer> reachable = reachable();
      for (Waiting session : waiting.values()) {
        if (!coordinatorRemembers(mark, session) || !lacking(mark, session).isEmpty()) {
          session.heldNanos = null;
          continue;
        }
        Long since = session.heldNanos;
        if (since == null) {
          since = now;
          session.heldNanos = since;
        }
        for (int other : outside(session, reachable)) {
          if (witnesses.containsKey(other)) {
            held.computeIfAbsent(other, _ -> new ArrayList<>())
                .add(session.waitsSince(other, since, tellNanos));
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

  /**
   * The parties outside a session of which one is waited for: holders of the key, of which fewer
   * than the threshold are corrupt; others only if there is none of these.
   */
  private Set<Integer> outside(Waiting session, Set<Integer> reachable) {
    Set<Integer> outside = new HashSet<>(reachable);
    outside.removeIf(
        other -> {
          Witness witness = witnesses.get(other);
          return session.peers.contains(other) || witness != null && !witness.waitedFor(false);
        });
    if (!Collections.disjoint(outside, session.holders)) {
      outside.retainAll(session.holders);
    }
    return outside;
  }

  /** The one that ordered the session remembers enough. */
  private boolean coordinatorRemembers(ByteString mark, Waiting session) {
    Witness ordering = coordinators.get(session.coordinator);
    return ordering != null && ordering.covers(mark, session.claims);
  }

  private Set<Integer> lacking(ByteString mark, Waiting session) {
    Set<Integer> lacking = new HashSet<>();
    for (int peer : session.peers) {
      Witness witness = witnesses.get(peer);
      if (witness == null || !witness.covers(mark, session.claims)) {
        lacking.add(peer);
      }
    }
    return Set.copyOf(lacking);
  }

  /** Another party states how far it has come. Of several statements the last one counts. */
  public void stated(Member sender, ClaimCount count) {
    peers.stated(sender, count);
  }

  /**
   * Takes what a party or coordinator remembers of this one. Of several answers the last one
   * counts.
   */
  public void answered(Member sender, ClaimMemory remembered) {
    if (remembered.getRememberedCount() <= MAX_REMEMBERED
        && answers.put(sender, new Answer(remembered, nanos.getAsLong())) == null) {
      lane.execute(this::release);
    }
  }

  /**
   * Everything that has come. The lane may have stood still, for a disk for example: that is not
   * held against those that have answered meanwhile. So the time by which others are judged is
   * taken before this, and each answer counts from when it came.
   */
  private void lookAtAnswers() {
    for (Member sender : answers.keySet()) {
      Answer answer = answers.remove(sender);
      if (answer != null) {
        lookAt(sender, answer);
      }
    }
  }

  private void lookAt(Member sender, Answer answer) {
    LedgerPosition now = claims.position();
    LedgerPosition latest = LedgerPosition.NONE;
    for (ClaimCount count : answer.remembered.getRememberedList()) {
      LedgerHead head = LedgerHead.of(network.roster().installation(), count).orElse(null);
      if (head == null || head.party() != network.self().partyId()) {
        return;
      }
      LedgerPosition told = head.position();
      latest = told;
      boolean current =
          told.mark().equals(now.mark())
              && (told.claims() < now.claims()
                  || told.claims() == now.claims() && told.hash().equals(now.hash()));
      if (!current && !told.equals(known.get(sender))) {
        // The signature first: it costs less than the disk, and nobody else can make one.
        if (!head.isSigned(count.getSignature(), network.self().evidenceKey())) {
          return;
        }
        if (!remembers(told)) {
          wentBack(sender, head, now);
          return;
        }
        known.put(sender, told);
        if (told.log().number() < now.log().number() && !claims.recalls(told)) {
          forgottenEarlier(sender, head);
        }
      }
    }
    Witness witness = witness(sender);
    witness.charge(answer.nanos);
    witness.answers(latest);
  }

  /** Not if the disk cannot be read: then the store decides when it is told. */
  private boolean remembers(LedgerPosition told) {
    try {
      return claims.remembers(told);
    } catch (RuntimeException e) {
      log.error("this party cannot read the earlier positions of its ledger", e);
      return false;
    }
  }

  private void wentBack(Member sender, LedgerHead told, LedgerPosition now) {
    LedgerPosition position = told.position();
    log.error(
        "this party's own store went back to an earlier state: {} remembers {} of {}, here is {}",
        sender.name(),
        position,
        told.time(),
        now);
    witness(sender).contradicts();
    unlearned.add(position);
    if (learning.add(position)) {
      excluding(
          memory
              .wentBack(told)
              .whenComplete((_, failure) -> lane.execute(() -> learned(position, failure))));
    }
  }

  /** A head of an earlier, forgotten log may name a later time than the clock has shown since. */
  private void forgottenEarlier(Member sender, LedgerHead head) {
    LedgerPosition position = head.position();
    unlearned.add(position);
    if (learning.add(position)) {
      memory
          .forgotten(head)
          .whenComplete((_, failure) -> lane.execute(() -> fenced(sender, position, failure)));
    }
  }

  private void fenced(Member sender, LedgerPosition told, @Nullable Throwable failure) {
    if (failure != null) {
      known.remove(sender, told); // It tells it again.
    }
    learned(told, failure);
  }

  private void learned(LedgerPosition position, @Nullable Throwable failure) {
    learning.remove(position);
    if (failure == null) {
      unlearned.remove(position);
    }
    // If it failed, whoever has told of it is asked again and tells it again.
  }

  private void excluding(CompletionStage<List<String>> write) {
    // It counts in memory already.
    changed.run();
    write.whenComplete(
        (_, failure) -> {
          if (failure != null) {
            log.error(
                "this party has not yet written that a store went back; it tries again", failure);
          }
          changed.run();
          if (failure == null) {
            lane.execute(() -> state(nanos.getAsLong()));
          }
        });
  }
}
