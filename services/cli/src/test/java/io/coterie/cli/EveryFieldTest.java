package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import com.google.protobuf.Timestamp;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Signing;
import io.grpc.protobuf.StatusProto;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A coordinator lies in each field of its answers, one after another. The fields are those that the
 * answers have, by reflection: a new one fails this test until somebody has decided what a lie in
 * it may do.
 */
@Timeout(300)
class EveryFieldTest {
  private static final String DIGEST = "ab".repeat(32);

  /** In what it makes of a text. */
  private static final String LIE = "lie";

  /** The end of a command to which a field was a lie. */
  private enum Effect {
    /** Nothing is shown, and nothing is signed. */
    REFUSED,
    /** It is one statement of a party that does not count. */
    NOT_COUNTED,
    /** The command shows its own, or nothing. */
    OWN,
    /** It is shown as the coordinator's word, and no fact about a key or signature follows. */
    WORD
  }

  private static final Map<String, Effect> OF_KEYS = new TreeMap<>();
  private static final Map<String, Effect> OF_SIGNINGS = new TreeMap<>();

  private static void put(Map<String, Effect> into, Effect effect, String... paths) {
    for (String path : paths) {
      into.put(path, effect);
    }
  }

  static {
    put(
        OF_KEYS,
        Effect.REFUSED,
        "name",
        "scheme",
        "threshold",
        "parties",
        "public_key",
        "proof_of_possession",
        "epoch",
        "reshare_epoch",
        "request_id",
        "xpub",
        "fingerprint",
        "attestation.completions.session_id",
        "attestation.completions.signed_intent.payload",
        "attestation.completions.signed_intent.payload_type",
        "attestation.completions.signed_intent.signatures.keyid",
        "attestation.completions.signed_intent.signatures.sig",
        "attestation.completions.key_public",
        "attestation.completions.signatures.party",
        "attestation.completions.signatures.signature",
        "attestation.completions.signatures.used");
    put(
        OF_KEYS,
        Effect.NOT_COUNTED,
        "current.party",
        "current.epoch",
        "current.session_id",
        "current.key_public_digest",
        "current.undecided",
        "current.signature");
    put(OF_KEYS, Effect.WORD, "state", "create_time", "error");
    put(
        OF_SIGNINGS,
        Effect.REFUSED,
        "request_id",
        "scheme",
        "signature",
        "intent_digest",
        "recovery_id",
        "der_signature",
        "public_key",
        "digest");
    put(
        OF_SIGNINGS,
        Effect.OWN,
        "decoded.kind",
        "decoded.fields.name",
        "decoded.fields.value",
        // There is nothing to prove about a request that is signed.
        "receipts.payload",
        "receipts.payload_type",
        "receipts.signatures.sig",
        "receipts.signatures.keyid");
    put(
        OF_SIGNINGS,
        Effect.WORD,
        // Of this key, which `CorruptCoordinatorTest` shows; the rest is where to find it again.
        "name",
        "state",
        "signing_set",
        "create_time",
        "complete_time",
        "sessions",
        "error",
        "presigned");
  }

  @TempDir static Path folder;
  private static FakeCoordinator coordinator;

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    Run created =
        coterie(
            "keys",
            "create",
            "ecdsa",
            "--scheme",
            "ecdsa-secp256k1",
            "--threshold",
            "2",
            "--parties",
            "p1,p2,p3");
    assertThat(created.exitCode()).as(created.err()).isZero();
    Files.writeString(
        folder.resolve("tx"),
        "ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080");
  }

  @AfterAll
  static void stop() throws Exception {
    coordinator.close();
  }

  @BeforeEach
  void honest() {
    coordinator.honest();
  }

  private static Run coterie(String... args) {
    List<String> all = new ArrayList<>(List.of(args));
    all.addAll(List.of("--endpoint", "localhost:" + coordinator.port()));
    all.addAll(List.of("--ca", "" + folder.resolve("wallet.pem")));
    all.addAll(List.of("--cert", "" + folder.resolve("wallet.pem")));
    all.addAll(List.of("--key", "" + folder.resolve("wallet-key.pem")));
    all.addAll(List.of("--trust", "" + folder.resolve("trust.json")));
    all.addAll(List.of("--requester", "wallet"));
    all.addAll(List.of("--requester-key", "" + folder.resolve("wallet-intents.pem")));
    return Run.of(question -> Optional.of("y"), all.toArray(String[]::new));
  }

  // ---- the fields, by reflection ---------------------------------------------------------------

  /** Of the project's own messages each field; those of others as a whole. */
  private static List<String> paths(Descriptor type) {
    List<String> paths = new ArrayList<>();
    for (FieldDescriptor field : type.getFields()) {
      if (isOwn(field)) {
        paths(field.getMessageType()).forEach(inner -> paths.add(field.getName() + "." + inner));
      } else {
        paths.add(field.getName());
      }
    }
    return paths;
  }

  private static boolean isOwn(FieldDescriptor field) {
    return field.getJavaType() == FieldDescriptor.JavaType.MESSAGE
        && field.getMessageType().getFile().getPackage().startsWith("coterie.");
  }

  @Test
  void every_field_of_an_answer_is_classified_and_no_other() {
    assertThat(paths(Key.getDescriptor())).containsExactlyInAnyOrderElementsOf(OF_KEYS.keySet());
    assertThat(paths(Signing.getDescriptor()))
        .containsExactlyInAnyOrderElementsOf(OF_SIGNINGS.keySet());
  }

  /** The message with another value at a path: in the first element where there are several. */
  private static Message lie(Message honest, List<String> path) {
    FieldDescriptor field = honest.getDescriptorForType().findFieldByName(path.getFirst());
    Message.Builder liar = honest.toBuilder();
    if (field.isRepeated()) {
      boolean none = honest.getRepeatedFieldCount(field) == 0;
      Object first =
          none
              ? isOwn(field) ? liar.newBuilderForField(field).build() : field.getDefaultValue()
              : honest.getRepeatedField(field, 0);
      Object changed = changed(field, liar, first, path);
      if (none) {
        liar.addRepeatedField(field, changed);
      } else {
        liar.setRepeatedField(field, 0, changed);
      }
      return liar.build();
    }
    return liar.setField(field, changed(field, liar, honest.getField(field), path)).build();
  }

  private static Object changed(
      FieldDescriptor field, Message.Builder of, Object value, List<String> path) {
    return isOwn(field)
        ? lie((Message) value, path.subList(1, path.size()))
        : another(field, of, value);
  }

  private static Object another(FieldDescriptor field, Message.Builder of, Object value) {
    return switch (field.getJavaType()) {
      case STRING -> value + LIE;
      case BOOLEAN -> !(Boolean) value;
      case INT -> (Integer) value ^ 1;
      case LONG -> (Long) value ^ 1;
      case FLOAT -> (Float) value + 1;
      case DOUBLE -> (Double) value + 1;
      case BYTE_STRING -> flipped((ByteString) value);
      case ENUM -> other((EnumValueDescriptor) value);
      case MESSAGE ->
          switch (of.newBuilderForField(field)) {
            case Timestamp.Builder time -> time.setSeconds(1_000_000_000).build();
            case Status.Builder status -> status.setCode(5).setMessage(LIE).build();
            case Message.Builder unknown ->
                throw new AssertionError(unknown.getDescriptorForType());
          };
    };
  }

  private static ByteString flipped(ByteString value) {
    if (value.isEmpty()) {
      return ByteString.copyFromUtf8(LIE);
    }
    byte[] bytes = value.toByteArray();
    bytes[bytes.length - 1] ^= 1;
    return ByteString.copyFrom(bytes);
  }

  private static EnumValueDescriptor other(EnumValueDescriptor value) {
    List<EnumValueDescriptor> all = value.getType().getValues();
    return all.get((value.getIndex() + 1) % all.size());
  }

  private static List<String> split(String path) {
    return List.of(path.split("\\."));
  }

  // ---- the lies --------------------------------------------------------------------------------

  static Set<String> fieldsOfKeys() {
    return OF_KEYS.keySet();
  }

  static Set<String> fieldsOfSignings() {
    return OF_SIGNINGS.keySet();
  }

  /** Lines by which people or programs pay, or believe a signature. */
  private static Stream<String> facts(Run run) {
    return run.out()
        .lines()
        .filter(
            line ->
                Stream.of("public key", "xpub", "fingerprint", "threshold", "epoch", "signature")
                    .anyMatch(line::startsWith));
  }

  @ParameterizedTest
  @MethodSource("fieldsOfKeys")
  void a_lie_in_a_field_of_a_key(String path) {
    Run honest = coterie("keys", "get", "ecdsa");
    assertThat(honest.exitCode()).as(honest.err()).isZero();
    coordinator.aboutKeys = key -> (Key) lie(key, split(path));
    Run run = coterie("keys", "get", "ecdsa");
    Run address = coterie("keys", "get", "ecdsa", "--address", "ethereum");
    switch (OF_KEYS.get(path)) {
      case REFUSED -> {
        for (Run refused : List.of(run, address)) {
          assertThat(refused.exitCode()).as("%s", refused).isEqualTo(ExitCode.REFUSED);
          assertThat(refused.out()).isEmpty();
        }
        coordinator.calls.clear();
        Run signing = coterie("sign", "ecdsa", "--digest", DIGEST);
        assertThat(signing.exitCode()).isEqualTo(ExitCode.REFUSED);
        assertThat(coordinator.calls).doesNotContain("sign");
      }
      case NOT_COUNTED -> assertThat(run.out()).doesNotContain("3 of 3 parties say so");
      case OWN -> assertThat(run.out()).isEqualTo(honest.out());
      case WORD -> {
        assertThat(run.exitCode()).isNotEqualTo(ExitCode.BUG);
        assertThat(facts(honest).toList()).containsAll(facts(run).toList());
      }
    }
  }

  @ParameterizedTest
  @MethodSource("fieldsOfSignings")
  void a_lie_in_a_field_of_a_signing(String path) {
    coordinator.aboutSignings = signing -> (Signing) lie(signing, split(path));
    Run run = coterie("sign", "ecdsa", "--ethereum-transaction", "" + folder.resolve("tx"));
    switch (OF_SIGNINGS.get(path)) {
      case REFUSED, NOT_COUNTED -> {
        assertThat(run.exitCode()).as("%s", run).isEqualTo(ExitCode.UNAVAILABLE);
        assertThat(run.out()).isEmpty();
      }
      case OWN -> {
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("0x3535353535353535").doesNotContain(LIE);
      }
      case WORD -> {
        assertThat(run.exitCode()).as("%s", run).isNotEqualTo(ExitCode.BUG);
        if (path.equals("state")) {
          assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
          assertThat(facts(run)).isEmpty();
        }
      }
    }
  }

  /** An error stays one whatever it says, and no fact comes with it. */
  @Test
  void a_lie_in_a_field_of_an_error() {
    assertThat(paths(Status.getDescriptor())).containsExactly("code", "message", "details");
    assertThat(paths(ErrorInfo.getDescriptor())).containsExactly("reason", "domain", "metadata");
    List<Any> details =
        List.of(
            Any.pack(ErrorInfo.getDefaultInstance()),
            Any.pack(
                ErrorInfo.newBuilder()
                    .setReason("SIGNED")
                    .setDomain("other")
                    .putMetadata("signature", "00\npublic key  02")
                    .build()),
            Any.pack(Key.getDefaultInstance()),
            Any.newBuilder().setTypeUrl(LIE).setValue(ByteString.copyFromUtf8(LIE)).build());
    for (int code = 1; code <= 17; code++) {
      for (Any detail : details) {
        Status status =
            Status.newBuilder()
                .setCode(code)
                .setMessage("public key  02\nsignature  00")
                .addDetails(detail)
                .build();
        coordinator.aboutKeys =
            key -> {
              throw StatusProto.toStatusRuntimeException(status);
            };
        Run run = coterie("keys", "get", "ecdsa", "--timeout", "1");
        assertThat(run.exitCode())
            .as("%s %s", status, run)
            .isIn(ExitCode.REFUSED, ExitCode.UNAVAILABLE);
        assertThat(run.out()).isEmpty();
        assertThat(run.err().lines()).noneMatch(line -> line.startsWith("public key"));
      }
    }
  }
}
