package io.coterie.trust;

import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * The JSON of the trust file and its parts. The content of a version is {@code
 * {"installation","version","previous","roots":{"threshold","keys":[]},"members":[{"name","role",
 * "partyId","region","aci","deviceId","identityKey","evidenceKey"}],"former":[{"name","partyId",
 * "evidenceKey","lastEpoch"}],"requesters":[{"name","publicKeys":[],"keys":[],"rights":[],
 * "minThreshold","minParties"}],"corrupt"}}, keys in base64, rights as {@link KeyRight} names them,
 * in lower case. Strict: unknown, missing, repeated and ill-typed fields are refused, and so is
 * base64 that an encoder would write in another way.
 */
final class TrustJson {
  private static final Set<String> TRUST_FIELDS =
      Set.of(
          "installation",
          "version",
          "previous",
          "roots",
          "members",
          "former",
          "requesters",
          "corrupt");
  private static final Set<String> ROOTS_FIELDS = Set.of("threshold", "keys");
  private static final Set<String> FILE_FIELDS = Set.of("payload", "signatures", "earlier");
  private static final Set<String> VERSION_FIELDS = Set.of("payload", "signatures");
  private static final Set<String> SIGNATURE_FIELDS = Set.of("key", "signature");
  private static final Set<String> FORMER_FIELDS =
      Set.of("name", "partyId", "evidenceKey", "lastEpoch");
  private static final Set<String> REQUESTER_FIELDS =
      Set.of("name", "publicKeys", "keys", "rights", "minThreshold", "minParties");
  private static final Set<String> MEMBER_FIELDS =
      Set.of("name", "role", "partyId", "region", "aci", "deviceId", "identityKey", "evidenceKey");

  private static final int MAX_REGION = 63;
  private static final int MAX_PARTIES = 65_535;

  private static final JsonMapper JSON =
      JsonMapper.builder()
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(SerializationFeature.INDENT_OUTPUT)
          .build();

  private TrustJson() {}

  static TrustFile file(byte[] json) {
    JsonNode root = tree(json);
    requireFields(root, FILE_FIELDS, "trust file");
    return new TrustFile(version(root), list(root, "earlier", TrustJson::earlier));
  }

  private static TrustVersion earlier(JsonNode node) {
    requireFields(node, VERSION_FIELDS, "an element of earlier");
    return version(node);
  }

  private static TrustVersion version(JsonNode node) {
    return new TrustVersion(bytes(node, "payload"), list(node, "signatures", TrustJson::signature));
  }

  private static TrustVersion.RootSignature signature(JsonNode node) {
    requireFields(node, SIGNATURE_FIELDS, "signature");
    return new TrustVersion.RootSignature(
        new RootKey(bytes(node, "key")), bytes(node, "signature"));
  }

  /** Reads the payload of a version. */
  static TrustContent content(byte[] json) {
    JsonNode root = tree(json);
    requireFields(root, TRUST_FIELDS, "trust");
    return new TrustContent(
        new Trust(
            new Roster(
                text(root, "installation"),
                integer(root, "version", Long.MAX_VALUE),
                list(root, "members", TrustJson::member),
                list(root, "former", TrustJson::former)),
            list(root, "requesters", TrustJson::requester),
            (int) integer(root, "corrupt", Trust.MAX_CORRUPT)),
        roots(root.path("roots")),
        bytes(root, "previous"));
  }

  private static Roots roots(JsonNode node) {
    requireFields(node, ROOTS_FIELDS, "roots");
    return new Roots(
        (int) integer(node, "threshold", Roots.MAX_KEYS),
        list(node, "keys", each -> new RootKey(base64(each, "an element of keys"))));
  }

  private static <T> List<T> list(JsonNode node, String field, Function<JsonNode, T> element) {
    JsonNode array = node.path(field);
    if (!array.isArray()) {
      throw new IllegalArgumentException(field + " is not an array");
    }
    List<T> parsed = new ArrayList<>();
    array.forEach(each -> parsed.add(element.apply(each)));
    return parsed;
  }

  private static FormerParty former(JsonNode node) {
    requireFields(node, FORMER_FIELDS, "former");
    return new FormerParty(
        text(node, "name"),
        (int) integer(node, "partyId", Member.MAX_PARTY_ID),
        bytes(node, "evidenceKey"),
        (int) integer(node, "lastEpoch", Integer.MAX_VALUE));
  }

  private static Trust.Requester requester(JsonNode node) {
    requireFields(node, REQUESTER_FIELDS, "requester");
    return new Trust.Requester(
        text(node, "name"),
        list(node, "publicKeys", each -> base64(each, "an element of publicKeys")),
        list(node, "keys", each -> new Glob(string(each, "an element of keys"))),
        rights(list(node, "rights", TrustJson::right)),
        (int) integer(node, "minThreshold", MAX_PARTIES),
        (int) integer(node, "minParties", MAX_PARTIES));
  }

  private static KeyRight right(JsonNode node) {
    return switch (string(node, "an element of rights")) {
      case "create" -> KeyRight.CREATE;
      case "import" -> KeyRight.IMPORT;
      case "refresh" -> KeyRight.REFRESH;
      case "reshare" -> KeyRight.RESHARE;
      case "open" -> KeyRight.OPEN;
      default -> throw new IllegalArgumentException("unknown right '" + node.asString() + "'");
    };
  }

  private static Set<KeyRight> rights(List<KeyRight> listed) {
    Set<KeyRight> rights = Set.copyOf(listed);
    if (rights.size() < listed.size()) {
      throw new IllegalArgumentException("rights names one twice");
    }
    return rights;
  }

  /** Reads the entry of one member. */
  static Member member(byte[] json) {
    return member(tree(json));
  }

  private static JsonNode tree(byte[] json) {
    try {
      return JSON.readTree(json);
    } catch (JacksonException e) {
      throw new IllegalArgumentException("not JSON: " + e.getOriginalMessage(), e);
    }
  }

  private static Member member(JsonNode node) {
    requireFields(node, MEMBER_FIELDS, "member");
    String name = text(node, "name");
    String role = text(node, "role");
    String region = text(node, "region");
    if (region.length() > MAX_REGION) {
      throw new IllegalArgumentException(name + ": region is longer than " + MAX_REGION);
    }
    return new Member(
        name,
        switch (role) {
          case "party" -> Member.Role.PARTY;
          case "coordinator" -> Member.Role.COORDINATOR;
          default -> throw new IllegalArgumentException(name + ": unknown role '" + role + "'");
        },
        (int) integer(node, "partyId", Member.MAX_PARTY_ID),
        region,
        aci(node),
        (int) integer(node, "deviceId", 127),
        bytes(node, "identityKey"),
        bytes(node, "evidenceKey"));
  }

  private static void requireFields(JsonNode node, Set<String> fields, String what) {
    if (!node.isObject()) {
      throw new IllegalArgumentException(what + " is not an object");
    }
    Set<String> present = new HashSet<>(node.propertyNames());
    if (!present.equals(fields)) {
      Set<String> odd = new HashSet<>(present);
      odd.addAll(fields);
      odd.removeIf(field -> present.contains(field) && fields.contains(field));
      throw new IllegalArgumentException(what + " has unknown or missing fields: " + odd);
    }
  }

  private static String text(JsonNode node, String field) {
    return string(node.path(field), field);
  }

  private static String string(JsonNode value, String field) {
    if (!value.isString()) {
      throw new IllegalArgumentException(field + " is not a string");
    }
    return value.asString();
  }

  private static long integer(JsonNode node, String field, long max) {
    JsonNode value = node.path(field);
    if (!value.isIntegralNumber() || !value.canConvertToLong()) {
      throw new IllegalArgumentException(field + " is not a whole number");
    }
    long number = value.asLong();
    if (number < 0 || number > max) {
      throw new IllegalArgumentException(field + " " + number + " is not 0 to " + max);
    }
    return number;
  }

  private static UUID aci(JsonNode node) {
    String text = text(node, "aci");
    UUID aci;
    try {
      aci = UUID.fromString(text);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("aci is not a UUID", e);
    }
    if (!aci.toString().equals(text)) {
      throw new IllegalArgumentException("aci is not in the usual form of a UUID");
    }
    return aci;
  }

  private static byte[] bytes(JsonNode node, String field) {
    return base64(node.path(field), field);
  }

  private static byte[] base64(JsonNode value, String field) {
    String text = string(value, field);
    byte[] bytes;
    try {
      bytes = Base64.getDecoder().decode(text);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(field + " is not base64", e);
    }
    if (!base64(bytes).equals(text)) {
      throw new IllegalArgumentException(field + " is not in the usual form of base64");
    }
    return bytes;
  }

  private static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }

  static byte[] bytes(TrustFile file) {
    ObjectNode root = JSON.createObjectNode();
    put(root, file.current());
    ArrayNode earlier = root.putArray("earlier");
    file.earlier().forEach(version -> put(earlier.addObject(), version));
    return JSON.writeValueAsBytes(root);
  }

  private static void put(ObjectNode node, TrustVersion version) {
    node.put("payload", base64(version.payload()));
    ArrayNode signatures = node.putArray("signatures");
    for (TrustVersion.RootSignature signature : version.signatures()) {
      signatures
          .addObject()
          .put("key", base64(signature.key().spki()))
          .put("signature", base64(signature.signature()));
    }
  }

  static byte[] bytes(TrustContent content) {
    Trust trust = content.trust();
    ObjectNode root =
        JSON.createObjectNode()
            .put("installation", content.installation())
            .put("version", content.version())
            .put("previous", base64(content.previous()));
    ArrayNode rootKeys =
        root.putObject("roots").put("threshold", content.roots().threshold()).putArray("keys");
    content.roots().keys().forEach(key -> rootKeys.add(base64(key.spki())));
    ArrayNode members = root.putArray("members");
    trust.roster().members().forEach(member -> members.add(node(member)));
    ArrayNode former = root.putArray("former");
    for (FormerParty party : trust.roster().former()) {
      former
          .addObject()
          .put("name", party.name())
          .put("partyId", party.partyId())
          .put("evidenceKey", base64(party.evidenceKey()))
          .put("lastEpoch", party.lastEpoch());
    }
    ArrayNode requesters = root.putArray("requesters");
    for (Trust.Requester requester : trust.requesters()) {
      ObjectNode entry = requesters.addObject().put("name", requester.name());
      ArrayNode keys = entry.putArray("publicKeys");
      requester.publicKeys().forEach(key -> keys.add(base64(key)));
      ArrayNode globs = entry.putArray("keys");
      requester.keys().forEach(glob -> globs.add(glob.pattern()));
      ArrayNode rights = entry.putArray("rights");
      requester.rights().stream()
          .sorted()
          .forEach(right -> rights.add(right.name().toLowerCase(Locale.ROOT)));
      entry.put("minThreshold", requester.minThreshold()).put("minParties", requester.minParties());
    }
    root.put("corrupt", trust.corrupt());
    return JSON.writeValueAsBytes(root);
  }

  static byte[] bytes(Member member) {
    return JSON.writeValueAsBytes(node(member));
  }

  private static ObjectNode node(Member member) {
    return JSON.createObjectNode()
        .put("name", member.name())
        .put("role", member.role().name().toLowerCase(Locale.ROOT))
        .put("partyId", member.partyId())
        .put("region", member.region())
        .put("aci", member.aci().toString())
        .put("deviceId", member.deviceId())
        .put("identityKey", base64(member.identityKey()))
        .put("evidenceKey", base64(member.evidenceKey()));
  }
}
