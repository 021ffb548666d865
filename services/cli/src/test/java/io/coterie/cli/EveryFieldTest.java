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
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.Refusals;
import io.coterie.proto.custody.v1.Signing;
import io.grpc.protobuf.StatusProto;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
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
 * A coordinator lies in each field of its answers and in each element, one after another. The
 * fields are those that the answers have, by reflection: a new one fails this test until somebody
 * has decided what a lie in it may do.
 */
@Timeout(300)
class EveryFieldTest {
  private static final String DIGEST = "ab".repeat(32);

  /** In what it makes of a text. */
  private static final String LIE = "lie";

  /**
   * After each lie about a key the command that shows it is run. The first lie in each field, and
   * so many per cent of the others, are told to the commands that use the key as well.
   */
  private static final int PERCENT =
      Integer.parseInt(System.getenv().getOrDefault("COTERIE_RUNS_PERCENT", "1"));

  /** Chooses as many again, other ones in each run. */
  private static final long FRESH =
      Optional.ofNullable(System.getenv("SEED"))
          .filter(seed -> !seed.isEmpty())
          .map(Long::parseLong)
          .orElseGet(() -> new SecureRandom().nextLong() >>> 1);

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
        "origin",
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

  /** Of the detail of an error that says which parties refused. */
  private static final Set<String> OF_REFUSALS =
      Set.of(
          "receipts.payload",
          "receipts.payload_type",
          "receipts.signatures.sig",
          "receipts.signatures.keyid");

  @TempDir static Path folder;
  private static FakeCoordinator coordinator;

  @BeforeAll
  static void start() throws Exception {
    System.out.println("fresh seed " + FRESH);
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    for (List<String> command :
        List.of(
            create("ecdsa"),
            create("moved"),
            List.of("keys", "reshare", "moved", "--threshold", "2", "--parties", "p2,p3,p4"),
            List.of("keys", "refresh", "moved"))) {
      Run run = coterie(command.toArray(String[]::new));
      assertThat(run.exitCode()).as(run.err()).isZero();
    }
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

  private static List<String> create(String key) {
    return List.of(
        "keys",
        "create",
        key,
        "--scheme",
        "ecdsa-secp256k1",
        "--threshold",
        "2",
        "--parties",
        "p1,p2,p3");
  }

  private static Run coterie(String... args) {
    return Run.ofWallet(
        question -> Optional.of("y"),
        folder.resolve("trust.json"),
        coordinator.port(),
        List.of(args));
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
    assertThat(paths(Refusals.getDescriptor())).containsExactlyInAnyOrderElementsOf(OF_REFUSALS);
  }

  /**
   * An answer that differs from an honest one in one place.
   *
   * @param path of a field that it lies in
   * @param what is wrong with it
   */
  private record Lie(String path, String what, Message answer) {}

  /**
   * Each value changed, also of every element; each element taken away, given twice, an empty one
   * beside it, and all in another order; each value missing.
   */
  private static List<Lie> lies(Message honest) {
    List<Lie> lies = new ArrayList<>();
    collect(honest, "", "", inner -> inner, lies);
    return lies;
  }

  /**
   * @param outside the path of a message inside the answer, with a dot at its end
   * @param elements numbers of the elements on the way to it
   * @param whole the answer with another message there
   */
  private static void collect(
      Message of, String outside, String elements, UnaryOperator<Message> whole, List<Lie> lies) {
    for (FieldDescriptor field : of.getDescriptorForType().getFields()) {
      String path = outside + field.getName();
      if (field.isRepeated()) {
        inElements(of, field, path, elements, whole, lies);
        continue;
      }
      boolean present =
          field.hasPresence()
              ? of.hasField(field)
              : !of.getField(field).equals(field.getDefaultValue());
      if (present) {
        lies.add(
            new Lie(
                leaf(field, path),
                elements + " without " + path,
                whole.apply(of.toBuilder().clearField(field).build())));
      }
      UnaryOperator<Object> set = value -> of.toBuilder().setField(field, value).build();
      changed(field, of.getField(field), path, elements, of, set, whole, lies);
    }
  }

  private static void inElements(
      Message of,
      FieldDescriptor field,
      String path,
      String elements,
      UnaryOperator<Message> whole,
      List<Lie> lies) {
    List<?> all = (List<?>) of.getField(field);
    Object empty = empty(of, field);
    for (int i = 0; i < all.size(); i++) {
      int at = i;
      String which = elements + " element " + at;
      UnaryOperator<Object> set =
          value -> of.toBuilder().setRepeatedField(field, at, value).build();
      changed(field, all.get(at), path, which, of, set, whole, lies);
      List<Object> fewer = new ArrayList<>(all);
      fewer.remove(at);
      lies.add(elements(of, field, path, which + " away", fewer, whole));
      List<Object> twice = new ArrayList<>(all);
      twice.add(all.get(at));
      lies.add(elements(of, field, path, which + " twice", twice, whole));
    }
    if (all.isEmpty()) {
      UnaryOperator<Object> add = value -> of.toBuilder().addRepeatedField(field, value).build();
      changed(field, empty, path, elements + " one element", of, add, whole, lies);
    }
    List<Object> more = new ArrayList<>(all);
    more.add(empty);
    lies.add(elements(of, field, path, elements + " an empty element", more, whole));
    if (all.size() > 1) {
      List<Object> backwards = new ArrayList<>(all);
      Collections.reverse(backwards);
      lies.add(elements(of, field, path, elements + " backwards", backwards, whole));
      lies.add(elements(of, field, path, elements + " none", List.of(), whole));
    }
  }

  /** The least content that an element can have. Of another project's messages none is repeated. */
  private static Object empty(Message of, FieldDescriptor field) {
    return switch (field.getJavaType()) {
      case STRING -> "";
      case BYTE_STRING -> ByteString.EMPTY;
      case MESSAGE -> of.toBuilder().newBuilderForField(field).build();
      default -> throw new AssertionError(field);
    };
  }

  private static Lie elements(
      Message of,
      FieldDescriptor field,
      String path,
      String what,
      List<Object> all,
      UnaryOperator<Message> whole) {
    return new Lie(
        leaf(field, path), what, whole.apply(of.toBuilder().setField(field, all).build()));
  }

  /** The classified path that stands for a field: that of a message has one effect for all. */
  private static String leaf(FieldDescriptor field, String path) {
    return isOwn(field) ? path + "." + paths(field.getMessageType()).getFirst() : path;
  }

  private static void changed(
      FieldDescriptor field,
      Object value,
      String path,
      String elements,
      Message of,
      UnaryOperator<Object> set,
      UnaryOperator<Message> whole,
      List<Lie> lies) {
    if (isOwn(field)) {
      collect(
          (Message) value,
          path + ".",
          elements,
          inner -> whole.apply((Message) set.apply(inner)),
          lies);
    } else {
      Object other = another(field, of.toBuilder(), value);
      lies.add(new Lie(path, elements + " changed", whole.apply((Message) set.apply(other))));
    }
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

  /** The lies in a field; there is one at least. */
  private static List<Lie> lies(Message honest, String path) {
    List<Lie> lies = lies(honest).stream().filter(lie -> lie.path().equals(path)).toList();
    assertThat(lies).as("lies in %s", path).isNotEmpty();
    return lies;
  }

  @ParameterizedTest
  @MethodSource("fieldsOfKeys")
  void a_lie_in_a_field_of_a_key(String path) {
    for (String name : List.of("ecdsa", "moved")) {
      honest();
      AtomicReference<Key> answer = new AtomicReference<>();
      coordinator.aboutKeys =
          key -> {
            answer.set(key);
            return key;
          };
      Run honest = coterie("keys", "get", name);
      assertThat(honest.exitCode()).as(honest.err()).isZero();
      // Which lies there are; each is told about the answer to the challenge of its own call.
      int count = lies(answer.get(), path).size();
      for (int i = 0; i < count; i++) {
        int which = i;
        AtomicReference<String> what = new AtomicReference<>();
        coordinator.aboutKeys =
            key -> {
              List<Lie> lies = lies(key, path);
              // An answer without a challenge has none of the statements that another one has.
              Lie lie = lies.get(Math.min(which, lies.size() - 1));
              what.set(name + ":" + lie.what());
              return (Key) lie.answer();
            };
        requireEffect(path, name, honest, what, i == 0 || isChosen(name + path, i));
      }
    }
  }

  /** One of the lies that all commands are told: always the same ones, and fresh ones. */
  private static boolean isChosen(String where, int lie) {
    return Stream.of(0L, FRESH)
        .anyMatch(
            seed ->
                new SplittableRandom(seed ^ 31L * where.hashCode() + lie).nextInt(100) < PERCENT);
  }

  private static void requireRefused(Run run, String lie) {
    assertThat(run.exitCode()).as("%s %s", lie, run).isEqualTo(ExitCode.REFUSED);
    assertThat(run.out()).isEmpty();
  }

  private void requireEffect(
      String path, String name, Run honest, AtomicReference<String> what, boolean everyCommand) {
    Run run = coterie("keys", "get", name);
    String lie = what.get();
    switch (OF_KEYS.get(path)) {
      case REFUSED -> {
        requireRefused(run, lie);
        if (!everyCommand) {
          return;
        }
        requireRefused(coterie("keys", "get", name, "--address", "ethereum"), lie);
        coordinator.calls.clear();
        Run signing = coterie("sign", name, "--digest", DIGEST);
        assertThat(signing.exitCode()).as("%s", lie).isEqualTo(ExitCode.REFUSED);
        assertThat(coordinator.calls).doesNotContain("sign");
      }
      case NOT_COUNTED ->
          assertThat(run.out()).as("%s", lie).doesNotContain("3 of 3 parties say so");
      case OWN -> assertThat(run.out()).as("%s", lie).isEqualTo(honest.out());
      case WORD -> {
        assertThat(run.exitCode()).as("%s", lie).isNotEqualTo(ExitCode.BUG);
        assertThat(facts(honest).toList()).as("%s", lie).containsAll(facts(run).toList());
      }
    }
  }

  @ParameterizedTest
  @MethodSource("fieldsOfSignings")
  void a_lie_in_a_field_of_a_signing(String path) {
    Run honest = coterie("sign", "ecdsa", "--ethereum-transaction", "" + folder.resolve("tx"));
    assertThat(honest.exitCode()).as(honest.err()).isZero();
    int count = lies(coordinator.lastSigned, path).size();
    for (int i = 0; i < count; i++) {
      int which = i;
      coordinator.aboutSignings = signing -> (Signing) lies(signing, path).get(which).answer();
      Run run = coterie("sign", "ecdsa", "--ethereum-transaction", "" + folder.resolve("tx"));
      String lie = lies(coordinator.lastSigned, path).get(which).what();
      switch (OF_SIGNINGS.get(path)) {
        case REFUSED, NOT_COUNTED -> {
          assertThat(run.exitCode()).as("%s %s", lie, run).isEqualTo(ExitCode.UNAVAILABLE);
          assertThat(run.out()).isEmpty();
        }
        case OWN -> {
          assertThat(run.exitCode()).as("%s %s", lie, run.err()).isZero();
          assertThat(run.out()).contains("0x3535353535353535").doesNotContain(LIE);
        }
        case WORD -> {
          assertThat(run.exitCode()).as("%s %s", lie, run).isNotEqualTo(ExitCode.BUG);
          if (path.equals("state")) {
            assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
            assertThat(facts(run)).isEmpty();
          }
        }
      }
    }
  }

  /** A backend that believes that nothing was signed asks for the payload again. */
  @Test
  void a_lie_in_a_receipt_proves_nothing() {
    coordinator.never = Set.of(1, 2, 3);
    String id = RequestId.next();
    String[] cancel = {"cancel", "ecdsa", "--request-id", id, "--reshare-epoch", "0"};
    assertThat(coterie(cancel).exitCode()).isZero();
    Signing honest = coordinator.cancelled(id, "keys/ecdsa", 0, coordinator.never);
    for (Lie lie : lies(honest)) {
      if (lie.path().startsWith("receipts.") || lie.path().equals("request_id")) {
        coordinator.aboutSignings = _ -> (Signing) lie.answer();
        assertThat(coterie(cancel).exitCode())
            .as("%s %s", lie.path(), lie.what())
            .isIn(ExitCode.REFUSED, ExitCode.UNAVAILABLE);
      }
    }
  }

  /** It costs waiting, and no money; but nobody is to blame a party for it. */
  @Test
  void a_lie_in_a_refusal_is_no_word_of_a_party() {
    AtomicReference<UnaryOperator<Refusals>> told = new AtomicReference<>(UnaryOperator.identity());
    AtomicReference<Refusals> honest = new AtomicReference<>();
    coordinator.aboutSignings =
        request -> {
          Refusals.Builder refusals = Refusals.newBuilder();
          for (int party : List.of(1, 2)) {
            Receipt receipt = coordinator.refused(request, "keys/ecdsa", 0, party);
            refusals.addReceipts(FakeCoordinator.signed(party, receipt));
          }
          honest.set(refusals.build());
          throw StatusProto.toStatusRuntimeException(
              Status.newBuilder()
                  .setCode(9)
                  .addDetails(Any.pack(told.get().apply(honest.get())))
                  .build());
        };
    String[] sign = {"sign", "ecdsa", "--digest", DIGEST};
    assertThat(signedRefusals(coterie(sign))).containsExactly("p1", "p2");
    int count = lies(honest.get()).size();
    for (int i = 0; i < count; i++) {
      int which = i;
      told.set(refusals -> (Refusals) lies(refusals).get(which).answer());
      Run run = coterie(sign);
      Lie lie = lies(honest.get()).get(which);
      assertThat(run.exitCode()).as("%s %s", lie, run).isEqualTo(ExitCode.UNAVAILABLE);
      assertThat(run.out()).as("%s", lie).isEmpty();
      List<String> parties = signedRefusals(run);
      boolean ofList =
          lie.path().equals("receipts.payload")
              && lie.what().matches(".*(twice|empty element|backwards)");
      if (ofList) {
        assertThat(parties).as("%s", lie).containsExactlyInAnyOrder("p1", "p2");
      } else {
        assertThat(parties).as("%s", lie).isSubsetOf("p1", "p2").hasSizeLessThan(2);
      }
    }
  }

  private static List<String> signedRefusals(Run run) {
    return Pattern.compile("party (p\\d) refused: ON_HOLD \\(signed by the party\\)")
        .matcher(run.err())
        .results()
        .map(found -> found.group(1))
        .toList();
  }

  @Test
  void an_answer_that_is_empty_is_believed_by_no_command() {
    coordinator.aboutKeys = _ -> Key.getDefaultInstance();
    coordinator.aboutSignings = _ -> Signing.getDefaultInstance();
    String[] id = {"--request-id", RequestId.next()};
    for (List<String> command :
        List.of(
            List.of("keys", "get", "ecdsa"),
            List.of("keys", "get", "ecdsa", "--address", "ethereum"),
            create("new"),
            List.of("keys", "refresh", "ecdsa"),
            List.of("keys", "reshare", "ecdsa", "--threshold", "2", "--parties", "p1,p2,p4"),
            List.of("cancel", "ecdsa", id[0], id[1], "--reshare-epoch", "0"),
            List.of("sign", "ecdsa", "--digest", DIGEST))) {
      Run run = coterie(command.toArray(String[]::new));
      assertThat(run.exitCode())
          .as("%s %s", command, run)
          .isIn(ExitCode.REFUSED, ExitCode.UNAVAILABLE);
      assertThat(run.out()).as("%s", command).isEmpty();
    }
    Run list = coterie("keys", "list");
    assertThat(facts(list)).as("%s", list).isEmpty();
    coordinator.aboutKeys = key -> key;
    for (List<String> command :
        List.of(
            List.of("cancel", "ecdsa", id[0], id[1], "--reshare-epoch", "0"),
            List.of("sign", "ecdsa", "--digest", DIGEST))) {
      Run run = coterie(command.toArray(String[]::new));
      assertThat(run.exitCode())
          .as("%s %s", command, run)
          .isIn(ExitCode.REFUSED, ExitCode.UNAVAILABLE);
      assertThat(run.out()).as("%s", command).isEmpty();
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
