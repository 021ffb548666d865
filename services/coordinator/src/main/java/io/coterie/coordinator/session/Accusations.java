package io.coterie.coordinator.session;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.SessionPlan.Work;
import io.coterie.mpc.EvidenceJudge;
import io.coterie.mpc.MpcException;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Accusation;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Verdict;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The reports of the parties of one key generation, refresh or reshare about each other. A report
 * convicts a party if its evidence does, by the judge that the parties apply themselves. The number
 * of reports proves nothing: corrupt parties may be as many as honest ones. A party that is named
 * without proof is a suspect, and so is the sender of that report. A party that ended the session
 * by its signed word alone is a suspect, and those that pass the word on are not.
 */
final class Accusations {
  private static final Logger log = LoggerFactory.getLogger(Accusations.class);

  /**
   * A report that was judged.
   *
   * @param reporter id of its sender
   * @param accused id of whom its evidence is about; 0 if it names nobody in particular
   */
  record Judged(int reporter, Abort abort, int accused, Verdict verdict) {}

  private final List<Judged> all = new ArrayList<>();

  /** Parties whose deviation this session has shown, by what was shown of them. */
  private final Set<Map.Entry<Verdict, Integer>> shown = ConcurrentHashMap.newKeySet();

  private final SessionConfig config;
  private final EvidenceJudge judge;
  private final EvidenceKeeper keeper;

  Accusations(
      SessionId id,
      SessionPlan plan,
      Protocol protocol,
      EvidenceJudge judge,
      EvidenceKeeper keeper) {
    this.config = config(id, plan, protocol);
    this.judge = judge;
    this.keeper = keeper;
  }

  /** The session as an observer describes it. */
  private static SessionConfig config(SessionId id, SessionPlan plan, Protocol protocol) {
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(protocol.id())
            .setSessionId(id.bytes())
            .setThreshold(plan.threshold())
            .setKeyId(plan.key())
            .setEpoch(plan.epoch());
    for (Member m : plan.parties()) {
      config.addParties(
          Party.newBuilder()
              .setId(m.partyId())
              .setEvidenceKey(ByteString.copyFrom(m.evidenceKey())));
    }
    switch (plan.work()) {
      case Work.Refresh refresh -> config.setKeyPublic(refresh.current());
      case Work.Reshare reshare ->
          config
              .addAllDealers(reshare.dealers())
              .addAllReceivers(reshare.receivers())
              .setKeyPublic(reshare.current());
      case Work.Keygen _, Work.Import _, Work.Sign _, Work.Presign _ -> {}
    }
    return config.build();
  }

  /**
   * Judges a report and keeps its evidence. Computes for milliseconds; thread-safe.
   *
   * @param late whether the session had ended: the report is kept only if it shows a deviation or a
   *     second run then, because nothing else of it matters any more
   */
  Judged judge(Member reporter, Abort abort, boolean late) {
    int accused = accused(abort);
    Verdict verdict = Verdict.VERDICT_REFUTED;
    if (accused != 0) {
      Accusation accusation =
          Accusation.newBuilder()
              .setCauseValue(abort.getCauseValue())
              .setAccused(accused)
              .addAllEvidence(abort.getEvidenceList())
              .build();
      try {
        verdict = judge.judge(config, accusation);
        if (verdict == Verdict.VERDICT_ANOTHER) {
          Optional<Accusation> other = convicting(accusation);
          if (other.isPresent()) {
            accusation = other.get();
            accused = accusation.getAccused();
            verdict = Verdict.VERDICT_PROVEN;
          }
        }
      } catch (MpcException e) {
        log.warn("{} accuses party {} of nothing that can be judged", reporter.name(), accused, e);
      }
      // Once shown is enough: every honest party reports the same, and would displace other
      // records.
      boolean shows = verdict == Verdict.VERDICT_PROVEN || verdict == Verdict.VERDICT_RESTARTED;
      if (shows ? shown.add(Map.entry(verdict, accused)) : !late) {
        keeper.keep(config, accusation, reporter.partyId(), verdict);
      }
    }
    return new Judged(reporter.partyId(), abort, accused, verdict);
  }

  /** The accusation of the party that the evidence convicts, which may not be the named one. */
  private Optional<Accusation> convicting(Accusation accusation) {
    return config.getPartiesList().stream()
        .map(party -> accusation.toBuilder().setAccused(party.getId()).build())
        .filter(other -> judge.judge(config, other) == Verdict.VERDICT_PROVEN)
        .findFirst();
  }

  /**
   * Evidence is about one party, whatever the cause. For a word, that is the party that said it.
   */
  private int accused(Abort abort) {
    boolean restarted = abort.getCause() == AbortCause.ABORT_CAUSE_PARTY_RESTARTED;
    if (!restarted && abort.getCulpritsCount() == 0) {
      return isParty(abort.getReporter()) && abort.getEvidenceCount() > 0 ? abort.getReporter() : 0;
    }
    List<Integer> named = restarted ? abort.getSuspectsList() : abort.getCulpritsList();
    boolean one = named.size() == 1 && isParty(named.getFirst());
    return one && abort.getEvidenceCount() > 0 ? named.getFirst() : 0;
  }

  private boolean isParty(int id) {
    return config.getPartiesList().stream().anyMatch(p -> p.getId() == id);
  }

  /**
   * Takes a report into account.
   *
   * @return whether it is the first to show that its accused ran the session twice
   */
  boolean add(Judged judged) {
    boolean first =
        judged.verdict == Verdict.VERDICT_RESTARTED
            && all.stream()
                .noneMatch(j -> j.verdict == judged.verdict && j.accused == judged.accused);
    all.add(judged);
    return first;
  }

  /** The report that explains the end: one that convicts, else the first. */
  Optional<Abort> shown() {
    Abort first = null;
    for (Judged judged : all) {
      if (judged.verdict == Verdict.VERDICT_PROVEN) {
        return Optional.of(judged.abort);
      }
      first = first == null ? judged.abort : first;
    }
    return Optional.ofNullable(first);
  }

  /**
   * The convicted and the suspected parties so far. Reports of convicted parties count for nothing.
   */
  Accused accused() {
    Set<Integer> culprits = new HashSet<>();
    for (Judged judged : all) {
      if (judged.verdict == Verdict.VERDICT_PROVEN) {
        culprits.add(judged.accused);
      }
    }
    Set<Integer> suspects = new HashSet<>();
    for (Judged judged : all) {
      boolean wordAlone =
          judged.verdict == Verdict.VERDICT_TOLD
              && Set.of(judged.accused).containsAll(judged.abort.getSuspectsList());
      if (judged.verdict == Verdict.VERDICT_RESTARTED || wordAlone) {
        suspects.add(judged.accused);
      } else if (judged.verdict != Verdict.VERDICT_PROVEN && !culprits.contains(judged.reporter)) {
        Set<Integer> named = new HashSet<>(judged.abort.getCulpritsList());
        named.addAll(judged.abort.getSuspectsList());
        if (!named.isEmpty()) {
          named.add(judged.reporter);
        }
        suspects.addAll(named);
      }
    }
    suspects.removeIf(id -> !isParty(id));
    suspects.removeAll(culprits);
    return new Accused(culprits, suspects);
  }

  /**
   * The parties that a session accuses at its end.
   *
   * @param culprits convicted by evidence
   * @param suspects named without
   */
  record Accused(Set<Integer> culprits, Set<Integer> suspects) {}
}
