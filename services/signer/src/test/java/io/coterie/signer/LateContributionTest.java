package io.coterie.signer;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.signer.claim.ClaimLedger;
import io.coterie.signer.storage.PartyStore;
import io.coterie.trust.Member;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Three signers with the native core, and a coordinator that wants two signatures of one request
 * from two signing sets: a party of the first is so late that the others have gone on without it.
 */
class LateContributionTest {
  private static final String KEY = "keys/main";
  private static final ByteString DIGEST = ByteString.fromHex("5a".repeat(32));

  /** Orders have twenty seconds. */
  private static final Duration PAST_DEADLINE = Duration.ofSeconds(21);

  @TempDir Path folder;
  private NativeParties cores;
  private Installation i;

  /** Alpha hears that its claims are on disk when this is complete. */
  private volatile CompletableFuture<Void> disk = CompletableFuture.completedFuture(null);

  /** Messages that do not arrive. */
  private volatile Predicate<PartyMessage> lostToAlpha = _ -> false;

  /** The parties whose contribution to a session has left them, to whomever. */
  private final Map<ByteString, Set<Integer>> contributed = new ConcurrentHashMap<>();

  @BeforeEach
  void start() {
    cores = new NativeParties();
    i = new Installation(folder, cores.evidence(), cores::open);
    i.limits = Installation.quick();
    i.claims = this::claims;
    i.start();
    i.createKey(KEY, Scheme.SCHEME_ED25519, ProtocolId.PROTOCOL_ID_ED25519_KEYGEN, 2);
    i.network.tap(this::pass);
  }

  @AfterEach
  void stop() {
    i.close();
    cores.close();
  }

  private ClaimLedger claims(String party, ClaimLedger real) {
    if (!party.equals("alpha")) {
      return real;
    }
    return (ClaimLedger)
        Proxy.newProxyInstance(
            ClaimLedger.class.getClassLoader(),
            new Class<?>[] {ClaimLedger.class},
            (_, method, arguments) -> {
              Object result = method.invoke(real, arguments);
              return method.getName().equals("claimOnce")
                  ? ((CompletionStage<?>) result).thenCombine(disk, (outcome, _) -> outcome)
                  : result;
            });
  }

  private byte[] pass(Member from, Member to, byte[] body) {
    PartyMessage message;
    try {
      message = PartyMessage.parseFrom(body);
    } catch (InvalidProtocolBufferException e) {
      throw new IllegalStateException(e);
    }
    if (message.hasEnvelope()) {
      contributed
          .computeIfAbsent(message.getEnvelope().getSessionId(), _ -> ConcurrentHashMap.newKeySet())
          .add(from.partyId());
    }
    return to.name().equals("alpha") && lostToAlpha.test(message) ? null : body;
  }

  private KeyPublic keyPublic() {
    return i.party("bravo").store.shares().find(KEY).orElseThrow().keyPublic();
  }

  private ByteString presign(int... set) {
    SessionId session =
        i.coordinator.give(
            i.coordinator
                .order(ProtocolId.PROTOCOL_ID_ED25519_PRESIGN, KEY, 2, set)
                .setPresignatureCount(1)
                .setCoordinatorIncarnation(Installation.INCARNATION)
                .build());
    ByteString id = ByteString.EMPTY;
    for (int party : set) {
      var report = i.coordinator.awaitFrom(NativeParties.NAMES.get(party - 1), session).report();
      assertThat(report.hasCompleted()).as(report.toString()).isTrue();
      id = report.getCompleted().getPresignatureIds(0);
    }
    return id;
  }

  private SignedIntent intent() {
    return i.signed(
        SigningIntent.newBuilder()
            .setRequestId(Installation.requestId())
            .setKey(KEY)
            .setScheme(Scheme.SCHEME_ED25519)
            .setDigest(DIGEST)
            .setNotAfter(Installation.in(Duration.ofMinutes(5))));
  }

  /** An order whose only message of each party is its contribution. */
  private Order.Builder order(SignedIntent intent, ByteString presignature, int... set) {
    return i.coordinator
        .order(ProtocolId.PROTOCOL_ID_ED25519_SIGN_PRESIGNED, KEY, 2, set)
        .setPresignatureId(presignature)
        .setSignedIntent(intent);
  }

  private void awaitContribution(SessionId session, int party) {
    Installation.until(
        "party " + party + " contributes to " + session,
        () -> contributed.getOrDefault(session.bytes(), Set.of()).contains(party));
  }

  /** Whether there is a signature for whoever has all that has left the parties of a session. */
  private boolean isSigned(Order order) {
    return contributed
        .getOrDefault(SessionId.ofOrder(order.toByteString()).bytes(), Set.of())
        .containsAll(order.getSigningSetList());
  }

  /** The parties of the second set sign, if bravo may contribute once more. */
  private Order signsElsewhere(SignedIntent intent, ByteString presignature) {
    Order order =
        order(intent, presignature, 2, 3)
            .setDeadline(Installation.in(PAST_DEADLINE.plusSeconds(20)))
            .build();
    SessionId session = i.coordinator.give(order);
    Installation.until(
        "both contribute, or bravo refuses",
        () -> isSigned(order) || i.coordinator.hasReport("bravo", session));
    return order;
  }

  /** Alpha is asked by everybody for what it owes, before and after a kill. */
  private void ask(Order late) {
    Installation.Coordinator other = i.new Coordinator("coordinator-2");
    for (boolean killed : new boolean[] {false, true}) {
      if (killed) {
        i.restart("alpha");
      }
      for (Installation.Coordinator coordinator : List.of(i.coordinator, other)) {
        coordinator.drainReports();
        coordinator.awaitFrom("alpha", coordinator.give(late));
      }
    }
  }

  private void requireOneSignature(Order late, Order elsewhere) {
    assertThat(List.of(late, elsewhere)).filteredOn(this::isSigned).hasSize(1);
    Order signed = isSigned(late) ? late : elsewhere;
    int[] set = signed.getSigningSetList().stream().mapToInt(Integer::intValue).toArray();
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(signed.getProtocol())
            .setThreshold(2)
            .setKeyId(KEY)
            .setEpoch(1)
            .setPayload(DIGEST)
            .setPresignatureId(signed.getPresignatureId())
            .setKeyPublic(keyPublic());
    SessionId session = SessionId.ofOrder(signed.toByteString());
    assertThat(NativeParties.combine(i, session, config, set).getSignature().size()).isEqualTo(64);
  }

  /**
   * The claim is on alpha's disk after the deadline: alpha hears of it when others have gone on, or
   * before its own timers have ended the session.
   */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void a_claim_that_is_on_disk_too_late_gives_no_second_signature(boolean othersFirst) {
    ByteString second = presign(2, 3);
    SignedIntent intent = intent();
    Order late = order(intent, presign(1, 2), 1, 2).build();
    CompletableFuture<Void> slow = new CompletableFuture<>();
    disk = slow;
    SessionId session = i.coordinator.give(late);
    awaitContribution(session, 2);
    Installation.until(
        "alpha's claim is on disk",
        () ->
            i.party("alpha").store.claims().bindings(10).stream()
                .anyMatch(binding -> binding.session().equals(session)));
    i.clockOffset = PAST_DEADLINE;
    if (!othersFirst) {
      slow.complete(null);
      Installation.until("alpha has ended it", () -> i.party("alpha").live() == 0);
    }
    i.time.pass(PAST_DEADLINE);
    Installation.until("bravo waits no more", () -> i.party("bravo").live() == 0);
    Order elsewhere = signsElsewhere(intent, second);
    slow.complete(null);
    Installation.until("alpha has ended it", () -> i.party("alpha").live() == 0);
    ask(late);
    assertThat(isSigned(elsewhere)).as("bravo did not wait for ever").isTrue();
    requireOneSignature(late, elsewhere);
  }

  /** A copy of alpha's store as it is now, with what it has not heard of yet. */
  private Path snapshot() throws Exception {
    Path copy = Files.createDirectory(folder.resolve("snapshot"));
    try (Connection file =
            DriverManager.getConnection(
                "jdbc:sqlite:" + folder.resolve("alpha").resolve(PartyStore.FILE));
        Statement statement = file.createStatement()) {
      statement.execute("VACUUM INTO '" + copy.resolve(PartyStore.FILE) + "'");
    }
    return copy;
  }

  private List<ClaimLedger.Binding> bindings() {
    return i.party("alpha").store.claims().bindings(10);
  }

  /** Alpha says that it gives nothing, and then its store is of before it said so. */
  @Test
  void a_store_that_is_put_back_to_before_it_withheld_gives_no_second_signature() throws Exception {
    ByteString second = presign(2, 3);
    SignedIntent intent = intent();
    Order late = order(intent, presign(1, 2), 1, 2).build();
    CompletableFuture<Void> slow = new CompletableFuture<>();
    disk = slow;
    SessionId session = i.coordinator.give(late);
    awaitContribution(session, 2);
    Installation.until("alpha's claim is on disk", () -> !bindings().isEmpty());
    Path copy = snapshot();
    i.clockOffset = PAST_DEADLINE;
    i.time.pass(PAST_DEADLINE);
    slow.complete(null);
    Installation.until("it withholds", () -> bindings().getFirst().envelope().isEmpty());
    Installation.until("bravo waits no more", () -> i.party("bravo").live() == 0);
    Order elsewhere = signsElsewhere(intent, second);
    long claims = i.party("alpha").store.claims().position().claims();
    Installation.until(
        "charlie knows how far alpha has come",
        () ->
            i.party("charlie").store.shownClaims().shown().stream()
                .anyMatch(shown -> shown.party() == 1 && shown.position().claims() == claims));
    i.putBack("alpha", copy);
    ask(late);
    assertThat(isSigned(elsewhere)).isTrue();
    requireOneSignature(late, elsewhere);
  }

  /** Alpha has just started, and asks the others what it did for the request. */
  @Test
  void an_order_that_waits_for_the_start_of_a_party_gives_no_second_signature() {
    ByteString second = presign(2, 3);
    SignedIntent intent = intent();
    lostToAlpha = PartyMessage::hasClaimMemory;
    i.restart("alpha");
    Order late = order(intent, presign(1, 2), 1, 2).build();
    SessionId session = i.coordinator.give(late);
    awaitContribution(session, 2);
    i.clockOffset = PAST_DEADLINE;
    i.time.pass("bravo", PAST_DEADLINE);
    Installation.until("bravo waits no more", () -> i.party("bravo").live() == 0);
    Order elsewhere = signsElsewhere(intent, second);
    lostToAlpha = _ -> false;
    // Its start ends some seconds after it began, whoever has answered. Had that been before the
    // clock was ahead, it would have contributed, and bravo not to the other session.
    i.coordinator.awaitFrom("alpha", session);
    ask(late);
    requireOneSignature(late, elsewhere);
  }
}
