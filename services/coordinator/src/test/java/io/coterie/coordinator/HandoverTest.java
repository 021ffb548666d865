package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.eventually;
import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.keyIntent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.refreshIntent;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.coordinator.ScriptedParties.Behaviour;
import io.coterie.coordinator.custody.key.KeyRenewals;
import io.coterie.coordinator.storage.JdbcAuditStore;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.audit.AuditTrail;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.CancelKeyOperationRequest;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyServiceGrpc;
import io.coterie.proto.custody.v1.RefreshIntent;
import io.coterie.proto.custody.v1.RefreshKeyRequest;
import io.coterie.proto.custody.v1.ReshareIntent;
import io.coterie.proto.custody.v1.ReshareKeyRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.custody.v1.WatchSigningRequest;
import io.coterie.proto.party.v1.Order;
import io.coterie.proto.party.v1.RefusalReason;
import io.grpc.ManagedChannel;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two coordinators with one database: whichever is asked, and whichever ends. */
class HandoverTest {
  private static final List<String> ALL = List.of("p1", "p2", "p3");

  @TempDir Path folder;
  private TestInstallation one;
  private TestInstallation two;
  private ManagedChannel atOne;
  private ManagedChannel atTwo;

  @BeforeEach
  void start() {
    one =
        new TestInstallation(
                folder,
                3,
                "--coterie.coordinator.handover.gone-after=4s",
                "--coterie.coordinator.handover.drain=300ms",
                "--coterie.coordinator.keygen.min=300ms",
                "--coterie.coordinator.keygen.initial=1s",
                "--coterie.coordinator.limits.clock-skew=200ms")
            .start();
    two = one.another().start();
    atOne = one.backend();
    atTwo = two.backend();
  }

  @AfterEach
  void stop() {
    two.close();
    one.close();
  }

  private void all(Behaviour behaviour) {
    ALL.forEach(party -> one.parties.behave(party, behaviour));
  }

  private SignedIntent bls(String message) {
    if (one.attestation("keys/hot").isEmpty()) {
      // The intent names it.
      blsKey();
    }
    return one.wallet.sign(signingIntent("hot", message).build());
  }

  private Key ecdsaKey() {
    Key key = one.createEcdsaKey(atOne, "hot", 2, "p1", "p2", "p3");
    one.parties.orders.clear();
    return key;
  }

  private RefreshKeyRequest refresh() {
    RefreshIntent intent = refreshIntent("hot", Scheme.SCHEME_ECDSA_SECP256K1, 1).build();
    return RefreshKeyRequest.newBuilder().setSignedIntent(one.wallet.sign(intent)).build();
  }

  private void blsKey() {
    one.createKey(atOne, "hot", 2, 3);
    one.parties.orders.clear();
  }

  private Future<Signing> asks(ManagedChannel replica, SignedIntent intent) {
    return SigningServiceGrpc.newFutureStub(replica)
        .withDeadlineAfter(20, TimeUnit.SECONDS)
        .sign(sign(intent));
  }

  /** A first request at the first replica, whose parties have its order and behave like that. */
  private Future<Signing> ordered(Behaviour behaviour, SignedIntent intent) {
    one.parties.orders.clear();
    all(behaviour);
    Future<Signing> call = asks(atOne, intent);
    eventually(() -> one.parties.orders.size() == 2);
    return call;
  }

  private static double takenOver(TestInstallation replica, String work) {
    return replica
        .bean(MeterRegistry.class)
        .get(CoordinatorMetrics.TAKEN_OVER)
        .tag("work", work)
        .counter()
        .count();
  }

  private long sessions(SignedIntent intent) {
    return one.parties.orders.stream()
        .filter(order -> order.getSignedIntent().equals(intent))
        .map(Order::getCoordinatorNonce)
        .distinct()
        .count();
  }

  private String worker() {
    return one.query("select worker from signings");
  }

  @Test
  void what_a_stopping_replica_cannot_end_the_other_one_ends() {
    SignedIntent intent = bls("left");
    Future<Signing> call = ordered(new Behaviour.Silent(), intent);
    assertThat(worker()).isEqualTo("coordinator");
    one.parties.behave();

    one.stop();

    eventually(call::isDone);
    assertThat(StatusErrors.reason(call.exceptionNow())).contains(ErrorReason.DRAINING);
    // Nobody has asked the other one.
    eventually(() -> one.query("select state::text from signings").equals("2"));
    assertThat(worker()).isEqualTo("coordinator-1");
    assertThat(takenOver(two, CoordinatorMetrics.SIGNING_WORK)).isEqualTo(1);
    assertThat(sessions(intent)).isEqualTo(2);
    Signing signing = signing(atTwo).sign(sign(intent));
    one.start();
    assertThat(signing(atOne).sign(sign(intent))).isEqualTo(signing);
    assertThat(sessions(intent)).isEqualTo(2);
  }

  @Test
  void who_waits_at_the_other_replica_is_answered_when_the_one_that_works_is_killed() {
    SignedIntent intent = bls("killed");
    Future<Signing> lost = ordered(new Behaviour.Silent(), intent);
    Future<Signing> call = asks(atTwo, intent);
    one.kill();
    eventually(lost::isDone);
    one.parties.behave();
    eventually(call::isDone);
    assertThat(call.resultNow().getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(worker()).isEqualTo("coordinator-1");
    // Back again, it has nothing to do.
    one.start();
    eventually(() -> replicas(two) == 2);
    assertThat(one.query("select count(*) from signings where state = 2")).isEqualTo("1");
    assertThat(signing(atOne).sign(sign(intent))).isEqualTo(call.resultNow());
  }

  private static double replicas(TestInstallation replica) {
    return replica.bean(MeterRegistry.class).get(CoordinatorMetrics.REPLICAS).gauge().value();
  }

  @Test
  void replicas_are_counted_while_they_are_there() {
    eventually(() -> replicas(one) == 2 && replicas(two) == 2);
    two.stop();
    eventually(() -> replicas(one) == 1);
    two.start();
    eventually(() -> replicas(one) == 2);
    two.kill();
    eventually(() -> replicas(one) == 1);
  }

  @Test
  void a_request_that_both_are_asked_for_is_worked_on_once() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    SignedIntent intent = bls("both");
    List<Future<Signing>> calls =
        new ArrayList<>(List.of(ordered(new Behaviour.Waits(release), intent)));
    calls.add(asks(atTwo, intent));
    calls.add(asks(atTwo, intent));
    calls.add(asks(atOne, intent));
    release.countDown();
    for (Future<Signing> call : calls) {
      assertThat(call.get()).isEqualTo(calls.getFirst().get());
    }
    assertThat(sessions(intent)).isEqualTo(1);

    // And at the same moment.
    one.parties.behave();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 20; i++) {
        SignedIntent raced = bls("raced " + i);
        Future<Signing> left = threads.submit(() -> signing(atOne).sign(sign(raced)));
        Future<Signing> right = threads.submit(() -> signing(atTwo).sign(sign(raced)));
        assertThat(left.get()).isEqualTo(right.get());
        assertThat(left.get().getState()).isEqualTo(Signing.State.SIGNED);
        assertThat(sessions(raced)).isEqualTo(1);
      }
    }
    assertThat(takenOver(one, CoordinatorMetrics.SIGNING_WORK)).isZero();
    assertThat(takenOver(two, CoordinatorMetrics.SIGNING_WORK)).isZero();
  }

  @Test
  void a_failure_is_the_same_at_both() {
    blsKey();
    all(new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    SignedIntent intent = bls("no");
    Future<Signing> call = asks(atTwo, intent);
    var metadata = fails(ErrorReason.FORBIDDEN, () -> signing(atOne).sign(sign(intent)));
    eventually(call::isDone);
    assertThat(StatusErrors.reason(call.exceptionNow())).contains(ErrorReason.FORBIDDEN);
    assertThat(fails(ErrorReason.FORBIDDEN, () -> signing(atTwo).sign(sign(intent))))
        .isEqualTo(metadata);
  }

  @Test
  void whoever_watches_at_the_other_replica_sees_the_end() {
    CountDownLatch release = new CountDownLatch(1);
    Future<Signing> call = ordered(new Behaviour.Waits(release), bls("watched"));
    Iterator<Signing> watch =
        signing(atTwo)
            .watchSigning(
                WatchSigningRequest.newBuilder()
                    .setName(one.query("select 'keys/hot/signings/' || id from signings"))
                    .build());
    assertThat(watch.next().getState()).isEqualTo(Signing.State.PENDING);
    release.countDown();
    Signing last = watch.next();
    assertThat(last.getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(watch.hasNext()).isFalse();
    eventually(call::isDone);
    assertThat(call.resultNow()).isEqualTo(last);
  }

  @Test
  void a_caller_who_leaves_the_waiting_replica_leaves_nothing_behind() {
    CountDownLatch release = new CountDownLatch(1);
    SignedIntent intent = bls("impatient");
    Future<Signing> call = ordered(new Behaviour.Waits(release), intent);
    fails(
        ErrorReason.DEADLINE_TOO_SHORT,
        () ->
            SigningServiceGrpc.newBlockingStub(atTwo)
                .withDeadlineAfter(300, TimeUnit.MILLISECONDS)
                .sign(sign(intent)));
    eventually(
        () -> two.bean(MeterRegistry.class).get(CoordinatorMetrics.RUNS).gauge().value() == 0);
    release.countDown();
    eventually(call::isDone);
    assertThat(call.state()).isEqualTo(Future.State.SUCCESS);
    assertThat(sessions(intent)).isEqualTo(1);
  }

  /** A crash of the database may lose that this one took it over, and its worker refuses it. */
  @Test
  void a_signature_is_the_end_although_another_replica_knew_none() throws Exception {
    CountDownLatch contributing = new CountDownLatch(1);
    SignedIntent intent = bls("shown");
    Future<Signing> call = ordered(new Behaviour.Waits(contributing), intent);
    byte[] error = StatusErrors.status(ErrorReason.FORBIDDEN, Map.of()).toByteArray();
    one.query(
        "update signings set state = 3, completed_at = now(), error = decode('"
            + HexFormat.of().formatHex(error)
            + "', 'hex') returning 1");
    contributing.countDown();
    assertThat(call.get().getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(one.query("select state || '' from signings")).isEqualTo("2");
  }

  /** A process that was away for longer than it knows. */
  @Test
  void a_replica_whose_work_was_taken_over_gives_it_up() {
    SignedIntent intent = bls("undead");
    Future<Signing> call = ordered(new Behaviour.Silent(), intent);
    one.query(
        "insert into coordinator_replicas values ('ghost', now() + interval '3 s') returning 1");
    one.query("update signings set worker = 'ghost' returning 1");
    // Its session fails, and it starts no other one: the end is whatever the other one stores.
    eventually(() -> !one.parties.cancelled.isEmpty());
    one.parties.behave();
    byte[] error = StatusErrors.status(ErrorReason.FORBIDDEN, Map.of()).toByteArray();
    one.query(
        "update signings set state = 3, completed_at = now(), error = decode('"
            + HexFormat.of().formatHex(error)
            + "', 'hex') returning 1");
    eventually(call::isDone);
    assertThat(StatusErrors.reason(call.exceptionNow())).contains(ErrorReason.FORBIDDEN);
    assertThat(sessions(intent)).isEqualTo(1);
  }

  @Test
  void when_the_database_was_away_for_all_nobody_is_taken_for_gone() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    Future<Signing> call = ordered(new Behaviour.Waits(release), bls("in the dark"));
    try (Connection database = one.bean(DataSource.class).getConnection();
        Statement statement = database.createStatement()) {
      statement.execute(
          "do $$ begin lock table coordinator_replicas; perform pg_sleep(2.5); end $$");
    }
    eventually(
        () ->
            one.query(
                    "select (count(*) = 2)::text from coordinator_replicas"
                        + " where seen_at > now() - interval '1 second'")
                .equals("true"));
    release.countDown();
    eventually(call::isDone);
    assertThat(call.resultNow().getState()).isEqualTo(Signing.State.SIGNED);
    assertThat(worker()).isEqualTo("coordinator");
    assertThat(takenOver(two, CoordinatorMetrics.SIGNING_WORK)).isZero();
  }

  @Test
  void keys_are_the_same_at_both() throws Exception {
    SignedIntent intent = one.wallet.sign(keyIntent("hot", 2, "p1", "p2", "p3").build());
    CountDownLatch release = new CountDownLatch(1);
    all(new Behaviour.Waits(release));
    Future<Key> first = KeyServiceGrpc.newFutureStub(atOne).createKey(createKey(intent));
    eventually(() -> one.parties.orders.size() == 3);
    Future<Key> second = KeyServiceGrpc.newFutureStub(atTwo).createKey(createKey(intent));
    release.countDown();
    assertThat(second.get()).isEqualTo(first.get());
    assertThat(one.parties.orders).hasSize(3);
    assertThat(signing(atTwo).sign(sign(bls("elsewhere"))).getState())
        .isEqualTo(Signing.State.SIGNED);
  }

  @Test
  void a_key_that_a_killed_replica_was_creating_is_created_by_the_other() {
    all(new Behaviour.Silent());
    SignedIntent intent = one.wallet.sign(keyIntent("hot", 2, "p1", "p2", "p3").build());
    Future<Key> call = KeyServiceGrpc.newFutureStub(atOne).createKey(createKey(intent));
    eventually(() -> one.parties.orders.size() >= 3);
    one.kill();
    eventually(call::isDone);
    one.parties.behave();
    eventually(() -> one.query("select state::text from keys").equals("2"));
    assertThat(takenOver(two, CoordinatorMetrics.KEY_CREATION_WORK)).isEqualTo(1);
    assertThat(keys(atTwo).createKey(createKey(intent)).getState()).isEqualTo(Key.State.ACTIVE);
  }

  private Signing signsEcdsa(ManagedChannel replica, Key key, int number) {
    var intent = EcdsaTest.intent("hot", number).build();
    Signing signing = signing(replica).sign(sign(one.wallet.sign(intent)));
    assertThat(TestEcdsa.verifies(key.getPublicKey(), intent.getDigest(), signing.getSignature()))
        .isTrue();
    return signing;
  }

  @Test
  void a_session_that_the_parties_have_contributed_to_is_ended_by_the_other_replica() {
    Key key = ecdsaKey();
    all(new Behaviour.Loses());
    var intent = EcdsaTest.intent("hot", 1).build();
    SignedIntent signed = one.wallet.sign(intent);
    Future<Signing> lost = asks(atOne, signed);
    eventually(() -> one.parties.orders.size() == 2);
    Order first = one.parties.orders.element();
    one.kill();
    eventually(lost::isDone);
    Signing signing = signing(atTwo).sign(sign(signed));
    assertThat(TestEcdsa.verifies(key.getPublicKey(), intent.getDigest(), signing.getSignature()))
        .isTrue();
    assertThat(signing.getSigningSetList())
        .containsExactlyElementsOf(first.getSigningSetList().stream().map(p -> "p" + p).toList());
    assertThat(one.parties.orders)
        .filteredOn(order -> order.equals(first))
        .as("the first order was given again")
        .hasSizeGreaterThan(2);
  }

  @Test
  void both_sign_with_the_new_shares_after_a_refresh_at_one() {
    Key key = ecdsaKey();
    signsEcdsa(atOne, key, 0);
    signsEcdsa(atTwo, key, 1);
    RefreshKeyRequest request = refresh();
    Key refreshed = keys(atOne).refreshKey(request);
    assertThat(refreshed.getEpoch()).isEqualTo(2);
    GetKeyRequest get = GetKeyRequest.newBuilder().setName("keys/hot").build();
    assertThat(keys(atTwo).getKey(get)).isEqualTo(refreshed);
    signsEcdsa(atTwo, key, 2);
    signsEcdsa(atOne, key, 3);
    assertThat(keys(atTwo).refreshKey(request)).isEqualTo(refreshed);
  }

  @Test
  void a_refresh_that_a_killed_replica_had_begun_is_ended_by_the_other() {
    Key key = ecdsaKey();
    all(new Behaviour.Silent());
    RefreshKeyRequest request = refresh();
    Future<Key> lost = KeyServiceGrpc.newFutureStub(atOne).refreshKey(request);
    eventually(() -> one.parties.orders.size() >= 3);
    one.kill();
    eventually(lost::isDone);
    one.parties.behave();
    assertThat(keys(atTwo).refreshKey(request).getEpoch()).isEqualTo(2);
    signsEcdsa(atTwo, key, 1);
  }

  @Test
  void a_refresh_that_was_called_failed_is_only_asked_about_by_the_other_too() {
    Key key = ecdsaKey();
    one.parties.behave("p2", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_FORBIDDEN));
    RefreshKeyRequest request = refresh();
    fails(ErrorReason.FORBIDDEN, () -> keys(atOne).refreshKey(request));
    all(new Behaviour.Silent());
    one.parties.orders.clear();
    one.bean(KeyRenewals.class).learn("keys/hot", 1);
    eventually(() -> one.parties.orders.size() >= 3);
    one.kill();
    // They would run a session now whose order leaves time for one.
    one.parties.behave();
    eventually(() -> takenOver(two, CoordinatorMetrics.KEY_RENEWAL_WORK) == 1);
    eventually(() -> !one.query("select state from key_renewals").equals("1"));
    GetKeyRequest get = GetKeyRequest.newBuilder().setName("keys/hot").build();
    assertThat(keys(atTwo).getKey(get)).as("called failed, and so it is").isEqualTo(key);
    signsEcdsa(atTwo, key, 1);
  }

  @Test
  void a_reshare_that_one_runs_is_cancelled_at_the_other() {
    Key key = ecdsaKey();
    one.parties.behave("p3", new Behaviour.Silent());
    ReshareIntent intent =
        ReshareIntent.newBuilder()
            .setRequestId(RequestId.next())
            .setKey("keys/hot")
            .setScheme(Scheme.SCHEME_ECDSA_SECP256K1)
            .setEpoch(1)
            .setThreshold(2)
            .addAllParties(ALL)
            .setPublicKey(key.getPublicKey())
            .setNotAfter(inSeconds(120))
            .build();
    ReshareKeyRequest request =
        ReshareKeyRequest.newBuilder().setSignedIntent(one.wallet.sign(intent)).build();
    Future<Key> call =
        KeyServiceGrpc.newFutureStub(atOne)
            .withDeadlineAfter(20, TimeUnit.SECONDS)
            .reshareKey(request);
    eventually(() -> one.parties.orders.size() >= 3);
    // Asked whether it has a share, it says no.
    one.parties.behave("p3", new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_INTENT_EXPIRED));
    CancelKeyOperationRequest cancel =
        CancelKeyOperationRequest.newBuilder()
            .setName("keys/hot")
            .setRequestId(intent.getRequestId())
            .build();
    assertThat(keys(atTwo).cancelKeyOperation(cancel)).isEqualTo(key);
    eventually(call::isDone);
    assertThat(StatusErrors.reason(call.exceptionNow())).contains(ErrorReason.OPERATION_CANCELLED);
    assertThat(one.query("select worker from key_renewals")).isEqualTo("coordinator");
    one.parties.behave();
    signsEcdsa(atTwo, key, 1);
  }

  @Test
  void a_party_that_one_has_excluded_is_not_asked_by_the_other() {
    blsKey();
    assertThat(signing(atTwo).sign(sign(bls("before"))).getSigningSetList())
        .containsExactly("p1", "p2");
    // Asked because it never was; then a suspect for ten seconds: without need nobody asks it.
    one.parties.behave(
        "p3", new Behaviour.Once(new Behaviour.Refuses(RefusalReason.REFUSAL_REASON_OVERLOADED)));
    assertThat(signing(atTwo).sign(sign(bls("not with p3"))).getSigningSetList())
        .containsExactly("p1", "p2");
    one.parties.behave("p1", new Behaviour.Lies());
    assertThat(signing(atOne).sign(sign(bls("lied to"))).getSigningSetList())
        .containsExactly("p2", "p3");
    one.parties.behave();
    // It knows the key, and reads it again behind its use.
    eventually(
        () ->
            signing(atTwo)
                .sign(sign(bls("after")))
                .getSigningSetList()
                .equals(List.of("p2", "p3")));
    for (int i = 0; i < 5; i++) {
      assertThat(signing(atTwo).sign(sign(bls("later " + i))).getSigningSetList())
          .containsExactly("p2", "p3");
    }
  }

  @Test
  void each_has_an_audit_chain_of_its_own() {
    blsKey();
    for (int i = 0; i < 20; i++) {
      assertThat(asks(atOne, bls("one " + i))).succeedsWithin(java.time.Duration.ofSeconds(10));
      assertThat(asks(atTwo, bls("two " + i))).succeedsWithin(java.time.Duration.ofSeconds(10));
    }
    for (String trail : List.of("coordinator", "coordinator-1")) {
      eventually(
          () ->
              one.query(
                      "select (count(*) >= 20)::text from audit_records where action = 'Sign' and"
                          + " trail = '"
                          + trail
                          + "'")
                  .equals("true"));
      assertThat(
              new AuditTrail(
                      trail,
                      new JdbcAuditStore(one.bean(DataSource.class), trail),
                      Clock.systemUTC())
                  .verify())
          .isInstanceOf(AuditTrail.Verification.Intact.class);
    }
  }
}
