package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.payload.DecodedPayload.Field;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;

/** Collects what a payload says: all of it, or the payload is refused. */
final class Lines {
  private final List<Field> lines = new ArrayList<>();

  /**
   * Adds a value. One that is longer than a line goes on in the lines that follow, which have its
   * name with (2), (3), ….
   *
   * @throws IntentException if there are too many lines: nobody could check what is signed
   */
  void add(String name, Object value) throws IntentException {
    List<String> names = printable(name);
    // The end of a name says what it is: none is cut.
    if (names.size() > 1) {
      throw new IntentException(IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW);
    }
    List<String> parts = printable(value.toString());
    for (int i = 0; i < parts.size(); i++) {
      if (lines.size() == DecodedPayload.MAX_FIELDS) {
        throw new IntentException(IntentProblem.PAYLOAD_TOO_LONG_TO_SHOW);
      }
      String first = names.getFirst();
      lines.add(new Field(i == 0 ? first : first + " (" + (i + 1) + ")", parts.get(i)));
    }
  }

  /** Adds bytes in hexadecimal. */
  void addBytes(String name, ByteString bytes) throws IntentException {
    add(name, hex(bytes));
  }

  List<Field> list() {
    return List.copyOf(lines);
  }

  static String hex(ByteString bytes) {
    return "0x" + HexFormat.of().formatHex(bytes.toByteArray());
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

  /** Lines that cannot be taken for others: unprintable characters are escaped. At least one. */
  private static List<String> printable(String text) {
    List<String> parts = new ArrayList<>();
    StringBuilder part = new StringBuilder();
    int characters = 0;
    for (int i = 0; i < text.length(); ) {
      int codePoint = text.codePointAt(i);
      String shown =
          prints(codePoint)
              ? Character.toString(codePoint)
              : codePoint == '\\' ? "\\\\" : "\\u{" + Integer.toHexString(codePoint) + "}";
      int width = shown.codePointCount(0, shown.length());
      if (characters + width > DecodedPayload.MAX_VALUE) {
        parts.add(part.toString());
        part.setLength(0);
        characters = 0;
      }
      part.append(shown);
      characters += width;
      i += Character.charCount(codePoint);
    }
    parts.add(part.toString());
    return parts;
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
      default ->
          codePoint != '\\'
              && !Characters.isBlank(codePoint)
              && !Characters.isRightToLeft(codePoint);
    };
  }
}
