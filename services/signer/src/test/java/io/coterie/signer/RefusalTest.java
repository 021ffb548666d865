package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.channel.SecureChannel;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.RequestId;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.IntentSignature;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Member;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Everything that this party must not do, each with the reason it gives, and nothing changed. */
class RefusalTest {
  private static final String KEY = "keys/main";

  @TempDir static Path folder;
  static FakeCore core;
  static Installation i;

  @BeforeAll
  static void start() {
    core = new FakeCore();
    i = Installation.with(folder, core).start();
    i.createKey(KEY, 2);
  }

  @AfterAll
  static void stop() {
    i.close();
  }

  /** A way to make an order that alpha must refuse. */
  record Hostile(String name, RefusalReason reason, Function<Installation, ByteString> order) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Hostile> hostileOrders() {
    return Stream.of(
        raw("random bytes", _ -> random(500)),
        raw("an empty order", _ -> ByteString.EMPTY),
        raw(
            "a truncated order",
            i -> {
              ByteString order = good(i).build().toByteString();
              return order.substring(0, order.size() - 7);
            }),
        raw("an oversized order", _ -> random(160 * 1024 + 1)),
        malformed(
            "an unknown field",
            o ->
                o.setUnknownFields(
                    UnknownFieldSet.newBuilder()
                        .addField(99, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
                        .build())),
        malformed("a short nonce", o -> o.setCoordinatorNonce(random(31))),
        malformed("no nonce", Order.Builder::clearCoordinatorNonce),
        malformed("an unknown protocol", o -> o.setProtocolValue(77)),
        malformed("no intent", Order.Builder::clearSignedIntent),
        malformed("no deadline", Order.Builder::clearDeadline),
        malformed("epoch 0", o -> o.setEpoch(0)),
        malformed("a malformed key", o -> o.setKey("main")),
        malformed("an empty set", Order.Builder::clearSigningSet),
        malformed("a party twice", o -> set(o, 1, 1, 2)),
        malformed("a set that descends", o -> set(o, 2, 1)),
        malformed("party 0", o -> set(o, 0, 1)),
        malformed("fewer parties than the threshold", o -> set(o, 1)),
        malformed("threshold 0", o -> o.setThreshold(0)),
        malformed(
            "21 parties", o -> set(o, java.util.stream.IntStream.rangeClosed(1, 21).toArray())),
        mismatch("another key than the intent's", o -> o.setKey("keys/treasury-1")),
        mismatch("another threshold", o -> set(o, 1, 2, 3).setThreshold(3)),
        mismatch("a lower threshold", o -> o.setThreshold(1)),
        mismatch("alpha not in the set", o -> set(o, 2, 3)),
        mismatch(
            "key generation ordered for a signing intent",
            o -> set(o, 1, 2, 3).setProtocol(ProtocolId.PROTOCOL_ID_BLS_KEYGEN)),
        mismatch(
            "a deadline after the intent's expiry",
            o -> o.setDeadline(Installation.in(Duration.ofMinutes(6)))),
        altered(
            "a party that is not in the roster",
            RefusalReason.REFUSAL_REASON_UNKNOWN_PARTY,
            o -> set(o, 1, 9)),
        altered("another epoch", RefusalReason.REFUSAL_REASON_WRONG_EPOCH, o -> o.setEpoch(2)),
        altered(
            "a deadline that has passed",
            RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
            o -> o.setDeadline(Installation.in(Duration.ofSeconds(-5)))),
        altered(
            "an intent with one byte flipped",
            RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE,
            o -> o.getSignedIntentBuilder().setPayload(flip(o.getSignedIntent().getPayload(), 45))),
        altered(
            "an intent signature with one byte flipped",
            RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE,
            o ->
                o.getSignedIntentBuilder()
                    .getSignaturesBuilder(0)
                    .setSig(flip(o.getSignedIntent().getSignatures(0).getSig(), 3))),
        altered(
            "an intent of a stranger",
            RefusalReason.REFUSAL_REASON_UNKNOWN_REQUESTER,
            o -> o.getSignedIntentBuilder().getSignaturesBuilder(0).setKeyid("stranger")),
        altered(
            "two signatures",
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            o -> o.getSignedIntentBuilder().addSignatures(IntentSignature.getDefaultInstance())),
        hostile(
            "an intent under a stolen name",
            RefusalReason.REFUSAL_REASON_BAD_INTENT_SIGNATURE,
            i ->
                order(
                    i,
                    new IntentSigner("wallet", Installation.ed25519().getPrivate())
                        .sign(i.named(i.signingIntent(Installation.requestId(), KEY, "x"))))),
        hostile(
            "an intent for another installation",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            i ->
                order(
                    i,
                    i.sign(
                        i.named(i.signingIntent(Installation.requestId(), KEY, "x")).toBuilder()
                            .setInstallation("staging")
                            .build()))),
        hostile(
            "an intent for another key of the same name",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            i ->
                order(
                    i,
                    i.sign(
                        i.named(i.signingIntent(Installation.requestId(), KEY, "x")).toBuilder()
                            .setKeyFingerprint(ByteString.copyFromUtf8("not its own key."))
                            .build()))),
        hostile(
            "an expired intent",
            RefusalReason.REFUSAL_REASON_INTENT_EXPIRED,
            i ->
                order(
                    i,
                    i.signed(
                        i.signingIntent(Installation.requestId(), KEY, "x")
                            .setNotAfter(Installation.in(Duration.ofSeconds(-10)))))),
        hostile(
            "an intent of a time to come",
            RefusalReason.REFUSAL_REASON_FORBIDDEN,
            i ->
                order(
                    i,
                    i.signed(
                        i.signingIntent(RequestId.at(Instant.now().plusSeconds(60)), KEY, "x")))),
        hostile(
            "an intent for years",
            RefusalReason.REFUSAL_REASON_MALFORMED_ORDER,
            i ->
                order(
                    i,
                    i.signed(
                        i.signingIntent(Installation.requestId(), KEY, "x")
                            .setNotAfter(Installation.in(Duration.ofDays(3650)))))),
        hostile(
            "a message larger than allowed",
            RefusalReason.REFUSAL_REASON_FORBIDDEN,
            i ->
                order(
                    i, i.signed(i.signingIntent(Installation.requestId(), KEY, "x".repeat(1025))))),
        hostile(
            "a forbidden key",
            RefusalReason.REFUSAL_REASON_FORBIDDEN,
            i ->
                order(i, i.signed(i.signingIntent(Installation.requestId(), "keys/other", "x")))
                    .setKey("keys/other")),
        hostile(
            "a key that does not exist",
            RefusalReason.REFUSAL_REASON_UNKNOWN_KEY,
            i ->
                order(
                        i,
                        i.signed(i.signingIntent(Installation.requestId(), "keys/treasury-9", "x")))
                    .setKey("keys/treasury-9")),
        hostile(
            "a new key of an existing name",
            RefusalReason.REFUSAL_REASON_KEY_EXISTS,
            i -> keygen(i, KEY, 2)),
        hostile(
            "a new key of a forbidden name",
            RefusalReason.REFUSAL_REASON_FORBIDDEN,
            i -> keygen(i, "keys/other", 2)),
        hostile(
            "a new key with fewer parties than signed",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            i -> set(keygen(i, "keys/treasury-2", 2), 1, 2)),
        hostile(
            "a new key with another threshold than signed",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            i -> keygen(i, "keys/treasury-2", 2).setThreshold(1)),
        hostile(
            "a new key of epoch 2",
            RefusalReason.REFUSAL_REASON_WRONG_EPOCH,
            i -> keygen(i, "keys/treasury-2", 2).setEpoch(2)),
        hostile(
            "signing ordered for a key intent",
            RefusalReason.REFUSAL_REASON_ORDER_MISMATCH,
            i -> keygen(i, KEY, 2).setProtocol(ProtocolId.PROTOCOL_ID_BLS_SIGN)),
        hostile(
            "a new key with a party nobody knows",
            RefusalReason.REFUSAL_REASON_UNKNOWN_PARTY,
            i ->
                set(
                    i.coordinator.keygenOrder(
                        i.signed(
                            i.keyIntent(Installation.requestId(), "keys/treasury-2", 2)
                                .clearParties()
                                .addAllParties(List.of("alpha", "bravo", "coordinator"))),
                        "keys/treasury-2",
                        2),
                    1,
                    2,
                    3)));
  }

  @ParameterizedTest
  @MethodSource("hostileOrders")
  void refused_with_reason_and_nothing_changed(Hostile hostile) {
    int started = core.started.get();
    long claims = claims();
    ByteString order = hostile.order().apply(i);
    SessionId session = i.coordinator.giveBytes(order, List.of(member("alpha")));
    var report = i.coordinator.awaitFrom("alpha", session).report();
    assertThat(report.getRefused().getReason()).isEqualTo(hostile.reason());
    String detail = report.getRefused().getDetail();
    // The other tests may have used up what one requester gets in a second.
    assertThat(report.getRefused().hasReceipt() || detail.contains("without a receipt"))
        .as("a receipt for a requester that has signed for a signature, and nobody else")
        .isEqualTo(isAskedFor(order, hostile.reason()));
    assertThat(detail).isNotEmpty().doesNotContain("\n");
    assertThat(core.started.get()).isEqualTo(started);
    assertThat(claims()).isEqualTo(claims);
    assertThat(i.party("alpha").store.shares().undecided()).isEmpty();
    if (isSigned(order, hostile.reason())) {
      Installation.until(
          "the refusal is in the audit trail, with its rule",
          () -> refusals(session).anyMatch(rule -> detail.startsWith(rule)));
    } else {
      awaitRecordOfGoodOrder();
      assertThat(refusals(session)).as("nobody is known to have signed for it").isEmpty();
    }
  }

  /** Records are written in their order, so all of before are there then. */
  private static void awaitRecordOfGoodOrder() {
    SessionId later = i.coordinator.give(good(i).build());
    awaitContributed(later);
    String hex = java.util.HexFormat.of().formatHex(later.bytes().toByteArray());
    Installation.until(
        "a later session is in the audit trail",
        () ->
            i.party("alpha").store.audit().read(1, 10_000).stream()
                .anyMatch(r -> hex.equals(r.event().fields().get("session_id"))));
  }

  /** The rules by which alpha's audit trail says that a session was refused. */
  private static Stream<String> refusals(SessionId session) {
    String hex = java.util.HexFormat.of().formatHex(session.bytes().toByteArray());
    return i.party("alpha").store.audit().read(1, 10_000).stream()
        .filter(r -> r.event().outcome().equals("refused"))
        .filter(r -> hex.equals(r.event().fields().get("session_id")))
        .map(r -> r.event().fields().getOrDefault("detail", "none"));
  }

  /** Whether the signature of a requester over the intent of an order was found good. */
  private static boolean isSigned(ByteString order, RefusalReason reason) {
    return switch (reason) {
      case REFUSAL_REASON_MALFORMED_ORDER -> {
        try {
          IntentVerifier.verify(
              Order.parseFrom(order).getSignedIntent(), _ -> Optional.of(i.wallet.getPublic()));
          yield false; // The order itself is malformed, and nobody has looked at its intent.
        } catch (IntentException e) {
          yield e.isSigned();
        } catch (com.google.protobuf.InvalidProtocolBufferException e) {
          yield false;
        }
      }
      case REFUSAL_REASON_BAD_INTENT_SIGNATURE, REFUSAL_REASON_UNKNOWN_REQUESTER -> false;
      default -> !order.isEmpty();
    };
  }

  /** Whether an order has got as far as a signature of the requester over an intent to sign. */
  private static boolean isAskedFor(ByteString order, RefusalReason reason) {
    return switch (reason) {
      case REFUSAL_REASON_MALFORMED_ORDER,
          REFUSAL_REASON_BAD_INTENT_SIGNATURE,
          REFUSAL_REASON_UNKNOWN_REQUESTER ->
          false;
      default -> {
        try {
          String type = Order.parseFrom(order).getSignedIntent().getPayloadType();
          yield type.contains("signing-intent");
        } catch (com.google.protobuf.InvalidProtocolBufferException e) {
          throw new AssertionError(e);
        }
      }
    };
  }

  @Test
  void replayed_order_is_refused() {
    Order order = good(i).build();
    SessionId session = i.coordinator.give(order);
    awaitContributed(session);
    i.coordinator.give(order);
    assertThat(i.coordinator.awaitFrom("alpha", session).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_SESSION_REPLAYED);
  }

  @Test
  void request_id_belongs_to_one_intent() {
    String requestId = Installation.requestId();
    SessionId first =
        i.coordinator.give(order(i, i.signed(i.signingIntent(requestId, KEY, "pay Ann"))).build());
    awaitContributed(first);
    SessionId second =
        i.coordinator.give(order(i, i.signed(i.signingIntent(requestId, KEY, "pay Bob"))).build());
    assertThat(i.coordinator.awaitFrom("alpha", second).report().getRefused().getReason())
        .isEqualTo(RefusalReason.REFUSAL_REASON_REQUEST_ID_REUSED);
  }

  @Test
  void same_intent_in_a_new_session_is_a_retry() {
    SignedIntent intent = i.signed(i.signingIntent(Installation.requestId(), KEY, "pay Ann"));
    awaitContributed(i.coordinator.give(order(i, intent).build()));
    awaitContributed(i.coordinator.give(order(i, intent).build()));
  }

  @Test
  void order_of_a_party_is_ignored_and_counted() {
    int started = core.started.get();
    double before = i.party("alpha").refused();
    Order order = good(i).build();
    SessionId session = SessionId.ofOrder(order.toByteString());
    i.party("bravo")
        .channel()
        .broadcast(
            List.of(member("alpha")),
            PartyMessage.newBuilder().setOrder(order.toByteString()).build().toByteArray(),
            SecureChannel.SendOptions.online(null));
    Installation.until("it is counted", () -> i.party("alpha").refused() > before);
    assertThat(core.started.get()).isEqualTo(started);
    // The session id was not burnt: the coordinator's own order still runs.
    assertThat(i.coordinator.give(order)).isEqualTo(session);
    awaitContributed(session);
    awaitRecordOfGoodOrder();
    assertThat(i.party("alpha").store.audit().read(1, 10_000))
        .noneMatch(r -> "not_a_coordinator".equals(r.event().fields().get("cause")));
  }

  @Test
  void mutated_orders_never_start_anything_that_was_not_signed() {
    Random random = new Random(20261121);
    core.configs.clear();
    double refusedBefore = i.party("alpha").refused();
    long acceptedBefore = audited("accepted");
    for (int n = 0; n < 400; n++) {
      byte[] order = good(i).build().toByteArray();
      order[random.nextInt(order.length)] ^= (byte) (1 << random.nextInt(8));
      i.coordinator.giveBytes(ByteString.copyFrom(order), List.of(member("alpha")));
    }
    Installation.until(
        "all are decided",
        () ->
            audited("accepted") - acceptedBefore + i.party("alpha").refused() - refusedBefore
                >= 400);
    Installation.until(
        "and those that were accepted run",
        () -> core.configs.size() >= audited("accepted") - acceptedBefore);
    // Nonce and deadline are the coordinator's own to choose; all else must be what was signed.
    assertThat(core.configs)
        .isNotEmpty()
        .hasSizeLessThan(400 / 4)
        .allSatisfy(
            c -> {
              assertThat(c.getPayload().toStringUtf8()).isEqualTo("hello");
              assertThat(c.getKeyId()).isEqualTo(KEY);
              assertThat(c.getThreshold()).isEqualTo(2);
              assertThat(c.getEpoch()).isEqualTo(1);
              assertThat(c.getProtocol()).isEqualTo(ProtocolId.PROTOCOL_ID_BLS_SIGN);
            });
    awaitContributed(i.coordinator.give(good(i).build()));
  }

  /** Nobody who reaches a party fills its disk, not even with what is soon forgotten. */
  @Test
  void a_flood_of_orders_that_nobody_signed_leaves_nothing_on_disk() throws Exception {
    int flood = 3_000;
    try (Installation own = Installation.with(folder.resolve("flood"), new FakeCore()).start()) {
      own.createKey(KEY, 2);
      String ecdsa = "keys/treasury-2";
      own.createEcdsaKey(ecdsa, 2);
      Path alpha = folder.resolve("flood/alpha/party.db");
      String size = "SELECT sum(bytes) FROM kept_bytes";
      String last = "SELECT max(sequence) FROM audit_record";
      long bytes = count(alpha, size);
      long sequence = count(alpha, last);
      double refused = own.party("alpha").refused();
      Member stranger = own.network.roster().byName("bravo").orElseThrow();
      List<Member> to = List.of(own.network.roster().byName("alpha").orElseThrow());
      for (int n = 0; n < flood; n++) {
        Order.Builder order = good(own);
        switch (n % 5) {
          case 0 -> order.getSignedIntentBuilder().getSignaturesBuilder(0).setKeyid("stranger");
          case 1 -> order.getSignedIntentBuilder().getSignaturesBuilder(0).setSig(random(64));
          case 2 -> order.clearDeadline();
          case 4 ->
              order =
                  own.coordinator
                      .order(ProtocolId.PROTOCOL_ID_ECDSA_PRESIGN, ecdsa, 2, 1, 2)
                      .setPresignatureCount(1)
                      .setCoordinatorIncarnation(Installation.INCARNATION)
                      .setDeadline(Installation.in(Duration.ofSeconds(-1)));
          default ->
              own.party(stranger.name())
                  .channel()
                  .broadcast(
                      to,
                      PartyMessage.newBuilder()
                          .setOrder(order.build().toByteString())
                          .build()
                          .toByteArray(),
                      SecureChannel.SendOptions.online(null));
        }
        if (n % 5 != 3) {
          own.coordinator.giveBytes(order.build().toByteString(), to);
        }
      }
      Installation.until(
          "all are refused, and counted", () -> own.party("alpha").refused() >= refused + flood);
      // The writer does what it was given in order, so what the flood left would be there now.
      own.createKey("keys/treasury-1", 2);
      assertThat(count(alpha, "SELECT count(*) FROM audit_record WHERE outcome = 'refused'"))
          .isZero();
      assertThat(count(alpha, last) - sequence).as("records of the second key").isLessThan(20);
      assertThat(count(alpha, size) - bytes).as("bytes of the second key").isLessThan(20_000);
    }
  }

  private static long audited(String outcome) {
    return count("SELECT count(*) FROM audit_record WHERE outcome = '" + outcome + "'");
  }

  // ---- making orders ---------------------------------------------------------------------------

  private static Hostile raw(String name, Function<Installation, ByteString> order) {
    return new Hostile(name, RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, order);
  }

  private static Hostile hostile(
      String name, RefusalReason reason, Function<Installation, Order.Builder> order) {
    return new Hostile(name, reason, i -> order.apply(i).build().toByteString());
  }

  private interface Change {
    void apply(Order.Builder order);
  }

  private static Hostile altered(String name, RefusalReason reason, Change change) {
    return hostile(
        name,
        reason,
        i -> {
          Order.Builder order = good(i);
          change.apply(order);
          return order;
        });
  }

  private static Hostile malformed(String name, Change change) {
    return altered(name, RefusalReason.REFUSAL_REASON_MALFORMED_ORDER, change);
  }

  private static Hostile mismatch(String name, Change change) {
    return altered(name, RefusalReason.REFUSAL_REASON_ORDER_MISMATCH, change);
  }

  private static Order.Builder good(Installation i) {
    return order(i, i.signed(i.signingIntent(Installation.requestId(), KEY, "hello")));
  }

  private static Order.Builder order(Installation i, SignedIntent intent) {
    return i.coordinator.signOrder(intent, KEY, 2, 1, 2);
  }

  private static Order.Builder keygen(Installation i, String key, int threshold) {
    return i.coordinator.keygenOrder(
        i.signed(i.keyIntent(Installation.requestId(), key, threshold)), key, threshold, 1, 2, 3);
  }

  private static Order.Builder set(Order.Builder order, int... parties) {
    order.clearSigningSet();
    for (int party : parties) {
      order.addSigningSet(party);
    }
    return order;
  }

  private static ByteString random(int size) {
    byte[] bytes = new byte[size];
    new Random(size).nextBytes(bytes);
    return ByteString.copyFrom(bytes);
  }

  private static ByteString flip(ByteString bytes, int at) {
    byte[] flipped = bytes.toByteArray();
    flipped[at] ^= 1;
    return ByteString.copyFrom(flipped);
  }

  private static Member member(String name) {
    return i.network.roster().byName(name).orElseThrow();
  }

  private static void awaitContributed(SessionId session) {
    String hex = java.util.HexFormat.of().formatHex(session.bytes().toByteArray());
    Installation.until(
        session + " is done at alpha",
        () ->
            i.party("alpha").store.audit().read(1, 10_000).stream()
                .anyMatch(
                    r ->
                        r.event().outcome().equals("contributed")
                            && hex.equals(r.event().fields().get("session_id"))));
  }

  private static long claims() {
    return count(
        "SELECT (SELECT count(*) FROM claimed_session) + (SELECT count(*) FROM claimed_request)");
  }

  private static long count(String sql) {
    return count(folder.resolve("alpha/party.db"), sql);
  }

  private static long count(Path file, String sql) {
    try (var connection = DriverManager.getConnection("jdbc:sqlite:" + file);
        var row = connection.createStatement().executeQuery(sql)) {
      return row.getLong(1);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }
}
