package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.platform.protocol.Protocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Advice;
import io.coterie.proto.core.v1.Outgoing;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.party.v1.Completed;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionEnvelope;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.trust.Member;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Holds what the parties do against what docs/threat-model.md promises. It sees what the cores are
 * asked and what leaves the parties, and judges the honest ones only.
 */
final class Checker {

  private final Setting setting;
  private final Liar liar;
  private final Map<ByteString, Ordered> orders = new LinkedHashMap<>();
  private final Map<Integer, Conduct> conducts = new HashMap<>();
  private final Set<String> violations = new LinkedHashSet<>();

  /** The doings of an honest party. */
  private static final class Conduct {
    final Set<ByteString> started = new LinkedHashSet<>();

    /** Multiplying sessions in which its core was given a message of a peer. */
    final Set<ByteString> heard = new LinkedHashSet<>();

    /** Entries of these that its store has forgotten by being put back. */
    final Set<ByteString> forgotten = new LinkedHashSet<>();

    /** Envelopes that its core made. */
    final Map<ByteString, Made> made = new HashMap<>();

    /** Whether it ran twice at a time, and its ledger is two. */
    boolean cloned;

    /** One-time values that it has sent, and the session of each. */
    final Map<Long, ByteString> oneTime = new HashMap<>();

    /** Sessions of which it has said that it does not contribute. */
    final Set<ByteString> declined = new HashSet<>();

    /** Sessions of whose shares it has said that it has stored its own. */
    final Set<ByteString> stored = new HashSet<>();

    /** Key to the latest epoch that it has said it uses. */
    final Map<String, Integer> using = new HashMap<>();

    /** Sessions that a message of its core has left. */
    final Set<ByteString> spoken = new LinkedHashSet<>();

    /** Sessions that its last message has left. */
    final Set<ByteString> contributed = new LinkedHashSet<>();

    /** Sessions of which its core has made the last message; it may not have left. */
    final Set<ByteString> finished = new HashSet<>();

    /** Sessions that it may believe to be over without a signature. */
    final Set<ByteString> overWithout = new HashSet<>();

    final Map<ByteString, ByteString> presignatures = new HashMap<>();

    /** Key and epoch to those whom it has reported as excluded. */
    final Map<String, Set<Integer>> excluded = new HashMap<>();
  }

  /**
   * An envelope of a core.
   *
   * @param recipient 0 for all
   * @param fence the first request id that the process may claim; empty if there is none
   */
  private record Made(int round, int recipient, String fence) {}

  Checker(Setting setting, Liar liar) {
    this.setting = setting;
    this.liar = liar;
    for (int party = 1; party <= setting.parties(); party++) {
      conducts.put(party, new Conduct());
    }
  }

  private Conduct of(int party) {
    return conducts.computeIfAbsent(party, _ -> new Conduct());
  }

  /** Goes on from the end of another world, of which the parties have their stores. */
  void goOnFrom(Checker other) {
    orders.putAll(other.orders);
    other.conducts.forEach(
        (party, before) -> {
          Conduct now = of(party);
          now.started.addAll(before.started);
          now.oneTime.putAll(before.oneTime);
          now.stored.addAll(before.stored);
          now.using.putAll(before.using);
          now.spoken.addAll(before.spoken);
        });
  }

  /** An order exists. */
  void ordered(Ordered order) {
    orders.put(order.session(), order);
  }

  boolean knows(ByteString session) {
    return orders.containsKey(session);
  }

  Ordered order(ByteString session) {
    Ordered order = orders.get(session);
    if (order == null) {
      throw new IllegalStateException("a session that nobody has ordered");
    }
    return order;
  }

  /** Null for a session that a liar has made up. */
  String name(ByteString session) {
    Ordered order = orders.get(session);
    return order == null ? "s?" : order.toString();
  }

  private void violated(Breach what, int party, ByteString session) {
    violated(what, Identities.party(party) + " in " + name(session));
  }

  void violated(Breach what, String where) {
    violations.add(what + ": " + where);
  }

  List<String> violations() {
    return List.copyOf(violations);
  }

  // ---- the core --------------------------------------------------------------------------------

  /** A party's core starts a run. */
  void started(SimulatedParty party, SessionConfig config) {
    if (setting.isCorrupt(party.id())) {
      return;
    }
    Conduct conduct = of(party.id());
    ByteString session = config.getSessionId();
    Ordered order = order(session);
    boolean first = conduct.started.add(session);
    if (!first && setting.isSound(party.id())) {
      violated(Breach.SESSION_TWICE, party.id(), session);
    }
    if (!order.allowed()) {
      violated(Breach.FORBIDDEN, party.id(), session);
    }
    ByteString presignature = config.getPresignatureId();
    if (!presignature.isEmpty()) {
      ByteString other = conduct.presignatures.putIfAbsent(presignature, session);
      if (other != null && !other.equals(session)) {
        violated(Breach.PRESIGNATURE_TWICE, party.id(), session);
      }
    }
    if (party.holds(order.order().getKey())) {
      violated(Breach.HOLD_IGNORED, party.id(), session);
    }
    checkEpoch(party.id(), order);
    Set<Integer> excluded = conduct.excluded.getOrDefault(keyOf(order), Set.of());
    if (setting.isSound(party.id())
        && !order.protocol().operation().makesShare()
        && order.parties().stream().anyMatch(excluded::contains)) {
      violated(Breach.EXCLUSION_FORGOTTEN, party.id(), session);
    }
  }

  /** A share is used that all have stored, and none that was replaced. */
  private void checkEpoch(int party, Ordered order) {
    if (order.protocol().operation().makesShare() || !setting.isSound(party)) {
      return;
    }
    String key = order.order().getKey();
    int epoch = order.order().getEpoch();
    if (epoch < of(party).using.getOrDefault(key, 0)) {
      violated(Breach.OLD_SHARE, party, order.session());
    }
    if (!isStored(key, epoch)) {
      violated(Breach.USED_EARLY, party, order.session());
    }
  }

  private static String keyOf(Ordered order) {
    return order.order().getKey() + "/" + order.order().getEpoch();
  }

  /** A party's core is given a message of a peer. */
  void heard(SimulatedParty party, ByteString session) {
    Ordered order = order(session);
    if (setting.isCorrupt(party.id()) || !order.protocol().multiplies()) {
      return;
    }
    Conduct conduct = of(party.id());
    for (ByteString lost : conduct.cloned ? Set.<ByteString>of() : conduct.forgotten) {
      Ordered forgotten = order(lost);
      // A peer of both remembers the first, and is asked before the second is heard.
      boolean witness =
          forgotten.parties().stream()
              .anyMatch(
                  peer ->
                      peer != party.id()
                          && setting.isSound(peer)
                          && order.parties().contains(peer));
      if (witness && keyOf(forgotten).equals(keyOf(order))) {
        violated(Breach.ROLLBACK_UNNOTICED, party.id(), session);
      }
    }
    conduct.heard.add(session);
  }

  /** A party's core made an envelope. */
  void made(SimulatedParty party, ByteString session, Outgoing message) {
    if (!setting.isCorrupt(party.id())) {
      if (message.getRound() == order(session).protocol().lastRound()) {
        of(party.id()).finished.add(session);
      }
      of(party.id())
          .made
          .put(
              message.getEnvelope(),
              new Made(message.getRound(), message.getRecipient(), party.fence()));
    }
  }

  /**
   * A party's store was put back.
   *
   * @param claimed the sessions that it still knows
   */
  void putBack(int party, Set<ByteString> claimed) {
    Conduct conduct = of(party);
    for (ByteString session : conduct.heard) {
      if (!claimed.contains(session)) {
        conduct.forgotten.add(session);
      }
    }
  }

  /** A party runs twice from now on, for a while. */
  void cloned(int party) {
    of(party).cloned = true;
  }

  // ---- the wire --------------------------------------------------------------------------------

  /** A message leaves an honest party. */
  void left(int party, Member to, PartyMessage message) {
    if (message.hasEnvelope()) {
      envelope(party, to, message.getEnvelope());
    } else if (message.hasReport()) {
      reported(party, message.getReport());
    }
  }

  private void envelope(int party, Member to, SessionEnvelope message) {
    ByteString session = message.getSessionId();
    Conduct conduct = of(party);
    Made made = conduct.made.get(message.getEnvelope());
    Ordered order = order(session);
    Protocol protocol = order.protocol();
    conduct.spoken.add(session);
    checkOneTimeValue(party, message);
    if (made == null) {
      return;
    }
    if (made.recipient() != 0 && made.recipient() != to.partyId()) {
      violated(Breach.PRIVATE_LEAKED, party, session);
    }
    if (order.isDrawnBefore(made.fence())) {
      violated(Breach.FENCE_PASSED, party, session);
    }
    if (protocol.operation().signs() && made.round() == protocol.lastRound()) {
      contributed(party, order);
    }
  }

  /** Compares with all that a party has ever sent, by any process of it and from any store. */
  private void checkOneTimeValue(int party, SessionEnvelope message) {
    FastEnvelope envelope = FastEnvelope.decode(message.getEnvelope().toByteArray());
    if (envelope != null) {
      ByteString other = of(party).oneTime.putIfAbsent(envelope.run(), message.getSessionId());
      if (other != null && !other.equals(message.getSessionId())) {
        violated(Breach.ONE_TIME_TWICE, party, message.getSessionId());
      }
    }
  }

  private void contributed(int party, Ordered order) {
    Conduct conduct = of(party);
    if (!conduct.contributed.add(order.session()) || !setting.isSound(party)) {
      return;
    }
    if (conduct.declined.contains(order.session())) {
      violated(Breach.DECLINE_BROKEN, party, order.session());
    }
    for (ByteString earlier : conduct.contributed) {
      Ordered other = order(earlier);
      if (!other.request().equals(order.request()) || earlier.equals(order.session())) {
        continue;
      }
      if (!other.content().equals(order.content())) {
        violated(Breach.TWO_INTENTS, party, order.session());
      }
    }
  }

  private void reported(int party, SessionReport report) {
    ByteString session = report.getSessionId();
    switch (report.getOutcomeCase()) {
      case ABORTED -> aborted(party, session, report.getAborted());
      case TIMED_OUT -> of(party).overWithout.add(session);
      case REFUSED -> {
        if (report.getRefused().getReason() == RefusalReason.REFUSAL_REASON_INTERNAL) {
          violated(Breach.FAILED, party, session);
        }
      }
      case DECLINED -> declined(party, session);
      case COMPLETED -> completed(party, session, report.getCompleted());
      case OUTCOME_NOT_SET -> {}
    }
  }

  private void declined(int party, ByteString session) {
    Conduct conduct = of(party);
    conduct.declined.add(session);
    if (setting.isSound(party)
        && (conduct.contributed.contains(session) || conduct.stored.contains(session))) {
      violated(Breach.DECLINE_BROKEN, party, session);
    }
  }

  private void completed(int party, ByteString session, Completed completed) {
    if (!completed.hasKeyPublic()) {
      return;
    }
    Conduct conduct = of(party);
    if (conduct.declined.contains(session) && setting.isSound(party)) {
      violated(Breach.DECLINE_BROKEN, party, session);
    }
    conduct.stored.add(session);
    if (completed.getActive()) {
      conduct.using.merge(
          completed.getKeyPublic().getKeyId(), completed.getKeyPublic().getEpoch(), Math::max);
    }
  }

  /**
   * A party says for the first time that it has stored its share of a session.
   *
   * @param onDisk whether it has
   */
  void hasTold(int party, ByteString session, boolean onDisk) {
    if (!onDisk && setting.isSound(party)) {
      violated(Breach.TOLD_EARLY, party, session);
    }
  }

  /** Whether a party has said that it has stored its share of a session. */
  boolean hasToldOfShare(int party, ByteString session) {
    return of(party).stored.contains(session);
  }

  private void aborted(int party, ByteString session, Abort abort) {
    Conduct conduct = of(party);
    conduct.overWithout.add(session);
    if (abort.getCause() == AbortCause.ABORT_CAUSE_INTERNAL) {
      violated(Breach.FAILED, party, session);
    }
    for (int culprit : abort.getCulpritsList()) {
      if (!setting.isCorrupt(culprit)) {
        violated(
            Breach.HONEST_CONVICTED,
            Identities.party(culprit) + " by " + party + " in " + name(session));
      }
    }
    Ordered order = order(session);
    if (abort.getAdvice() == Advice.ADVICE_EXCLUDE_PARTY
        && !order.protocol().operation().makesShare()) {
      conduct
          .excluded
          .computeIfAbsent(keyOf(order), _ -> new TreeSet<>())
          .addAll(abort.getCulpritsList());
    }
  }

  // ---- the coordinator -------------------------------------------------------------------------

  /** A session has ended for the replica that follows it. */
  void ended(Ordered order, SessionOutcome outcome) {
    switch (outcome) {
      case SessionOutcome.Signed signed -> {
        if (!isSigned(order.session())) {
          violated(Breach.SIGNED_BY_NOBODY, name(order.session()));
        }
        convicted(signed.culprits(), order);
      }
      case SessionOutcome.Aborted aborted -> convicted(aborted.culprits(), order);
      case SessionOutcome.Created created -> {
        int epoch = created.keyPublic().getEpoch();
        if (!isStored(order.order().getKey(), epoch)) {
          violated(Breach.STORED_BY_NOBODY, name(order.session()));
        }
      }
      default -> {}
    }
  }

  private void convicted(Set<Integer> culprits, Ordered order) {
    for (int culprit : culprits) {
      if (!setting.isCorrupt(culprit)) {
        violated(
            Breach.HONEST_CONVICTED,
            Identities.party(culprit) + " by the coordinator in " + name(order.session()));
      }
    }
  }

  /** The coordinator excludes a party whose store went back. */
  void wentBackForCoordinator(int party) {
    if (setting.isSound(party)) {
      violated(Breach.HONEST_CONVICTED, Identities.party(party) + " went back for the coordinator");
    }
  }

  /** Whether all honest parties of a session that makes an epoch have said that they stored it. */
  private boolean isStored(String key, int epoch) {
    return orders.values().stream()
        .filter(each -> each.order().getKey().equals(key) && each.makesEpoch() == epoch)
        .anyMatch(
            made ->
                made.parties().stream()
                    .allMatch(
                        each ->
                            setting.isCorrupt(each) || of(each).stored.contains(made.session())));
  }

  // ---- the end ---------------------------------------------------------------------------------

  /**
   * Two signatures of one request, by sessions that have a sound party in common which had no
   * reason to believe that the earlier one was over without a signature.
   */
  void checkSignatures() {
    for (int party = 1; party <= setting.parties(); party++) {
      if (!setting.isSound(party)) {
        continue;
      }
      Conduct conduct = of(party);
      List<Ordered> signed = new ArrayList<>();
      for (ByteString session : conduct.contributed) {
        Ordered order = order(session);
        if (order.protocol().signsAtRandom() && isSigned(session)) {
          signed.add(order);
        }
      }
      for (int i = 0; i < signed.size(); i++) {
        for (int j = i + 1; j < signed.size(); j++) {
          Ordered earlier = signed.get(i);
          if (earlier.request().equals(signed.get(j).request())
              && !conduct.overWithout.contains(earlier.session())
              && !liar.hasDeclined(earlier.session())) {
            violated(Breach.TWO_SIGNATURES, party, signed.get(j).session());
          }
        }
      }
    }
  }

  /** Whether every party of a session has contributed to the signature. */
  boolean isSigned(ByteString session) {
    return order(session).parties().stream().allMatch(party -> hasContributed(party, session));
  }

  /**
   * Whether every party of some session of a request has made its contribution: one that has those
   * of the others may show the signature before its own has left.
   */
  boolean canBeSigned(Ordered.Cause cause) {
    return orders.values().stream()
        .filter(order -> order.request().equals(cause.request()))
        .filter(order -> order.protocol().operation().signs())
        .anyMatch(
            order ->
                order.parties().stream()
                    .allMatch(
                        party ->
                            setting.isCorrupt(party)
                                || of(party).finished.contains(order.session())));
  }

  private boolean hasContributed(int party, ByteString session) {
    return setting.isCorrupt(party) || of(party).contributed.contains(session);
  }

  /** Sessions of requests in which a party has sent something. */
  Set<ByteString> ran(int party) {
    Set<ByteString> ran = new LinkedHashSet<>();
    for (ByteString session : of(party).spoken) {
      if (!order(session).request().isEmpty()) {
        ran.add(session);
      }
    }
    return ran;
  }
}
