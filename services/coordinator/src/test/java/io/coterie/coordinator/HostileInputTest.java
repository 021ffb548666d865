package io.coterie.coordinator;

import static io.coterie.coordinator.Calls.fails;
import static io.coterie.coordinator.TestInstallation.createKey;
import static io.coterie.coordinator.TestInstallation.inSeconds;
import static io.coterie.coordinator.TestInstallation.keyIntent;
import static io.coterie.coordinator.TestInstallation.keys;
import static io.coterie.coordinator.TestInstallation.sign;
import static io.coterie.coordinator.TestInstallation.signing;
import static io.coterie.coordinator.TestInstallation.signingIntent;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.GetKeyRequest;
import io.coterie.proto.custody.v1.GetSigningRequest;
import io.coterie.proto.custody.v1.IntentSignature;
import io.coterie.proto.custody.v1.ListKeysRequest;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.proto.custody.v1.SigningServiceGrpc;
import io.coterie.proto.custody.v1.WatchSigningRequest;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Bad requests get their own error, change nothing in the database, and reach no party. */
class HostileInputTest {
  @TempDir static Path folder;
  static TestInstallation installation;
  static ManagedChannel client;
  private String before;

  @BeforeAll
  static void start() {
    installation = new TestInstallation(folder, 3).start();
    client = installation.backend();
    installation.createKey(client, "hot", 2, 3);
  }

  @AfterAll
  static void stop() {
    installation.close();
  }

  @BeforeEach
  void remember() {
    installation.parties.orders.clear();
    before = installation.rows();
  }

  @AfterEach
  void nothing_has_happened() {
    assertThat(installation.rows()).isEqualTo(before);
    assertThat(installation.parties.orders).isEmpty();
  }

  private static SigningIntent.Builder good() {
    return signingIntent("hot", "pay 5");
  }

  private static SignedIntent signed() {
    return installation.wallet.sign(good().build());
  }

  /** A hostile input, and the refusal that it must get. */
  record Bad(String what, SignedIntent sent, ErrorReason reason, IntentProblem problem) {
    @Override
    public String toString() {
      return what;
    }
  }

  static Stream<Bad> bad_intents() {
    return Stream.of(
        new Bad(
            "nothing",
            SignedIntent.getDefaultInstance(),
            ErrorReason.INTENT_MALFORMED,
            IntentProblem.PAYLOAD_MISSING),
        new Bad(
            "one byte flipped",
            flipped(signed(), s -> s.getPayload()),
            ErrorReason.INTENT_SIGNATURE_INVALID,
            IntentProblem.SIGNATURE_INVALID),
        new Bad(
            "signed by a stranger",
            installation.stranger.sign(good().build()),
            ErrorReason.UNKNOWN_REQUESTER,
            IntentProblem.REQUESTER_UNKNOWN),
        new Bad(
            "signed by a stranger in another's name",
            installation.stranger.sign(good().build()).toBuilder()
                .setSignatures(
                    0,
                    installation.stranger.sign(good().build()).getSignatures(0).toBuilder()
                        .setKeyid("wallet"))
                .build(),
            ErrorReason.INTENT_SIGNATURE_INVALID,
            IntentProblem.SIGNATURE_INVALID),
        new Bad(
            "two signatures",
            signed().toBuilder().addSignatures(IntentSignature.getDefaultInstance()).build(),
            ErrorReason.INTENT_MALFORMED,
            IntentProblem.SIGNATURE_COUNT),
        new Bad(
            "a key intent to Sign",
            installation.wallet.sign(keyIntent("new", 2, "p1", "p2").build()),
            ErrorReason.INTENT_MALFORMED,
            IntentProblem.PAYLOAD_TYPE_UNKNOWN),
        new Bad(
            "another payload type",
            signed().toBuilder().setPayloadType("text/plain").build(),
            ErrorReason.INTENT_MALFORMED,
            IntentProblem.PAYLOAD_TYPE_UNKNOWN),
        new Bad(
            "an unknown field in the envelope",
            signed().toBuilder()
                .setUnknownFields(
                    UnknownFieldSet.newBuilder()
                        .addField(99, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
                        .build())
                .build(),
            ErrorReason.INTENT_MALFORMED,
            IntentProblem.ENVELOPE_UNKNOWN_FIELD),
        bad("an expired intent", b -> b.setNotAfter(inSeconds(-1)), IntentProblem.EXPIRED),
        bad(
            "an intent for years",
            b -> b.setNotAfter(inSeconds(86_400 * 3_650)),
            IntentProblem.NOT_AFTER_TOO_FAR),
        bad(
            "an intent of a time to come",
            b -> b.setRequestId(RequestId.at(Instant.now().plusSeconds(3_600))),
            IntentProblem.REQUEST_ID_AHEAD),
        bad(
            "an intent for another installation",
            b -> b.setInstallation("staging"),
            IntentProblem.INSTALLATION_OTHER),
        bad(
            "an installation that is no name",
            b -> b.setInstallation("Test"),
            IntentProblem.INSTALLATION_MALFORMED),
        bad(
            "an intent for another key of that name",
            b -> b.setKeyFingerprint(ByteString.copyFromUtf8("not its own key.")),
            IntentProblem.KEY_FINGERPRINT_OTHER),
        bad(
            "half a fingerprint",
            b -> b.setKeyFingerprint(ByteString.copyFromUtf8("not its ")),
            IntentProblem.KEY_FINGERPRINT_LENGTH),
        bad("no expiry", SigningIntent.Builder::clearNotAfter, IntentProblem.NOT_AFTER_MISSING),
        bad("no request id", b -> b.clearRequestId(), IntentProblem.REQUEST_ID_MALFORMED),
        bad(
            "a request id in capitals",
            b -> b.setRequestId(RequestId.next().toUpperCase(Locale.ROOT)),
            IntentProblem.REQUEST_ID_MALFORMED),
        bad("a key elsewhere", b -> b.setKey("keys/../hot"), IntentProblem.KEY_NAME_MALFORMED),
        bad("no message", b -> b.clearMessage(), IntentProblem.MESSAGE_MISSING),
        bad(
            "a message too large",
            b -> b.setMessage(ByteString.copyFrom(new byte[64 * 1024 + 1])),
            IntentProblem.MESSAGE_TOO_LARGE),
        bad("no scheme", b -> b.clearScheme(), IntentProblem.SCHEME_UNSUPPORTED),
        bad("a scheme of the future", b -> b.setSchemeValue(77), IntentProblem.SCHEME_UNSUPPORTED),
        bad(
            "a derivation path",
            b -> b.addDerivationPath(1),
            IntentProblem.DERIVATION_PATH_NOT_ALLOWED),
        bad("a long purpose", b -> b.setPurpose("x".repeat(257)), IntentProblem.PURPOSE_TOO_LONG));
  }

  private static Bad bad(
      String what, UnaryOperator<SigningIntent.Builder> change, IntentProblem problem) {
    return new Bad(
        what, installation.wallet.sign(change.apply(good()).build()), problem.reason(), problem);
  }

  private static SignedIntent flipped(
      SignedIntent signed, java.util.function.Function<SignedIntent, ByteString> part) {
    byte[] bytes = part.apply(signed).toByteArray();
    bytes[bytes.length / 2] ^= 1;
    return signed.toBuilder().setPayload(ByteString.copyFrom(bytes)).build();
  }

  @ParameterizedTest
  @MethodSource("bad_intents")
  void bad_signing_intents(Bad bad) {
    assertThat(fails(bad.reason(), () -> signing(client).sign(sign(bad.sent()))))
        .containsEntry(StatusErrors.PROBLEM, bad.problem().name());
  }

  @Test
  void a_signing_with_a_key_that_is_not_there() {
    assertThat(
            fails(
                ErrorReason.KEY_NOT_FOUND,
                () ->
                    signing(client)
                        .sign(
                            sign(installation.wallet.sign(signingIntent("nowhere", "x").build())))))
        .containsEntry(StatusErrors.RESOURCE, "keys/nowhere");
  }

  @Test
  void a_requester_for_whom_the_client_may_not_submit() {
    fails(
        ErrorReason.CLIENT_NOT_ALLOWED,
        () -> signing(client).sign(sign(installation.treasury.sign(good().build()))));
  }

  @Test
  void bad_key_intents() {
    fails(
        ErrorReason.PARTY_UNKNOWN,
        () ->
            keys(client)
                .createKey(
                    createKey(installation.wallet.sign(keyIntent("new", 1, "p1", "p9").build()))));
    fails(
        ErrorReason.PARTY_UNKNOWN,
        () ->
            keys(client)
                .createKey(
                    createKey(
                        installation.wallet.sign(
                            keyIntent("new", 1, "p1", "coordinator").build()))));
    fails(
        ErrorReason.THRESHOLD_INVALID,
        () ->
            keys(client)
                .createKey(
                    createKey(installation.wallet.sign(keyIntent("new", 3, "p1", "p2").build()))));
    fails(ErrorReason.INTENT_MALFORMED, () -> keys(client).createKey(createKey(signed())));
    fails(
        ErrorReason.KEY_EXISTS,
        () ->
            keys(client)
                .createKey(
                    createKey(installation.wallet.sign(keyIntent("hot", 2, "p1", "p2").build()))));
    fails(
        ErrorReason.UNSUPPORTED_SCHEME,
        () ->
            keys(client)
                .createKey(
                    createKey(
                        installation.wallet.sign(
                            keyIntent("new", 2, "p1", "p2")
                                .setScheme(Scheme.SCHEME_UNSPECIFIED)
                                .build()))));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "hot",
        "keys/",
        "keys/Hot",
        "keys/hot/",
        "keys/*",
        "keys/hot/signings/",
        "keys/\u0000"
      })
  void bad_names(String name) {
    fails(
        ErrorReason.RESOURCE_NAME_INVALID,
        () -> keys(client).getKey(GetKeyRequest.newBuilder().setName(name).build()));
    fails(
        ErrorReason.RESOURCE_NAME_INVALID,
        () -> signing(client).getSigning(GetSigningRequest.newBuilder().setName(name).build()));
    fails(
        ErrorReason.RESOURCE_NAME_INVALID,
        () ->
            signing(client)
                .watchSigning(WatchSigningRequest.newBuilder().setName(name).build())
                .next());
  }

  @Test
  void signings_that_are_not_there() {
    String name = "keys/hot/signings/f47ac10b-58cc-4372-a567-0e02b2c3d479";
    fails(
        ErrorReason.SIGNING_NOT_FOUND,
        () -> signing(client).getSigning(GetSigningRequest.newBuilder().setName(name).build()));
    fails(
        ErrorReason.SIGNING_NOT_FOUND,
        () ->
            signing(client)
                .watchSigning(WatchSigningRequest.newBuilder().setName(name).build())
                .next());
  }

  @Test
  void a_negative_page_size() {
    fails(
        ErrorReason.PAGE_SIZE_INVALID,
        () -> keys(client).listKeys(ListKeysRequest.newBuilder().setPageSize(-1).build()));
  }

  @ParameterizedTest
  @ValueSource(strings = {"x", "!!!!", "AAAAAAAAAAAAAAAAAAAAAA", "AQAAAABrZXlzL2hvdA"})
  void page_tokens_not_made_here(String token) {
    fails(
        ErrorReason.PAGE_TOKEN_INVALID,
        () -> keys(client).listKeys(ListKeysRequest.newBuilder().setPageToken(token).build()));
  }

  @Test
  void random_and_truncated_bytes_on_every_method() {
    Random random = new Random(7);
    byte[] good = sign(signed()).toByteArray();
    for (MethodDescriptor<?, ?> method :
        Stream.concat(
                SigningServiceGrpc.getServiceDescriptor().getMethods().stream(),
                io.coterie.proto.custody.v1.KeyServiceGrpc.getServiceDescriptor()
                    .getMethods()
                    .stream())
            .toList()) {
      for (int i = 0; i < 40; i++) {
        byte[] bytes;
        if (i % 2 == 0) {
          bytes = new byte[random.nextInt(1, 300)];
          random.nextBytes(bytes);
        } else {
          bytes = Arrays.copyOf(good, random.nextInt(1, good.length));
        }
        Status status = call(method, bytes);
        assertThat(status.getCode())
            .as("%s %s", method.getFullMethodName(), status)
            .isIn(
                Status.Code.OK, // ListKeys has no required field: bytes may decode to a request
                Status.Code.INVALID_ARGUMENT,
                Status.Code.UNAUTHENTICATED,
                Status.Code.PERMISSION_DENIED);
        assertThat(String.valueOf(status.getDescription())).doesNotContain("Exception");
      }
    }
  }

  @Test
  void oversized_messages() {
    Status status = call(SigningServiceGrpc.getSignMethod(), new byte[192 * 1024 + 1]);
    assertThat(status.getCode()).isIn(Status.Code.RESOURCE_EXHAUSTED, Status.Code.CANCELLED);
    fails(
        ErrorReason.REQUEST_TOO_LARGE,
        () ->
            signing(client)
                .sign(
                    sign(
                        signed().toBuilder()
                            .setPayload(ByteString.copyFrom(new byte[128 * 1024 + 1]))
                            .build())));
  }

  @Test
  void an_unknown_method() {
    MethodDescriptor<byte[], byte[]> method =
        raw("coterie.custody.v1.SigningService/Steal", MethodDescriptor.MethodType.UNARY);
    assertThatThrownBy(
            () ->
                ClientCalls.blockingUnaryCall(
                    client, method, CallOptions.DEFAULT, new byte[] {1, 2, 3}))
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.UNIMPLEMENTED));
  }

  private static Status call(MethodDescriptor<?, ?> method, byte[] bytes) {
    try {
      ClientCalls.blockingServerStreamingCall(
              client,
              raw(method.getFullMethodName(), MethodDescriptor.MethodType.SERVER_STREAMING),
              CallOptions.DEFAULT.withDeadlineAfter(10, TimeUnit.SECONDS),
              bytes)
          .forEachRemaining(answer -> {});
      return Status.OK;
    } catch (StatusRuntimeException e) {
      return e.getStatus();
    }
  }

  private static MethodDescriptor<byte[], byte[]> raw(
      String name, MethodDescriptor.MethodType type) {
    MethodDescriptor.Marshaller<byte[]> bytes =
        new MethodDescriptor.Marshaller<>() {
          @Override
          public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
          }

          @Override
          public byte[] parse(InputStream stream) {
            try {
              return stream.readAllBytes();
            } catch (java.io.IOException e) {
              throw new IllegalStateException(e);
            }
          }
        };
    return MethodDescriptor.<byte[], byte[]>newBuilder()
        .setType(type)
        .setFullMethodName(name)
        .setRequestMarshaller(bytes)
        .setResponseMarshaller(bytes)
        .build();
  }
}
