package io.coterie.acceptance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import io.coterie.proto.custody.v1.Signing;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Each check of the records of parties finds what it is there for, and nothing in good records. */
class PartyRecordsTest {
  private static final String INTENT = "aa".repeat(32);
  private static final String OTHER = "bb".repeat(32);
  private static final Signing TOLD =
      Signing.newBuilder()
          .setRequestId("r1")
          .setState(Signing.State.SIGNED)
          .setIntentDigest(ByteString.fromHex(INTENT))
          .build();

  /** The records of one party, as they are exported. */
  private static final class Trail {
    private final List<String> lines = new ArrayList<>();

    Trail add(String actor, String action, String outcome, Map<String, String> fields) {
      return add(lines.size() + 1, lines.size(), actor, action, outcome, fields);
    }

    Trail add(
        int sequence,
        int previous,
        String actor,
        String action,
        String outcome,
        Map<String, String> fields) {
      String content =
          new TreeMap<>(fields)
              .entrySet().stream()
                  .map(each -> "\"%s\":\"%s\"".formatted(each.getKey(), each.getValue()))
                  .collect(Collectors.joining(","));
      lines.add(
          ("{\"sequence\":%d,\"actor\":\"%s\",\"action\":\"%s\",\"outcome\":\"%s\","
                  + "\"previous_hash\":\"h%d\",\"hash\":\"h%d\",\"fields\":{%s}}")
              .formatted(sequence, actor, action, outcome, previous, sequence, content));
      return this;
    }

    Trail accepts(String session, String request, String intent) {
      return accepts(session, request, intent, "");
    }

    Trail accepts(String session, String request, String intent, String presignature) {
      Map<String, String> fields = new TreeMap<>();
      fields.put("session_id", session);
      fields.put("request_id", request);
      fields.put("intent_digest", intent);
      if (!presignature.isEmpty()) {
        fields.put("presignature_id", presignature);
      }
      return add("wallet", "order.accept", "accepted", fields);
    }

    Trail ends(String session, String request, String result) {
      return add(
          "wallet",
          "session.end",
          "completed",
          Map.of("session_id", session, "request_id", request, "result_digest", result));
    }

    String export() {
      return String.join("\n", lines) + "\n";
    }
  }

  private static Trail good() {
    return new Trail().accepts("s1", "r1", INTENT, "p1").ends("s1", "r1", "d1");
  }

  private static List<String> problems(Trail one, Trail two) {
    PartyRecords records = new PartyRecords(2);
    records.add("party-1", one.export());
    records.add("party-2", two.export());
    records.add("party-3", new Trail().export());
    return records.problems("wallet", List.of(TOLD));
  }

  private static void assertFound(Trail bad, String problem) {
    assertThat(problems(bad, good())).isNotEmpty().allMatch(found -> found.startsWith(problem));
  }

  @Test
  void good_records_have_no_problem() {
    assertThat(problems(good(), good())).isEmpty();
    Trail again = good().accepts("s2", "r1", INTENT, "p2").accepts("s3", "r2", OTHER);
    assertThat(problems(again, good())).isEmpty();
    PartyRecords records = new PartyRecords(2);
    records.add("party-1", again.export());
    assertThat(records.size()).isEqualTo(4);
    assertThat(records.sessions()).isEqualTo(3);
  }

  @Test
  void record_that_is_missing_is_found() {
    assertFound(good().add(4, 2, "wallet", "receipt.give", "never", Map.of()), PartyRecords.CHAIN);
    assertFound(good().add(3, 1, "wallet", "receipt.give", "never", Map.of()), PartyRecords.CHAIN);
  }

  @Test
  void session_that_was_accepted_twice_is_found() {
    assertFound(good().accepts("s1", "r1", INTENT), PartyRecords.SESSION_TWICE);
  }

  @Test
  void two_intents_under_one_request_id_are_found() {
    assertFound(
        good().accepts("s2", "r2", INTENT).accepts("s3", "r2", OTHER), PartyRecords.TWO_INTENTS);
  }

  @Test
  void presignature_in_two_sessions_is_found() {
    assertFound(good().accepts("s2", "r2", INTENT, "p1"), PartyRecords.PRESIGNATURE_TWICE);
  }

  @Test
  void honest_party_that_is_named_or_kept_away_is_found() {
    assertFound(
        good().add("wallet", "session.end", "aborted", Map.of("culprits", "2")),
        PartyRecords.CONVICTED);
    assertFound(
        good().add("signer", "party.exclude", "unclean_ends", Map.of()), PartyRecords.CONVICTED);
    assertFound(
        good().add("signer", "key.freeze", "exclusion_unwritten", Map.of()),
        PartyRecords.CONVICTED);
  }

  @Test
  void store_that_counts_as_one_that_went_back_is_found() {
    assertFound(
        good().add("signer", "party.went_back", "itself", Map.of()), PartyRecords.WENT_BACK);
  }

  @Test
  void two_results_of_a_request_are_found() {
    assertFound(good().ends("s2", "r1", "d2"), PartyRecords.TWO_RESULTS);
  }

  @Test
  void signature_that_too_few_parties_have_accepted_is_found() {
    assertFound(
        new Trail().accepts("s2", "r1", INTENT).ends("s2", "r1", "d1"), PartyRecords.NOT_ACCEPTED);
  }

  @Test
  void signature_of_another_intent_is_found() {
    Trail other = new Trail().accepts("s1", "r1", OTHER);
    assertThat(problems(other, good()))
        .isNotEmpty()
        .allMatch(found -> found.startsWith(PartyRecords.OTHER_INTENT));
  }
}
