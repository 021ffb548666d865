package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.SessionId;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * New shares for a key, with parties killed at each step: at any time there is one epoch in which
 * the key signs, and in the end it is the same one everywhere.
 */
class RefreshTest {
  private static final String KEY = "keys/main";
  private static final List<String> PARTIES = List.of("alpha", "bravo", "charlie");
  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);

  /** From the order to the end of a session. */
  private static final Duration DEADLINE = Duration.ofSeconds(20);

  @TempDir Path folder;
  private FakeCore core;
  private Installation i;

  @BeforeEach
  void start() {
    core = new FakeCore();
    i = Installation.with(folder, core);
    i.limits = Installation.quick();
    i.start();
    i.createEcdsaKey(KEY, 2);
  }

  @AfterEach
  void stop() {
    i.close();
  }

  private SignedIntent intent(int epoch) {
    return i.signed(
        RefreshIntent.newBuilder()
            .setRequestId(Installation.requestId())
            .setKey(KEY)
            .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
            .setEpoch(epoch)
            .setNotAfter(Installation.in(Duration.ofMinutes(5))));
  }

  private SessionId order(SignedIntent intent, int epoch) {
    return order(intent, epoch, DEADLINE);
  }

  private SessionId order(SignedIntent intent, int epoch, Duration time) {
    return i.coordinator.give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, KEY, 2, 1, 2, 3)
            .setEpoch(epoch)
            .setSignedIntent(intent)
            .setDeadline(Installation.in(time))
            .build());
  }

  private static SessionReport report(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getReport();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Loses what parties tell each other about stored shares, to those of whom it holds. */
  private void loseReports(Predicate<Member> to) {
    i.network.tap(
        (_, member, body) ->
            member.role() == Member.Role.PARTY && to.test(member) && report(body).hasCompleted()
                ? null
                : body);
  }

  private void heal() {
    i.network.tap((_, _, body) -> body);
  }

  private int epoch(String party) {
    return i.party(party).store.shares().find(KEY).map(KeyShare::epoch).orElse(0);
  }

  private boolean everywhere(int epoch) {
    return PARTIES.stream()
        .allMatch(p -> epoch(p) == epoch && i.party(p).store.shares().pending(KEY).isEmpty());
  }

  private void awaitEverywhere(int epoch) {
    Installation.until("epoch " + epoch + " everywhere", () -> everywhere(epoch));
  }

  private void awaitPending(String... parties) {
    for (String party : parties) {
      Installation.until(
          party + " has stored its share",
          () -> i.party(party).store.shares().pending(KEY).isPresent());
    }
  }

  private SessionId sign(int epoch, int... set) {
    return i.coordinator.give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, KEY, 2, set)
            .setEpoch(epoch)
            .setSignedIntent(i.signed(i.digestIntent(KEY, DIGEST)))
            .build());
  }

  private void signs(int epoch, int... set) {
    SessionId session = sign(epoch, set);
    Installation.until("it is signed", () -> i.coordinator.partials(session) == set.length);
  }

  @Test
  void all_parties_go_to_the_next_epoch_again_and_again() {
    for (int epoch = 1; epoch <= 3; epoch++) {
      SignedIntent intent = intent(epoch);
      SessionId session = order(intent, epoch);
      for (String party : PARTIES) {
        assertThat(
                i.coordinator
                    .awaitFrom(party, session)
                    .report()
                    .getCompleted()
                    .getKeyPublic()
                    .getEpoch())
            .isEqualTo(epoch + 1);
      }
      awaitEverywhere(epoch + 1);
      // Each says when it begins to use its share, and when it is asked with no time left.
      for (boolean asked : new boolean[] {false, true}) {
        if (asked) {
          order(intent, epoch, Duration.ofMinutes(-1));
        }
        for (String party : PARTIES) {
          i.coordinator.await(
              party + " uses its share",
              r ->
                  r.sender().name().equals(party)
                      && r.report().getSessionId().equals(session.bytes())
                      && r.report().getCompleted().getActive());
        }
      }
      signs(epoch + 1, 1, 2);
      SessionId old = sign(epoch, 1, 2);
      assertThat(i.coordinator.awaitFrom("alpha", old).report().getRefused().getReason())
          .isEqualTo(RefusalReason.REFUSAL_REASON_WRONG_EPOCH);
      assertThat(i.parties)
          .allSatisfy(
              p ->
                  assertThat(p.store.audit().verify())
                      .isInstanceOf(AuditTrail.Verification.Intact.class));
    }
  }

  @Test
  void killed_while_it_runs() {
    // bravo falls silent in the private rounds.
    i.network.tap(
        (from, to, body) ->
            from.name().equals("bravo") && to.partyId() == 1 && CrashTest.isEnvelope(body)
                ? null
                : body);
    SignedIntent intent = intent(1);
    SessionId session = order(intent, 1);
    Installation.until(
        "alpha and bravo run", () -> i.party("alpha").live() + i.party("bravo").live() == 2);
    i.restart("bravo");
    i.time.pass(DEADLINE);
    assertThat(i.coordinator.awaitFrom("alpha", session).report().hasTimedOut()).isTrue();
    assertThat(i.party("alpha").store.shares().pending(KEY)).isEmpty();
    signs(1, 1, 3);
    heal();
    order(intent, 1);
    awaitEverywhere(2);
    signs(2, 1, 2);
  }

  @Test
  void killed_between_stored_and_used() {
    loseReports(_ -> true);
    order(intent(1), 1);
    awaitPending("alpha", "bravo", "charlie");
    i.restart("bravo");
    signs(1, 1, 2);
    heal();
    awaitEverywhere(2);
    signs(2, 1, 2);
  }

  @Test
  void all_killed_between_stored_and_used() {
    loseReports(_ -> true);
    order(intent(1), 1);
    awaitPending("alpha", "bravo", "charlie");
    PARTIES.forEach(i::restart);
    signs(1, 2, 3);
    heal();
    awaitEverywhere(2);
  }

  @Test
  void parties_say_which_epoch_they_use_and_whether_they_keep_another_share() {
    assertThat(keeping(1)).containsOnly(false);
    loseReports(_ -> true);
    order(intent(1), 1);
    awaitPending("alpha", "bravo", "charlie");
    assertThat(keeping(1)).containsOnly(true);
    heal();
    awaitEverywhere(2);
    assertThat(keeping(2)).containsOnly(false);
  }

  /** All parties say that they use this epoch; whether each keeps another share. */
  private List<Boolean> keeping(int epoch) {
    ByteString challenge = IntentVerifier.digest(ByteString.copyFromUtf8("challenge " + epoch));
    EpochQuestion question = EpochQuestion.newBuilder().setKey(KEY).setChallenge(challenge).build();
    i.coordinator.epochs.clear();
    i.coordinator.tell(
        PartyMessage.newBuilder().setEpochQuestion(question).build(),
        PARTIES.stream().map(p -> i.network.roster().byName(p).orElseThrow()).toList());
    Installation.until("all have answered", () -> i.coordinator.epochs.size() == 3);
    return i.coordinator.epochs.stream()
        .map(
            answer -> {
              EpochStatement said = answer.getStatement();
              KeyShare share =
                  i.party(PARTIES.get(said.getParty() - 1)).store.shares().find(KEY).orElseThrow();
              ByteString fingerprint = KeyFingerprint.of(share.keyPublic());
              assertThat(
                      CurrentStatement.isSigned(
                          i.network.roster(), KEY, fingerprint, said, challenge))
                  .isTrue();
              assertThat(said.getEpoch()).isEqualTo(epoch);
              assertThat(said.getSessionId()).isEqualTo(share.session().bytes());
              assertThat(said.getKeyPublicDigest())
                  .isEqualTo(IntentVerifier.digest(share.keyPublic().toByteString()));
              return said.getUndecided();
            })
        .toList();
  }

  /** alpha has all reports and has destroyed its old share; the others wait for a report. */
  @Test
  void killed_when_one_party_is_ahead() {
    loseReports(member -> member.partyId() != 1);
    order(intent(1), 1);
    Installation.until("alpha is ahead", () -> epoch("alpha") == 2);
    signs(1, 2, 3);
    // A party that is behind waits for its own switch instead of refusing.
    SessionId next = sign(2, 1, 2);
    Installation.until("bravo waits", () -> i.party("bravo").live() == 1);
    PARTIES.forEach(i::restart);
    assertThat(epoch("alpha")).isEqualTo(2);
    assertThat(epoch("bravo")).isEqualTo(1);
    heal();
    awaitEverywhere(2);
    assertThat(i.coordinator.partials(next)).isZero();
    signs(2, 1, 2);
  }

  /**
   * The last messages to charlie are lost, and what is said about stored shares: the others store
   * what charlie never will have.
   */
  @Test
  void share_that_one_party_never_got_is_abandoned_by_all() {
    SignedIntent intent = intent(1);
    SessionId session = halfStored(intent);
    assertThat(i.party("charlie").store.shares().pending(KEY)).isEmpty();
    signs(1, 1, 2);
    i.restart("alpha");
    // Asked again for the same request, those that have a share run nothing.
    SessionId again = order(intent, 1);
    assertThat(i.coordinator.awaitFrom("alpha", session).report().hasCompleted()).isTrue();
    Installation.until("charlie runs", () -> i.party("charlie").live() == 1);
    i.time.pass(DEADLINE);
    assertThat(i.coordinator.awaitFrom("charlie", again).report().hasTimedOut()).isTrue();
    heal();
    Installation.until(
        "the others have given it up",
        () ->
            i.party("alpha").store.shares().pending(KEY).isEmpty()
                && i.party("bravo").store.shares().pending(KEY).isEmpty());
    assertThat(PARTIES).allSatisfy(p -> assertThat(epoch(p)).isEqualTo(1));
    order(intent, 1);
    awaitEverywhere(2);
    assertThat(i.parties)
        .extracting(p -> p.store.shares().find(KEY).orElseThrow().session())
        .doesNotContain(session);
  }

  /** The same with another request, and with charlie restarted meanwhile. */
  @Test
  void another_request_waits_for_the_fate_of_the_first() {
    halfStored(intent(1));
    i.restart("charlie");
    SignedIntent other = intent(1);
    SessionId refused = order(other, 1);
    assertThat(i.coordinator.awaitFrom("alpha", refused).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    heal();
    Installation.until(
        "the first is abandoned",
        () -> {
          // The refused session of charlie ends at its deadline.
          i.time.pass(DEADLINE);
          return i.party("alpha").store.shares().pending(KEY).isEmpty()
              && i.party("bravo").store.shares().pending(KEY).isEmpty()
              && i.party("charlie").live() == 0;
        });
    order(other, 1);
    awaitEverywhere(2);
  }

  private SessionId halfStored(SignedIntent intent) {
    i.network.tap(
        (_, to, body) ->
            (to.name().equals("charlie") && CrashTest.isOfRound(body, 6))
                    || (to.role() == Member.Role.PARTY && report(body).hasCompleted())
                ? null
                : body);
    SessionId session = order(intent, 1);
    awaitPending("alpha", "bravo");
    assertThat(i.coordinator.awaitFrom("alpha", session).report().hasCompleted()).isTrue();
    i.time.pass(DEADLINE);
    assertThat(i.coordinator.awaitFrom("charlie", session).report().hasTimedOut()).isTrue();
    return session;
  }

  @Test
  void excluded_party_starts_afresh() {
    i.network.tap(
        (from, to, body) ->
            from.name().equals("bravo") && to.name().equals("alpha") && CrashTest.isEnvelope(body)
                ? CrashTest.withEnvelope(body, FakeCore.CHEAT)
                : body);
    SessionId cheated = sign(1, 1, 2);
    assertThat(i.coordinator.awaitFrom("alpha", cheated).report().getAborted().getCulpritsList())
        .containsExactly(2);
    heal();
    KeyShare share = i.party("alpha").store.shares().find(KEY).orElseThrow();
    assertThat(share.sealed().toStringUtf8()).endsWith(" without 2");
    i.restart("alpha");
    assertThat(i.party("alpha").store.shares().find(KEY).orElseThrow().sealed())
        .isEqualTo(share.sealed());
    assertThat(i.party("alpha").store.shares().excluded(KEY)).isEqualTo(Set.of(2));
    SessionId refused = sign(1, 1, 2);
    assertThat(i.coordinator.awaitFrom("alpha", refused).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    order(intent(1), 1);
    awaitEverywhere(2);
    signs(2, 1, 2);
  }
}
