package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.channel.SecureChannel;
import io.coterie.platform.attestation.CompletedStatement;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.EvidenceSignature;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.party.v1.Declined;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.Certificate;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A corrupt party of a refresh or a reshare says one thing to one party and another to another. In
 * the end all honest parties use shares of the same session, whatever was restarted meanwhile.
 */
class SplitTest {
  private static final String KEY = "keys/main";
  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);
  private static final long SAY_NANOS = Duration.ofMillis(100).toNanos();
  private static final List<Integer> FIRST = List.of(1, 2, 3);

  @TempDir Path folder;
  private Installation i;

  /** The pairs whose reports are lost, sender first: {@code 3>1}. */
  private final Set<String> lost = ConcurrentHashMap.newKeySet();

  /** Reports between parties that came through. */
  private final List<SessionReport> heard = new CopyOnWriteArrayList<>();

  @BeforeEach
  void start() {
    i = Installation.with(folder, new FakeCore());
    i.limits = Installation.quick();
    i.start();
    i.createEcdsaKey(KEY, 2);
    i.network.tap(
        (from, to, body) -> {
          if (from.role() != Member.Role.PARTY || to.role() != Member.Role.PARTY) {
            return body;
          }
          SessionReport report = report(body);
          if (!report.hasCompleted()) {
            return body;
          }
          if (lost.contains(from.partyId() + ">" + to.partyId())) {
            return null;
          }
          heard.add(report);
          return body;
        });
  }

  @AfterEach
  void stop() {
    i.close();
  }

  private static SessionReport report(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getReport();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Digest of the intent of each session. */
  private final Map<SessionId, ByteString> intents = new ConcurrentHashMap<>();

  private void loseAll() {
    for (int from = 1; from <= 5; from++) {
      for (int to = 1; to <= 5; to++) {
        lost.add(from + ">" + to);
      }
    }
  }

  private void loseOnly(String... pairs) {
    lost.addAll(List.of(pairs));
    lost.retainAll(List.of(pairs));
  }

  private Installation.Party party(int id) {
    return i.party(Installation.NAMES.get(id - 1));
  }

  private Member member(int id) {
    return i.network.roster().byPartyId(id).orElseThrow();
  }

  private KeyShare share(int party) {
    return party(party).store.shares().find(KEY).orElseThrow();
  }

  private void restart(int... parties) {
    for (int party : parties) {
      i.restart(Installation.NAMES.get(party - 1));
    }
  }

  /** All parties run a refresh and store its share; its session. */
  private SessionId refresh() {
    SessionId session = give(refreshOrder());
    awaitStored(session, FIRST);
    return session;
  }

  private SessionId give(Order order) {
    SessionId session = i.coordinator.give(order);
    intents.put(session, IntentVerifier.digest(order.getSignedIntent().getPayload()));
    return session;
  }

  private Order refreshOrder() {
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, KEY, 2, 1, 2, 3)
        .setSignedIntent(
            i.signed(
                RefreshIntent.newBuilder()
                    .setRequestId(Installation.requestId())
                    .setKey(KEY)
                    .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                    .setEpoch(1)
                    .setNotAfter(Installation.in(Duration.ofMinutes(5)))))
        .build();
  }

  private SessionId reshare(List<Integer> dealers, List<Integer> receivers) {
    KeyPublic current = share(dealers.getFirst()).keyPublic();
    Set<Integer> all = new TreeSet<>(dealers);
    all.addAll(receivers);
    return give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_RESHARE, KEY, 2)
            .addAllSigningSet(all)
            .addAllDealers(dealers)
            .setKeyPublic(current)
            .setEpoch(current.getEpoch())
            .setSignedIntent(
                i.signed(
                    ReshareIntent.newBuilder()
                        .setRequestId(Installation.requestId())
                        .setKey(KEY)
                        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                        .setEpoch(current.getEpoch())
                        .setThreshold(2)
                        .addAllParties(
                            receivers.stream().map(id -> Installation.NAMES.get(id - 1)).toList())
                        .setPublicKey(FakeCore.ECDSA_KEY)
                        .setNotAfter(Installation.in(Duration.ofMinutes(5)))))
            .build());
  }

  private void awaitStored(SessionId session, List<Integer> parties) {
    Installation.until(
        "all have stored",
        () ->
            parties.stream()
                .allMatch(
                    p ->
                        party(p)
                            .store
                            .shares()
                            .pending(KEY)
                            .filter(s -> s.session().equals(session))
                            .isPresent()));
  }

  private KeyShare.State state(int party, SessionId session) {
    return party(party).store.shares().ofSession(session).map(KeyShare::state).orElse(null);
  }

  private void awaitUsed(int party, SessionId session) {
    Installation.until(
        party + " uses " + session,
        () ->
            party(party)
                .store
                .shares()
                .find(KEY)
                .filter(s -> s.state() == KeyShare.State.ACTIVE && s.session().equals(session))
                .isPresent());
  }

  private void awaitUsed(SessionId session, List<Integer> parties) {
    for (int party : parties) {
      awaitUsed(party, session);
      assertThat(party(party).store.audit().verify())
          .isInstanceOf(AuditTrail.Verification.Intact.class);
    }
  }

  /** The liar says that it has no share, whatever it has. */
  private void saysDeclined(int liar, int to, SessionId session) {
    party(liar)
        .channel()
        .send(
            member(to),
            PartyMessage.newBuilder()
                .setReport(
                    SessionReport.newBuilder()
                        .setSessionId(session.bytes())
                        .setDeclined(Declined.getDefaultInstance()))
                .build()
                .toByteArray(),
            SecureChannel.SendOptions.online(null));
  }

  /** It says so until it is heard: its victim may not have taken its own share up yet. */
  private void abandon(int liar, int victim, SessionId session) {
    AtomicLong said = new AtomicLong(System.nanoTime() - SAY_NANOS);
    Installation.until(
        victim + " has abandoned " + session,
        () -> {
          if (System.nanoTime() - said.get() >= SAY_NANOS) {
            said.set(System.nanoTime());
            saysDeclined(liar, victim, session);
          }
          return state(victim, session) == KeyShare.State.ABANDONED;
        });
  }

  private void signs(int epoch, int... set) {
    SessionId session =
        i.coordinator.give(
            i.coordinator
                .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, KEY, 2, set)
                .setEpoch(epoch)
                .setSignedIntent(i.signed(i.digestIntent(KEY, DIGEST)))
                .build());
    Installation.until("it is signed", () -> i.coordinator.partials(session) == set.length);
  }

  private SessionReport shown(
      SessionId session, KeyPublic keyPublic, List<EvidenceSignature> signatures) {
    SessionReport report = completed(3, session, keyPublic);
    return report.toBuilder()
        .setCompleted(
            report.getCompleted().toBuilder().setActive(true).addAllCertificate(signatures))
        .build();
  }

  private SessionReport completed(int party, SessionId session, KeyPublic keyPublic) {
    return TestEvidence.completed(party, session, keyPublic, intents.get(session));
  }

  /** The certificate of these parties, that a session made these public data for its intent. */
  private List<EvidenceSignature> certificate(
      SessionId session, KeyPublic keyPublic, List<Integer> parties) {
    return named(
        parties, TestEvidence.certificate(session, keyPublic, intents.get(session), parties));
  }

  private static List<EvidenceSignature> named(List<Integer> parties, Certificate certificate) {
    return IntStream.range(0, parties.size())
        .mapToObj(k -> signature(parties.get(k), certificate.signatures().get(k)))
        .toList();
  }

  private static EvidenceSignature signature(int party, ByteString signature) {
    return EvidenceSignature.newBuilder().setParty(party).setSignature(signature).build();
  }

  /** charlie shows the certificate of a session that all have run with these public data. */
  private SessionReport shown(SessionId session, KeyPublic keyPublic) {
    return shown(session, keyPublic, certificate(session, keyPublic, FIRST));
  }

  private long dropped(int party, String reason) {
    var counter =
        party(party).meters.find("coterie.sessions.dropped").tag("reason", reason).counter();
    return counter == null ? 0 : (long) counter.count();
  }

  // ---- one liar, one victim --------------------------------------------------------------------

  /**
   * alpha is told that charlie has its share, bravo that it has none; bravo hears no other word.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void declined_to_one_and_completed_to_another(boolean restarts) {
    loseAll();
    SessionId session = refresh();
    abandon(3, 2, session);
    if (restarts) {
      restart(1, 2);
    }
    loseOnly("3>2", "1>2");
    awaitUsed(1, session);
    assertThat(share(2).epoch()).as("it was lied to").isEqualTo(1);
    if (restarts) {
      restart(1, 2);
    }
    // A party that was told the truth shows it.
    loseOnly("3>2");
    awaitUsed(session, FIRST);
    signs(2, 1, 2);
  }

  /** The other way round: alpha switches first, and bravo is told the lie only then. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void completed_to_one_and_then_declined_to_another(boolean restarts) {
    loseAll();
    SessionId session = refresh();
    loseOnly("3>2", "1>2");
    awaitUsed(1, session);
    if (restarts) {
      restart(2, 1);
    }
    abandon(3, 2, session);
    if (restarts) {
      restart(2);
    }
    assertThat(share(2).epoch()).isEqualTo(1);
    loseOnly("3>2");
    awaitUsed(session, FIRST);
    signs(2, 1, 2);
  }

  /** Both to the same party. Having signed, nobody is believed to have nothing. */
  @Test
  void completed_and_declined_to_the_same_party() {
    loseAll();
    SessionId session = refresh();
    loseOnly("1>2", "1>3", "2>1", "2>3", "3>1");
    KeyPublic keyPublic = party(2).store.shares().ofSession(session).orElseThrow().keyPublic();
    party(2).driver.onReport(member(3), session, completed(3, session, keyPublic));
    saysDeclined(3, 2, session);
    abandon(3, 1, session);
    assertThat(state(2, session)).isEqualTo(KeyShare.State.PROVISIONAL);
    // And to alpha the other way round: it takes again a share that it has abandoned.
    loseOnly();
    awaitUsed(session, FIRST);
  }

  /** All are told that there will be nothing, and the certificate comes when they have gone on. */
  @Test
  void certificate_that_comes_late() {
    loseAll();
    SessionId session = refresh();
    abandon(3, 1, session);
    abandon(3, 2, session);
    abandon(1, 3, session);
    signs(1, 1, 2);
    restart(1, 2, 3);
    SessionId next = refresh();
    assertThat(state(1, session)).isEqualTo(KeyShare.State.ABANDONED);
    loseOnly();
    awaitUsed(next, FIRST);
    // Too late: it can never count any more.
    party(1).driver.onReport(member(3), session, shown(session, share(1).keyPublic()));
    signs(2, 1, 2);
    assertThat(FIRST).allSatisfy(p -> assertThat(share(p).session()).isEqualTo(next));
    assertThat(FIRST).allSatisfy(p -> assertThat(party(p).store.shares().undecided()).isEmpty());
  }

  /**
   * A party that is ahead answers with the certificate, to the liar too; without it if nobody
   * asked.
   */
  @Test
  void switched_party_shows_why() {
    SessionId session = refresh(FIRST);
    restart(1);
    heard.clear();
    saysDeclined(3, 1, session);
    Installation.until(
        "alpha contradicts",
        () ->
            heard.stream()
                .anyMatch(
                    r ->
                        r.getSessionId().equals(session.bytes())
                            && r.getCompleted().getActive()
                            && r.getCompleted().getCertificateCount() == 3));
    assertThat(share(1).epoch()).isEqualTo(2);
  }

  private SessionId refresh(List<Integer> usedBy) {
    loseAll();
    SessionId session = refresh();
    loseOnly();
    awaitUsed(session, usedBy);
    return session;
  }

  // ---- reshare: dealing, receiving, leaving -----------------------------------------------------

  /** From 1, 2, 3 to 3, 4, 5: 1 and 2 only deal and leave, 4 and 5 only receive. */
  @ParameterizedTest
  @CsvSource({"1,2", "1,4", "2,3", "3,1", "3,5", "4,1", "4,5", "5,3"})
  void liar_and_victim_in_every_role(int liar, int victim) {
    i.join("delta");
    i.join("echo");
    List<Integer> all = List.of(1, 2, 3, 4, 5);
    loseAll();
    SessionId session = reshare(FIRST, List.of(3, 4, 5));
    awaitStored(session, all);
    abandon(liar, victim, session);
    restart(victim);
    loseOnly(liar + ">" + victim);
    awaitUsed(session, all);
    assertThat(all).allSatisfy(p -> assertThat(share(p).left()).isEqualTo(p == 1 || p == 2));
    signs(2, 4, 5);
  }

  // ---- what is no certificate ------------------------------------------------------------------

  @Test
  void only_the_certificate_of_the_very_session_counts() {
    loseAll();
    SessionId session = refresh();
    abandon(3, 1, session);
    SessionId other = new SessionId(ByteString.copyFrom(new byte[32]));
    KeyPublic keyPublic = party(1).store.shares().ofSession(session).orElseThrow().keyPublic();
    ByteString intent = intents.get(session);
    List<EvidenceSignature> good = certificate(session, keyPublic, FIRST);
    ByteString second = good.get(1).getSignature();
    ByteString flipped =
        ByteString.copyFrom(new byte[] {(byte) (second.byteAt(0) ^ 1)}).concat(second.substring(1));
    List<EvidenceSignature> reversed = new ArrayList<>(good);
    Collections.reverse(reversed);
    KeyPublic otherKey = keyPublic.toBuilder().setKeyId("keys/other").build();
    KeyPublic otherEpoch = keyPublic.toBuilder().setEpoch(3).build();
    KeyPublic otherData = keyPublic.toBuilder().setChainCode(DIGEST.concat(DIGEST)).build();
    CompletedStatement elsewhere =
        new CompletedStatement(
            "other", session.bytes(), KEY, 2, intent, keyPublic.toByteString(), false);
    List<List<EvidenceSignature>> bad =
        List.of(
            List.of(good.get(0), good.get(2)),
            List.of(good.get(0), good.get(1)),
            List.of(good.get(2)),
            List.of(good.get(0), good.get(0), good.get(2)),
            List.of(good.get(0), good.get(2), good.get(2)),
            reversed,
            List.of(good.get(0), signature(2, flipped), good.get(2)),
            List.of(good.get(0), signature(2, ByteString.EMPTY), good.get(2)),
            List.of(good.get(0), signature(2, second.concat(DIGEST)), good.get(2)),
            List.of(good.get(0), signature(3, second), good.get(2)),
            List.of(good.get(0), good.get(1), good.get(2), good.get(2)),
            certificate(session, keyPublic, List.of(1, 2, 4)),
            named(FIRST, TestEvidence.certificate(other, keyPublic, intent, FIRST)),
            named(FIRST, TestEvidence.certificate(session, keyPublic, DIGEST, FIRST)),
            FIRST.stream().map(p -> signature(p, TestEvidence.sign(p, elsewhere.of(p)))).toList(),
            certificate(session, otherKey, FIRST),
            certificate(session, otherEpoch, FIRST),
            certificate(session, otherData, FIRST));
    int count = 0;
    for (List<EvidenceSignature> signatures : bad) {
      party(1).driver.onReport(member(3), session, shown(session, keyPublic, signatures));
      int expected = ++count;
      Installation.until("it is dropped", () -> dropped(1, "bad_certificate") == expected);
    }
    assertThat(state(1, session)).isEqualTo(KeyShare.State.ABANDONED);
    assertThat(share(1).epoch()).isEqualTo(1);
    party(1).driver.onReport(member(3), session, shown(session, keyPublic, good));
    awaitUsed(1, session);
    assertThat(share(1).certificate())
        .isEqualTo(TestEvidence.certificate(session, keyPublic, intent, FIRST));
    restart(1);
    assertThat(share(1).certificate())
        .isEqualTo(TestEvidence.certificate(session, keyPublic, intent, FIRST));
  }

  @Test
  void report_without_its_senders_signature_counts_for_nothing() {
    loseAll();
    SessionId session = refresh();
    KeyPublic keyPublic = party(1).store.shares().ofSession(session).orElseThrow().keyPublic();
    SessionReport good = completed(2, session, keyPublic);
    int count = 0;
    for (ByteString signature :
        List.of(
            ByteString.EMPTY,
            good.getCompleted().getEvidenceSignature().substring(1),
            good.getCompleted().getEvidenceSignature().concat(DIGEST),
            TestEvidence.stored(3, session, keyPublic, intents.get(session)),
            TestEvidence.stored(2, session, keyPublic, DIGEST),
            TestEvidence.stored(2, new SessionId(DIGEST), keyPublic, intents.get(session)),
            TestEvidence.stored(
                2, session, keyPublic.toBuilder().setEpoch(3).build(), intents.get(session)),
            TestEvidence.sign(
                2, TestEvidence.statement(session, keyPublic, intents.get(session)).of(3)))) {
      party(1)
          .driver
          .onReport(
              member(2),
              session,
              good.toBuilder()
                  .setCompleted(good.getCompleted().toBuilder().setEvidenceSignature(signature))
                  .build());
      int expected = ++count;
      Installation.until("it is dropped", () -> dropped(1, "bad_evidence_signature") == expected);
    }
    party(1).driver.onReport(member(3), session, completed(3, session, keyPublic));
    // It has not counted as a word of bravo's: that one can still say that it has nothing.
    abandon(2, 1, session);
    // Nor is a share activated by what charlie says, until bravo signs it.
    party(1).driver.onReport(member(2), session, good);
    awaitUsed(1, session);
  }

  /** A coordinator gives the order once more: the session's traces are not forgotten by that. */
  @Test
  void order_of_an_abandoned_share_is_given_again() {
    loseAll();
    Order order = refreshOrder();
    SessionId session = give(order);
    awaitStored(session, FIRST);
    abandon(3, 1, session);
    give(order);
    i.coordinator.await(
        "alpha refuses to run it again",
        r ->
            r.sender().name().equals("alpha")
                && r.report().getSessionId().equals(session.bytes())
                && r.report().getRefused().getReason()
                    == RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
    KeyPublic keyPublic = party(1).store.shares().ofSession(session).orElseThrow().keyPublic();
    party(1).driver.onReport(member(3), session, shown(session, keyPublic));
    awaitUsed(1, session);
  }

  // ---- two certified sessions ------------------------------------------------------------------

  /**
   * charlie has signed both and said of both that it has nothing; alpha is shown the one and bravo
   * the other. The later one counts.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void two_certified_sessions_of_one_epoch(boolean laterFirst) {
    loseAll();
    SessionId older = refresh();
    KeyPublic keyPublic = party(1).store.shares().ofSession(older).orElseThrow().keyPublic();
    abandon(3, 1, older);
    abandon(3, 2, older);
    abandon(1, 3, older);
    SessionId later = refresh();
    abandon(3, 1, later);
    restart(1);
    if (laterFirst) {
      party(2).driver.onReport(member(3), later, shown(later, keyPublic));
      awaitUsed(2, later);
    }
    party(1).driver.onReport(member(3), older, shown(older, keyPublic));
    awaitUsed(1, older);
    assertThat(state(1, later)).as("it may have a certificate").isEqualTo(KeyShare.State.ABANDONED);
    restart(1, 2);
    if (!laterFirst) {
      party(2).driver.onReport(member(3), later, shown(later, keyPublic));
      awaitUsed(2, later);
    }
    loseOnly();
    awaitUsed(later, FIRST);
    party(2).driver.onReport(member(3), older, shown(older, keyPublic));
    signs(2, 1, 2);
    assertThat(FIRST).allSatisfy(p -> assertThat(share(p).session()).isEqualTo(later));
  }

  // ---- for ever --------------------------------------------------------------------------------

  /** Kept shares are bounded; a party that causes too many is left out, and the key goes on. */
  @Test
  void liar_that_never_ends() {
    i.join("delta");
    loseAll();
    int rounds = 0;
    while (party(1).store.shares().decliners(KEY).isEmpty()) {
      SessionId session = refresh();
      abandon(3, 1, session);
      abandon(3, 2, session);
      abandon(1, 3, session);
      assertThat(++rounds).isLessThan(100);
    }
    assertThat(party(1).store.shares().undecided()).hasSize(rounds);
    SessionId refused = reshare(FIRST, List.of(1, 2, 3));
    assertThat(i.coordinator.awaitFrom("alpha", refused).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    signs(1, 1, 2);
    loseOnly("3>1", "3>2", "3>4");
    SessionId without = reshare(List.of(1, 2), List.of(1, 2, 4));
    awaitUsed(without, List.of(1, 2, 4));
    assertThat(party(1).store.shares().undecided()).isEmpty();
    assertThat(party(1).store.shares().decliners(KEY)).isEmpty();
    signs(2, 1, 4);
  }
}
