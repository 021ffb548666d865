package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Declined;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.proto.party.v1.SessionCancel;
import io.coterie.proto.party.v1.SessionReport;
import io.coterie.signer.share.KeyShare;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiPredicate;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A key goes to other parties, with parties killed at each step: at any time there is one epoch in
 * which it signs, and in the end those who hold a share, and those who hold none, agree on it.
 */
class ReshareTest {
  private static final String KEY = "keys/main";
  private static final ByteString DIGEST = ByteString.copyFrom(new byte[32]);

  /** Epoch 1: alpha, bravo, charlie. */
  private static final List<Integer> FIRST = List.of(1, 2, 3);

  @TempDir Path folder;
  private Installation i;

  @BeforeEach
  void start() {
    i = Installation.with(folder, new FakeCore());
    i.limits = Installation.quick();
    i.start();
    i.createEcdsaKey(KEY, 2);
    i.join("delta");
    i.join("echo");
  }

  @AfterEach
  void stop() {
    i.close();
  }

  private ReshareIntent.Builder intent(int epoch, int threshold, List<Integer> receivers) {
    return ReshareIntent.newBuilder()
        .setRequestId(Installation.requestId())
        .setKey(KEY)
        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
        .setEpoch(epoch)
        .setThreshold(threshold)
        .addAllParties(receivers.stream().map(id -> Installation.NAMES.get(id - 1)).toList())
        .setPublicKey(FakeCore.ECDSA_KEY)
        .setNotAfter(Installation.in(Duration.ofMinutes(5)));
  }

  private KeyPublic current(int party) {
    return share(party).keyPublic();
  }

  private KeyShare share(int party) {
    return i.party(Installation.NAMES.get(party - 1)).store.shares().find(KEY).orElseThrow();
  }

  private Order.Builder order(
      SignedIntent intent, int threshold, List<Integer> dealers, List<Integer> receivers) {
    KeyPublic current = current(dealers.getFirst());
    Set<Integer> all = new TreeSet<>(dealers);
    all.addAll(receivers);
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ECDSA_RESHARE, KEY, threshold)
        .addAllSigningSet(all)
        .addAllDealers(dealers)
        .setKeyPublic(current)
        .setEpoch(current.getEpoch())
        .setSignedIntent(intent);
  }

  private SessionId reshare(int threshold, List<Integer> dealers, List<Integer> receivers) {
    int epoch = current(dealers.getFirst()).getEpoch();
    return i.coordinator.give(
        order(i.signed(intent(epoch, threshold, receivers)), threshold, dealers, receivers)
            .build());
  }

  /** Whether those parties hold an active share of that epoch, or know that they have none. */
  private boolean areAt(int epoch, List<Integer> holders, List<Integer> left) {
    return holders.stream().allMatch(p -> isAt(p, epoch) && !share(p).left())
        && left.stream().allMatch(p -> isAt(p, epoch) && share(p).left());
  }

  private boolean isAt(int party, int epoch) {
    var store = i.party(Installation.NAMES.get(party - 1)).store;
    return store.shares().pending(KEY).isEmpty()
        && store.shares().find(KEY).filter(s -> s.epoch() == epoch).isPresent();
  }

  private void awaitAt(int epoch, List<Integer> holders, List<Integer> left) {
    Installation.until("epoch " + epoch, () -> areAt(epoch, holders, left));
  }

  private SessionId sign(int epoch, int threshold, int... set) {
    return i.coordinator.give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, KEY, threshold, set)
            .setEpoch(epoch)
            .setSignedIntent(
                i.sign(
                    i.named(i.digestIntent(KEY, DIGEST)).toBuilder()
                        .setReshareEpoch(epoch == 1 ? 0 : epoch)
                        .build()))
            .build());
  }

  private void signs(int epoch, int threshold, int... set) {
    SessionId session = sign(epoch, threshold, set);
    Installation.until("it is signed", () -> i.coordinator.partials(session) == set.length);
  }

  private RefusalReason refusal(String party, SessionId session) {
    return i.coordinator.awaitFrom(party, session).report().getRefused().getReason();
  }

  private static SessionReport report(byte[] body) {
    try {
      return PartyMessage.parseFrom(body).getReport();
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
  }

  private void loseReports(BiPredicate<Member, Member> from) {
    i.network.tap(
        (sender, to, body) ->
            to.role() == Member.Role.PARTY && from.test(sender, to) && report(body).hasCompleted()
                ? null
                : body);
  }

  private void heal() {
    i.network.tap((_, _, body) -> body);
  }

  private void refresh(int epoch, int... parties) {
    i.coordinator.give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_REFRESH, KEY, 2, parties)
            .setEpoch(epoch)
            .setSignedIntent(
                i.signed(
                    RefreshIntent.newBuilder()
                        .setRequestId(Installation.requestId())
                        .setKey(KEY)
                        .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
                        .setEpoch(epoch)
                        .setNotAfter(Installation.in(Duration.ofMinutes(5)))))
            .build());
    awaitAt(epoch + 1, Arrays.stream(parties).boxed().toList(), List.of());
  }

  private SessionId sign(SigningIntent.Builder intent, int epoch, int... set) {
    return i.coordinator.give(
        i.coordinator
            .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, KEY, 2, set)
            .setEpoch(epoch)
            .setSignedIntent(
                i.sign(
                    i.named(intent.clone()).toBuilder()
                        .setReshareEpoch(intent.getReshareEpoch())
                        .build()))
            .build());
  }

  @Test
  void an_intent_is_for_the_parties_between_two_reshares_whatever_is_refreshed() {
    SigningIntent.Builder first = i.digestIntent(KEY, DIGEST);
    refresh(1, 1, 2, 3);
    SessionId session = sign(first, 2, 1, 2);
    Installation.until("a refresh ends no request", () -> i.coordinator.partials(session) == 2);
    reshare(2, FIRST, List.of(1, 2, 4));
    awaitAt(3, List.of(1, 2, 4), List.of(3));
    SessionId again = sign(i.digestIntent(KEY, DIGEST), 3, 1, 4);
    for (String party : List.of("alpha", "delta")) {
      assertThat(refusal(party, again)).isEqualTo(RefusalReason.REFUSAL_REASON_RESHARED);
    }
    SessionId other = sign(i.digestIntent(KEY, DIGEST).setReshareEpoch(2), 3, 2, 4);
    assertThat(refusal("delta", other)).isEqualTo(RefusalReason.REFUSAL_REASON_RESHARED);
    refresh(3, 1, 2, 4);
    SessionId now = sign(i.digestIntent(KEY, DIGEST).setReshareEpoch(3), 4, 2, 4);
    Installation.until("it is signed", () -> i.coordinator.partials(now) == 2);
    assertThat(share(4).reshareEpoch()).isEqualTo(3);
  }

  @Test
  void to_more_parties_and_on_to_others_and_back() {
    reshare(3, FIRST, List.of(1, 2, 3, 4, 5));
    awaitAt(2, List.of(1, 2, 3, 4, 5), List.of());
    signs(2, 3, 1, 4, 5);
    reshare(2, List.of(1, 2, 3, 4, 5), List.of(1, 4, 5));
    awaitAt(3, List.of(1, 4, 5), List.of(2, 3));
    signs(3, 2, 4, 5);
    assertThat(share(2).sealed()).isEmpty();
    assertThat(refusal("bravo", sign(2, 3, 1, 2, 3))).isEqualTo(REFUSED_EPOCH);
    assertThat(refusal("alpha", sign(2, 3, 1, 2, 3))).isEqualTo(REFUSED_EPOCH);
    assertThat(refusal("bravo", sign(3, 2, 1, 2)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_UNKNOWN_KEY);
    // A party that has left can come back.
    reshare(2, List.of(4, 5), List.of(2, 3, 4));
    awaitAt(4, List.of(2, 3, 4), List.of(5));
    signs(4, 2, 2, 3);
    assertThat(i.parties)
        .allSatisfy(
            p ->
                assertThat(p.store.audit().verify())
                    .isInstanceOf(AuditTrail.Verification.Intact.class));
  }

  private static final RefusalReason REFUSED_EPOCH = RefusalReason.REFUSAL_REASON_WRONG_EPOCH;

  @Test
  void all_killed_between_stored_and_used() {
    loseReports((_, _) -> true);
    reshare(2, FIRST, List.of(3, 4, 5));
    Installation.until(
        "all have stored",
        () -> i.parties.stream().allMatch(p -> p.store.shares().pending(KEY).isPresent()));
    signs(1, 2, 1, 2);
    Installation.NAMES.forEach(i::restart);
    signs(1, 2, 1, 2);
    heal();
    awaitAt(2, List.of(3, 4, 5), List.of(1, 2));
    signs(2, 2, 3, 4);
  }

  /** Those who leave hear nothing, are killed, and still are the last to keep an old share. */
  @Test
  void who_leaves_is_killed_before_it_knows() {
    loseReports((_, to) -> to.partyId() <= 2);
    reshare(2, FIRST, List.of(3, 4, 5));
    Installation.until("the receivers are ahead", () -> areAt(2, List.of(3, 4, 5), List.of()));
    assertThat(share(1).epoch()).isEqualTo(1);
    i.restart("alpha");
    i.restart("bravo");
    heal();
    awaitAt(2, List.of(3, 4, 5), List.of(1, 2));
  }

  /** echo has stored its share, delta never will: everybody goes back to where they were. */
  @Test
  void share_that_one_receiver_never_got_is_abandoned_by_all() {
    i.network.tap(
        (_, to, body) ->
            (to.name().equals("delta") && CrashTest.isOfRound(body, 6))
                    || (to.role() == Member.Role.PARTY && report(body).hasCompleted())
                ? null
                : body);
    SignedIntent intent = i.signed(intent(1, 2, List.of(3, 4, 5)));
    SessionId session =
        i.coordinator.give(
            order(intent, 2, FIRST, List.of(3, 4, 5))
                .setDeadline(Installation.in(Duration.ofSeconds(20)))
                .build());
    assertThat(i.coordinator.awaitFrom("echo", session).report().hasCompleted()).isTrue();
    assertThat(i.coordinator.awaitFrom("alpha", session).report().hasCompleted()).isTrue();
    i.time.pass(Duration.ofSeconds(20));
    assertThat(i.coordinator.awaitFrom("delta", session).report().hasTimedOut()).isTrue();
    i.restart("delta");
    signs(1, 2, 1, 3);
    heal();
    Installation.until(
        "nobody waits for it",
        () -> i.parties.stream().allMatch(p -> p.store.shares().pending(KEY).isEmpty()));
    assertThat(i.party("echo").store.shares().find(KEY)).isEmpty();
    assertThat(share(1).left()).isFalse();
    signs(1, 2, 1, 2);
    // The same request again.
    i.coordinator.give(order(intent, 2, FIRST, List.of(3, 4, 5)).build());
    awaitAt(2, List.of(3, 4, 5), List.of(1, 2));
  }

  @Test
  void cancelled_while_it_runs_leaves_everything_as_it_was() {
    i.network.tap(
        (from, _, body) -> from.name().equals("echo") && CrashTest.isEnvelope(body) ? null : body);
    SessionId session = reshare(2, FIRST, List.of(3, 4, 5));
    Installation.until("delta runs", () -> i.party("delta").live() == 1);
    i.coordinator.tell(
        PartyMessage.newBuilder()
            .setCancel(SessionCancel.newBuilder().setSessionId(session.bytes()))
            .build(),
        i.parties.stream().map(p -> i.network.roster().byName(p.name).orElseThrow()).toList());
    Installation.until("nobody runs", () -> i.parties.stream().allMatch(p -> p.live() == 0));
    assertThat(i.parties).allSatisfy(p -> assertThat(p.store.shares().pending(KEY)).isEmpty());
    heal();
    signs(1, 2, 1, 2);
  }

  /** Share repair: a party that has lost everything receives, and deals with nothing. */
  @Test
  void lost_share_is_made_anew() {
    i.lose("charlie");
    assertThat(refusal("charlie", sign(1, 2, 1, 3)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_UNKNOWN_KEY);
    assertThat(refusal("charlie", reshare(2, FIRST, FIRST)))
        .isEqualTo(RefusalReason.REFUSAL_REASON_UNKNOWN_KEY);
    // The newer order takes the place of the one that alpha and bravo still follow.
    reshare(2, List.of(1, 2), FIRST);
    awaitAt(2, FIRST, List.of());
    signs(2, 2, 2, 3);
  }

  /**
   * delta and echo hold nothing but a share that is not used yet. When those who leave have
   * destroyed theirs, it is all there is of the key.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void creation_under_the_name_takes_the_place_of_no_undecided_share(boolean abandoned) {
    loseReports((_, to) -> to.partyId() >= 4);
    SessionId session = reshare(2, FIRST, List.of(3, 4, 5));
    Installation.until("the others switch", () -> areAt(2, List.of(3), List.of(1, 2)));
    assertThat(share(4).state()).isEqualTo(KeyShare.State.PROVISIONAL);
    if (abandoned) {
      // charlie lies: it has told those who leave that it has its share.
      Member charlie = i.network.roster().byPartyId(3).orElseThrow();
      for (String party : List.of("delta", "echo")) {
        i.party(party).driver.onReport(charlie, session, declined(session));
        Installation.until("abandoned", () -> i.party(party).store.shares().pending(KEY).isEmpty());
      }
    }
    SessionId creation =
        i.coordinator.give(
            i.coordinator
                .keygenOrder(
                    i.signed(
                        i.keyIntent(Installation.requestId(), KEY, 2)
                            .clearParties()
                            .addAllParties(List.of("delta", "echo"))),
                    KEY,
                    2,
                    4,
                    5)
                .build());
    for (String party : List.of("delta", "echo")) {
      assertThat(refusal(party, creation)).isEqualTo(RefusalReason.REFUSAL_REASON_KEY_EXISTS);
    }
    heal();
    awaitAt(2, List.of(3, 4, 5), List.of(1, 2));
    signs(2, 2, 4, 5);
  }

  private static SessionReport declined(SessionId session) {
    return SessionReport.newBuilder()
        .setSessionId(session.bytes())
        .setDeclined(Declined.getDefaultInstance())
        .build();
  }

  /** Old shares that nobody destroys must be too few to sign. */
  @Test
  void order_that_leaves_as_many_behind_as_can_sign_is_refused() {
    reshare(2, FIRST, List.of(1, 2, 3, 4));
    awaitAt(2, List.of(1, 2, 3, 4), List.of());
    SessionId tooMany = reshare(2, List.of(1, 2), List.of(1, 2, 5));
    for (String dealer : List.of("alpha", "bravo")) {
      assertThat(refusal(dealer, tooMany)).isEqualTo(RefusalReason.REFUSAL_REASON_ORDER_MISMATCH);
    }
    reshare(2, List.of(1, 2, 3), List.of(1, 2, 5));
    awaitAt(3, List.of(1, 2, 5), List.of(3));
    signs(3, 2, 2, 5);
    assertThat(share(4).epoch()).as("it was not there").isEqualTo(2);
    for (int other : List.of(1, 2, 3)) {
      assertThat(refusal(Installation.NAMES.get(other - 1), sign(2, 2, other, 4)))
          .isEqualTo(REFUSED_EPOCH);
    }
  }

  /** However long a party takes to judge it. */
  @Test
  void an_order_does_not_take_the_place_of_one_that_came_later() {
    List<Integer> receivers = List.of(1, 2, 5);
    SignedIntent older = i.signed(intent(1, 2, receivers));
    SignedIntent newer = i.signed(intent(1, 2, receivers));
    CountDownLatch echo = new CountDownLatch(1);
    CountDownLatch charlie = new CountDownLatch(1);
    i.judging =
        (party, intent) -> {
          if (party.equals("echo") && intent.equals(older)) {
            pass(echo);
          } else if (party.equals("charlie") && intent.equals(newer)) {
            pass(charlie);
          }
        };
    Set<ByteString> run = ConcurrentHashMap.newKeySet();
    i.network.tap(
        (from, _, body) -> {
          if (from.name().equals("echo") && CrashTest.isEnvelope(body)) {
            run.add(CrashTest.session(body));
          }
          return body;
        });
    SessionId first = i.coordinator.give(order(older, 2, FIRST, receivers).build());
    SessionId second = i.coordinator.give(order(newer, 2, FIRST, receivers).build());
    Installation.until("echo runs the newer", () -> run.contains(second.bytes()));
    echo.countDown();
    assertThat(refusal("echo", first)).isEqualTo(RefusalReason.REFUSAL_REASON_NOT_READY);
    charlie.countDown();
    awaitAt(2, receivers, List.of(3));
    assertThat(run).containsExactly(second.bytes());
    signs(2, 2, 2, 5);
  }

  private static void pass(CountDownLatch latch) {
    try {
      assertThat(latch.await(Installation.PATIENCE.toMillis(), TimeUnit.MILLISECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private RefusalReason answer(String party, UnaryOperator<Order.Builder> change) {
    List<Integer> receivers = List.of(3, 4, 5);
    SignedIntent intent = i.signed(intent(1, 2, receivers));
    Order order = change.apply(order(intent, 2, FIRST, receivers)).build();
    return refusal(
        party,
        i.coordinator.giveBytes(
            order.toByteString(), List.of(i.network.roster().byName(party).orElseThrow())));
  }

  @Test
  void order_that_is_not_what_the_requester_has_signed_is_refused() {
    KeyPublic current = current(1);
    RefusalReason mismatch = RefusalReason.REFUSAL_REASON_ORDER_MISMATCH;
    RefusalReason malformed = RefusalReason.REFUSAL_REASON_MALFORMED_ORDER;
    for (String party : List.of("alpha", "echo")) {
      // Another key for those who join; another threshold, epoch, or party.
      KeyPublic other = current.toBuilder().setPublicKey(ByteString.copyFrom(new byte[33])).build();
      assertThat(answer(party, o -> o.setKeyPublic(other))).isEqualTo(mismatch);
      assertThat(answer(party, o -> o.setThreshold(3))).isEqualTo(mismatch);
      assertThat(answer(party, o -> o.setEpoch(2))).isEqualTo(mismatch);
      assertThat(answer(party, o -> o.setKeyPublic(current.toBuilder().setEpoch(7))))
          .isEqualTo(mismatch);
      assertThat(answer(party, o -> o.clearSigningSet().addAllSigningSet(List.of(1, 2, 3, 5))))
          .isEqualTo(mismatch);
      assertThat(answer(party, o -> o.clearDealers())).isEqualTo(malformed);
      assertThat(answer(party, o -> o.clearKeyPublic())).isEqualTo(malformed);
      assertThat(answer(party, o -> o.clearDealers().addAllDealers(List.of(2, 1, 3))))
          .isEqualTo(malformed);
    }
    // A dealer knows what the key's public data are.
    assertThat(
            answer(
                "alpha", o -> o.setKeyPublic(current.toBuilder().setChainCode(ByteString.EMPTY))))
        .isEqualTo(mismatch);
    // And nobody else's order is a reshare.
    SessionId signing =
        i.coordinator.give(
            i.coordinator
                .order(ProtocolId.PROTOCOL_ID_ECDSA_SIGN, KEY, 2, 1, 2)
                .setSignedIntent(i.signed(i.digestIntent(KEY, DIGEST)))
                .addDealers(1)
                .build());
    assertThat(refusal("alpha", signing)).isEqualTo(malformed);
    assertThat(i.parties).allSatisfy(p -> assertThat(p.store.shares().pending(KEY)).isEmpty());
    signs(1, 2, 1, 2);
  }
}
