package io.coterie.channel;

import java.io.IOException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.UUID;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * The roster as a file: {@code {"version":1,"members":[{"name","role","partyId","region","aci",
 * "deviceId","identityKey","evidenceKey"}]}}, keys in base64. Strict: unknown, missing, repeated
 * and ill-typed fields are refused.
 */
public final class RosterFile {
  /** A full roster takes about 40 KB. */
  private static final long MAX_BYTES = 1 << 20;

  private static final Set<String> ROSTER_FIELDS = Set.of("version", "members");
  private static final Set<String> MEMBER_FIELDS =
      Set.of("name", "role", "partyId", "region", "aci", "deviceId", "identityKey", "evidenceKey");

  private static final int MAX_REGION = 63;

  private static final JsonMapper JSON =
      JsonMapper.builder()
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(SerializationFeature.INDENT_OUTPUT)
          .build();

  private RosterFile() {}

  /**
   * Reads a roster.
   *
   * @throws IllegalArgumentException when the content is not a roster; says what is wrong with it
   */
  public static Roster read(Path file) throws IOException {
    if (Files.size(file) > MAX_BYTES) {
      throw new IllegalArgumentException(file + " is above " + MAX_BYTES + " bytes");
    }
    return parse(Files.readAllBytes(file));
  }

  /** Reads a roster from the bytes of a file. */
  public static Roster parse(byte[] json) {
    JsonNode root = tree(json);
    requireFields(root, ROSTER_FIELDS, "roster");
    JsonNode members = root.path("members");
    if (!members.isArray()) {
      throw new IllegalArgumentException("members is not an array");
    }
    List<Member> parsed = new ArrayList<>();
    for (JsonNode member : members) {
      parsed.add(member(member));
    }
    return new Roster(integer(root, "version", Long.MAX_VALUE), parsed);
  }

  /** Reads the entry of one member, as {@link #entry} writes it. */
  public static Member parseEntry(byte[] json) {
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
        (int) integer(node, "partyId", 65_535),
        region,
        aci(node),
        (int) integer(node, "deviceId", 127),
        base64(node, "identityKey"),
        base64(node, "evidenceKey"));
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
    JsonNode value = node.path(field);
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

  private static byte[] base64(JsonNode node, String field) {
    try {
      return Base64.getDecoder().decode(text(node, field));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(field + " is not base64", e);
    }
  }

  /** Writes a roster; a reader sees the old file or the new one, never a part. */
  public static void write(Path file, Roster roster) throws IOException {
    ObjectNode root = JSON.createObjectNode().put("version", roster.version());
    ArrayNode members = root.putArray("members");
    roster.members().forEach(member -> members.add(node(member)));
    replace(file, JSON.writeValueAsBytes(root));
  }

  /** Writes the entry of one member, for the operator to collect. */
  public static void writeEntry(Path file, Member member) throws IOException {
    replace(file, entry(member));
  }

  /** The entry of one member. */
  public static byte[] entry(Member member) {
    return JSON.writeValueAsBytes(node(member));
  }

  private static ObjectNode node(Member member) {
    Base64.Encoder base64 = Base64.getEncoder();
    return JSON.createObjectNode()
        .put("name", member.name())
        .put("role", member.role().name().toLowerCase(Locale.ROOT))
        .put("partyId", member.partyId())
        .put("region", member.region())
        .put("aci", member.aci().toString())
        .put("deviceId", member.deviceId())
        .put("identityKey", base64.encodeToString(member.identityKey()))
        .put("evidenceKey", base64.encodeToString(member.evidenceKey()));
  }

  private static void replace(Path file, byte[] content) throws IOException {
    Path folder = file.toAbsolutePath().getParent();
    Path temporary = Files.createTempFile(folder, ".roster-", ".tmp");
    try {
      Files.write(temporary, content);
      try {
        Files.move(
            temporary, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      } catch (AtomicMoveNotSupportedException e) {
        Files.move(temporary, file, StandardCopyOption.REPLACE_EXISTING);
      }
    } finally {
      Files.deleteIfExists(temporary);
    }
  }
}
