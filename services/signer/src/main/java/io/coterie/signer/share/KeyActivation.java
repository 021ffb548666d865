package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.party.v1.Completed;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Turns provisional shares into active ones. A share is active once every party of the session has
 * signed that it has stored its own, with the same public data, so no key is ever used that some
 * party did not store. All these signatures are its {@link Certificate}.
 *
 * <p>Never two active shares: a party that stores a newer provisional share of a new key abandons
 * the older one in the same transaction, and reports the newer one only afterwards. So if anyone
 * has all reports of a session, every party has abandoned, or never had, any other share of that
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
public final class KeyActivation {
  private static final Logger log = LoggerFactory.getLogger(KeyActivation.class);

  /** A peer whose messages are dropped is named in the log this often. */
  private static final long WARN_NANOS = 10_000_000_000L;

  /** Reports of one peer that wait to be looked at. */
  static final int MAX_WAITING_REPORTS = 1024;

  private static final String BAD_SIGNATURE = "bad_evidence_signature";
  private static final String BAD_CERTIFICATE = "bad_certificate";

  private final PartyNetwork network;
  private final KeyShareStore shares;
  private final Executor lane;
  private final ShareGossip gossip;
  private final LongSupplier nanos;
  private final Consumer<String> dropped;
  private final Listener listener;
  private final Map<SessionId, ShareCandidate> candidates = new LinkedHashMap<>();
  private final Map<String, List<Waiter>> waiters = new HashMap<>();

  /** The reports of each party that wait; the threads that bring them count them, too. */
  private final Map<Integer, AtomicInteger> waitingReports = new ConcurrentHashMap<>();

  private final Map<Integer, Long> warnedNanos = new HashMap<>();

  /** Hears of shares that are active now. */
  @FunctionalInterface
  public interface Listener {
    /**
     * @param sameEpoch whether it has taken the place of another one of its epoch
     */
    void activated(KeyShare share, boolean sameEpoch);
  }

  private record Waiter(Object owner, Runnable wake) {}

  /**
   * @param lane of this object alone
   * @param nanos a clock that only goes forward
   * @param dropped told why the message of a peer is ignored
   * @param listener called in the lane
   */
  public KeyActivation(
      PartyNetwork network,
      KeyShareStore shares,
      Executor lane,
      ProtocolCore core,
      LongSupplier nanos,
      Consumer<String> dropped,
      Listener listener) {
    this.network = network;
    this.shares = shares;
    this.lane = lane;
    this.nanos = nanos;
    this.gossip = new ShareGossip(network, core, nanos, candidates::get);
    this.dropped = dropped;
    this.listener = listener;
  }

  /** Takes up what an earlier process left undecided. */
  public void resume() {
    lane.execute(
        () -> {
          for (KeyShare share : shares.undecided()) {
            adopt(share);
          }
        });
  }

  /** A key generation starts; reports of faster peers may come before the own share. */
  public void expect(SessionPlan plan) {
    lane.execute(
        () -> {
          // Its order may be given again: a share of it that was abandoned must not be forgotten.
          candidates.computeIfAbsent(
              plan.id(), _ -> new ShareCandidate(plan.key(), Set.copyOf(plan.partyIds())));
        });
  }

  /** A key generation ended without a share. */
  public void forget(SessionId session) {
    lane.execute(() -> endWithoutShare(session));
  }

  private void endWithoutShare(SessionId session) {
    ShareCandidate gone = candidates.get(session);
    if (gone != null && gone.own == null) {
      candidates.remove(session);
      // An older share of the name may have been held back by this run.
      List.copyOf(candidates.values()).stream()
          .filter(each -> each.key.equals(gone.key))
          .forEach(this::activateIfAgreed);
    }
  }

  /** Shares of a name are not in the store any more: nothing is said of them, or waited for. */
  public void forgotten(String key) {
    lane.execute(() -> dropDestroyed(key));
  }

  private void dropDestroyed(String key) {
    candidates.values().removeIf(c -> c.key.equals(key) && c.own != null && isGone(c.own));
  }

  /**
   * Whether a share is not in the store any more, because the operator has had it destroyed, or
   * another one has taken its place: nothing is said of it.
   */
  public boolean isGone(KeyShare share) {
    try {
      return shares.ofSession(share.session()).isEmpty();
    } catch (RuntimeException e) {
      log.error("whether a share of {} is still there cannot be read", share.key(), e);
      return false; // It was: others wait for what is said of it.
    }
  }

  /** A provisional share is on disk: everyone may know. */
  public void stored(KeyShare share) {
    lane.execute(
        () -> {
          if (isGone(share)) {
            endWithoutShare(share.session());
            return;
          }
          candidates
              .entrySet()
              .removeIf(
                  e -> !e.getKey().equals(share.session()) && superseded(e.getValue(), share));
          gossip.announce(share, network.roster().byName(share.origin().coordinator()));
          adopt(share);
        });
  }

  /**
   * A later share makes this party abandon a provisional one, but not a run that is under way.
   *
   * @return whether it is lost by that
   */
  private static boolean superseded(ShareCandidate candidate, KeyShare later) {
    KeyShare own = candidate.own;
    if (own == null || !own.key().equals(later.key())) {
      return false;
    }
    if (own.state() == KeyShare.State.PROVISIONAL) {
      candidate.own = own.abandoned();
    }
    return own.epoch() == 1;
  }

  /** Reports a stored share again: to its parties, and to the coordinator that asks now. */
  public void announceAgain(KeyShare share, Member coordinator) {
    say(share, () -> gossip.announce(share, Optional.of(coordinator)));
  }

  /** Reports a stored share again to the coordinator that asks now, and to nobody else. */
  public void tellAgain(KeyShare share, Member coordinator) {
    say(share, () -> gossip.tell(share, coordinator));
  }

  /**
   * Reports a stored share to its parties again: a party without one will say so, and a party that
   * uses its own will show why.
   */
  public void askAbout(KeyShare share) {
    say(share, () -> gossip.announce(share, Optional.empty()));
  }

  private void say(KeyShare share, Runnable words) {
    lane.execute(
        () -> {
          if (!isGone(share)) {
            words.run();
          }
        });
  }

  /**
   * A peer reports that it has stored its share.
   *
   * @return false if too many reports of it wait; this one is dropped, and the peer will ask again
   */
  public boolean reported(Member sender, SessionId session, Completed completed) {
    return lookAt(sender, () -> take(sender, session, completed));
  }

  /**
   * A peer says that it has no share of a refresh and never will.
   *
   * @return as {@link #reported}
   */
  public boolean declined(Member sender, SessionId session) {
    return lookAt(sender, () -> abandon(sender, session));
  }

  private boolean lookAt(Member sender, Runnable report) {
    AtomicInteger waiting =
        waitingReports.computeIfAbsent(sender.partyId(), _ -> new AtomicInteger());
    if (waiting.incrementAndGet() > MAX_WAITING_REPORTS) {
      waiting.decrementAndGet();
      return false;
    }
    lane.execute(
        () -> {
          waiting.decrementAndGet();
          report.run();
        });
    return true;
  }

  /**
   * Runs {@code wake} once the key is active in that epoch, at once if it is.
   *
   * @param owner for {@link #stopWaiting}
   */
  public void awaitActive(String key, int epoch, Object owner, Runnable wake) {
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

  public void stopWaiting(String key, Object owner) {
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
  public void tick(long nowNanos) {
    lane.execute(
        () -> {
          if (candidates.values().stream().anyMatch(c -> c.own != null)) {
            Set<Integer> reachable = new HashSet<>();
            network.reachable().forEach(m -> reachable.add(m.partyId()));
            candidates.values().forEach(c -> gossip.ask(c, reachable, nowNanos));
          }
        });
  }

  private void adopt(KeyShare share) {
    ShareCandidate candidate =
        candidates.computeIfAbsent(
            share.session(), _ -> new ShareCandidate(share.key(), Set.copyOf(share.members())));
    candidate.own = share;
    candidate.sinceNanos = nanos.getAsLong();
    activateIfAgreed(candidate);
  }

  private void take(Member sender, SessionId session, Completed completed) {
    long now = nanos.getAsLong();
    KeyPublic keyPublic = completed.getKeyPublic();
    ByteString signature = completed.getEvidenceSignature();
    ByteString intentDigest = completed.getIntentDigest();
    if (!CompletedStatement.stored(
            network.roster().installation(), session.bytes(), keyPublic, intentDigest)
        .isSignedBy(sender.partyId(), signature, network.roster())) {
      dropped(sender, BAD_SIGNATURE, now);
      return;
    }
    ShareCandidate candidate = candidates.get(session);
    Optional<KeyShare> own =
        candidate == null
            ? shares.find(keyPublic.getKeyId()).filter(s -> s.session().equals(session))
            : Optional.ofNullable(candidate.own);
    if (candidate != null && candidate.parties.contains(sender.partyId())) {
      if (!candidate.hasFrom(sender.partyId())) {
        candidate.reports.put(
            sender.partyId(), new ShareAgreement.Report(keyPublic, intentDigest, signature));
      }
      if (completed.getCertificateCount() > 0) {
        takeCertificate(sender, candidate, completed.getCertificateList(), now);
      }
      activateIfAgreed(candidate);
    }
    // It may be asking, because it has missed the own report.
    own.filter(s -> s.members().contains(sender.partyId()))
        .filter(s -> s.state() != KeyShare.State.ACTIVE || !completed.getActive())
        .ifPresent(s -> gossip.answer(s, sender.partyId(), now));
    if (candidate == null && own.isEmpty()) {
      decline(sender, session, keyPublic, now);
    }
  }

  /** Takes the signatures of all parties from a peer's certificate. */
  private void takeCertificate(
      Member sender, ShareCandidate candidate, List<EvidenceSignature> shown, long nowNanos) {
    KeyShare own = candidate.own;
    if (own == null || candidate.changing) {
      return; // it will be asked for
    }
    Certificate certificate = Certificate.shown(shown, own.members()).orElse(null);
    if (certificate == null || !own.isCertifiedBy(certificate, network.roster())) {
      dropped(sender, BAD_CERTIFICATE, nowNanos);
      return;
    }
    for (int i = 0; i < own.members().size(); i++) {
      candidate.reports.put(
          own.members().get(i),
          new ShareAgreement.Report(
              own.keyPublic(), own.origin().intentDigest(), certificate.signatures().get(i)));
    }
  }

  private void dropped(Member sender, String reason, long nowNanos) {
    dropped.accept(reason);
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
  private void decline(Member peer, SessionId session, KeyPublic keyPublic, long nowNanos) {
    String key = keyPublic.getKeyId();
    boolean next =
        IntentVerifier.isKeyName(key)
            && keyPublic.getEpoch()
                > shares
                    .find(key)
                    .filter(s -> s.state() == KeyShare.State.ACTIVE)
                    .map(KeyShare::epoch)
                    .orElse(1);
    if (!next || !gossip.mayAnswer(session, peer.partyId(), nowNanos)) {
      return;
    }
    gossip.told(session, peer.partyId(), nowNanos);
    shares
        .decline(key, session, peer.partyId())
        .whenComplete(
            (done, failure) -> {
              if (failure != null) {
                log.error("could not decline a refresh of {}", key, failure);
              } else if (Boolean.TRUE.equals(done)) {
                network.send(peer, PartyNetwork.declined(session), null);
              }
            });
  }

  private void abandon(Member sender, SessionId session) {
    ShareCandidate candidate = candidates.get(session);
    if (candidate == null) {
      contradict(sender, session);
      return;
    }
    KeyShare own = candidate.own;
    if (own == null || !candidate.mayBeDeclined(sender.partyId())) {
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
        .abandon(own, sender.partyId(), KeyAudit.abandoned(own, sender))
        .whenComplete(
            (done, failure) -> lane.execute(() -> abandoned(sender, candidate, done, failure)));
  }

  /** Shows the certificate of a session to a peer that says that it has no share of it. */
  private void contradict(Member sender, SessionId session) {
    long now = nanos.getAsLong();
    if (gossip.mayAnswer(session, sender.partyId(), now)) {
      shares
          .ofSession(session)
          .filter(s -> s.state() == KeyShare.State.ACTIVE)
          .filter(s -> s.members().contains(sender.partyId()))
          .ifPresent(s -> gossip.tell(s, sender.partyId(), now));
    }
  }

  private void abandoned(
      Member sender,
      ShareCandidate candidate,
      @Nullable Boolean done,
      @Nullable Throwable failure) {
    candidate.changing = false;
    KeyShare own = candidate.own;
    if (own == null || isGone(own)) {
      return;
    }
    if (failure != null) {
      log.error("a share of {} could not be abandoned", own.key(), failure);
    } else if (Boolean.TRUE.equals(done)) {
      candidate.own = own.abandoned();
      candidate.sinceNanos = nanos.getAsLong();
      candidate.asked = true;
      log.info(
          "{} stays at epoch {}: {} says that it has no newer share",
          own.key(),
          own.epoch() - 1,
          sender.name());
      // If that was a lie, somebody may know better.
      gossip.announce(candidate.own, Optional.empty());
    }
    activateIfAgreed(candidate);
  }

  private void activateIfAgreed(ShareCandidate candidate) {
    KeyShare own = candidate.own;
    if (own == null || candidate.changing) {
      return;
    }
    boolean newerRuns =
        candidates.values().stream().anyMatch(c -> c.own == null && c.key.equals(own.key()));
    ShareAgreement agreement =
        new ShareAgreement(
            own, network.self().partyId(), gossip.signature(own), candidate.reports, newerRuns);
    switch (agreement.verdict()) {
      case ShareAgreement.Verdict.Open _ -> {}
      case ShareAgreement.Verdict.Contradicted(int party) ->
          log.warn(
              "party {} reports another public key or intent for {}: not activated",
              party,
              own.key());
      case ShareAgreement.Verdict.Agreed(Certificate certificate) ->
          activate(candidate, own, certificate);
    }
  }

  private void activate(ShareCandidate candidate, KeyShare own, Certificate certificate) {
    boolean sameEpoch =
        shares
            .find(own.key())
            .filter(s -> s.state() == KeyShare.State.ACTIVE && s.epoch() == own.epoch())
            .isPresent();
    KeyShare used = own.activated(certificate);
    candidate.changing = true;
    shares
        .activate(own, certificate, KeyAudit.activated(own))
        .whenComplete(
            (done, failure) ->
                lane.execute(() -> activated(candidate, used, sameEpoch, done, failure)));
  }

  private void activated(
      ShareCandidate candidate,
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
    dropDestroyed(used.key());
    if (isGone(used)) {
      return;
    }
    log.info(
        used.left()
            ? "this party holds no share of {} any more: others use epoch {}"
            : "this party uses its share of {} of epoch {}",
        used.key(),
        used.epoch());
    if (candidate.asked) {
      // A peer that was late may have told somebody else that it has no share.
      long now = nanos.getAsLong();
      candidate.parties.stream()
          .filter(party -> party != network.self().partyId())
          .forEach(party -> gossip.tell(used, party, now));
    }
    // It waits for that: a share that all say they have stored may still be abandoned.
    gossip.tellCoordinator(used);
    listener.activated(used, sameEpoch);
    List<Waiter> woken = waiters.remove(used.key());
    if (woken != null) {
      woken.forEach(w -> w.wake().run());
    }
  }
}
