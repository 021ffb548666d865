package io.coterie.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import com.google.protobuf.UnknownFieldSet;
import com.google.rpc.ErrorInfo;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Terminal;
import io.coterie.proto.custody.v1.Attestation;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.custody.v1.Key;
import io.coterie.proto.custody.v1.ListKeysResponse;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.grpc.protobuf.StatusProto;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.FieldSource;

/** The whole command before a coordinator that answers as it likes. */
class CorruptCoordinatorTest {
  private static final String DIGEST = "ab".repeat(32);
  private static final ByteString OTHER_POINT =
      ByteString.fromHex("02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5");

  /** EIP-155's example. */
  private static final String TRANSACTION =
      "ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080";

  @TempDir static Path folder;
  private static FakeCoordinator coordinator;

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    Files.writeString(folder.resolve("tx"), TRANSACTION);
    for (String scheme : List.of("bls12381", "ecdsa-secp256k1", "ed25519", "bip340-secp256k1")) {
      Run created = create(scheme.replaceFirst("-.*", ""), scheme);
      assertThat(created.exitCode()).as(created.err()).isZero();
    }
  }

  @AfterAll
  static void stop() throws Exception {
    coordinator.close();
  }

  @BeforeEach
  void honest() {
    coordinator.honest();
  }

  private static Run create(String key, String scheme) {
    return coterie(
        "keys", "create", key, "--scheme", scheme, "--threshold", "2", "--parties", "p1,p2,p3");
  }

  private static Run coterie(String... args) {
    return coterie("trust.json", question -> Optional.of("y"), args);
  }

  private static Run coterie(String trust, Terminal terminal, String... args) {
    return Run.ofWallet(terminal, folder.resolve(trust), coordinator.port(), List.of(args));
  }

  private static String value(Run run, String label) {
    return run.out()
        .lines()
        .filter(line -> line.startsWith(label + " "))
        .map(line -> line.substring(label.length()).strip())
        .findFirst()
        .orElseThrow(() -> new AssertionError(label + " in " + run));
  }

  @Test
  void an_honest_one_is_believed() {
    Run shown = coterie("keys", "get", "ecdsa");
    assertThat(shown.exitCode()).as(shown.err()).isZero();
    assertThat(value(shown, "threshold")).isEqualTo("2 of 3: p1, p2, p3");
    assertThat(value(shown, "xpub")).isEqualTo(coordinator.key("keys/ecdsa").getXpub());
    assertThat(value(shown, "fingerprint")).matches("([0-9a-f]{4} ){7}[0-9a-f]{4}");
    assertThat(value(shown, "current")).isEqualTo("3 of 3 parties say so");
    assertThat(coterie("keys", "get", "ecdsa", "-o", "json").out())
        .contains("\"xpub\": \"" + coordinator.key("keys/ecdsa").getXpub());
    String address = coterie("keys", "get", "ecdsa", "--address", "ethereum").out().strip();
    assertThat(
            coterie("keys", "get", "ecdsa", "--address", "ethereum", "-o", "json")
                .out()
                .replaceAll("\\s", ""))
        .isEqualTo("{\"name\":\"keys/ecdsa\",\"path\":\"m\",\"address\":\"" + address + "\"}");
    Run doctor = coterie("doctor");
    assertThat(doctor.out())
        .containsPattern("ok +trust +test, version 1")
        .containsPattern("ok +requester +wallet");
  }

  @ParameterizedTest
  @CsvSource({
    "bls, -m, hello, bls12381",
    "ed25519, -m, hello, ed25519",
    "ecdsa, --digest, "
        + "abababababababababababababababababababababababababababababababab"
        + ", ecdsa",
  })
  void its_signatures_are_taken(String key, String option, String payload, String scheme) {
    String name = key.equals("bls") ? "bls12381" : key;
    Run signed = coterie("sign", name, option, payload, "--scheme", scheme);
    assertThat(signed.exitCode()).as(signed.err()).isZero();
    assertThat(coordinator.calls).containsExactly("getKey", "sign");
    Run verified =
        coterie(
            "verify",
            name,
            option,
            payload,
            "--scheme",
            scheme,
            "--signature",
            value(signed, "signature"));
    assertThat(verified.out()).isEqualTo("valid\n");
  }

  @Test
  void an_intent_that_was_signed_for_another_key_is_not_sent() {
    String its = value(coterie("keys", "get", "ed25519"), "fingerprint");
    for (String fingerprint : List.of(TestFiles.FINGERPRINT, its)) {
      Path intent = folder.resolve("offline " + fingerprint);
      Run signed =
          coterie(
              "intent",
              "sign",
              "ed25519",
              "-m",
              "hello",
              "--scheme",
              "ed25519",
              "--fingerprint",
              fingerprint,
              "--out",
              "" + intent);
      assertThat(signed.exitCode()).as(signed.err()).isZero();
      coordinator.honest();
      Run sent = coterie("sign", "--intent", "" + intent);
      if (fingerprint.equals(its)) {
        assertThat(sent.exitCode()).as(sent.err()).isZero();
      } else {
        assertThat(sent.exitCode()).isEqualTo(ExitCode.LOCAL);
        assertThat(sent.err()).contains("a key with fingerprint " + fingerprint, "has " + its);
        assertThat(coordinator.calls).containsExactly("getKey");
      }
    }
  }

  @Test
  void a_child_signs_and_gets_its_transaction_back() {
    Run signed =
        coterie(
            "sign",
            "ecdsa",
            "--path",
            "m/0/7",
            "--ethereum-transaction",
            "" + folder.resolve("tx"));
    assertThat(signed.exitCode()).as(signed.err()).isZero();
    assertThat(value(signed, "public key"))
        .isEqualTo(coterie("keys", "get", "ecdsa", "--path", "m/0/7").out().strip());
    assertThat(value(signed, "result")).startsWith("0xf86c09");
  }

  @Test
  void new_shares_are_checked_and_leave_the_fingerprint() {
    create("moved", "bip340");
    Run before = coterie("keys", "get", "moved");
    Run refreshed = coterie("keys", "refresh", "moved");
    assertThat(refreshed.exitCode()).as(refreshed.err()).isZero();
    assertThat(value(refreshed, "epoch")).isEqualTo("2");
    Run reshared = coterie("keys", "reshare", "moved", "--threshold", "3", "--parties", "p3,p4,p5");
    assertThat(reshared.exitCode()).as(reshared.err()).isZero();
    assertThat(value(reshared, "threshold")).isEqualTo("3 of 3: p3, p4, p5");
    for (String same : List.of("fingerprint", "xpub", "public key")) {
      assertThat(value(reshared, same)).isEqualTo(value(before, same));
    }
    Run cancelled =
        coterie("keys", "cancel", "moved", "--request-id", value(reshared, "request id"));
    assertThat(cancelled.exitCode()).as(cancelled.err()).isZero();
  }

  private record KeyLie(String field, Consumer<Key.Builder> change, String said) {
    @Override
    public String toString() {
      return field;
    }
  }

  /** A key of the coordinator's own, under which it could take what is paid to it. */
  private static Key ownKey() {
    return new TestHolding("keys/own", Scheme.SCHEME_ECDSA_SECP256K1, "").answer();
  }

  static final List<KeyLie> KEY_LIES =
      List.of(
          new KeyLie("name", key -> key.setName("keys/other"), "another key"),
          new KeyLie("scheme", key -> key.setScheme(Scheme.SCHEME_BIP340_SECP256K1), "scheme"),
          new KeyLie("threshold", key -> key.setThreshold(1), "threshold"),
          new KeyLie("parties", key -> key.setParties(2, "p5"), "parties"),
          new KeyLie("public_key", key -> key.setPublicKey(ownKey().getPublicKey()), "public_key"),
          new KeyLie(
              "proof_of_possession",
              key -> key.setProofOfPossession(OTHER_POINT),
              "proof_of_possession"),
          new KeyLie("epoch", key -> key.setEpoch(9), "epoch"),
          new KeyLie("xpub", key -> key.setXpub(ownKey().getXpub()), "xpub"),
          new KeyLie("request_id", key -> key.setRequestId("other"), "request_id"),
          new KeyLie("no xpub", Key.Builder::clearXpub, "xpub"),
          new KeyLie("no attestation", Key.Builder::clearAttestation, "no attestation"),
          new KeyLie(
              "an empty attestation",
              key -> key.setAttestation(Attestation.getDefaultInstance()),
              "no attestation"),
          new KeyLie(
              "another key's attestation",
              key -> key.setAttestation(coordinator.key("keys/bls12381").getAttestation()),
              "another key"),
          new KeyLie(
              "a signature less",
              key -> key.getAttestationBuilder().getCompletionsBuilder(0).removeSignatures(1),
              "p2 has not signed its creation"),
          new KeyLie(
              "an unknown field",
              key ->
                  key.setUnknownFields(
                      UnknownFieldSet.newBuilder()
                          .addField(77, UnknownFieldSet.Field.newBuilder().addVarint(1).build())
                          .build()),
              "does not know"));

  private static final List<List<String>> COMMANDS =
      List.of(
          List.of("keys", "get", "ecdsa"),
          List.of("keys", "get", "ecdsa", "-o", "json"),
          List.of("keys", "get", "ecdsa", "--address", "ethereum"),
          List.of("keys", "get", "ecdsa", "--address", "bitcoin", "--path", "m/0"),
          List.of("keys", "get", "ecdsa", "--path", "m/1"),
          List.of("keys", "refresh", "ecdsa"),
          List.of("keys", "reshare", "ecdsa", "--threshold", "2", "--parties", "p1,p2,p4"),
          List.of("keys", "cancel", "ecdsa", "--request-id", "1"),
          List.of("sign", "ecdsa", "--digest", DIGEST),
          List.of("verify", "ecdsa", "--digest", DIGEST, "--signature", "00".repeat(64)),
          List.of("load", "ecdsa", "--rate", "1", "--seconds", "1"));

  @Test
  void a_request_without_an_answer_is_sent_again_by_a_load() {
    coordinator.unanswered.set(2);
    Run run = coterie("load", "ecdsa", "--rate", "2", "--seconds", "1", "--timeout", "20");
    assertThat(run.exitCode()).as(run.toString()).isZero();
    assertThat(run.out()).contains("requests 2, signed and verified 2, failed 0, retries 2");
  }

  @ParameterizedTest
  @FieldSource("KEY_LIES")
  void no_command_shows_or_uses_a_key_that_it_lies_about(KeyLie lie) {
    coordinator.aboutKeys =
        honest -> {
          Key.Builder key = honest.toBuilder();
          lie.change().accept(key);
          return key.build();
        };
    // Every lie to one command, and some to all: they have one way to a key.
    boolean some = Set.of("xpub", "no attestation", "epoch").contains(lie.field());
    for (List<String> command : some ? COMMANDS : COMMANDS.subList(0, 1)) {
      coordinator.calls.clear();
      Run run = coterie(command.toArray(String[]::new));
      assertThat(run.exitCode()).as("%s %s", command, run).isEqualTo(ExitCode.REFUSED);
      assertThat(run.out()).as("%s", command).isEmpty();
      String start = command.contains("json") ? "{\"error\":\"" : "coterie: ";
      assertThat(run.err().lines().filter(line -> line.startsWith(start)))
          .singleElement()
          .asString()
          .startsWith(start + "keys/ecdsa is not attested: ")
          .contains(lie.said())
          .contains("Do not use the key");
      // Nothing was signed on the strength of it.
      assertThat(coordinator.calls).as("%s", command).hasSize(1).doesNotContain("sign");
    }
  }

  @ParameterizedTest
  @FieldSource("KEY_LIES")
  void a_new_key_that_it_lies_about_is_not_shown(KeyLie lie) {
    coordinator.aboutKeys =
        honest -> {
          Key.Builder key = honest.toBuilder();
          lie.change().accept(key);
          return key.build();
        };
    Run run = create("new-" + KEY_LIES.indexOf(lie), "ecdsa");
    assertThat(run.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).contains("is not attested: ", lie.said());
  }

  @Test
  void a_key_that_another_intent_has_created_is_not_the_one_asked_for() {
    create("twice", "ecdsa");
    Run again = create("twice", "ecdsa");
    assertThat(again.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(again.out()).isEmpty();
    assertThat(again.err()).contains("keys/twice was created by another intent");
  }

  @Test
  void new_shares_that_were_not_made_are_not_reported() {
    create("lazy", "ecdsa");
    coordinator.renews = false;
    Run refresh = coterie("keys", "refresh", "lazy");
    assertThat(refresh.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(refresh.out()).isEmpty();
    assertThat(refresh.err()).contains("keys/lazy is not known to have new shares by this intent");
    Run reshare = coterie("keys", "reshare", "lazy", "--threshold", "2", "--parties", "p1,p2,p3");
    assertThat(reshare.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(reshare.out()).isEmpty();
    assertThat(reshare.err()).contains("keys/lazy was not given to these parties");
  }

  /** It shows an old epoch before, and the newest one after: nothing was done between them. */
  @Test
  void an_epoch_that_is_newer_than_the_one_before_is_no_refresh() {
    create("stale", "ecdsa");
    Key old = coordinator.key("keys/stale");
    for (int i = 0; i < 2; i++) {
      assertThat(coterie("keys", "refresh", "stale").exitCode()).isZero();
    }
    coordinator.renews = false;
    coordinator.aboutKeys = newest -> coordinator.calls.getLast().equals("getKey") ? old : newest;
    Run refresh = coterie("keys", "refresh", "stale", "--epoch", "1");
    assertThat(refresh.err()).contains("epoch 1");
    assertThat(refresh.exitCode()).as(refresh.out()).isEqualTo(ExitCode.REFUSED);
    assertThat(refresh.out()).isEmpty();
    assertThat(refresh.err())
        .contains("keys/stale is not known to have new shares by this intent: it shows epoch 3");
  }

  private static final List<List<String>> REPLACING =
      List.of(
          List.of("keys", "refresh", "asked"),
          List.of("keys", "reshare", "asked", "--threshold", "2", "--parties", "p1,p2,p4"));

  @Test
  void an_epoch_is_proven_by_as_many_parties_as_leave_too_few_for_another() {
    create("asked", "ecdsa");
    coordinator.reachable = Set.of(1, 3);
    assertThat(value(coterie("keys", "get", "asked"), "current"))
        .isEqualTo("2 of 3 parties say so");
    assertThat(coterie("keys", "get", "asked", "-o", "json").out())
        .contains("\"holds\": true", "\"confirming\": [\"p1\", \"p3\"]", "\"undecided\": []");

    coordinator.reachable = Set.of(2);
    Run shown = coterie("keys", "get", "asked");
    assertThat(shown.exitCode()).as(shown.err()).isZero();
    assertThat(value(shown, "current"))
        .isEqualTo("not proven: 1 of 3 parties say so, 2 are needed");
    Run json = coterie("keys", "get", "asked", "-o", "json");
    assertThat(json.exitCode()).as(json.err()).isZero();
    assertThat(json.out()).contains("\"holds\": false", "\"needed\": 2", "\"holders\": 3");
    for (List<String> command : REPLACING) {
      coordinator.calls.clear();
      Run run = coterie(command.toArray(String[]::new));
      assertThat(run.exitCode()).as("%s", command).isEqualTo(ExitCode.REFUSED);
      assertThat(run.err())
          .hasLineCount(1)
          .contains(
              "keys/asked is not proven to be in epoch 1 now: 1 of 3 parties say so, 2 are needed");
      assertThat(coordinator.calls).containsExactly("getKey");
    }
    // A caller that gives the epoch needs no proof of it; an address is the same in every epoch.
    assertThat(coterie("keys", "refresh", "asked", "--epoch", "1").exitCode()).isZero();
    assertThat(coterie("keys", "get", "asked", "--address", "ethereum").exitCode()).isZero();
    assertThat(coterie("sign", "asked", "--digest", DIGEST).exitCode()).isZero();
  }

  @Test
  void parties_that_have_gone_on_show_that_the_epoch_is_old() {
    create("old", "ecdsa");
    List<Key> before = new ArrayList<>();
    coordinator.aboutKeys =
        honest -> {
          before.add(honest);
          return honest;
        };
    assertThat(coterie("keys", "get", "old").exitCode()).isZero();
    coordinator.honest();
    assertThat(coterie("keys", "refresh", "old").exitCode()).isZero();
    Key old = before.getFirst();
    assertThat(old.getCurrentCount()).isEqualTo(3);

    // As it was, with the answers to the challenge of then; without any; with those of now.
    Map<UnaryOperator<Key>, String> lies = new LinkedHashMap<>();
    lies.put(now -> old, "the answer of p1 to the challenge does not verify");
    lies.put(
        now -> old.toBuilder().clearCurrent().addAllCurrent(now.getCurrentList()).build(),
        "p1 uses epoch 2, the coordinator shows epoch 1");
    lies.forEach(
        (lie, said) -> {
          coordinator.aboutKeys = lie;
          for (List<String> command :
              List.of(List.of("keys", "get", "old"), List.of("keys", "refresh", "old"))) {
            coordinator.calls.clear();
            Run run = coterie(command.toArray(String[]::new));
            assertThat(run.exitCode()).as("%s", run).isEqualTo(ExitCode.REFUSED);
            assertThat(run.out()).isEmpty();
            assertThat(run.err())
                .hasLineCount(1)
                .contains("keys/old is not shown as it is now: " + said);
            assertThat(coordinator.calls).containsExactly("getKey");
          }
        });
    coordinator.aboutKeys = now -> old.toBuilder().clearCurrent().build();
    assertThat(value(coterie("keys", "get", "old"), "current"))
        .isEqualTo("not proven: 0 of 3 parties say so, 2 are needed");
    assertThat(coterie("keys", "refresh", "old").exitCode()).isEqualTo(ExitCode.REFUSED);
  }

  @Test
  @Timeout(60)
  void a_list_without_end_or_with_a_key_twice_is_not_believed() {
    coordinator.aboutLists = page -> ListKeysResponse.newBuilder().setNextPageToken("x").build();
    Run endless = coterie("keys", "list");
    assertThat(endless.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(endless.err()).contains("a page of it has no keys").hasLineCount(1);
    coordinator.aboutLists = page -> page.toBuilder().setNextPageToken("keys/a").build();
    Run again = coterie("keys", "list", "-o", "json");
    assertThat(again.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(again.out()).isEmpty();
    assertThat(again.err()).contains("it has keys/bip340 twice").hasLineCount(1);
  }

  @Test
  void no_words_of_it_pose_as_a_line_of_the_doctor() {
    coordinator.aboutLists =
        page -> {
          throw StatusProto.toStatusRuntimeException(
              com.google.rpc.Status.newBuilder()
                  .setCode(com.google.rpc.Code.NOT_FOUND_VALUE)
                  .addDetails(
                      Any.pack(
                          ErrorInfo.newBuilder()
                              .setReason("X")
                              .putMetadata("key", "\nok    fingerprint  abcd")
                              .build()))
                  .build());
        };
    Run doctor = coterie("doctor");
    assertThat(doctor.out())
        .contains("ok    fingerprint  abcd")
        .containsPattern("FAIL +api ")
        .doesNotContainPattern("(?m)^ok +fingerprint");
  }

  @Test
  void a_state_that_is_not_known_ends_no_command() {
    coordinator.aboutKeys =
        honest ->
            honest.getName().equals("keys/ecdsa")
                ? honest.toBuilder().setStateValue(77).build()
                : honest;
    assertThat(coterie("keys", "get", "ecdsa").out()).contains("UNRECOGNIZED");
    assertThat(coterie("keys", "get", "ecdsa", "-o", "json").out()).contains("77");
    Run list = coterie("keys", "list");
    assertThat(list.exitCode()).as(list.err()).isZero();
    assertThat(list.out()).contains("UNRECOGNIZED", "keys/ed25519");
  }

  @Test
  void a_time_that_is_none_is_left_out_and_no_bug_of_the_command() {
    Timestamp none = Timestamp.newBuilder().setNanos(-1).build();
    coordinator.aboutKeys = honest -> honest.toBuilder().setCreateTime(none).build();
    coordinator.aboutSignings = honest -> honest.toBuilder().setCreateTime(none).build();
    for (List<String> command :
        List.of(
            List.of("keys", "get", "ecdsa"),
            List.of("keys", "list"),
            List.of("sign", "ecdsa", "--digest", DIGEST),
            List.of("sign", "ecdsa", "--ethereum-transaction", "" + folder.resolve("tx")))) {
      List<String> json = new ArrayList<>(command);
      json.addAll(List.of("-o", "json"));
      Run run = coterie(command.toArray(String[]::new));
      assertThat(run.exitCode()).as("%s", run).isZero();
      assertThat(run.out()).doesNotContain("created");
      Run inJson = coterie(json.toArray(String[]::new));
      assertThat(inJson.exitCode()).as("%s", inJson).isEqualTo(ExitCode.REFUSED);
      assertThat(inJson.err()).contains("a time in it is none");
    }
  }

  @Test
  void a_list_shows_each_key_as_far_as_it_is_attested() {
    coordinator.aboutKeys =
        honest ->
            switch (honest.getName()) {
              case "keys/bls12381" -> honest.toBuilder().setState(Key.State.CREATING).build();
              case "keys/ecdsa" -> honest.toBuilder().setThreshold(1).build();
              case "keys/ed25519" ->
                  honest.toBuilder().setName("keys/ed25519\nkeys/forged  ACTIVE").build();
              default -> honest;
            };
    Run list = coterie("keys", "list");
    assertThat(list.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(list.out().lines())
        .contains("keys/bls12381            CREATING")
        .contains("keys/ecdsa               NOT ATTESTED")
        .contains("?                        NOT ATTESTED")
        .anyMatch(row -> row.matches("keys/bip340 +ACTIVE +bip340-secp256k1 +2 of 3 +p1, p2, p3"))
        .noneMatch(row -> row.startsWith("keys/forged"));
    assertThat(list.err().lines())
        .hasSize(2)
        .anyMatch(line -> line.startsWith("coterie: keys/ecdsa is not attested: field threshold"));
    assertThat(coordinator.calls).containsOnly("listKeys 50");

    Run json = coterie("keys", "list", "-o", "json");
    assertThat(json.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(json.out())
        .contains("\"keys/bip340\"", "\"state\": \"CREATING\"")
        .doesNotContain("keys/ecdsa", "keys/forged");
    assertThat(json.err().lines())
        .hasSize(2)
        .allMatch(line -> line.startsWith("{\"error\":\"") && line.endsWith("\"}"))
        .anyMatch(line -> line.contains("keys/ecdsa is not attested: field threshold"));
    coordinator.honest();
    assertThat(coterie("keys", "list").exitCode()).isZero();
  }

  @Test
  void a_list_in_json_has_its_keys_also_if_there_are_none_and_no_word_that_nobody_verified() {
    coordinator.aboutKeys =
        honest -> honest.toBuilder().addCurrent(EpochStatement.newBuilder().setParty(1)).build();
    Run list = coterie("keys", "list", "-o", "json");
    assertThat(list.exitCode()).as(list.err()).isZero();
    assertThat(list.out()).contains("\"keys/ecdsa\"").doesNotContain("\"current\"");
    coordinator.honest();
    coordinator.aboutLists = page -> ListKeysResponse.getDefaultInstance();
    Run none = coterie("keys", "list", "-o", "json");
    assertThat(none).isEqualTo(new Run(0, "{\n  \"keys\": []\n}\n", ""));
  }

  @Test
  void a_key_that_is_not_active_is_shown_without_facts() {
    coordinator.aboutKeys =
        honest ->
            honest.toBuilder()
                .setState(Key.State.FAILED)
                .setError(
                    com.google.rpc.Status.newBuilder()
                        .setMessage("gone\npublic key  " + "00".repeat(33)))
                .build();
    for (String format : List.of("text", "json")) {
      Run run = coterie("keys", "get", "ecdsa", "-o", format);
      assertThat(run.exitCode()).as(run.err()).isZero();
      assertThat(run.out())
          .contains("FAILED", "gone\\npublic key")
          .doesNotContain("xpub", "p1", "\nthreshold", "\nepoch");
      assertThat(run.out().lines()).noneMatch(line -> line.startsWith("public key"));
    }
    Run address = coterie("keys", "get", "ecdsa", "--address", "ethereum");
    assertThat(address.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(address.err()).contains("its state is FAILED").hasLineCount(1);
  }

  static final Map<String, Consumer<Signing.Builder>> SIGNING_LIES = new LinkedHashMap<>();

  static {
    SIGNING_LIES.put("name", s -> s.setName("keys/other/signings/1"));
    SIGNING_LIES.put("request_id", s -> s.setRequestId("other"));
    SIGNING_LIES.put("scheme", s -> s.setScheme(Scheme.SCHEME_BIP340_SECP256K1));
    SIGNING_LIES.put("intent_digest", s -> s.setIntentDigest(OTHER_POINT.substring(1)));
    SIGNING_LIES.put("public_key", s -> s.setPublicKey(ownKey().getPublicKey()));
    SIGNING_LIES.put("digest", s -> s.setDigest(OTHER_POINT.substring(1)));
    SIGNING_LIES.put(
        "signature",
        s -> s.setSignature(s.getSignature().substring(32).concat(OTHER_POINT.substring(1))));
    SIGNING_LIES.put("recovery_id", s -> s.setRecoveryId(1 - s.getRecoveryId()));
    SIGNING_LIES.put(
        "der_signature", s -> s.setDerSignature(s.getDerSignature().concat(OTHER_POINT)));
  }

  static final List<String> SIGNING_FIELDS = List.copyOf(SIGNING_LIES.keySet());

  @ParameterizedTest
  @FieldSource("SIGNING_FIELDS")
  void a_signature_that_it_lies_about_is_not_shown(String field) {
    coordinator.aboutSignings =
        honest -> {
          Signing.Builder signing = honest.toBuilder();
          SIGNING_LIES.get(field).accept(signing);
          return signing.build();
        };
    for (String format : List.of("text", "json")) {
      Run run =
          coterie(
              "sign", "ecdsa", "--ethereum-transaction", "" + folder.resolve("tx"), "-o", format);
      assertThat(run.exitCode()).as(run.err()).isEqualTo(ExitCode.UNAVAILABLE);
      assertThat(run.out()).isEmpty();
      assertThat(run.err()).contains("field " + field + " of the answer is not as it must be");
    }
  }

  /** The signature verifies: under the key that the answer names. */
  @ParameterizedTest
  @CsvSource({"bls12381, bls12381", "ed25519, ed25519"})
  void a_signature_under_a_key_of_its_own_is_refused(String key, String scheme) {
    TestHolding own = new TestHolding("keys/own", coordinator.key("keys/" + key).getScheme(), "");
    for (boolean named : new boolean[] {true, false}) {
      coordinator.aboutSignings =
          honest -> {
            Signing.Builder signing = honest.toBuilder();
            signing.setSignature(
                own.sign(
                    io.coterie.platform.intent.KeyTarget.SELF, ByteString.copyFromUtf8("hello")));
            return named
                ? signing.setPublicKey(own.answer().getPublicKey()).build()
                : signing.build();
          };
      Run run = coterie("sign", key, "-m", "hello", "--scheme", scheme);
      assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
      assertThat(run.out()).isEmpty();
      assertThat(run.err()).contains(named ? "field public_key" : "field signature");
    }
  }

  @Test
  void the_payload_is_shown_as_this_machine_decodes_it() {
    coordinator.aboutSignings =
        honest -> {
          Signing.Builder signing = honest.toBuilder();
          signing.getDecodedBuilder().getFieldsBuilder(0).setName("to").setValue("someone else");
          return signing.build();
        };
    Run run = coterie("sign", "ecdsa", "--ethereum-transaction", "" + folder.resolve("tx"));
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.out())
        .contains("to: 0x3535353535353535353535353535353535353535")
        .doesNotContain("someone else");
  }

  @Test
  void what_did_not_end_with_a_signature_shows_none() {
    coordinator.aboutSignings =
        honest -> honest.toBuilder().setState(Signing.State.UNKNOWN).build();
    Run run = coterie("sign", "ecdsa", "--digest", DIGEST);
    assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
    assertThat(run.out()).contains("UNKNOWN").doesNotContain("signature", "public key", "der");
    assertThat(run.err()).contains("Whether it was signed is not known", "coterie cancel");
  }

  @Test
  void a_payload_of_another_key_is_not_sent() {
    // A Solana transfer that another key signs.
    String solana =
        "010001031398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93cafd439fccb66727f289c5c6de3bc4a8fe5dd5d77770bc8ff15c3eeedcb14af3fc0000000000000000000000000000000000000000000000000000000000000000c49ae77603782054f17a9decea43b444eba0edb12c6f1d31c6e0e4a84bf052eb01020200010c020000003100000000000000";
    Path file = folder.resolve("solana");
    Run run;
    try {
      run =
          coterie("sign", "ed25519", "--solana-transaction", "" + Files.writeString(file, solana));
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    assertThat(run.exitCode()).isEqualTo(ExitCode.REFUSED);
    assertThat(run.err()).contains("SOLANA_SIGNER_MISSING");
    assertThat(coordinator.calls).containsExactly("getKey");

    Run other = coterie("sign", "ed25519", "-m", "hello");
    assertThat(other.exitCode()).isEqualTo(ExitCode.LOCAL);
    assertThat(other.err()).contains("keys/ed25519 is of scheme ed25519 and not bls12381");
  }

  @Test
  void nothing_is_signed_if_the_answer_is_no() {
    Run run =
        coterie("trust.json", question -> Optional.of("n"), "sign", "ecdsa", "--digest", DIGEST);
    assertThat(run.exitCode()).isEqualTo(ExitCode.NO);
    assertThat(coordinator.calls).doesNotContain("sign");
  }

  @Test
  void without_a_trust_file_no_key_is_used() throws Exception {
    Files.writeString(folder.resolve("empty.json"), "{}");
    TestFiles.trust(folder.resolve("badkey.json"), new byte[3]);
    String trust = Files.readString(folder.resolve("trust.json"));
    Files.writeString(
        folder.resolve("unsigned.json"),
        trust.replaceFirst("(?s)\"signatures\" : .*?\\]", "\"signatures\" : []"));
    assertThat(Files.readString(folder.resolve("unsigned.json"))).isNotEqualTo(trust);
    List<List<String>> commands = new ArrayList<>(COMMANDS);
    commands.add(List.of("keys", "list"));
    commands.add(List.of("keys", "create", "k", "--threshold", "2", "--parties", "p1,p2,p3"));
    for (String file : List.of("absent.json", "empty.json", "badkey.json", "unsigned.json")) {
      for (List<String> command : commands) {
        Run run = coterie(file, question -> Optional.of("y"), command.toArray(String[]::new));
        assertThat(run.exitCode()).as("%s %s", file, command).isEqualTo(ExitCode.LOCAL);
        assertThat(run.err()).hasLineCount(1).contains(file);
      }
      Run doctor = coterie(file, question -> Optional.empty(), "doctor");
      assertThat(doctor.out()).containsPattern("FAIL +trust +.*" + file);
    }
    assertThat(coordinator.calls).allMatch(call -> call.equals("listKeys 1"));
    assertThat(Arrays.asList(coterie("keys", "list").out().split("\n"))).hasSizeGreaterThan(4);
  }
}
