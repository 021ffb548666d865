package io.coterie.signer.session;

import com.google.protobuf.ByteString;
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
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Turns provisional shares into active ones. A share is active once every party of the session has
 * signed that it has stored its own, with the same public data, so no key is ever used that some
 * party did not store. All these signatures are its {@link Certificate}.
 *
 * <p>Never two active shares: a party that stores a newer provisional share of a new key gives up
 * the older one in the same transaction, and reports the newer one only afterwards. So if anyone
 * has all reports of a session, every party has given up, or never had, any other share of that
 * name.
 *
 * <p>A refresh destroys what it replaces, so there the newer run does not win: a party that has
 * stored a share of the next epoch stores no other one until all reports come, and it becomes
 * active, or a party says that it has no share of that session and never will. If that was a lie,
 * somebody may have all reports, so the share is kept, and a certificate makes it active after all.
 * Of two certified sessions of one epoch the one that was stored later counts.
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

  /** A party that has said something, and may have said something else to others, is asked less. */
  private static final long MAX_ASK_NANOS = 600_000_000_000L;

  /** A peer whose messages are dropped is named in the log this often. */
  private static final long WARN_NANOS = 10_000_000_000L;

  /** Reports of peers that wait to be looked at. */
  private static final int MAX_WAITING_REPORTS = 1024;

  /** Sessions and peers of which is remembered when they were told last. */
  private static final int MAX_TOLD = 4096;

  /** Own signatures that are kept, so that each is made once. */
  private static final int MAX_SIGNATURES = 1024;

  private static final String BAD_SIGNATURE = "bad_evidence_signature";
  private static final String BAD_CERTIFICATE = "bad_certificate";

  private final PartyNetwork network;
  private final KeyShareStore shares;
  private final WorkPool.Lane lane;
  private final ProtocolCore core;
  private final SessionTelemetry telemetry;
  private final Listener listener;
  private final Map<SessionId, Candidate> candidates = new LinkedHashMap<>();
  private final Map<String, List<Waiter>> waiters = new HashMap<>();

  /** Counted by the threads that bring them, too. */
  private final AtomicInteger waitingReports = new AtomicInteger();

  /** Of sessions that are not candidates. */
  private final Map<Told, Long> toldNanos = new Latest<>(MAX_TOLD);

  private final Map<SessionId, ByteString> signatures = new Latest<>(MAX_SIGNATURES);
  private final Map<Integer, Long> warnedNanos = new HashMap<>();

  /** Hears of shares that are active now. */
  @FunctionalInterface
  interface Listener {
    /**
     * @param sameEpoch whether it has taken the place of another one of its epoch
     */
    void activated(KeyShare share, boolean sameEpoch);
  }

  /** Forgets what was put first. */
  private static final class Latest<K, V> extends LinkedHashMap<K, V> {
    private static final long serialVersionUID = 1L;

    private final int max;

    Latest(int max) {
      this.max = max;
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
      return size() > max;
    }
  }

  /** A share that is not decided, or whose session runs. */
  private static final class Candidate {
    final String key;
    final Set<Integer> parties;
    final Map<Integer, ShareAgreement.Report> reports = new HashMap<>();
    final Set<Integer> reachable = new HashSet<>();
    final Map<Integer, Long> toldNanos = new HashMap<>();
    @Nullable KeyShare own;

    /** Since when it has waited as it does now. */
    long sinceNanos;

    /** Whether the store is about to change what it is. */
    boolean changing;

    /** Whether a peer had to be asked for its report. */
    boolean asked;

    Candidate(String key, Set<Integer> parties) {
      this.key = key;
      this.parties = parties;
    }

    /** Whether a peer has signed that it has stored what belongs to the own share. */
    boolean hasFrom(int party) {
      ShareAgreement.Report report = reports.get(party);
      return own != null && report != null && report.keyPublic().equals(own.keyPublic());
    }
  }

  private record Told(SessionId session, int party) {}

  private record Waiter(Object owner, Runnable wake) {}

  KeyActivation(
      PartyNetwork network,
      KeyShareStore shares,
      WorkPool.Lane lane,
      ProtocolCore core,
      SessionTelemetry telemetry,
      Listener listener) {
    this.network = network;
    this.shares = shares;
    this.lane = lane;
    this.core = core;
    this.telemetry = telemetry;
    this.listener = listener;
  }

  /** Takes up what an earlier process left undecided. */
  void resume() {
    lane.execute(
        () -> {
          for (KeyShare share : shares.undecided()) {
            adopt(share);
          }
        });
  }

  /** A key generation starts; reports of faster peers may come before the own share. */
  void expect(SessionPlan plan) {
    lane.execute(
        () -> {
          // Its order may be given again: a share of it that was given up must not be forgotten.
          candidates.computeIfAbsent(
              plan.id(), _ -> new Candidate(plan.key(), Set.copyOf(plan.partyIds())));
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
            List.copyOf(candidates.values()).stream()
                .filter(each -> each.key.equals(gone.key))
                .forEach(this::activateIfAgreed);
          }
        });
  }

  /** A provisional share is on disk: everyone may know. */
  void stored(KeyShare share) {
    lane.execute(
        () -> {
          candidates
              .entrySet()
              .removeIf(
                  e -> !e.getKey().equals(share.session()) && superseded(e.getValue(), share));
          announce(share, network.roster().byName(share.coordinator()));
          adopt(share);
        });
  }

  /**
   * What was provisional is given up by a later share; a run that is still under way is not.
   *
   * @return whether it is lost by that
   */
  private static boolean superseded(Candidate candidate, KeyShare later) {
    KeyShare own = candidate.own;
    if (own == null || !own.key().equals(later.key())) {
      return false;
    }
    if (own.state() == KeyShare.State.PROVISIONAL) {
      candidate.own = own.givenUp();
    }
    return own.epoch() == 1;
  }

  /** Reports a stored share again: to its parties, and to the coordinator that asks now. */
  void announceAgain(KeyShare share, Member coordinator) {
    lane.execute(() -> announce(share, Optional.of(coordinator)));
  }

  /**
   * Reports a stored share to its parties again: whoever has none will say so, and whoever uses its
   * own will show why.
   */
  void askAbout(KeyShare share) {
    lane.execute(() -> announce(share, Optional.empty()));
  }

  /**
   * A peer reports that it has stored its share.
   *
   * @return false if too many reports wait; this one is dropped, and the peer will ask again
   */
  boolean reported(Member sender, SessionId session, Completed completed) {
    if (waitingReports.incrementAndGet() > MAX_WAITING_REPORTS) {
      waitingReports.decrementAndGet();
      return false;
    }
    lane.execute(
        () -> {
          waitingReports.decrementAndGet();
          take(sender, session, completed);
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
    candidate.sinceNanos = System.nanoTime();
    activateIfAgreed(candidate);
  }

  /**
   * Asks those whose report is missing, and now and then the others: one of them may have been told
   * what this party was not, and use its share.
   */
  private void ask(Candidate candidate, Set<Integer> reachable, long nowNanos) {
    KeyShare own = candidate.own;
    if (own == null || candidate.changing) {
      return;
    }
    long patience = Math.clamp((nowNanos - candidate.sinceNanos) / 2, ASK_NANOS, MAX_ASK_NANOS);
    for (int party : candidate.parties) {
      if (party == network.self().partyId()) {
        continue;
      }
      boolean cameBack = reachable.contains(party) && candidate.reachable.add(party);
      if (!reachable.contains(party)) {
        candidate.reachable.remove(party);
      }
      boolean awaited = own.state() == KeyShare.State.PROVISIONAL && !candidate.hasFrom(party);
      if (cameBack
          || (reachable.contains(party)
              && toldLongAgo(own.session(), party, nowNanos, awaited ? ASK_NANOS : patience))) {
        candidate.asked = true;
        tell(own, party, nowNanos);
      }
    }
  }

  private void take(Member sender, SessionId session, Completed completed) {
    long now = System.nanoTime();
    KeyPublic keyPublic = completed.getKeyPublic();
    ByteString signature = completed.getEvidenceSignature();
    if (!Certificate.verifies(
        sender, Certificate.statement(session, keyPublic, sender.partyId()), signature)) {
      dropped(sender, BAD_SIGNATURE, now);
      return;
    }
    Candidate candidate = candidates.get(session);
    Optional<KeyShare> own =
        candidate == null
            ? shares.find(keyPublic.getKeyId()).filter(s -> s.session().equals(session))
            : Optional.ofNullable(candidate.own);
    if (candidate != null && candidate.parties.contains(sender.partyId())) {
      if (!candidate.hasFrom(sender.partyId())) {
        candidate.reports.put(sender.partyId(), new ShareAgreement.Report(keyPublic, signature));
      }
      if (completed.getCertificateCount() > 0) {
        takeCertificate(sender, candidate, new Certificate(completed.getCertificateList()), now);
      }
      activateIfAgreed(candidate);
    }
    // It may be asking, because it has missed the own report.
    own.filter(s -> s.members().contains(sender.partyId()))
        .filter(s -> s.state() != KeyShare.State.ACTIVE || !completed.getActive())
        .ifPresent(s -> answer(s, sender.partyId(), now));
    if (candidate == null && own.isEmpty()) {
      forsake(sender, session, keyPublic, now);
    }
  }

  /** Whoever has a certificate can show what everybody has signed. */
  private void takeCertificate(
      Member sender, Candidate candidate, Certificate certificate, long nowNanos) {
    KeyShare own = candidate.own;
    if (own == null || candidate.changing) {
      return; // it will be asked for
    }
    if (!certificate.certifies(own, network.roster())) {
      dropped(sender, BAD_CERTIFICATE, nowNanos);
      return;
    }
    for (int i = 0; i < own.members().size(); i++) {
      candidate.reports.put(
          own.members().get(i),
          new ShareAgreement.Report(own.keyPublic(), certificate.signatures().get(i)));
    }
  }

  private void dropped(Member sender, String reason, long nowNanos) {
    telemetry.dropped(reason);
    Long warned = warnedNanos.get(sender.partyId());
    if (warned == null || nowNanos - warned >= WARN_NANOS) {
      warnedNanos.put(sender.partyId(), nowNanos);
      log.warn("a report of {} is dropped: {}", sender.name(), reason);
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
    told(session, peer.partyId(), nowNanos);
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
    if (candidate == null) {
      contradict(sender, session);
      return;
    }
    KeyShare own = candidate.own;
    if (own == null
        || own.state() != KeyShare.State.PROVISIONAL
        || own.epoch() == 1
        || candidate.changing
        || !candidate.parties.contains(sender.partyId())) {
      return;
    }
    if (candidate.hasFrom(sender.partyId())) {
      log.warn(
          "{} has signed that it has a share of {}, and says that it has none",
          sender.name(),
          own.key());
      return;
    }
    candidate.changing = true;
    shares
        .giveUp(own, sender.partyId(), Audit.keyGivenUp(own, sender))
        .whenComplete(
            (done, failure) -> lane.execute(() -> givenUp(sender, candidate, done, failure)));
  }

  /** Who says that it has no share of a session whose certificate is here is shown it. */
  private void contradict(Member sender, SessionId session) {
    long now = System.nanoTime();
    if (toldLongAgo(session, sender.partyId(), now, ANSWER_NANOS)) {
      shares
          .ofSession(session)
          .filter(s -> s.state() == KeyShare.State.ACTIVE)
          .filter(s -> s.members().contains(sender.partyId()))
          .ifPresent(s -> tell(s, sender.partyId(), now));
    }
  }

  private void givenUp(
      Member sender, Candidate candidate, @Nullable Boolean done, @Nullable Throwable failure) {
    candidate.changing = false;
    KeyShare own = candidate.own;
    if (own == null) {
      return;
    }
    if (failure != null) {
      log.error("a share of {} could not be given up", own.key(), failure);
    } else if (Boolean.TRUE.equals(done)) {
      candidate.own = own.givenUp();
      candidate.sinceNanos = System.nanoTime();
      candidate.asked = true;
      log.info(
          "{} stays at epoch {}: {} says that it has no newer share",
          own.key(),
          own.epoch() - 1,
          sender.name());
      // If that was a lie, somebody may know better.
      announce(candidate.own, Optional.empty());
    }
    activateIfAgreed(candidate);
  }

  private boolean toldLongAgo(SessionId session, int party, long nowNanos, long nanos) {
    Candidate candidate = candidates.get(session);
    Long told =
        candidate == null
            ? toldNanos.get(new Told(session, party))
            : candidate.toldNanos.get(party);
    return told == null || nowNanos - told >= nanos;
  }

  private void told(SessionId session, int party, long nowNanos) {
    Candidate candidate = candidates.get(session);
    if (candidate == null) {
      toldNanos.put(new Told(session, party), nowNanos);
    } else {
      candidate.toldNanos.put(party, nowNanos);
    }
  }

  private void answer(KeyShare share, int party, long nowNanos) {
    if (toldLongAgo(share.session(), party, nowNanos, ANSWER_NANOS)) {
      tell(share, party, nowNanos);
    }
  }

  /** Tells one party alone; with the certificate, if there is one. */
  private void tell(KeyShare share, int party, long nowNanos) {
    told(share.session(), party, nowNanos);
    Completed.Builder completed = completed(share);
    Certificate certificate = share.certificate();
    if (certificate != null) {
      completed.addAllCertificate(certificate.signatures());
    }
    network
        .roster()
        .byPartyId(party)
        .ifPresent(m -> network.send(m, report(share.session(), completed), null));
  }

  private void activateIfAgreed(Candidate candidate) {
    KeyShare own = candidate.own;
    if (own == null || candidate.changing) {
      return;
    }
    boolean newerRuns =
        candidates.values().stream().anyMatch(c -> c.own == null && c.key.equals(own.key()));
    ShareAgreement agreement =
        new ShareAgreement(
            own, network.self().partyId(), signature(own), candidate.reports, newerRuns);
    switch (agreement.verdict()) {
      case ShareAgreement.Verdict.Open _ -> {}
      case ShareAgreement.Verdict.Contradicted(int party) ->
          log.warn("party {} reports another public key for {}: not activated", party, own.key());
      case ShareAgreement.Verdict.Agreed(Certificate certificate) ->
          activate(candidate, own, certificate);
    }
  }

  private void activate(Candidate candidate, KeyShare own, Certificate certificate) {
    boolean sameEpoch =
        shares
            .find(own.key())
            .filter(s -> s.state() == KeyShare.State.ACTIVE && s.epoch() == own.epoch())
            .isPresent();
    KeyShare used = own.activated(certificate);
    candidate.changing = true;
    shares
        .activate(own, certificate, Audit.keyActivated(own))
        .whenComplete(
            (done, failure) ->
                lane.execute(() -> activated(candidate, used, sameEpoch, done, failure)));
  }

  private void activated(
      Candidate candidate,
      KeyShare used,
      boolean sameEpoch,
      @Nullable Boolean done,
      @Nullable Throwable failure) {
    candidate.changing = false;
    if (failure != null) {
      log.error("could not activate {}", used.key(), failure);
      return;
    }
    candidates.remove(used.session());
    if (!Boolean.TRUE.equals(done)) {
      return;
    }
    candidates
        .entrySet()
        .removeIf(
            e ->
                e.getValue().own != null
                    && e.getValue().key.equals(used.key())
                    && shares.ofSession(e.getKey()).isEmpty());
    log.info(
        used.left() ? "{} is left to others, epoch {}" : "{} is active, epoch {}",
        used.key(),
        used.epoch());
    if (candidate.asked) {
      // Who did not say it at once may have said something else to somebody.
      long now = System.nanoTime();
      candidate.parties.stream()
          .filter(party -> party != network.self().partyId())
          .forEach(party -> tell(used, party, now));
    }
    if (used.epoch() > 1) {
      // It waits for that: what all say that they have stored may still be given up.
      network
          .roster()
          .byName(used.coordinator())
          .ifPresent(c -> network.send(c, report(used.session(), completed(used)), null));
    }
    listener.activated(used, sameEpoch);
    List<Waiter> woken = waiters.remove(used.key());
    if (woken != null) {
      woken.forEach(w -> w.wake().run());
    }
  }

  private void announce(KeyShare share, Optional<Member> coordinator) {
    long now = System.nanoTime();
    List<Member> recipients = new ArrayList<>();
    for (int party : share.members()) {
      if (party != network.self().partyId()) {
        network.roster().byPartyId(party).ifPresent(recipients::add);
        told(share.session(), party, now);
      }
    }
    coordinator.ifPresent(recipients::add);
    network.broadcast(recipients, report(share.session(), completed(share)), null);
  }

  /** This party's signature that it has stored a share; the same at each call. */
  private ByteString signature(KeyShare share) {
    Certificate certificate = share.certificate();
    int self = network.self().partyId();
    if (certificate != null) {
      return certificate.signatures().get(share.members().indexOf(self));
    }
    return signatures.computeIfAbsent(
        share.session(),
        session -> core.signStatement(Certificate.statement(session, share.keyPublic(), self)));
  }

  /** What says that there will be nothing of a session. */
  static PartyMessage forsaken(SessionId session) {
    return PartyMessage.newBuilder()
        .setReport(
            SessionReport.newBuilder()
                .setSessionId(session.bytes())
                .setForsaken(Forsaken.getDefaultInstance()))
        .build();
  }

  private Completed.Builder completed(KeyShare share) {
    return Completed.newBuilder()
        .setKeyPublic(share.keyPublic())
        .setActive(share.state() == KeyShare.State.ACTIVE)
        .setEvidenceSignature(signature(share));
  }

  private static PartyMessage report(SessionId session, Completed.Builder completed) {
    return PartyMessage.newBuilder()
        .setReport(SessionReport.newBuilder().setSessionId(session.bytes()).setCompleted(completed))
        .build();
  }
}
