package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.party.PartyNetwork;
import io.coterie.signer.party.ProtocolCore;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Tells the parties of a session that this one has stored its share, and by that asks them for
 * theirs: at once, when they come back, and now and then. Confined to the lane of {@link
 * KeyActivation}.
 */
final class ShareGossip {
  /** How often a peer whose report is missing is asked again. */
  static final long ASK_NANOS = 2_000_000_000L;

  /**
   * A report of a peer is answered with the own one, unless the peer was told so recently: two
   * parties must not answer each other for ever.
   */
  static final long ANSWER_NANOS = ASK_NANOS / 2;

  /** A party that has said something, and may have said something else to others, is asked less. */
  private static final long MAX_ASK_NANOS = 600_000_000_000L;

  /** Sessions and peers of which is remembered when they were told last. */
  private static final int MAX_TOLD = 4096;

  /** Own signatures that are kept, so that each is made once. */
  private static final int MAX_SIGNATURES = 1024;

  private final PartyNetwork network;
  private final ProtocolCore core;
  private final LongSupplier nanos;
  private final Function<SessionId, @Nullable ShareCandidate> candidates;

  /** When a peer was last told of a session that is no candidate. */
  private final Map<Told, Long> toldNanos = new Latest<>(MAX_TOLD);

  private final Map<SessionId, ByteString> signatures = new Latest<>(MAX_SIGNATURES);
  private final Map<SessionId, ByteString> uses = new Latest<>(MAX_SIGNATURES);

  private record Told(SessionId session, int party) {}

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

  /**
   * @param nanos a clock that only goes forward
   * @param candidates finds the candidate of a session; null if it has none
   */
  ShareGossip(
      PartyNetwork network,
      ProtocolCore core,
      LongSupplier nanos,
      Function<SessionId, @Nullable ShareCandidate> candidates) {
    this.network = network;
    this.core = core;
    this.nanos = nanos;
    this.candidates = candidates;
  }

  /** This party's signature that it has stored a share; the same at each call. */
  ByteString signature(KeyShare share) {
    Certificate certificate = share.certificate();
    int self = network.self().partyId();
    if (certificate != null) {
      return certificate.signatures().get(share.members().indexOf(self));
    }
    return signatures.computeIfAbsent(
        share.session(), _ -> core.signStatement(share.statement(network.roster()).of(self)));
  }

  /** This party's signature that it uses a share; the same at each call. */
  private ByteString useSignature(KeyShare share) {
    int self = network.self().partyId();
    return uses.computeIfAbsent(
        share.session(),
        _ -> core.signStatement(share.statement(network.roster()).inUse().of(self)));
  }

  /** Tells everybody. */
  void announce(KeyShare share, Optional<Member> coordinator) {
    long now = nanos.getAsLong();
    List<Member> recipients = new ArrayList<>();
    for (int party : share.members()) {
      if (party != network.self().partyId()) {
        network.roster().byPartyId(party).ifPresent(recipients::add);
        told(share.session(), party, now);
      }
    }
    coordinator.ifPresent(recipients::add);
    network.broadcast(recipients, report(share), null);
  }

  /**
   * Asks those whose report is missing, and now and then the others: one of them may have been told
   * what this party was not, and use its share.
   *
   * @param reachable ids of the parties that can be reached now
   */
  void ask(ShareCandidate candidate, Set<Integer> reachable, long nowNanos) {
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

  /** Answers a peer that may be asking, unless it was told lately. */
  void answer(KeyShare share, int party, long nowNanos) {
    if (mayAnswer(share.session(), party, nowNanos)) {
      tell(share, party, nowNanos);
    }
  }

  /** Whether a peer was not told of a session lately. */
  boolean mayAnswer(SessionId session, int party, long nowNanos) {
    return toldLongAgo(session, party, nowNanos, ANSWER_NANOS);
  }

  /** Tells one party alone. */
  void tell(KeyShare share, int party, long nowNanos) {
    told(share.session(), party, nowNanos);
    network.roster().byPartyId(party).ifPresent(m -> network.send(m, report(share), null));
  }

  /** Tells the coordinator that has ordered a share what it is now. */
  void tellCoordinator(KeyShare share) {
    network.roster().byName(share.origin().coordinator()).ifPresent(c -> tell(share, c));
  }

  /** Tells a coordinator alone. */
  void tell(KeyShare share, Member coordinator) {
    network.send(coordinator, report(share), null);
  }

  /** Notes that a peer is told of a session now. */
  void told(SessionId session, int party, long nowNanos) {
    ShareCandidate candidate = candidates.apply(session);
    if (candidate == null) {
      toldNanos.put(new Told(session, party), nowNanos);
    } else {
      candidate.toldNanos.put(party, nowNanos);
    }
  }

  private boolean toldLongAgo(SessionId session, int party, long nowNanos, long nanos) {
    ShareCandidate candidate = candidates.apply(session);
    Long told =
        candidate == null
            ? toldNanos.get(new Told(session, party))
            : candidate.toldNanos.get(party);
    return told == null || nowNanos - told >= nanos;
  }

  /** The report of a share; with the certificate, if there is one. */
  private PartyMessage report(KeyShare share) {
    Completed.Builder completed =
        Completed.newBuilder()
            .setKeyPublic(share.keyPublic())
            .setActive(share.state() == KeyShare.State.ACTIVE)
            .setIntentDigest(share.origin().intentDigest())
            .setEvidenceSignature(signature(share));
    Certificate certificate = share.certificate();
    if (certificate != null) {
      completed
          .addAllCertificate(certificate.named(share.members()))
          .setUseSignature(useSignature(share));
    }
    return PartyMessage.newBuilder()
        .setReport(
            SessionReport.newBuilder()
                .setSessionId(share.session().bytes())
                .setCompleted(completed))
        .build();
  }
}
