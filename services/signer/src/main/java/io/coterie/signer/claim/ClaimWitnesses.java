package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.ClaimCount;
import io.coterie.proto.party.v1.ClaimMemory;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import java.util.ArrayList;
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
 * Notices that a store was put back to an earlier state: such a party has forgotten whom it
 * excludes and how often it died, so that each time gives a corrupt peer new guesses at its
 * secrets. This party states to the others, and to the coordinator that ordered the session, how
 * far its ledger has come before it multiplies; they remember it and answer with what they
 * remember, which this one's own ledger must know.
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
  private final LongSupplier nanos;

  /** The latest answer of each member that was not looked at. */
  private final Map<Member, Answer> answers = new ConcurrentHashMap<>();

  /** Peers that a session waits for; read by other threads too. */
  private final Map<SessionId, Set<Integer>> lacking = new ConcurrentHashMap<>();

  private final PeerLedgers peers;
  private final Map<Integer, Witness> witnesses = new HashMap<>();
  private final Map<Member, Witness> coordinators = new HashMap<>();
  private final Map<SessionId, Waiting> waiting = new LinkedHashMap<>();

  /** For each member the last one that it told of and that this party's ledger was at. */
  private final Map<Member, LedgerPosition> known = new HashMap<>();

  /** Positions that this party's own ledger has forgotten and is being told at this moment. */
  private final Set<LedgerPosition> learning = new HashSet<>();

  private LedgerPosition signed = LedgerPosition.NONE;
  private ClaimCount statement = ClaimCount.getDefaultInstance();

  /** The start at which everybody who could be reached has answered. */
  private ByteString metAt = ByteString.EMPTY;

  /** Since when anybody can be reached; null if nobody could so far. */
  private @Nullable Long reachedNanos;

  private record Answer(ClaimMemory remembered, long nanos) {}

  private static final class Waiting {
    /** The others must remember so many. */
    final long claims;

    /** The other parties of the session. */
    final List<Integer> peers;

    /** The parties that hold a share of the key. */
    final List<Integer> holders;

    /** The coordinator that ordered the session. */
    final Member coordinator;

    final Runnable then;

    /** Since when it waits for those outside it alone. */
    @Nullable Long heldNanos;

    Waiting(
        long claims,
        List<Integer> peers,
        List<Integer> holders,
        Member coordinator,
        Runnable then) {
      this.claims = claims;
      this.peers = peers;
      this.holders = holders;
      this.coordinator = coordinator;
      this.then = then;
    }
  }

  /**
   * @param lane of this object alone
   * @param changed told that somebody may be excluded from any key now
   * @param nanos a clock that only goes forward
   */
  public ClaimWitnesses(
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
    this.peers = new PeerLedgers(network, memory, lane, this::excluding, nanos);
  }

  // ---- this party's own ledger -----------------------------------------------------------------

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
          state(nanos.getAsLong());
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
          state(nowNanos);
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
    waiting.values().forEach(w -> others.addAll(w.peers));
    List<Member> told = new ArrayList<>(coordinatorsToTell(now));
    others.forEach(other -> network.roster().byPartyId(other).ifPresent(told::add));
    for (Member member : told) {
      Witness witness = witness(member);
      if (witness.mayAsk() && !witness.covers(now.head(), now.claims())) {
        PartyMessage stated = PartyMessage.newBuilder().setClaimCount(sign(now)).build();
        witness.ask(now, nowNanos);
        network.send(member, stated, null);
      }
    }
  }

  /** Those that ordered a session that waits; at a start all that can be reached. */
  private Set<Member> coordinatorsToTell(LedgerPosition now) {
    Set<Member> told =
        metAt.equals(now.head()) ? new HashSet<>() : new HashSet<>(reachableCoordinators());
    waiting.values().forEach(session -> told.add(session.coordinator));
    return told;
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

  /**
   * Those that this party has heard of, for a while after it could reach anybody, whether it can
   * reach them already or not. Else a peer and a coordinator that are quicker than everybody else
   * would decide alone what this party is told at a start.
   */
  private Set<Integer> expected(long nowNanos) {
    if (reachedNanos == null && !network.reachable().isEmpty()) {
      reachedNanos = nowNanos;
    }
    Set<Integer> expected = new HashSet<>();
    if (reachedNanos == null || nowNanos - reachedNanos < Witness.PATIENCE_NANOS) {
      for (int party : peers.known()) {
        network.roster().byPartyId(party).ifPresent(_ -> expected.add(party));
      }
    }
    return expected;
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

  /** Lets go on whoever waits for no witness any more. */
  private void release() {
    long now = nanos.getAsLong();
    lookAtAnswers();
    witnesses.values().forEach(w -> w.charge(now));
    Set<Integer> expected = metAt.equals(claims.position().head()) ? Set.of() : expected(now);
    do {
      letGo(expected);
    } while (hold(now));
  }

  /**
   * @param expected parties that a start waits for, reachable or not
   */
  private void letGo(Set<Integer> expected) {
    if (waiting.isEmpty()) {
      return;
    }
    ByteString head = claims.position().head();
    Set<Integer> reachable = reachable();
    reachable.addAll(expected);
    waiting.forEach((id, session) -> lacking.put(id, lacking(head, session)));
    waiting
        .values()
        .removeIf(
            session -> {
              boolean fresh = !metAt.equals(head);
              if (!coordinatorsRemember(head, session, fresh)
                  || !Witness.enough(
                      head,
                      session.claims,
                      session.peers,
                      fresh ? reachable : outside(session, reachable),
                      fresh,
                      witnesses)) {
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
        if (!coordinatorsRemember(head, session, false) || !lacking(head, session).isEmpty()) {
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

  /** The one that ordered the session remembers enough, and at a start all that can be reached. */
  private boolean coordinatorsRemember(ByteString head, Waiting session, boolean fresh) {
    Witness ordering = coordinators.get(session.coordinator);
    if (ordering == null || !ordering.covers(head, session.claims)) {
      return false;
    }
    return !fresh
        || reachableCoordinators().stream()
            .map(this::witness)
            .allMatch(w -> w.covers(head, session.claims) || !w.waitedFor(true));
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
      lane.execute(
          () -> {
            release();
            state(nanos.getAsLong());
          });
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
      LedgerPosition told = LedgerPosition.of(count);
      if (told == null || count.getParty() != network.self().partyId()) {
        return;
      }
      latest = told;
      boolean current = told.head().equals(now.head()) && told.claims() <= now.claims();
      if (!current && !told.equals(known.get(sender))) {
        // The signature first: it costs less than the disk, and nobody else can make one.
        if (!told.isSigned(count, network.self().evidenceKey())) {
          return;
        }
        if (!remembers(told)) {
          wentBack(sender, told, now);
          return;
        }
        known.put(sender, told);
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

  private void wentBack(Member sender, LedgerPosition told, LedgerPosition now) {
    log.error(
        "this party's own store went back to an earlier state: {} remembers start {} with {}"
            + " claims, here is start {} with {}",
        sender.name(),
        told.starts(),
        told.claims(),
        now.starts(),
        now.claims());
    witness(sender).contradicts();
    if (learning.add(told)) {
      excluding(
          memory.wentBack(told).whenComplete((_, _) -> lane.execute(() -> learning.remove(told))));
    }
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
