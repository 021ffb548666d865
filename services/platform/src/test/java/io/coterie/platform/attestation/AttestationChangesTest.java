package io.coterie.platform.attestation;

import static io.coterie.platform.attestation.AttestationLies.honest;
import static io.coterie.platform.attestation.TestSession.KEY;
import static io.coterie.platform.attestation.TestSession.trust;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import io.coterie.proto.custody.v1.Key;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Answers with one thing changed, found by walking through them and not by thinking of them. */
class AttestationChangesTest {
  private static final int CHANGED_BYTES = 3_000;

  /** If any byte of an answer is changed, the same key is believed, or none. */
  @Test
  void no_changed_byte_makes_another_key_believed() throws Exception {
    Key honest = honest();
    AttestedKey attested = AttestedKey.of(KEY, honest, trust());
    byte[] answer = honest.toByteArray();
    Random random = new Random(20_261_125);
    int refused = 0;
    for (int i = 0; i < CHANGED_BYTES; i++) {
      byte[] changed = answer.clone();
      changed[random.nextInt(changed.length)] ^= (byte) (1 + random.nextInt(255));
      try {
        assertThat(AttestedKey.of(KEY, Key.parseFrom(changed), trust())).isEqualTo(attested);
      } catch (InvalidProtocolBufferException | AttestationException e) {
        refused++;
      }
    }
    // The time alone is the coordinator's word.
    assertThat(refused).isGreaterThan(CHANGED_BYTES * 9 / 10);
  }

  /** Walks every field of every message of an answer, also those that are not set. */
  @Test
  void no_field_can_be_changed_but_those_that_nobody_signs() {
    Key honest = honest();
    List<String> believed = new ArrayList<>();
    for (Map.Entry<String, Message> change : changes("", honest)) {
      try {
        AttestedKey.of(KEY, (Key) change.getValue(), trust());
        believed.add(change.getKey());
      } catch (AttestationException e) {
        assertThat(e.getMessage()).hasLineCount(1);
      }
    }
    assertThat(believed).contains("create_time").allMatch(field -> field.matches("create_time.*"));
  }

  /** A message with one of its fields, or of those in it, changed or cleared. */
  private static List<Map.Entry<String, Message>> changes(String path, Message message) {
    List<Map.Entry<String, Message>> changes = new ArrayList<>();
    for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
      String name = path + field.getName();
      if (!field.isRepeated()) {
        if (message.getAllFields().containsKey(field)) {
          changes.add(Map.entry(name, message.toBuilder().clearField(field).build()));
        }
        for (Map.Entry<String, Object> value :
            values(name, field, message.getField(field), message.toBuilder())) {
          changes.add(
              Map.entry(
                  value.getKey(), message.toBuilder().setField(field, value.getValue()).build()));
        }
        continue;
      }
      List<?> elements = (List<?>) message.getField(field);
      for (int i = 0; i < elements.size(); i++) {
        int index = i;
        List<Object> fewer = new ArrayList<>(elements);
        fewer.remove(index);
        changes.add(Map.entry(name, message.toBuilder().setField(field, fewer).build()));
        for (Map.Entry<String, Object> value :
            values(name, field, elements.get(i), message.toBuilder())) {
          changes.add(
              Map.entry(
                  value.getKey(),
                  message.toBuilder().setRepeatedField(field, index, value.getValue()).build()));
        }
      }
    }
    return changes;
  }

  private static List<Map.Entry<String, Object>> values(
      String name, FieldDescriptor field, Object value, Message.Builder owner) {
    return switch (field.getJavaType()) {
      case STRING -> List.of(Map.entry(name, value + "x"));
      case INT -> List.of(Map.entry(name, (Integer) value + 1), Map.entry(name, -1));
      case LONG -> List.of(Map.entry(name, (Long) value + 1));
      case BYTE_STRING -> bytes(name, (ByteString) value);
      case ENUM ->
          field.getEnumType().getValues().stream()
              .filter(each -> !each.equals(value))
              .map(each -> Map.entry(name, (Object) each))
              .toList();
      case MESSAGE ->
          changes(name + ".", (Message) value).stream()
              .filter(change -> !change.getKey().contains("details"))
              .map(change -> Map.entry(change.getKey(), (Object) change.getValue()))
              .toList();
      case BOOLEAN -> List.of(Map.entry(name, !(Boolean) value));
      case FLOAT, DOUBLE -> throw new AssertionError("a new type: " + name + owner);
    };
  }

  /** Bytes all along it, and one less and one more. */
  private static List<Map.Entry<String, Object>> bytes(String name, ByteString value) {
    Stream<ByteString> changed =
        IntStream.iterate(0, i -> i < value.size(), i -> i + 15)
            .mapToObj(
                i -> {
                  byte[] bytes = value.toByteArray();
                  bytes[i] ^= 1;
                  return ByteString.copyFrom(bytes);
                });
    return Stream.of(
            changed,
            Stream.of(value.concat(ByteString.fromHex("00"))),
            value.isEmpty() ? Stream.<ByteString>of() : Stream.of(value.substring(1)))
        .flatMap(each -> each)
        .map(each -> Map.entry(name, (Object) each))
        .toList();
  }
}
