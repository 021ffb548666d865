package io.coterie.platform.protocol;

import static org.assertj.core.api.Assertions.assertThat;

import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.protocol.Protocol.Operation;
import io.coterie.proto.core.v1.ProtocolId;
import io.coterie.proto.custody.v1.Scheme;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class ProtocolTest {
  private static final Path CONTRACT = Path.of("../../proto/coterie/core/v1/core.proto");

  private static final List<String> NUMBERS =
      List.of("zero", "one", "two", "three", "four", "five", "six");

  @Test
  void every_protocol_of_the_core_is_listed_once() {
    assertThat(
            Stream.of(
                    Arrays.stream(Protocol.values()).map(Protocol::id),
                    Arrays.stream(GroupProtocol.values()).map(GroupProtocol::id),
                    Arrays.stream(ExactProtocol.values())
                        .map(ExactProtocol::id)
                        .filter(id -> Protocol.of(id).isEmpty()))
                .flatMap(ids -> ids))
        .containsExactlyInAnyOrderElementsOf(
            Arrays.stream(ProtocolId.values())
                .filter(id -> id != ProtocolId.UNRECOGNIZED)
                .filter(id -> id != ProtocolId.PROTOCOL_ID_UNSPECIFIED)
                // No service offers hardened derivation yet (ADR 0080).
                .filter(id -> !id.name().startsWith("PROTOCOL_ID_HARDENED_"))
                .toList());
  }

  @ParameterizedTest
  @EnumSource
  void protocol_is_found_by_its_id_and_by_its_purpose(Protocol protocol) {
    assertThat(Protocol.of(protocol.id())).contains(protocol);
    assertThat(Protocol.of(protocol.scheme(), protocol.operation())).contains(protocol);
    assertThat(protocol.label()).isEqualTo(protocol.name().toLowerCase(Locale.ROOT));
  }

  /** {@code core.proto} says of each protocol in how many rounds it runs. */
  @ParameterizedTest
  @MethodSource
  void last_round_is_the_one_that_the_contract_names(Protocol protocol) throws IOException {
    assertThat(protocol.lastRound()).isEqualTo(roundsInContract(protocol.id()));
  }

  /** In those of pairs, the run itself tells which round is its last. */
  private static Stream<Protocol> last_round_is_the_one_that_the_contract_names() {
    return Arrays.stream(Protocol.values()).filter(protocol -> !protocol.isOfPairs());
  }

  @ParameterizedTest
  @EnumSource
  void last_round_of_a_group_is_the_one_that_the_contract_names(GroupProtocol protocol)
      throws IOException {
    assertThat(protocol.lastRound()).isEqualTo(roundsInContract(protocol.id()));
    assertThat(GroupProtocol.of(protocol.id())).contains(protocol);
    assertThat(Protocol.of(protocol.id())).isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  void protocol_of_a_pair_is_found_by_its_id(ExactProtocol protocol) {
    assertThat(ExactProtocol.of(protocol.id())).contains(protocol);
    // Each stands in an order for everything that the pair does in the session.
    assertThat(Protocol.of(protocol.id())).map(Protocol::isOfPairs).contains(true);
    assertThat(GroupProtocol.of(protocol.id())).isEmpty();
  }

  private static int roundsInContract(ProtocolId id) throws IOException {
    String contract = Files.readString(CONTRACT);
    int end = contract.indexOf(id.name() + " = ");
    String comment = contract.substring(contract.lastIndexOf(';', end), end);
    Matcher rounds = Pattern.compile(" in (\\w+) rounds?\\.").matcher(comment);
    assertThat(rounds.find()).isTrue();
    return NUMBERS.indexOf(rounds.group(1));
  }

  @Test
  void a_message_of_79_bytes_takes_one_block_and_the_longest_eleven() {
    assertThat(ExactProtocol.blocks(0)).isEqualTo(1);
    assertThat(ExactProtocol.blocks(79)).isEqualTo(1);
    assertThat(ExactProtocol.blocks(80)).isEqualTo(2);
    assertThat(ExactProtocol.blocks(IntentVerifier.MAX_EXACT_MESSAGE))
        .isEqualTo(ExactProtocol.MAX_BLOCKS);
  }

  @Test
  void only_bls_is_signed_again_with_the_same_result() {
    assertThat(Arrays.stream(Protocol.values()).filter(Protocol::signsAtRandom))
        .allMatch(p -> p.operation().signs() && p.scheme() != Scheme.SCHEME_BLS12381)
        .hasSize(6);
  }

  @Test
  void parties_multiply_in_ecdsa_sessions_that_use_a_share_alone() {
    assertThat(Arrays.stream(Protocol.values()).filter(Protocol::multiplies))
        .containsExactly(Protocol.ECDSA_SIGN, Protocol.ECDSA_PRESIGN);
    assertThat(Arrays.stream(Protocol.values()).filter(Protocol::needsWitnesses))
        .containsExactly(
            Protocol.ECDSA_SIGN,
            Protocol.ECDSA_PRESIGN,
            Protocol.ECDSA_REFRESH,
            Protocol.ECDSA_RESHARE);
  }

  @ParameterizedTest
  @EnumSource
  void presigning_alone_makes_a_batch(Protocol protocol) {
    assertThat(protocol.maxBatch() > 0).isEqualTo(protocol.operation() == Operation.PRESIGN);
  }
}
