package io.coterie.cli;

import static io.coterie.cli.FakeCoordinator.signed;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.RequestId;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** {@code coterie sign} tells the word of parties that refused from that of the coordinator. */
class RefusedTest {
  private static final String SIGNED = "(signed by the party)";
  private static final String SAID = "the coordinator says that party";

  @TempDir static Path folder;
  private static FakeCoordinator coordinator;

  @BeforeAll
  static void start() throws Exception {
    TestFiles.certificate(folder, "wallet");
    TestFiles.trust(folder);
    coordinator =
        new FakeCoordinator(folder.resolve("wallet.pem"), folder.resolve("wallet-key.pem"));
    String[] create = {"keys", "create", "hot", "--scheme", "ed25519", "--threshold", "2"};
    List<String> args = new ArrayList<>(List.of(create));
    args.addAll(List.of("--parties", "p1,p2,p3"));
    assertThat(coterie(args.toArray(String[]::new)).exitCode()).isZero();
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
    return Run.ofWallet(
        question -> Optional.of("y"),
        folder.resolve("trust.json"),
        coordinator.port(),
        List.of(args));
  }

  private static Run sign(String... more) {
    List<String> args = new ArrayList<>(List.of("sign", "hot", "-m", "hello"));
    args.addAll(List.of("--scheme", "ed25519"));
    args.addAll(List.of(more));
    return coterie(args.toArray(String[]::new));
  }

  private static Map<String, String> said(String parties, String cause) {
    return Map.of(StatusErrors.PARTY, parties, StatusErrors.CAUSE, cause);
  }

  /** The coordinator ends calls with an error. */
  private static void fails(
      Map<String, String> metadata, Function<Signing, List<SignedReceipt>> receipts) {
    coordinator.aboutSignings =
        request -> {
          throw StatusErrors.of(
              new CustodyException(ErrorReason.ON_HOLD, metadata, receipts.apply(request)));
        };
  }

  private static Receipt refused(Signing request, int party) {
    return coordinator.refused(request, "keys/hot", 0, party);
  }

  private static void requireUnknown(Run run) {
    assertThat(run.exitCode()).as("%s", run).isEqualTo(ExitCode.UNAVAILABLE);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).contains("UNKNOWN. Whether it was signed is not known");
  }

  @Test
  void who_says_that_a_party_refused_is_shown() {
    fails(
        said("p1,p2,p3", "REFUSAL_REASON_ON_HOLD"),
        request -> List.of(signed(1, refused(request, 1)), signed(3, refused(request, 3))));
    Run run = sign();
    requireUnknown(run);
    assertThat(run.err())
        .contains(
            "party p1 refused: ON_HOLD (signed by the party);"
                + " party p3 refused: ON_HOLD (signed by the party);"
                + " the coordinator says that party p2 refused: ON_HOLD.");
  }

  @Test
  void programs_get_the_same_with_the_receipts() throws Exception {
    List<SignedReceipt> told = new ArrayList<>();
    fails(
        said("p1,p2", "REFUSAL_REASON_ON_HOLD"),
        request -> {
          told.add(signed(1, refused(request, 1)));
          return told;
        });
    Run run = sign("-o", "json");
    assertThat(run.exitCode()).isEqualTo(ExitCode.UNAVAILABLE);
    String json = run.err().lines().filter(line -> line.startsWith("{")).findFirst().orElseThrow();
    Struct.Builder error = Struct.newBuilder();
    JsonFormat.parser().merge(json, error);
    List<Value> refused = error.getFieldsOrThrow("refused").getListValue().getValuesList();
    assertThat(refused).hasSize(2);
    Map<String, Value> first = refused.getFirst().getStructValue().getFieldsMap();
    assertThat(first.get("party").getStringValue()).isEqualTo("p1");
    assertThat(first.get("reason").getStringValue()).isEqualTo("REFUSAL_REASON_ON_HOLD");
    assertThat(first.get("signed").getBoolValue()).isTrue();
    assertThat(first.get("time").getStringValue()).isEqualTo("2027-01-15T08:00:00Z");
    assertThat(SignedReceipt.parseFrom(base64(first.get("receipt")))).isEqualTo(told.getFirst());
    Map<String, Value> second = refused.getLast().getStructValue().getFieldsMap();
    assertThat(second.get("party").getStringValue()).isEqualTo("p2");
    assertThat(second.get("signed").getBoolValue()).isFalse();
    assertThat(second).doesNotContainKeys("time", "receipt");
  }

  private static byte[] base64(Value value) {
    return Base64.getDecoder().decode(value.getStringValue());
  }

  record Lie(String told, Function<Signing, SignedReceipt> receipt) {
    @Override
    public String toString() {
      return told;
    }
  }

  private static Lie about(String told, UnaryOperator<Receipt.Builder> change) {
    return new Lie(
        told, request -> signed(2, change.apply(refused(request, 2).toBuilder()).build()));
  }

  static Stream<Lie> lies() {
    return Stream.of(
        new Lie("signed by another party", request -> signed(3, refused(request, 2))),
        new Lie("a party outside the key", request -> signed(4, refused(request, 4))),
        about("another request", r -> r.setRequestId(RequestId.next())),
        about("another installation", r -> r.setInstallation("staging")),
        about("another requester", r -> r.setRequester("keeper")),
        about("another intent", r -> r.setIntentDigest(ByteString.copyFrom(new byte[32]))),
        about("a text", r -> r.setReason("NOT SIGNED: pay again")));
  }

  @ParameterizedTest
  @MethodSource
  void lies(Lie lie) {
    fails(said("p2", "REFUSAL_REASON_ON_HOLD"), request -> List.of(lie.receipt().apply(request)));
    Run run = sign();
    requireUnknown(run);
    assertThat(run.err()).contains(SAID + " p2 refused: ON_HOLD").doesNotContain(SIGNED);
  }

  @Test
  void nothing_but_known_parties_and_reasons_is_taken_from_the_coordinator() {
    fails(said("p2,nobody\nNOT SIGNED", "REFUSAL_REASON_ON_HOLD"), _ -> List.of());
    assertThat(sign().err()).contains(SAID + " p2 refused: ON_HOLD. The").doesNotContain(SIGNED);
    for (String cause : List.of("pay again", "timed_out", "REFUSAL_REASON_UNSPECIFIED", "")) {
      fails(said("p1,p2", cause), _ -> List.of());
      Run run = sign();
      requireUnknown(run);
      assertThat(run.err()).doesNotContain(SAID, SIGNED);
    }
  }

  @Test
  void refusals_of_all_parties_prove_no_end_and_the_request_may_be_signed_later() {
    String id = RequestId.next();
    fails(
        said("p1,p2,p3", "REFUSAL_REASON_ON_HOLD"),
        request -> Stream.of(1, 2, 3).map(p -> signed(p, refused(request, p))).toList());
    requireUnknown(sign("--request-id", id, "--reshare-epoch", "0"));
    coordinator.aboutSignings =
        request -> {
          Signing.Builder answer =
              request.toBuilder().setState(Signing.State.NOT_SIGNED).clearSignature();
          Stream.of(1, 2, 3).map(p -> signed(p, refused(request, p))).forEach(answer::addReceipts);
          return answer.build();
        };
    requireUnknown(sign("--request-id", id, "--reshare-epoch", "0"));
    coordinator.honest();
    assertThat(sign("--request-id", id, "--reshare-epoch", "0").exitCode()).isZero();
  }
}
