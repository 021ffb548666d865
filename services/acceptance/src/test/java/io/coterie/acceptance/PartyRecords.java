package io.coterie.acceptance;

import io.coterie.proto.custody.v1.Signing;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The audit records of all parties of an installation in which everybody is honest, as the signer's
 * command {@code records} exports them, held against the promises of docs/threat-model.md and
 * against what clients were told.
 */
final class PartyRecords {
  static final String CHAIN = "a record does not follow the one before it";
  static final String SESSION_TWICE = "a session was accepted twice";
  static final String TWO_INTENTS = "two intents were accepted under one request id";
  static final String PRESIGNATURE_TWICE = "a presignature was used in two sessions";
  static final String CONVICTED = "a party was named, or kept from a key";
  static final String WENT_BACK = "a store counts as one that went back";
  static final String TWO_RESULTS = "a request has two results";
  static final String NOT_ACCEPTED = "fewer parties than the threshold accepted a session of it";
  static final String OTHER_INTENT = "a client was told of another intent than a party accepted";

  private static final JsonMapper JSON = JsonMapper.builder().build();

  /** Actions by which a party keeps another one, or everybody, from a key. */
  private static final Set<String> KEEPS_AWAY = Set.of("party.exclude", "key.freeze");

  private static final String SESSION = "session_id";
  private static final String REQUEST = "request_id";
  private static final String INTENT = "intent_digest";

  private final int threshold;
  private final Map<String, List<Entry>> parties = new TreeMap<>();

  /** One audit record. */
  private record Entry(
      long sequence,
      String actor,
      String action,
      String outcome,
      String previousHash,
      String hash,
      Map<String, String> fields) {
    static Entry of(String line) {
      JsonNode json = JSON.readTree(line);
      Map<String, String> fields = new TreeMap<>();
      json.path("fields")
          .properties()
          .forEach(f -> fields.put(f.getKey(), f.getValue().asString()));
      return new Entry(
          json.path("sequence").asLong(),
          json.path("actor").asString(),
          json.path("action").asString(),
          json.path("outcome").asString(),
          json.path("previous_hash").asString(),
          json.path("hash").asString(),
          fields);
    }

    boolean accepts() {
      return action.equals("order.accept") && outcome.equals("accepted");
    }

    /** Whose request the record is about, and which; empty if about none. */
    String request() {
      return fields.containsKey(REQUEST) ? actor + " " + fields.get(REQUEST) : "";
    }
  }

  /**
   * @param threshold of all keys
   */
  PartyRecords(int threshold) {
    this.threshold = threshold;
  }

  /** Takes all records of a party, a line of JSON each. */
  void add(String party, String export) {
    parties.put(party, export.lines().filter(line -> !line.isBlank()).map(Entry::of).toList());
  }

  /** How many records there are. */
  int size() {
    return parties.values().stream().mapToInt(List::size).sum();
  }

  /** The sessions that were accepted. */
  int sessions() {
    Set<String> sessions = new HashSet<>();
    parties.values().stream()
        .flatMap(List::stream)
        .filter(Entry::accepts)
        .forEach(entry -> sessions.add(entry.fields().get(SESSION)));
    return sessions.size();
  }

  /**
   * Everything in the records that may not be, one line each.
   *
   * @param requester of the signatures
   * @param told the ends that clients were told: each SIGNED
   */
  List<String> problems(String requester, List<Signing> told) {
    List<String> problems = new ArrayList<>();
    parties.forEach((party, entries) -> problems.addAll(ofOne(party, entries)));
    problems.addAll(results());
    told.forEach(signing -> problems.addAll(against(requester, signing)));
    return problems;
  }

  private static List<String> ofOne(String party, List<Entry> entries) {
    Set<String> problems = new LinkedHashSet<>();
    Set<String> sessions = new HashSet<>();
    Map<String, String> intents = new HashMap<>();
    Map<String, String> presignatures = new HashMap<>();
    Entry before = null;
    for (Entry entry : entries) {
      String where = ": record " + entry.sequence() + " of " + party;
      if (entry.sequence() != (before == null ? 1 : before.sequence() + 1)
          || before != null && !entry.previousHash().equals(before.hash())) {
        problems.add(CHAIN + where);
      }
      before = entry;
      if (entry.accepts()) {
        String session = entry.fields().getOrDefault(SESSION, "");
        if (!sessions.add(session)) {
          problems.add(SESSION_TWICE + where);
        }
        if (isOther(intents, entry.request(), entry.fields().get(INTENT))) {
          problems.add(TWO_INTENTS + where);
        }
        if (isOther(presignatures, entry.fields().get("presignature_id"), session)) {
          problems.add(PRESIGNATURE_TWICE + where);
        }
      }
      if (KEEPS_AWAY.contains(entry.action()) || entry.fields().containsKey("culprits")) {
        problems.add(CONVICTED + where);
      }
      if (entry.action().equals("party.went_back")) {
        problems.add(WENT_BACK + where);
      }
    }
    return List.copyOf(problems);
  }

  /** Whether something that is known already stands under a name, and is not this. */
  private static boolean isOther(Map<String, String> known, String name, String value) {
    if (name == null || name.isEmpty() || value == null) {
      return false;
    }
    String other = known.putIfAbsent(name, value);
    return other != null && !other.equals(value);
  }

  private List<String> results() {
    List<String> problems = new ArrayList<>();
    Map<String, String> results = new HashMap<>();
    for (List<Entry> entries : parties.values()) {
      for (Entry entry : entries) {
        if (entry.action().equals("session.end")
            && isOther(results, entry.request(), entry.fields().get("result_digest"))) {
          problems.add(TWO_RESULTS + ": " + entry.request());
        }
      }
    }
    return problems;
  }

  private List<String> against(String requester, Signing signing) {
    List<String> problems = new ArrayList<>();
    String request = requester + " " + signing.getRequestId();
    String digest = HexFormat.of().formatHex(signing.getIntentDigest().toByteArray());
    Map<String, Integer> accepted = new HashMap<>();
    for (List<Entry> entries : parties.values()) {
      for (Entry entry : entries) {
        if (entry.accepts() && entry.request().equals(request)) {
          accepted.merge(entry.fields().getOrDefault(SESSION, ""), 1, Integer::sum);
          if (!digest.equals(entry.fields().get(INTENT))) {
            problems.add(OTHER_INTENT + ": " + request);
          }
        }
      }
    }
    if (accepted.values().stream().noneMatch(many -> many >= threshold)) {
      problems.add(NOT_ACCEPTED + ": " + request);
    }
    return problems;
  }
}
