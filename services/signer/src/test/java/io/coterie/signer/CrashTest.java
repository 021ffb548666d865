package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A party is killed in the middle, starts again on its file, and nothing is lost or repeated. */
class CrashTest {
  private static final String KEY = "keys/main";

  @TempDir Path folder;
  private FakeCore core;
  private Installation i;

  @BeforeEach
  void start() {
    core = new FakeCore();
    i = Installation.with(folder, core).start();
  }

  @AfterEach
  void stop() {
    i.close();
  }

  private static boolean isStoredReport(byte[] body) {
    try {
      PartyMessage message = PartyMessage.parseFrom(body);
      return message.hasReport() && message.getReport().hasCompleted();
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      return false;
    }
  }

  /** Runs a key generation whose reports between parties are lost; all end provisional. */
  private SessionId provisionalEverywhere(SignedIntent intent) {
    i.network.tap(
        (_, to, body) -> isStoredReport(body) && to.role() == Member.Role.PARTY ? null : body);
    SessionId session =
        i.coordinator.give(i.coordinator.keygenOrder(intent, KEY, 2, 1, 2, 3).build());
    for (String party : new String[] {"alpha", "bravo", "charlie"}) {
      assertThat(i.coordinator.awaitFrom(party, session).report().hasCompleted()).isTrue();
      assertThat(i.party(party).store.shares().find(KEY).orElseThrow().state())
          .isEqualTo(KeyShare.State.PROVISIONAL);
    }
    return session;
  }

  private SignedIntent create() {
    return i.signed(i.keyIntent(Installation.requestId(), KEY, 2));
  }

  private boolean activeEverywhere() {
    return i.parties.stream().allMatch(p -> p.hasActive(KEY));
  }

  private SessionId session(String party) {
    return i.party(party).store.shares().find(KEY).orElseThrow().session();
  }

  @Test
  void killed_between_provisional_and_active() {
    SessionId session = provisionalEverywhere(create());
    i.restart("bravo");
    assertThat(i.party("bravo").store.shares().find(KEY).orElseThrow().state())
        .isEqualTo(KeyShare.State.PROVISIONAL);
    i.network.tap((_, _, body) -> body);
    Installation.until("active everywhere", this::activeEverywhere);
    assertThat(session("bravo")).isEqualTo(session);
    assertThat(core.started.get()).isEqualTo(3);
  }

  @Test
  void all_killed_between_provisional_and_active() {
    SessionId session = provisionalEverywhere(create());
    for (String party : new String[] {"alpha", "bravo", "charlie"}) {
      i.restart(party);
    }
    i.network.tap((_, _, body) -> body);
    Installation.until("active everywhere", this::activeEverywhere);
    assertThat(session("alpha")).isEqualTo(session);
  }

  @Test
  void one_that_missed_the_reports_asks_those_that_are_active() {
    // Nothing reaches charlie, so only the other two can become active.
    i.network.tap(
        (_, to, body) -> isStoredReport(body) && to.name().equals("charlie") ? null : body);
    i.coordinator.give(i.coordinator.keygenOrder(create(), KEY, 2, 1, 2, 3).build());
    Installation.until(
        "the others are active",
        () -> i.party("alpha").hasActive(KEY) && i.party("bravo").hasActive(KEY));
    assertThat(i.party("charlie").hasActive(KEY)).isFalse();
    i.network.tap((_, _, body) -> body);
    i.restart("charlie");
    Installation.until("charlie has asked", () -> i.party("charlie").hasActive(KEY));
  }

  @Test
  void active_parties_do_not_answer_each_other_for_ever() throws Exception {
    i.createKey(KEY, 2);
    Set<String> said = ConcurrentHashMap.newKeySet();
    java.util.concurrent.atomic.AtomicInteger count =
        new java.util.concurrent.atomic.AtomicInteger();
    i.network.tap(
        (from, to, body) -> {
          // The coordinator may be told late of the creation.
          if (isStoredReport(body) && to.role() == Member.Role.PARTY) {
            said.add(from.name() + ">" + to.name());
            count.incrementAndGet();
          }
          return body;
        });
    KeyShare share = i.party("alpha").store.shares().find(KEY).orElseThrow();
    // bravo does not remember whom it told. alpha's report once more, as if it had asked: bravo
    // answers, and alpha may answer that.
    i.restart("bravo");
    byte[] report =
        PartyMessage.newBuilder().setReport(TestEvidence.completed(1, share)).build().toByteArray();
    i.party("alpha")
        .channel()
        .send(
            i.network.roster().byName("bravo").orElseThrow(),
            report,
            io.coterie.channel.SecureChannel.SendOptions.online(null));
    Installation.until("bravo answered", () -> said.contains("bravo>alpha"));
    // Orders are handled in turn after whatever the reports led to.
    SignedIntent sign = i.signed(i.signingIntent(Installation.requestId(), KEY, "x"));
    SessionId session = i.coordinator.give(i.coordinator.signOrder(sign, KEY, 2, 1, 2).build());
    Installation.until("signed", () -> i.coordinator.partials(session) == 2);
    assertThat(count.get()).isLessThanOrEqualTo(3);
  }

  @Test
  void same_request_again_reports_the_stored_share_and_runs_nothing() {
    SignedIntent intent = create();
    SessionId first = provisionalEverywhere(intent);
    i.restart("alpha");
    int started = core.started.get();
    SessionId again =
        i.coordinator.give(i.coordinator.keygenOrder(intent, KEY, 2, 1, 2, 3).build());
    assertThat(again).isNotEqualTo(first);
    for (String party : new String[] {"alpha", "bravo", "charlie"}) {
      assertThat(i.coordinator.awaitFrom(party, first).report().hasCompleted()).isTrue();
    }
    assertThat(core.started.get()).isEqualTo(started);
  }

  @Test
  void same_request_id_with_another_intent_is_refused() {
    String requestId = Installation.requestId();
    provisionalEverywhere(i.signed(i.keyIntent(requestId, KEY, 2)));
    SignedIntent other = i.signed(i.keyIntent(requestId, KEY, 3));
    SessionId session =
        i.coordinator.give(i.coordinator.keygenOrder(other, KEY, 3, 1, 2, 3).build());
    assertThat(i.coordinator.awaitFrom("alpha", session).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_ID_REUSED);
  }

  @Test
  void new_request_replaces_a_provisional_share() {
    SessionId first = provisionalEverywhere(create());
    i.network.tap((_, _, body) -> body);
    // Whichever wins, all parties hold the same one.
    SessionId second =
        i.coordinator.give(i.coordinator.keygenOrder(create(), KEY, 2, 1, 2, 3).build());
    Installation.until("active everywhere", this::activeEverywhere);
    assertThat(session("alpha")).isIn(first, second);
    assertThat(i.parties).extracting(p -> session(p.name)).containsOnly(session("alpha"));
  }

  @Test
  void late_reports_of_a_replaced_share_do_not_bring_it_back() {
    SessionId first = provisionalEverywhere(create());
    SessionId second =
        i.coordinator.give(i.coordinator.keygenOrder(create(), KEY, 2, 1, 2, 3).build());
    for (String party : new String[] {"alpha", "bravo", "charlie"}) {
      assertThat(i.coordinator.awaitFrom(party, second).report().hasCompleted()).isTrue();
      assertThat(session(party)).isEqualTo(second);
    }
    KeyShare old = i.party("alpha").store.shares().find(KEY).orElseThrow();
    for (int from : new int[] {2, 3}) {
      i.party("alpha")
          .driver
          .onReport(
              i.network.roster().byPartyId(from).orElseThrow(),
              first,
              TestEvidence.completed(from, first, old.keyPublic(), old.origin().intentDigest()));
    }
    i.network.tap((_, _, body) -> body);
    i.restart("alpha");
    Installation.until("active everywhere", this::activeEverywhere);
    assertThat(i.parties).extracting(p -> session(p.name)).containsOnly(second);
  }

  @Test
  void signing_waits_until_the_key_is_active() {
    provisionalEverywhere(create());
    SignedIntent sign = i.signed(i.signingIntent(Installation.requestId(), KEY, "x"));
    SessionId signing = i.coordinator.give(i.coordinator.signOrder(sign, KEY, 2, 1, 2).build());
    Installation.until(
        "both wait", () -> i.party("alpha").live() == 1 && i.party("bravo").live() == 1);
    i.network.tap((_, _, body) -> body);
    Installation.until("both partials", () -> i.coordinator.partials(signing) == 2);
  }

  @Test
  void signing_that_waits_for_a_key_gives_up_at_its_deadline() {
    i.limits = Installation.quick();
    i.restart("alpha");
    i.restart("bravo");
    i.restart("charlie");
    provisionalEverywhere(create());
    SignedIntent sign = i.signed(i.signingIntent(Installation.requestId(), KEY, "x"));
    SessionId signing =
        i.coordinator.give(
            i.coordinator
                .signOrder(sign, KEY, 2, 1, 2)
                .setDeadline(Installation.in(Duration.ofSeconds(3)))
                .build());
    assertThat(i.coordinator.awaitFrom("alpha", signing).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
  }

  @Test
  void claims_survive_and_a_killed_signing_can_be_tried_again() {
    i.createKey(KEY, 2);
    // bravo's partial never comes out, so alpha's run is alive when it is killed.
    i.network.tap((from, _, body) -> from.name().equals("bravo") ? null : body);
    SignedIntent sign = i.signed(i.signingIntent(Installation.requestId(), KEY, "x"));
    Order order = i.coordinator.signOrder(sign, KEY, 2, 1, 2).build();
    SessionId killed = i.coordinator.give(order);
    Installation.until("alpha has sent", () -> i.coordinator.partials(killed) == 1);
    i.restart("alpha");
    i.network.tap((_, _, body) -> body);

    i.coordinator.give(order);
    assertThat(i.coordinator.awaitFrom("alpha", killed).report().getRefused().getReason())
        .as("a session id is used once, for ever")
        .isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);

    SessionId retry = i.coordinator.give(i.coordinator.signOrder(sign, KEY, 2, 1, 3).build());
    Installation.until(
        "another quorum signs",
        () ->
            i.coordinator.envelopes.stream().filter(e -> e.session().equals(retry.bytes())).count()
                == 2);
  }

  @Test
  void exclusion_survives() {
    i.createEcdsaKey(KEY, 2);
    i.network.tap(
        (from, to, body) ->
            from.name().equals("bravo") && to.name().equals("alpha") && isEnvelope(body)
                ? withEnvelope(body, FakeCore.POISON)
                : body);
    SessionId session = signsDigest(1, 2);
    var report = i.coordinator.awaitFrom("alpha", session).report();
    assertThat(report.getAborted().getCulpritsList()).containsExactly(2);
    i.network.tap((_, _, body) -> body);

    Installation.until(
        "it is on disk",
        () -> {
          i.restart("alpha");
          return i.party("alpha").store.shares().excluded(KEY).equals(Set.of(2));
        });
    SessionId later = signsDigest(1, 2);
    assertThat(i.coordinator.awaitFrom("alpha", later).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_PARTY_EXCLUDED);
    SessionId without = signsDigest(1, 3);
    Installation.until("without bravo it works", () -> i.coordinator.partials(without) == 2);
  }

  /** Orders the signature of a digest with the ECDSA key. */
  private SessionId signsDigest(int... set) {
    SignedIntent sign = i.signed(i.digestIntent(KEY, ByteString.copyFrom(new byte[32])));
    return i.coordinator.give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, KEY, 2, set)
            .setSignedIntent(sign)
            .build());
  }

  static boolean isEnvelope(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).hasEnvelope();
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      return false;
    }
  }

  /** Whether it is the envelope that the fake core sends in that round. */
  static boolean isOfRound(byte[] body, int round) {
    try {
      return PartyMessage.parseFrom(body)
          .getEnvelope()
          .getEnvelope()
          .toStringUtf8()
          .equals("round " + round);
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Of an envelope. */
  static com.google.protobuf.ByteString session(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getEnvelope().getSessionId();
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  static byte[] withEnvelope(byte[] body, byte[] envelope) {
    try {
      PartyMessage.Builder message = PartyMessage.parseFrom(body).toBuilder();
      message.getEnvelopeBuilder().setEnvelope(com.google.protobuf.ByteString.copyFrom(envelope));
      return message.build().toByteArray();
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }
}
