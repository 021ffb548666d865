package io.coterie.messaging.compat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.coterie.messaging.compat.SignalClient.Received;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.security.Security;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.signal.libsignal.protocol.state.PreKeyBundle;
import org.whispersystems.signalservice.api.NetworkResult;
import org.whispersystems.signalservice.api.crypto.SealedSenderAccess;
import org.whispersystems.signalservice.api.messages.EnvelopeResponse;
import org.whispersystems.signalservice.api.messages.SendMessageResult;
import org.whispersystems.signalservice.api.push.DistributionId;
import org.whispersystems.signalservice.api.push.ServiceId.ACI;
import org.whispersystems.signalservice.api.push.ServiceIdType;
import org.whispersystems.signalservice.api.push.exceptions.AuthorizationFailedException;
import org.whispersystems.signalservice.api.push.exceptions.NonSuccessfulResponseCodeException;
import org.whispersystems.signalservice.api.push.exceptions.RateLimitException;
import org.whispersystems.signalservice.api.push.exceptions.UnregisteredUserException;
import org.whispersystems.signalservice.internal.push.OutgoingPushMessage;
import org.whispersystems.signalservice.internal.push.exceptions.GroupMismatchedDevicesException;
import org.whispersystems.signalservice.internal.push.exceptions.GroupStaleDevicesException;
import org.whispersystems.signalservice.internal.push.exceptions.InvalidUnidentifiedAccessHeaderException;
import org.whispersystems.signalservice.internal.push.exceptions.MismatchedDevicesException;
import org.whispersystems.signalservice.internal.push.exceptions.StaleDevicesException;

/**
 * A Signal client library that is not ours uses the service like Signal's own. It has each case of
 * {@code node/client.test.mjs}, by the same name.
 */
class SignalClientTest {
  /**
   * So many stored messages wait for a device; the cases need fewer, but for that of a full queue.
   */
  private static final int STORED = 20;

  private static final String OF_KEYS = "+15551000005";
  private static final String OF_A_FULL_QUEUE = "+15551000006";
  private static final String DELETED = "+15551000007";

  private static ServiceProcess service;
  private static SignalClient alice;
  private static SignalClient bob;
  private static SignalClient carol;
  private static SignalClient dora;

  @BeforeAll
  static void start() throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    service =
        new ServiceProcess(
            List.of(
                "+15551000001",
                "+15551000002",
                "+15551000003",
                "+15551000004",
                OF_KEYS,
                OF_A_FULL_QUEUE,
                DELETED),
            "--coterie.messaging.limits.stored-messages=" + STORED);
    alice = new SignalClient(service, "+15551000001");
    bob = new SignalClient(service, "+15551000002");
    carol = new SignalClient(service, "+15551000003");
    dora = new SignalClient(service, "+15551000004");
  }

  @AfterAll
  static void stop() throws Exception {
    for (AutoCloseable part : new AutoCloseable[] {alice, bob, carol, dora, service}) {
      if (part != null) {
        part.close();
      }
    }
  }

  /** A call that was answered with that status. */
  private static NonSuccessfulResponseCodeException refused(NetworkResult<?> result, int status) {
    assertThat(result).isInstanceOf(NetworkResult.StatusCodeError.class);
    NetworkResult.StatusCodeError<?> error = (NetworkResult.StatusCodeError<?>) result;
    assertThat(error.getCode()).isEqualTo(status);
    return error.getException();
  }

  private static byte[] randomToken() {
    byte[] token = new byte[24];
    new SecureRandom().nextBytes(token);
    return token;
  }

  @Test
  void every_case_of_the_client_for_node_is_here() throws Exception {
    Pattern name = Pattern.compile("^test\\('([^']+)'", Pattern.MULTILINE);
    Set<String> here = new HashSet<>();
    Arrays.stream(SignalClientTest.class.getDeclaredMethods())
        .filter(method -> method.isAnnotationPresent(Test.class))
        .forEach(method -> here.add(method.getName()));
    List<String> cases =
        name.matcher(Files.readString(Path.of("node", "client.test.mjs")))
            .results()
            .map((MatchResult match) -> match.group(1).replaceAll("[^A-Za-z0-9]+", "_"))
            .toList();
    assertThat(cases).hasSizeGreaterThan(10);
    assertThat(here).containsAll(cases);
  }

  @Test
  void a_used_token_and_a_wrong_one_register_nobody() throws Exception {
    byte[] used = service.token("+15551000001");
    refused(SignalClient.register(service, "+15551000001", used), 403);
    refused(SignalClient.register(service, "+15551000002", randomToken()), 403);
  }

  @Test
  void an_account_knows_itself_and_its_device() throws Exception {
    assertThat(SignalClient.success(alice.accounts().whoAmI()).getAci())
        .isEqualTo(alice.aci().toString());
    assertThat(SignalClient.success(alice.devices().getDevices()))
        .singleElement()
        .satisfies(device -> assertThat(device.getId()).isEqualTo(1));
  }

  @Test
  void one_time_keys_are_counted_handed_out_once_each_and_to_nobody_without_the_access_key()
      throws Exception {
    try (SignalClient erin = new SignalClient(service, OF_KEYS)) {
      assertThat(oneTimeKeys(erin))
          .containsExactly(SignalClient.ONE_TIME_KEYS, SignalClient.ONE_TIME_KEYS);
      Set<Integer> ids = new HashSet<>();
      for (int i = 0; i < SignalClient.ONE_TIME_KEYS; i++) {
        PreKeyBundle keys = SignalClient.success(alice.keysOf(erin.aci(), erin)).getFirst();
        assertThat(keys.getRegistrationId()).isEqualTo(erin.registrationId());
        ids.add(keys.getPreKeyId());
      }
      assertThat(ids)
          .hasSize(SignalClient.ONE_TIME_KEYS)
          .doesNotContain(PreKeyBundle.NULL_PRE_KEY_ID);
      PreKeyBundle last = SignalClient.success(alice.keysOf(erin.aci(), erin)).getFirst();
      assertThat(last.getPreKeyId()).isEqualTo(PreKeyBundle.NULL_PRE_KEY_ID);
      assertThat(last.getKyberPreKeyId()).isEqualTo(1);
      assertThat(oneTimeKeys(erin)).containsExactly(0, 0);
      refused(alice.keysOf(erin.aci(), carol), 401);
    }
  }

  private static List<Integer> oneTimeKeys(SignalClient client) throws Exception {
    var counts = SignalClient.success(client.keys().getAvailablePreKeyCounts(ServiceIdType.ACI));
    return List.of(counts.getEcCount(), counts.getKyberCount());
  }

  @Test
  void a_message_by_name_is_answered_by_a_sealed_one() throws Exception {
    assertThat(alice.send(bob, "by name", false).isSuccess()).isTrue();
    assertThat(bob.receive()).isEqualTo(new Received("by name", alice.aci(), false));
    assertThat(bob.send(alice, "sealed", true).getSuccess().isUnidentified()).isTrue();
    assertThat(alice.receive()).isEqualTo(new Received("sealed", bob.aci(), true));
  }

  @Test
  void a_sealed_message_needs_the_access_key_of_its_recipient() throws Exception {
    OutgoingPushMessage message = carol.encrypted(dora, "sealed", true);
    SealedSenderAccess wrong = carol.sealed(List.of(alice));
    assertThatExceptionOfType(AuthorizationFailedException.class)
        .isThrownBy(() -> carol.deliver(dora.aci(), message, wrong, true))
        .satisfies(refusal -> assertThat(refusal.code).isEqualTo(401));
    carol.deliver(dora.aci(), message, carol.sealed(List.of(dora)), true);
    assertThat(dora.receive()).isEqualTo(new Received("sealed", carol.aci(), true));
  }

  @Test
  void one_sealed_message_reaches_many_with_their_combined_access_key_alone() throws Exception {
    List<SignalClient> peers = List.of(alice, bob, dora);
    for (SignalClient peer : peers) {
      carol.believe(peer, 1, peer.registrationId());
    }
    byte[] payload =
        carol.sealedToMany(peers.stream().map(peer -> peer.device(1)).toList(), peers, "to many");
    SealedSenderAccess ofTwo = carol.sealed(List.of(alice, bob));
    assertThatExceptionOfType(InvalidUnidentifiedAccessHeaderException.class)
        .isThrownBy(() -> carol.deliverToMany(payload, ofTwo, false));
    assertThat(carol.deliverToMany(payload, carol.sealed(peers), false).getUnsentTargets())
        .isEmpty();
    for (SignalClient peer : peers) {
      assertThat(peer.receive()).isEqualTo(new Received("to many", carol.aci(), true));
    }
  }

  @Test
  void sends_to_a_group_with_its_sender_key() throws Exception {
    DistributionId group = DistributionId.create();
    for (String body : List.of("first contact", "again")) {
      List<SendMessageResult> results = carol.sendToGroup(group, List.of(alice, bob), body);
      assertThat(results).hasSize(2).allMatch(SendMessageResult::isSuccess);
      assertThat(alice.receive()).isEqualTo(new Received(body, carol.aci(), true));
      assertThat(bob.receive()).isEqualTo(new Received(body, carol.aci(), true));
    }
  }

  @Test
  void a_story_is_refused_where_it_needs_no_key_and_reaches_nobody() throws Exception {
    dora.believe(carol, 1, carol.registrationId());
    byte[] payload = dora.sealedToMany(List.of(carol.device(1)), List.of(carol), "story");
    SealedSenderAccess access = dora.sealed(List.of(carol));
    assertThatExceptionOfType(NonSuccessfulResponseCodeException.class)
        .isThrownBy(() -> dora.deliverToMany(payload, access, true))
        .satisfies(refusal -> assertThat(refusal.code).isEqualTo(403));
    assertFirstToCome(dora, carol);
  }

  /** Nothing that was refused before waits for the recipient. */
  private static void assertFirstToCome(SignalClient from, SignalClient to) throws Exception {
    String body = "the first to come " + UUID.randomUUID();
    assertThat(from.send(to, body, true).isSuccess()).isTrue();
    assertThat(to.receive()).isEqualTo(new Received(body, from.aci(), true));
  }

  @Test
  void devices_that_are_not_what_the_sender_thinks_are_named() throws Exception {
    for (boolean sealed : new boolean[] {true, false}) {
      SealedSenderAccess access = sealed ? alice.sealed(List.of(carol)) : SealedSenderAccess.NONE;
      OutgoingPushMessage stale = alice.encrypted(carol, "stale", sealed);
      stale.destinationRegistrationId = otherRegistrationId(carol);
      assertThatExceptionOfType(StaleDevicesException.class)
          .isThrownBy(() -> alice.deliver(carol.aci(), stale, access, false))
          .satisfies(
              refusal ->
                  assertThat(refusal.getStaleDevices().getStaleDevices()).containsExactly(1));
      refused(alice.push(carol.aci(), stale, access), 410);
      OutgoingPushMessage second = alice.encrypted(carol, "second", sealed);
      second.destinationDeviceId = 2;
      assertThatExceptionOfType(MismatchedDevicesException.class)
          .isThrownBy(() -> alice.deliver(carol.aci(), second, access, false))
          .satisfies(
              refusal -> {
                assertThat(refusal.getMismatchedDevices().getMissingDevices()).containsExactly(1);
                assertThat(refusal.getMismatchedDevices().getExtraDevices()).containsExactly(2);
              });
      refused(alice.push(carol.aci(), second, access), 409);
    }
    assertFirstToCome(alice, carol);
  }

  /** The library mends its sessions by what the service names, and sends again by itself. */
  @Test
  void a_client_that_was_told_of_other_devices_reaches_those_that_there_are() throws Exception {
    bob.believe(dora, 1, otherRegistrationId(dora));
    assertFirstToCome(bob, dora);
    bob.believe(dora, 2, dora.registrationId());
    assertFirstToCome(bob, dora);
  }

  @Test
  void devices_of_one_of_many_that_are_not_what_the_sender_thinks_are_named_and_nobody_is_reached()
      throws Exception {
    List<SignalClient> both = List.of(alice, dora);
    SealedSenderAccess access = bob.sealed(both);
    bob.believe(alice, 1, alice.registrationId());
    bob.believe(dora, 1, otherRegistrationId(dora));
    byte[] stale = bob.sealedToMany(List.of(alice.device(1), dora.device(1)), both, "stale");
    assertThatExceptionOfType(GroupStaleDevicesException.class)
        .isThrownBy(() -> bob.deliverToMany(stale, access, false))
        .satisfies(
            refusal ->
                assertThat(refusal.getStaleDevices())
                    .singleElement()
                    .satisfies(
                        named -> {
                          assertThat(named.getUuid()).isEqualTo(dora.aci().toString());
                          assertThat(named.getDevices().getStaleDevices()).containsExactly(1);
                        }));
    bob.believe(dora, 2, dora.registrationId());
    byte[] second = bob.sealedToMany(List.of(alice.device(1), dora.device(2)), both, "second");
    assertThatExceptionOfType(GroupMismatchedDevicesException.class)
        .isThrownBy(() -> bob.deliverToMany(second, access, false))
        .satisfies(
            refusal ->
                assertThat(refusal.getMismatchedDevices())
                    .singleElement()
                    .satisfies(
                        named -> {
                          assertThat(named.getUuid()).isEqualTo(dora.aci().toString());
                          assertThat(named.getDevices().getMissingDevices()).containsExactly(1);
                          assertThat(named.getDevices().getExtraDevices()).containsExactly(2);
                        }));
    assertFirstToCome(bob, alice);
    assertFirstToCome(bob, dora);
  }

  /** A registration id that is not the client's. */
  private static int otherRegistrationId(SignalClient client) {
    return client.registrationId() % 0x3fff + 1;
  }

  @Test
  void a_message_to_an_account_that_never_was_is_told_by_name_and_not_without() throws Exception {
    ACI nobody = ACI.from(UUID.randomUUID());
    OutgoingPushMessage named = alice.encrypted(bob, "no", false);
    assertThatExceptionOfType(UnregisteredUserException.class)
        .isThrownBy(() -> alice.deliver(nobody, named, SealedSenderAccess.NONE, false));
    OutgoingPushMessage sealed = alice.encrypted(bob, "no", true);
    SealedSenderAccess access = alice.sealed(List.of(bob));
    assertThatExceptionOfType(AuthorizationFailedException.class)
        .isThrownBy(() -> alice.deliver(nobody, sealed, access, false))
        .satisfies(refusal -> assertThat(refusal.code).isEqualTo(401));
    refused(alice.keysOf(nobody, bob), 401);
  }

  @Test
  void what_is_too_large_or_comes_too_often_is_refused() throws Exception {
    SealedSenderAccess access = alice.sealed(List.of(dora));
    refused(alice.push(dora.aci(), alice.encrypted(dora, "x".repeat(100_000), true), access), 413);
    String large = "x".repeat(60_000);
    // The library's own limit for messages is lower than the service's.
    SignalClient.success(alice.push(dora.aci(), alice.encrypted(dora, large, true), access));
    assertThat(dora.receive()).isEqualTo(new Received(large, alice.aci(), true));

    NetworkResult<?> answer = SignalClient.register(service, "+15558888888", randomToken());
    for (int i = 0; i < 30 && code(answer) == 403; i++) {
      answer = SignalClient.register(service, "+15558888888", randomToken());
    }
    assertThat(refused(answer, 429))
        .isInstanceOfSatisfying(RateLimitException.class, SignalClientTest::assertSaysWhen);
  }

  private static int code(NetworkResult<?> answer) {
    return answer instanceof NetworkResult.StatusCodeError<?> error ? error.getCode() : 0;
  }

  private static void assertSaysWhen(RateLimitException refusal) {
    assertThat(refusal.code).isEqualTo(429);
    assertThat(refusal.getRetryAfterMilliseconds())
        .hasValueSatisfying(ms -> assertThat(ms).isPositive());
  }

  @Test
  void a_full_queue_refuses_what_is_for_it_and_keeps_nothing_from_others() throws Exception {
    try (SignalClient frank = new SignalClient(service, OF_A_FULL_QUEUE)) {
      frank.disconnect();
      SealedSenderAccess access = carol.sealed(List.of(frank));
      for (int i = 0; i < STORED; i++) {
        carol.deliver(frank.aci(), carol.encrypted(frank, "stored " + i, true), access, false);
      }
      OutgoingPushMessage more = carol.encrypted(frank, "more", true);
      assertThatExceptionOfType(RateLimitException.class)
          .isThrownBy(() -> carol.deliver(frank.aci(), more, access, false))
          .satisfies(SignalClientTest::assertSaysWhen);

      List<SignalClient> both = List.of(bob, frank);
      carol.believe(bob, 1, bob.registrationId());
      byte[] toBoth = carol.sealedToMany(List.of(bob.device(1), frank.device(1)), both, "to both");
      assertThat(carol.deliverToMany(toBoth, carol.sealed(both), false).getUnsentTargets())
          .isEmpty();
      assertThat(bob.receive()).isEqualTo(new Received("to both", carol.aci(), true));
      byte[] toOne = carol.sealedToMany(List.of(frank.device(1)), List.of(frank), "to one");
      assertThatExceptionOfType(NonSuccessfulResponseCodeException.class)
          .isThrownBy(() -> carol.deliverToMany(toOne, access, false))
          .satisfies(refusal -> assertThat(refusal.code).isEqualTo(429));

      frank.connect();
      for (int i = 0; i < STORED; i++) {
        assertThat(frank.receive()).isEqualTo(new Received("stored " + i, carol.aci(), true));
      }
    }
  }

  @Test
  void a_message_that_was_not_acknowledged_comes_again_and_one_that_was_does_not()
      throws Exception {
    bob.disconnect();
    assertThat(carol.send(bob, "stored", true).isSuccess()).isTrue();
    bob.connect();
    EnvelopeResponse first = bob.arrival();
    bob.disconnect();
    bob.connect();
    EnvelopeResponse again = bob.arrival();
    assertThat(again.getEnvelope().serverGuid).isEqualTo(first.getEnvelope().serverGuid);
    assertThat(bob.open(again)).isEqualTo(Optional.of(new Received("stored", carol.aci(), true)));
    // Whether the acknowledgement was heard shows only once the service has handled what came
    // after it.
    oneTimeKeys(bob);
    bob.disconnect();
    bob.connect();
    assertFirstToCome(carol, bob);
  }

  @Test
  void an_account_deletes_itself() throws Exception {
    try (SignalClient gina = new SignalClient(service, DELETED)) {
      SignalClient.success(carol.keysOf(gina.aci(), gina));
      SignalClient.success(gina.accounts().deleteAccount());
      refused(carol.keysOf(gina.aci(), gina), 401);
    }
  }
}
