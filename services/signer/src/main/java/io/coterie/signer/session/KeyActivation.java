package io.coterie.signer.session;

import io.coterie.channel.Member;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.Forsaken;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionReport;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Turns provisional shares into active ones. A share is active once every party of the key has
 * reported the same public data for the same session, so no key is ever used that some party did
 * not store.
 *
 * <p>Never two active shares: a party that stores a newer provisional share of a new key gives up
 * the older one in the same transaction, and reports the newer one only afterwards. So if anyone
 * has all reports of a session, every party has given up, or never had, any other share of that
 * name.
 *
 * <p>A refresh destroys what it replaces, so there the newer run does not win: a party that has
 * stored a share of the next epoch stores no other one until it knows the fate of the first. Either
 * all reports come, and it becomes active; or a party says that it has no share of that session and
 * never will, and then nobody can ever have all reports.
 *
 * <p>Confined to one lane.
 */
final class KeyActivation {
  private static final Logger log = LoggerFactory.getLogger(KeyActivation.class);

  /** How often a peer whose report is missing is asked again. */
  static final long ASK_NANOS = 2_000_000_000L;

  /**
   * A report of a peer is answered with the own one, unless the peer was told so recently: two
   * parties must not answer each other for ever.
   */
  static final long ANSWER_NANOS = ASK_NANOS / 2;

  /** Reports of peers that wait to be looked at. */
  private static final int MAX_WAITING_REPORTS = 1024;

  /** Sessions and peers of which is remembered when they were told last. */
  private static final int MAX_TOLD = 4096;

  private final PartyNetwork network;
  private final KeyShareStore shares;
  private final WorkPool.Lane lane;
  private final Consumer<KeyShare> activated;
  private final Map<SessionId, Candidate> candidates = new LinkedHashMap<>();
  private final Map<String, List<Waiter>> waiters = new HashMap<>();

  /** Counted by the threads that bring them, too. */
  private final AtomicInteger waitingReports = new AtomicInteger();

  private final Map<Told, Long> toldNanos =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Told, Long> eldest) {
          return size() > MAX_TOLD;
        }
      };

  /** A share that is provisional, or whose key generation runs. */
  private static final class Candidate {
    final String key;
    final Set<Integer> parties;
    final Map<Integer, KeyPublic> reports = new HashMap<>();
    final Set<Integer> reachable = new HashSet<>();
    @Nullable KeyShare own;
    boolean activating;

    Candidate(String key, Set<Integer> parties) {
      this.key = key;
      this.parties = parties;
    }
  }

  private record Told(SessionId session, int party) {}

  private record Waiter(Object owner, Runnable wake) {}

  /**
   * @param activated told of each share that is active now
   */
  KeyActivation(
      PartyNetwork network,
      KeyShareStore shares,
      WorkPool.Lane lane,
      Consumer<KeyShare> activated) {
    this.network = network;
    this.shares = shares;
    this.lane = lane;
    this.activated = activated;
  }

  /** Takes up what an earlier process left provisional. */
  void resume() {
    lane.execute(
        () -> {
          for (KeyShare share : shares.provisional()) {
            adopt(share);
          }
        });
  }

  /** A key generation starts; reports of faster peers may come before the own share. */
  void expect(SessionPlan plan) {
    lane.execute(
        () -> {
          candidates.put(plan.id(), new Candidate(plan.key(), Set.copyOf(plan.partyIds())));
        });
  }

  /** A key generation ended without a share. */
  void forget(SessionId session) {
    lane.execute(
        () -> {
          Candidate gone = candidates.get(session);
          if (gone != null && gone.own == null) {
            candidates.remove(session);
            // An older share of the name may have been held back by this run.
            List.copyOf(candidates.entrySet()).stream()
                .filter(e -> e.getValue().key.equals(gone.key))
                .forEach(e -> activateIfAgreed(e.getKey(), e.getValue()));
          }
        });
  }

  /** A provisional share is on disk: everyone may know. */
  void stored(KeyShare share) {
    lane.execute(
        () -> {
          // What was provisional is given up now; a run that is still under way is not.
          candidates
              .entrySet()
              .removeIf(
                  e ->
                      e.getValue().own != null
                          && e.getValue().key.equals(share.key())
                          && !e.getKey().equals(share.session()));
          announce(share, network.roster().byName(share.coordinator()));
          adopt(share);
        });
  }

  /** Reports a stored share again: to its parties, and to the coordinator that asks now. */
  void announceAgain(KeyShare share, Member coordinator) {
    lane.execute(() -> announce(share, Optional.of(coordinator)));
  }

  /**
   * Reports a stored share to its parties again: whoever has none will say so, and decide its fate.
   */
  void askAbout(KeyShare share) {
    lane.execute(() -> announce(share, Optional.empty()));
  }

  /**
   * A peer reports that it has stored its share.
   *
   * @return false if too many reports wait; this one is dropped, and the peer will ask again
   */
  boolean reported(Member sender, SessionId session, KeyPublic keyPublic) {
    if (waitingReports.incrementAndGet() > MAX_WAITING_REPORTS) {
      waitingReports.decrementAndGet();
      return false;
    }
    lane.execute(
        () -> {
          waitingReports.decrementAndGet();
          take(sender, session, keyPublic);
        });
    return true;
  }

  /**
   * A peer says that it has no share of a refresh and never will.
   *
   * @return as {@link #reported}
   */
  boolean forsaken(Member sender, SessionId session) {
    if (waitingReports.incrementAndGet() > MAX_WAITING_REPORTS) {
      waitingReports.decrementAndGet();
      return false;
    }
    lane.execute(
        () -> {
          waitingReports.decrementAndGet();
          giveUp(sender, session);
        });
    return true;
  }

  /**
   * Runs {@code wake} once the key is active in that epoch, at once if it is.
   *
   * @param owner for {@link #giveUpWaiting}
   */
  void awaitActive(String key, int epoch, Object owner, Runnable wake) {
    lane.execute(
        () -> {
          if (shares
              .find(key)
              .filter(s -> s.state() == KeyShare.State.ACTIVE && s.epoch() >= epoch)
              .isPresent()) {
            wake.run();
          } else {
            waiters.computeIfAbsent(key, _ -> new ArrayList<>()).add(new Waiter(owner, wake));
          }
        });
  }

  void giveUpWaiting(String key, Object owner) {
    lane.execute(
        () ->
            waiters.computeIfPresent(
                key,
                (_, list) -> {
                  list.removeIf(w -> w.owner() == owner);
                  return list.isEmpty() ? null : list;
                }));
  }

  /** Asks peers whose report is missing, when they come back and now and then. */
  void tick(long nowNanos) {
    lane.execute(
        () -> {
          if (candidates.values().stream().anyMatch(c -> c.own != null)) {
            Set<Integer> reachable = new HashSet<>();
            network.reachable().forEach(m -> reachable.add(m.partyId()));
            candidates.values().forEach(c -> ask(c, reachable, nowNanos));
          }
        });
  }

  private void adopt(KeyShare share) {
    Candidate candidate =
        candidates.computeIfAbsent(
            share.session(), _ -> new Candidate(share.key(), Set.copyOf(share.members())));
    candidate.own = share;
    activateIfAgreed(share.session(), candidate);
  }

  private void ask(Candidate candidate, Set<Integer> reachable, long nowNanos) {
    KeyShare own = candidate.own;
    if (own == null || candidate.activating) {
      return;
    }
    for (int party : candidate.parties) {
      if (party == network.self().partyId() || candidate.reports.containsKey(party)) {
        continue;
      }
      boolean cameBack = reachable.contains(party) && candidate.reachable.add(party);
      if (!reachable.contains(party)) {
        candidate.reachable.remove(party);
      }
      if (cameBack
          || (reachable.contains(party)
              && toldLongAgo(own.session(), party, nowNanos, ASK_NANOS))) {
        tell(own, party, nowNanos);
      }
    }
  }

  private void take(Member sender, SessionId session, KeyPublic keyPublic) {
    Candidate candidate = candidates.get(session);
    Optional<KeyShare> own =
        candidate == null
            ? shares.find(keyPublic.getKeyId()).filter(s -> s.session().equals(session))
            : Optional.ofNullable(candidate.own);
    if (candidate != null && candidate.parties.contains(sender.partyId())) {
      candidate.reports.put(sender.partyId(), keyPublic);
      activateIfAgreed(session, candidate);
    }
    // It may be asking, because it has missed the own report.
    long now = System.nanoTime();
    own.filter(s -> s.members().contains(sender.partyId()))
        .filter(s -> toldLongAgo(s.session(), sender.partyId(), now, ANSWER_NANOS))
        .ifPresent(s -> tell(s, sender.partyId(), now));
    if (candidate == null && own.isEmpty()) {
      forsake(sender, session, keyPublic, now);
    }
  }

  /**
   * A peer has a share of a session that has ended here without one, or never came here. As long as
   * it waits for this party's, it cannot have another: it is told that there will be none, which is
   * durable before it is said.
   */
  private void forsake(Member peer, SessionId session, KeyPublic keyPublic, long nowNanos) {
    String key = keyPublic.getKeyId();
    boolean next =
        IntentVerifier.isKeyName(key)
            && keyPublic.getEpoch()
                > shares
                    .find(key)
                    .filter(s -> s.state() == KeyShare.State.ACTIVE)
                    .map(KeyShare::epoch)
                    .orElse(1);
    if (!next || !toldLongAgo(session, peer.partyId(), nowNanos, ANSWER_NANOS)) {
      return;
    }
    toldNanos.put(new Told(session, peer.partyId()), nowNanos);
    shares
        .forsake(key, session)
        .whenComplete(
            (done, failure) -> {
              if (failure != null) {
                log.error("could not forsake a refresh of {}", key, failure);
              } else if (Boolean.TRUE.equals(done)) {
                network.send(peer, forsaken(session), null);
              }
            });
  }

  private void giveUp(Member sender, SessionId session) {
    Candidate candidate = candidates.get(session);
    if (candidate == null || candidate.own == null) {
      return;
    }
    KeyShare own = candidate.own;
    if (own.epoch() == 1 || candidate.activating || !candidate.parties.contains(sender.partyId())) {
      return;
    }
    if (candidate.reports.containsKey(sender.partyId())) {
      log.warn(
          "{} says both that it has a share of {} and that it has none", sender.name(), own.key());
      return;
    }
    candidate.activating = true;
    shares
        .giveUp(own, Audit.keyGivenUp(own))
        .whenComplete(
            (_, failure) ->
                lane.execute(
                    () -> {
                      if (failure != null) {
                        log.error("could not give up a share of {}", own.key(), failure);
                        candidate.activating = false;
                      } else {
                        candidates.remove(session);
                        log.info(
                            "{} stays at epoch {}: {} has no newer share",
                            own.key(),
                            own.epoch() - 1,
                            sender.name());
                      }
                    }));
  }

  private boolean toldLongAgo(SessionId session, int party, long nowNanos, long nanos) {
    Long told = toldNanos.get(new Told(session, party));
    return told == null || nowNanos - told >= nanos;
  }

  private void tell(KeyShare share, int party, long nowNanos) {
    toldNanos.put(new Told(share.session(), party), nowNanos);
    network.roster().byPartyId(party).ifPresent(m -> network.send(m, report(share), null));
  }

  private void activateIfAgreed(SessionId session, Candidate candidate) {
    KeyShare own = candidate.own;
    if (own == null || candidate.activating) {
      return;
    }
    for (int party : candidate.parties) {
      if (party == network.self().partyId()) {
        continue;
      }
      KeyPublic reported = candidate.reports.get(party);
      if (reported == null) {
        return;
      }
      if (!reported.equals(own.keyPublic())) {
        log.warn("party {} reports another public key for {}: not activated", party, own.key());
        return;
      }
    }
    // A newer run for the same name is under way: if it succeeds everywhere, this share is the
    // one to be given up; its end decides.
    boolean newerRuns =
        own.epoch() == 1
            && candidates.values().stream().anyMatch(c -> c.own == null && c.key.equals(own.key()));
    if (newerRuns) {
      return;
    }
    candidate.activating = true;
    shares
        .activate(own, Audit.keyActivated(own))
        .whenComplete(
            (done, failure) -> lane.execute(() -> activated(session, own, done, failure)));
  }

  private void activated(
      SessionId session, KeyShare own, @Nullable Boolean done, @Nullable Throwable failure) {
    Candidate candidate = candidates.get(session);
    if (failure != null) {
      log.error("could not activate {}", own.key(), failure);
      if (candidate != null) {
        candidate.activating = false;
      }
      return;
    }
    candidates.remove(session);
    if (Boolean.TRUE.equals(done)) {
      log.info(
          own.left() ? "{} is left to others, epoch {}" : "{} is active, epoch {}",
          own.key(),
          own.epoch());
      activated.accept(own);
      List<Waiter> woken = waiters.remove(own.key());
      if (woken != null) {
        woken.forEach(w -> w.wake().run());
      }
    }
  }

  private void announce(KeyShare share, Optional<Member> coordinator) {
    long now = System.nanoTime();
    List<Member> recipients = new ArrayList<>();
    for (int party : share.members()) {
      if (party != network.self().partyId()) {
        network.roster().byPartyId(party).ifPresent(recipients::add);
        toldNanos.put(new Told(share.session(), party), now);
      }
    }
    coordinator.ifPresent(recipients::add);
    network.broadcast(recipients, report(share), null);
  }

  private static PartyMessage forsaken(SessionId session) {
    return PartyMessage.newBuilder()
        .setReport(
            SessionReport.newBuilder()
                .setSessionId(session.bytes())
                .setForsaken(Forsaken.getDefaultInstance()))
        .build();
  }

  private static PartyMessage report(KeyShare share) {
    return PartyMessage.newBuilder()
        .setReport(
            SessionReport.newBuilder()
                .setSessionId(share.session().bytes())
                .setCompleted(
                    Completed.newBuilder()
                        .setKeyPublic(share.keyPublic())
                        .setActive(share.state() == KeyShare.State.ACTIVE)))
        .build();
  }
}
