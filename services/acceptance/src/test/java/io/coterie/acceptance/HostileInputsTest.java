package io.coterie.acceptance;

import static io.coterie.acceptance.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import com.google.protobuf.util.Timestamps;
import io.coterie.acceptance.SharedCluster.Running;
import io.coterie.acceptance.cluster.Cluster;
import io.coterie.acceptance.cluster.Metrics;
import io.coterie.acceptance.cluster.Service;
import io.coterie.acceptance.cluster.WalletBackend;
import io.coterie.cli.profile.RequesterKeyFile;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.IntentSigner;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.KeyIntent;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.grpc.StatusRuntimeException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Signers refuse inputs that must not be signed, with the reason, and nothing changes. */
@ExtendWith(SharedCluster.class)
class HostileInputsTest {
  private static final byte[] MESSAGE = "pay me".getBytes(StandardCharsets.UTF_8);

  private static final Duration SETTLE = Duration.ofMillis(150);

  @TempDir Path folder;
  private double sessionsBefore;
  private long keysBefore;

  @BeforeEach
  void remember(Running shared) {
    sessionsBefore = completedSessions(shared);
    keysBefore = keys(shared);
  }

  @AfterEach
  void nothingHasChangedAndHonestWorkGoesOn(Running shared) {
    assertThat(completedSessions(shared)).isEqualTo(sessionsBefore);
    assertThat(keys(shared)).isEqualTo(keysBefore);
    assertThat(shared.wallet().sign(SharedCluster.KEY, "still here").getSignature().size())
        .isEqualTo(96);
  }

  /** Of all signers. They finish after the coordinator has answered: waits until all have. */
  private static double completedSessions(Running shared) {
    double before;
    double now = -1;
    do {
      before = now;
      LockSupport.parkNanos(SETTLE.toNanos());
      now =
          Metrics.union(shared.cluster().signers().stream().map(Service::metrics).toList())
              .sum(
                  "coterie_sessions_total",
                  s -> Set.of("completed", "contributed").contains(s.label("outcome")));
    } while (now != before);
    return now;
  }

  /** Keys that can sign. A refused creation is remembered, as one that failed. */
  private static long keys(Running shared) {
    return shared
        .wallet()
        .keys()
        .listKeys(ListKeysRequest.newBuilder().setPageSize(1000).build())
        .getKeysList()
        .stream()
        .filter(key -> key.getState() != Key.State.FAILED)
        .count();
  }

  @Test
  void anIntentWithAnyByteFlipped(Running shared) {
    SignedIntent good = signed(shared, intent().build());
    byte[] payload = good.getPayload().toByteArray();
    for (int i = 0; i < payload.length; i += 7) {
      byte[] flipped = payload.clone();
      flipped[i] ^= 1;
      SignedIntent bad = good.toBuilder().setPayload(ByteString.copyFrom(flipped)).build();
      StatusRuntimeException failure =
          catchThrowableOfType(StatusRuntimeException.class, () -> sign(shared, bad));
      assertThat(failure).as("byte %d flipped", i).isNotNull();
      // Bytes that no longer parse are refused for their form, the others for their signature.
      assertThat(Refusals.info(failure).getReason())
          .isIn(ErrorReason.INTENT_SIGNATURE_INVALID.name(), ErrorReason.INTENT_MALFORMED.name());
    }
    SignedIntent message =
        good.toBuilder()
            .setPayload(
                intent()
                    .mergeFrom(parse(good))
                    .setMessage(ByteString.copyFromUtf8("pay ME"))
                    .build()
                    .toByteString())
            .build();
    refused(ErrorReason.INTENT_SIGNATURE_INVALID, () -> sign(shared, message));
  }

  private static SigningIntent parse(SignedIntent signed) {
    try {
      return SigningIntent.parseFrom(signed.getPayload());
    } catch (com.google.protobuf.InvalidProtocolBufferException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aSignatureWithAnyByteFlippedOrCutShort(Running shared) {
    SignedIntent good = signed(shared, intent().build());
    byte[] sig = good.getSignatures(0).getSig().toByteArray();
    for (int i = 0; i < sig.length; i += 9) {
      byte[] flipped = sig.clone();
      flipped[i] ^= 0x40;
      refused(ErrorReason.INTENT_SIGNATURE_INVALID, () -> sign(shared, withSig(good, flipped)));
    }
    refused(
        ErrorReason.INTENT_SIGNATURE_INVALID,
        () -> sign(shared, withSig(good, java.util.Arrays.copyOf(sig, sig.length - 1))));
  }

  private static SignedIntent withSig(SignedIntent intent, byte[] sig) {
    return intent.toBuilder()
        .setSignatures(0, intent.getSignatures(0).toBuilder().setSig(ByteString.copyFrom(sig)))
        .build();
  }

  @Test
  void anExpiredIntent(Running shared) {
    SignedIntent expired =
        signed(
            shared,
            intent()
                .setNotAfter(Timestamps.fromMillis(System.currentTimeMillis() - 60_000))
                .build());
    refused(ErrorReason.INTENT_EXPIRED, () -> sign(shared, expired));
  }

  @Test
  void anIntentSignedByAStranger(Running shared) {
    RequesterKeyFile.create(RequesterKeyFile.Algorithm.ED25519, folder.resolve("stranger"));
    // Under the name of somebody known, and under its own.
    IntentSigner impostor = RequesterKeyFile.read(Cluster.WALLET, folder.resolve("stranger"));
    refused(
        ErrorReason.INTENT_SIGNATURE_INVALID, () -> sign(shared, impostor.sign(intent().build())));
    IntentSigner stranger = RequesterKeyFile.read("stranger", folder.resolve("stranger"));
    assertThat(
            Refusals.info(
                    catchThrowableOfType(
                        StatusRuntimeException.class,
                        () -> sign(shared, stranger.sign(intent().build()))))
                .getReason())
        .isIn(ErrorReason.UNKNOWN_REQUESTER.name(), ErrorReason.CLIENT_NOT_ALLOWED.name());
  }

  @Test
  void aKeyTheRequesterMayNotUse(Running shared) {
    WalletBackend auditor = shared.cluster().backend(Cluster.AUDITOR);
    SigningIntent.Builder intent = intent();
    // It may not ask for the key, and has got its fingerprint all the same.
    intent.setKeyFingerprint(shared.wallet().fingerprint(intent.getKey()).orElseThrow());
    refused(
        ErrorReason.FORBIDDEN,
        () ->
            auditor
                .signings()
                .sign(WalletBackend.signRequest(auditor.intents().sign(intent.build()))));
    refused(
        ErrorReason.INTENT_MALFORMED,
        () ->
            shared
                .wallet()
                .sign(intent().setKeyFingerprint(ByteString.copyFromUtf8("not its own key."))));
    refused(
        ErrorReason.INTENT_MALFORMED,
        () -> shared.wallet().sign(intent().setInstallation("staging")));
    refused(
        ErrorReason.FORBIDDEN,
        () -> auditor.createKey("treasury", 2, shared.cluster().partyNames()));
  }

  @Test
  void aClientThatSubmitsForAnother(Running shared) {
    WalletBackend auditor = shared.cluster().backend(Cluster.AUDITOR);
    refused(
        ErrorReason.CLIENT_NOT_ALLOWED,
        () -> auditor.signings().sign(WalletBackend.signRequest(signed(shared, intent().build()))));
  }

  @Test
  void aKeyIntentWithImpossibleNumbersOrParties(Running shared) {
    List<String> parties = shared.cluster().partyNames();
    for (int threshold : new int[] {0, 4, Integer.MAX_VALUE}) {
      refusedOneOf(
          () -> create(shared, WalletBackend.keyIntent("bad", threshold, parties)),
          ErrorReason.THRESHOLD_INVALID,
          ErrorReason.INTENT_MALFORMED);
    }
    refused(
        ErrorReason.PARTY_UNKNOWN,
        () -> create(shared, WalletBackend.keyIntent("bad", 2, List.of("party-1", "nobody"))));
    refused(
        ErrorReason.INTENT_MALFORMED,
        () -> create(shared, WalletBackend.keyIntent("bad", 2, List.of("party-1", "party-1"))));
    refused(
        ErrorReason.INTENT_MALFORMED,
        () -> create(shared, WalletBackend.keyIntent("Not A Name", 2, parties)));
    refusedOneOf(
        () -> create(shared, WalletBackend.keyIntent("bad", 2, List.of())),
        ErrorReason.THRESHOLD_INVALID,
        ErrorReason.INTENT_MALFORMED);
  }

  private static void refusedOneOf(
      org.assertj.core.api.ThrowableAssert.ThrowingCallable call, ErrorReason... reasons) {
    StatusRuntimeException failure = catchThrowableOfType(StatusRuntimeException.class, call);
    assertThat(failure).isNotNull();
    assertThat(java.util.Arrays.stream(reasons).map(Enum::name))
        .contains(Refusals.info(failure).getReason());
  }

  @Test
  void aMessageThatIsTooLargeAndAnEmptyRequest(Running shared) {
    refusedOneOf(
        () ->
            sign(
                shared,
                signed(
                    shared,
                    intent().setMessage(ByteString.copyFrom(new byte[64 * 1024 + 1])).build())),
        ErrorReason.REQUEST_TOO_LARGE,
        ErrorReason.INTENT_MALFORMED);
    refused(ErrorReason.INTENT_MALFORMED, () -> sign(shared, SignedIntent.getDefaultInstance()));
  }

  private static SigningIntent.Builder intent() {
    return WalletBackend.signingIntent(SharedCluster.KEY, MESSAGE);
  }

  private static SignedIntent signed(Running shared, SigningIntent intent) {
    return shared.wallet().intents().sign(intent);
  }

  private static void sign(Running shared, SignedIntent intent) {
    shared.wallet().signings().sign(WalletBackend.signRequest(intent));
  }

  private static void create(Running shared, KeyIntent.Builder intent) {
    shared
        .wallet()
        .keys()
        .createKey(WalletBackend.request(shared.wallet().intents().sign(intent.build())));
  }
}
