package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * EIP-712 typed data: the JSON that wallets take for {@code eth_signTypedData_v4}, read more
 * strictly than they do. Nothing may be in it that is not signed, nothing may be missing that is,
 * and a value must have its type's one obvious form: wallets differ in what they make of the
 * others.
 */
final class TypedData {
  /** Objects and arrays inside each other, in the JSON. */
  private static final int MAX_JSON_DEPTH = 24;

  /** Structures and arrays inside each other, in a type. */
  private static final int MAX_DEPTH = 16;

  private static final int MAX_TYPES = 64;

  /** Members of one structure. */
  private static final int MAX_MEMBERS = 64;

  /** Members and elements of the whole message. */
  private static final int MAX_VALUES = 4096;

  /** Characters of the name of a structure, of a member, and of a member's type. */
  private static final int MAX_NAME = 128;

  /** Characters of the place of a value that an error names. */
  private static final int MAX_PLACE = 64;

  /** Decimal digits of 2^256, a sign, and some zeros. */
  private static final int MAX_NUMBER = 80;

  private static final String DOMAIN = "EIP712Domain";

  /** The fields that a domain may have, in this order. */
  private static final Map<String, String> DOMAIN_MEMBERS = new LinkedHashMap<>();

  static {
    DOMAIN_MEMBERS.put("name", "string");
    DOMAIN_MEMBERS.put("version", "string");
    DOMAIN_MEMBERS.put("chainId", "uint256");
    DOMAIN_MEMBERS.put("verifyingContract", "address");
    DOMAIN_MEMBERS.put("salt", "bytes32");
  }

  private static final Pattern NAME =
      Pattern.compile("[A-Za-z_$][A-Za-z0-9_$]{0," + (MAX_NAME - 1) + "}");
  private static final Pattern ARRAY = Pattern.compile("(.+)\\[([1-9][0-9]{0,4})?]");
  private static final Pattern ELEMENTARY =
      Pattern.compile(
          "bool|address|string|bytes|bytes([1-9]|[12][0-9]|3[0-2])|u?int([1-9][0-9]{0,2})");

  /** Names that other languages and wallets take for a type of their own. */
  private static final Pattern RESERVED =
      Pattern.compile("u?int[0-9]*|u?fixed.*|bytes[0-9]*|bool|address|string|function");

  private static final Pattern DECIMAL =
      Pattern.compile("-?(0|[1-9][0-9]{0," + (MAX_NUMBER - 1) + "})");
  private static final Pattern HEX_NUMBER = Pattern.compile("0x[0-9a-fA-F]{1,64}");
  private static final Pattern HEX = Pattern.compile("0x[0-9a-fA-F]*");
  private static final Pattern ADDRESS = Pattern.compile("0x[0-9a-fA-F]{40}");

  private static final JsonMapper JSON =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(
                      StreamReadConstraints.builder()
                          .maxNestingDepth(MAX_JSON_DEPTH)
                          .maxNumberLength(MAX_NUMBER)
                          .maxNameLength(MAX_NAME)
                          .build())
                  .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                  .build())
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
          .build();

  /** A member of a structure. */
  private record Member(String name, String type) {}

  private final Map<String, List<Member>> types = new LinkedHashMap<>();
  private final Map<String, byte[]> typeHashes = new HashMap<>();
  private final Lines lines;
  private int values;

  private TypedData(Lines lines) {
    this.lines = lines;
  }

  /**
   * Decodes typed data.
   *
   * @param lines takes what it says
   * @return digest to sign, 32 bytes
   */
  static ByteString digest(String json, Lines lines) throws IntentException {
    JsonNode root;
    try {
      root = JSON.readTree(json);
    } catch (JacksonException e) {
      throw malformed();
    }
    return ByteString.copyFrom(new TypedData(lines).digest(root));
  }

  private byte[] digest(JsonNode root) throws IntentException {
    require(
        root.isObject() && names(root).equals(Set.of("types", "primaryType", "domain", "message")));
    readTypes(root.get("types"));
    String primary = text(root.get("primaryType"));
    require(types.containsKey(primary) && !primary.equals(DOMAIN));
    checkDomain();
    checkAcyclic(primary, new LinkedHashSet<>(), new LinkedHashSet<>());
    lines.add("primary type", primary);
    describeTypes(primary);
    byte[] domain = hash(DOMAIN, root.get("domain"), "domain", 0);
    byte[] message = hash(primary, root.get("message"), "message", 0);
    return Keccak.hash(new byte[] {0x19, 0x01}, domain, message);
  }

  private void readTypes(JsonNode node) throws IntentException {
    require(node.isObject());
    bound(node.size() <= MAX_TYPES);
    for (Map.Entry<String, JsonNode> type : node.properties()) {
      require(isName(type.getKey()) && !RESERVED.matcher(type.getKey()).matches());
      require(type.getValue().isArray());
      bound(type.getValue().size() <= MAX_MEMBERS);
      Map<String, Member> members = new LinkedHashMap<>();
      for (JsonNode member : type.getValue()) {
        require(member.isObject() && names(member).equals(Set.of("name", "type")));
        Member read = new Member(text(member.get("name")), text(member.get("type")));
        require(isName(read.name) && members.put(read.name, read) == null);
      }
      types.put(type.getKey(), List.copyOf(members.values()));
    }
    for (List<Member> members : types.values()) {
      for (Member member : members) {
        require(isType(member.type));
      }
    }
  }

  private boolean isType(String type) throws IntentException {
    bound(type.length() <= MAX_NAME);
    String element = type;
    int depth = 0;
    for (Matcher array = ARRAY.matcher(element); array.matches(); array = ARRAY.matcher(element)) {
      element = array.group(1);
      bound(++depth <= MAX_DEPTH);
    }
    if (types.containsKey(element)) {
      return !element.equals(DOMAIN);
    }
    Matcher elementary = ELEMENTARY.matcher(element);
    if (!elementary.matches()) {
      return false;
    }
    String bits = elementary.group(2);
    return bits == null || (Integer.parseInt(bits) % 8 == 0 && Integer.parseInt(bits) <= 256);
  }

  private void checkDomain() throws IntentException {
    List<Member> domain = types.getOrDefault(DOMAIN, List.of());
    require(!domain.isEmpty());
    List<String> order = List.copyOf(DOMAIN_MEMBERS.keySet());
    int last = -1;
    for (Member member : domain) {
      int place = order.indexOf(member.name);
      require(place > last && member.type.equals(DOMAIN_MEMBERS.get(member.name)));
      last = place;
    }
  }

  /**
   * Types that contain themselves have values without end, or with ends that wallets read in
   * different ways.
   */
  private void checkAcyclic(String type, Set<String> above, Set<String> done)
      throws IntentException {
    if (done.contains(type)) {
      return;
    }
    bound(above.add(type) && above.size() <= MAX_DEPTH);
    for (Member member : types.getOrDefault(type, List.of())) {
      String element = element(member.type);
      if (types.containsKey(element)) {
        checkAcyclic(element, above, done);
      }
    }
    above.remove(type);
    done.add(type);
  }

  /** The type without what makes it an array. */
  private static String element(String type) {
    int bracket = type.indexOf('[');
    return bracket < 0 ? type : type.substring(0, bracket);
  }

  /** The types say what the names of values mean: a number may be an amount or a deadline. */
  private void describeTypes(String primary) throws IntentException {
    Set<String> used = new TreeSet<>();
    collect(primary, used);
    for (String type : used) {
      StringBuilder text = new StringBuilder();
      describe(type, text);
      lines.add("type " + type, text);
    }
  }

  /** {@code hashStruct}. */
  private byte[] hash(String type, JsonNode value, String path, int depth) throws IntentException {
    List<Member> members = types.getOrDefault(type, List.of());
    requireValue(value.isObject() && value.size() == members.size());
    if (members.isEmpty()) {
      lines.add(path, "an empty " + type);
    }
    ByteArrayOutputStream encoded = new ByteArrayOutputStream();
    encoded.writeBytes(typeHash(type));
    for (Member member : members) {
      JsonNode child = value.get(member.name);
      requireValue(child != null);
      encoded.writeBytes(encode(member.type, child, path + "." + member.name, depth + 1));
    }
    return Keccak.hash(encoded.toByteArray());
  }

  /** The hash of {@code encodeType}: the type, then those it refers to, by name. */
  private byte[] typeHash(String type) {
    return typeHashes.computeIfAbsent(
        type,
        t -> {
          TreeSet<String> others = new TreeSet<>();
          collect(t, others);
          others.remove(t);
          StringBuilder text = new StringBuilder();
          describe(t, text);
          others.forEach(o -> describe(o, text));
          return Keccak.hash(text.toString().getBytes(StandardCharsets.US_ASCII));
        });
  }

  private void collect(String type, Set<String> into) {
    if (types.containsKey(type) && into.add(type)) {
      types.get(type).forEach(m -> collect(element(m.type), into));
    }
  }

  private void describe(String type, StringBuilder into) {
    into.append(type).append('(');
    String separator = "";
    for (Member member : types.getOrDefault(type, List.of())) {
      into.append(separator).append(member.type).append(' ').append(member.name);
      separator = ",";
    }
    into.append(')');
  }

  /** {@code encodeData} of one value: 32 bytes. */
  private byte[] encode(String type, JsonNode value, String path, int depth)
      throws IntentException {
    bound(depth <= MAX_DEPTH && ++values <= MAX_VALUES);
    Matcher array = ARRAY.matcher(type);
    if (array.matches()) {
      requireValue(
          value.isArray()
              && (array.group(2) == null || Integer.parseInt(array.group(2)) == value.size()));
      if (value.isEmpty()) {
        lines.add(path, "an empty " + type);
      }
      ByteArrayOutputStream elements = new ByteArrayOutputStream();
      int i = 0;
      for (JsonNode element : value) {
        elements.writeBytes(encode(array.group(1), element, path + "[" + i++ + "]", depth + 1));
      }
      return Keccak.hash(elements.toByteArray());
    }
    if (types.containsKey(type)) {
      return hash(type, value, path, depth);
    }
    byte[] word = encode(type, value);
    if (type.equals("bytes")) {
      // They are for a contract, which takes them for a call of another one, say. None at all are
      // such a call, too: an order of a Safe with no data can pay out all that it has.
      throw new IntentException(
          IntentProblem.PAYLOAD_NOT_READ,
          path.length() <= MAX_PLACE ? "bytes in " + path : "a value of type bytes");
    }
    lines.add(path, shown(type, value));
    return word;
  }

  /** A number has several forms, and in decimal it can be compared. */
  private static String shown(String type, JsonNode value) throws IntentException {
    if (type.startsWith("uint") || type.startsWith("int")) {
      return number(value).toString();
    }
    return value.isString() ? value.stringValue() : value.toString();
  }

  private static byte[] encode(String type, JsonNode value) throws IntentException {
    switch (type) {
      case "bool" -> {
        requireValue(value.isBoolean());
        return word(value.booleanValue() ? BigInteger.ONE : BigInteger.ZERO);
      }
      case "string" -> {
        requireValue(value.isString());
        return Keccak.hash(
            Lines.utf8(value.stringValue())
                .orElseThrow(() -> new IntentException(IntentProblem.TYPED_DATA_VALUE)));
      }
      case "address" -> {
        requireValue(
            value.isString()
                && ADDRESS.matcher(value.stringValue()).matches()
                && EthereumAddress.isValid(value.stringValue()));
        return word(new BigInteger(value.stringValue().substring(2), 16));
      }
      case "bytes" -> {
        return Keccak.hash(bytes(value));
      }
      default -> {
        if (type.startsWith("bytes")) {
          byte[] bytes = bytes(value);
          requireValue(bytes.length == Integer.parseInt(type.substring("bytes".length())));
          return Arrays.copyOf(bytes, Keccak.BYTES);
        }
        boolean signed = type.startsWith("int");
        int bits = Integer.parseInt(type.substring(signed ? 3 : 4));
        BigInteger number = number(value);
        requireValue(
            signed
                ? number.bitLength() < bits
                : number.signum() >= 0 && number.bitLength() <= bits);
        return word(number);
      }
    }
  }

  private static byte[] bytes(JsonNode value) throws IntentException {
    requireValue(
        value.isString()
            && HEX.matcher(value.stringValue()).matches()
            && value.stringValue().length() % 2 == 0);
    return HexFormat.of().parseHex(value.stringValue().substring(2));
  }

  /** A whole number: of JSON, or in a string, in decimal or (not negative) in hexadecimal. */
  private static BigInteger number(JsonNode value) throws IntentException {
    if (value.isIntegralNumber()) {
      return value.bigIntegerValue();
    }
    requireValue(value.isString());
    String text = value.stringValue();
    if (HEX_NUMBER.matcher(text).matches()) {
      return new BigInteger(text.substring(2), 16);
    }
    requireValue(DECIMAL.matcher(text).matches() && !text.equals("-0"));
    return new BigInteger(text);
  }

  /** Two's complement, 32 bytes. */
  private static byte[] word(BigInteger number) {
    byte[] bytes = number.toByteArray();
    byte[] word = new byte[Keccak.BYTES];
    Arrays.fill(word, (byte) (number.signum() < 0 ? 0xff : 0));
    int length = Math.min(bytes.length, word.length);
    System.arraycopy(bytes, bytes.length - length, word, word.length - length, length);
    return word;
  }

  private static boolean isName(String name) {
    return NAME.matcher(name).matches();
  }

  private static Set<String> names(JsonNode object) {
    return Set.copyOf(object.propertyNames());
  }

  private static String text(JsonNode node) throws IntentException {
    require(node.isString());
    return node.stringValue();
  }

  private static void require(boolean condition) throws IntentException {
    if (!condition) {
      throw malformed();
    }
  }

  private static void requireValue(boolean condition) throws IntentException {
    if (!condition) {
      throw new IntentException(IntentProblem.TYPED_DATA_VALUE);
    }
  }

  private static void bound(boolean condition) throws IntentException {
    if (!condition) {
      throw new IntentException(IntentProblem.TYPED_DATA_TOO_COMPLEX);
    }
  }

  private static IntentException malformed() {
    return new IntentException(IntentProblem.TYPED_DATA_MALFORMED);
  }
}
