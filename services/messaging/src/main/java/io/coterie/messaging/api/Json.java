package io.coterie.messaging.api;

import java.io.ByteArrayOutputStream;
import java.util.Base64;
import java.util.Optional;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.DeserializationContext;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.MapperFeature;
import tools.jackson.databind.SerializationContext;
import tools.jackson.databind.ValueDeserializer;
import tools.jackson.databind.ValueSerializer;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.module.SimpleModule;

/**
 * JSON as clients write and read it. Unknown fields are ignored, because clients send fields for
 * functions this service does not have; everything else is strict. Byte arrays are read as base64,
 * with or without padding, or as arrays of numbers, as clients differ in that.
 */
final class Json {
  private static final int MAX_DEPTH = 16;
  private static final int MAX_STRING = 1 << 20;

  /**
   * Names, values and brackets. Each may be an object for a few bytes; the longest honest body,
   * with keys as arrays of numbers, has some thousands.
   */
  private static final int MAX_TOKENS = 10_000;

  private static final JsonMapper MAPPER =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(
                      StreamReadConstraints.builder()
                          .maxNestingDepth(MAX_DEPTH)
                          .maxStringLength(MAX_STRING)
                          .maxNumberLength(32)
                          .maxNameLength(256)
                          .maxTokenCount(MAX_TOKENS)
                          .build())
                  .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                  .build())
          .addModule(
              new SimpleModule()
                  .addDeserializer(byte[].class, new Base64Deserializer())
                  .addSerializer(byte[].class, new Base64Serializer()))
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
          .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
          .build();

  private Json() {}

  /** The value of a body; empty if the body is not JSON of that shape, or is {@code null}. */
  static <T> Optional<T> read(byte[] body, Class<T> type) {
    try {
      return Optional.ofNullable(MAPPER.readValue(body, type));
    } catch (JacksonException e) {
      return Optional.empty();
    }
  }

  static byte[] write(Object value) {
    return MAPPER.writeValueAsBytes(value);
  }

  private static final class Base64Deserializer extends ValueDeserializer<byte[]> {
    @Override
    public byte[] deserialize(JsonParser parser, DeserializationContext context) {
      if (parser.currentToken() == JsonToken.START_ARRAY) {
        return numbers(parser, context);
      }
      if (parser.currentToken() != JsonToken.VALUE_STRING) {
        return context.reportInputMismatch(byte[].class, "neither base64 nor numbers");
      }
      try {
        return Base64.getDecoder().decode(parser.getString());
      } catch (IllegalArgumentException e) {
        return context.reportInputMismatch(byte[].class, "not base64");
      }
    }

    private static byte[] numbers(JsonParser parser, DeserializationContext context) {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      while (parser.nextToken() != JsonToken.END_ARRAY) {
        if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT) {
          return context.reportInputMismatch(byte[].class, "not a number");
        }
        long value = parser.getLongValue();
        if (value < 0 || value > 255) {
          return context.reportInputMismatch(byte[].class, "not a byte");
        }
        bytes.write((int) value);
      }
      return bytes.toByteArray();
    }
  }

  private static final class Base64Serializer extends ValueSerializer<byte[]> {
    @Override
    public void serialize(byte[] value, JsonGenerator out, SerializationContext context) {
      out.writeString(Base64.getEncoder().encodeToString(value));
    }
  }
}
