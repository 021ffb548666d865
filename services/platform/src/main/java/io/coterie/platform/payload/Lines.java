package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.payload.DecodedPayload.Field;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;

/** Collects what a payload says, within the limits of {@link DecodedPayload}. */
final class Lines {
  /** Bytes that are shown in hexadecimal; two characters each, and the ellipsis. */
  private static final int MAX_HEX_BYTES = (DecodedPayload.MAX_VALUE - 3) / 2;

  private final List<Field> lines = new ArrayList<>();
  private int left;

  /** Adds a line; of those that do not fit only their number is kept. */
  void add(String name, Object value) {
    if (lines.size() < DecodedPayload.MAX_FIELDS - 1) {
      lines.add(new Field(printable(name), printable(value.toString())));
    } else {
      left++;
    }
  }

  /** Adds bytes: their beginning, if they are many. */
  void addBytes(String name, ByteString bytes) {
    add(name, hex(bytes));
  }

  List<Field> list() {
    if (left > 0) {
      lines.add(new Field("lines not shown", Integer.toString(left)));
      left = 0;
    }
    return List.copyOf(lines);
  }

  static String hex(ByteString bytes) {
    HexFormat hex = HexFormat.of();
    return bytes.size() <= MAX_HEX_BYTES
        ? "0x" + hex.formatHex(bytes.toByteArray())
        : "0x" + hex.formatHex(bytes.substring(0, MAX_HEX_BYTES - 1).toByteArray()) + "…";
  }

  /** The text, if the bytes are UTF-8. */
  static Optional<String> utf8(ByteString bytes) {
    try {
      return Optional.of(
          StandardCharsets.UTF_8.newDecoder().decode(bytes.asReadOnlyByteBuffer()).toString());
    } catch (CharacterCodingException e) {
      return Optional.empty();
    }
  }

  /** The UTF-8 of a text; empty if it has half of a surrogate pair, which has none. */
  static Optional<byte[]> utf8(String text) {
    try {
      ByteBuffer encoded =
          StandardCharsets.UTF_8.newEncoder().encode(java.nio.CharBuffer.wrap(text));
      byte[] bytes = new byte[encoded.remaining()];
      encoded.get(bytes);
      return Optional.of(bytes);
    } catch (CharacterCodingException e) {
      return Optional.empty();
    }
  }

  /** One line that cannot be taken for another: what does not print is escaped, the end is cut. */
  private static String printable(String text) {
    StringBuilder out = new StringBuilder();
    int characters = 0;
    for (int i = 0; i < text.length(); ) {
      int codePoint = text.codePointAt(i);
      String shown =
          prints(codePoint)
              ? Character.toString(codePoint)
              : codePoint == '\\' ? "\\\\" : "\\u{" + Integer.toHexString(codePoint) + "}";
      int width = shown.codePointCount(0, shown.length());
      boolean last = i + Character.charCount(codePoint) == text.length();
      if (characters + width > DecodedPayload.MAX_VALUE - (last ? 0 : 1)) {
        return out.append('…').toString();
      }
      out.append(shown);
      characters += width;
      i += Character.charCount(codePoint);
    }
    return out.toString();
  }

  private static boolean prints(int codePoint) {
    return switch (Character.getType(codePoint)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR,
          Character.SURROGATE,
          Character.PRIVATE_USE,
          Character.UNASSIGNED ->
          false;
      case Character.SPACE_SEPARATOR -> codePoint == ' ';
      default -> codePoint != '\\';
    };
  }
}
