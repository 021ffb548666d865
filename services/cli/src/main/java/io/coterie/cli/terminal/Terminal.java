package io.coterie.cli.terminal;

import io.coterie.platform.payload.Characters;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.Optional;

/** The person in front of the command, if there is one. */
public interface Terminal {

  /** Columns of a terminal that does not say how many it has. */
  int USUAL_COLUMNS = 80;

  /** The line with which a question is answered; nothing if nobody can be asked. */
  Optional<String> ask(String question);

  /** How many characters fit into a line where questions, and what they are about, are shown. */
  default int columns() {
    return USUAL_COLUMNS;
  }

  /** How many characters fit into a line where results go. */
  default int resultColumns() {
    return USUAL_COLUMNS;
  }

  /**
   * A writer that shows what would control a terminal, or hide or reorder what stands there, as
   * {@code \\u{1b}}. Names, errors and payloads come from others.
   */
  static PrintWriter printable(PrintWriter out) {
    return new PrintWriter(new Printable(out), true);
  }

  /**
   * The same, in lines that a terminal of so many columns does not wrap: no text of others begins a
   * line.
   */
  static PrintWriter printable(PrintWriter out, int columns) {
    return new PrintWriter(new Printable(new WrappedLines(out, columns)), true);
  }

  /** The command that was started, with the person in front of it. */
  interface Holder {
    /** The person who can be asked while the command runs. */
    Terminal terminal();
  }

  /**
   * JSON with what a terminal would not show as itself in the escapes of JSON: those of {@link
   * #printable} would make it something else.
   */
  static String printableJson(String json) {
    StringBuilder printable = new StringBuilder();
    json.codePoints()
        .forEach(
            point -> {
              if (Printable.prints(point)) {
                printable.appendCodePoint(point);
              } else {
                for (char unit : Character.toChars(point)) {
                  printable.append("\\u%04x".formatted((int) unit));
                }
              }
            });
    return printable.toString();
  }

  /** See {@link #printable}. */
  final class Printable extends UnitWriter {
    /** First half of a character whose second half has not come yet; 0 if there is none. */
    private char half;

    private Printable(Writer out) {
      super(out);
    }

    @Override
    public void write(int character) throws IOException {
      char unit = (char) character;
      char before = half;
      half = 0;
      if (before != 0 && Character.isLowSurrogate(unit)) {
        print(Character.toCodePoint(before, unit));
        return;
      }
      if (before != 0) {
        print(before);
      }
      if (Character.isHighSurrogate(unit)) {
        half = unit;
      } else {
        print(unit);
      }
    }

    @Override
    public void flush() throws IOException {
      if (half != 0) {
        print(half);
        half = 0;
      }
      super.flush();
    }

    private void print(int point) throws IOException {
      out.write(
          prints(point) ? Character.toString(point) : "\\u{" + Integer.toHexString(point) + "}");
    }

    private static boolean prints(int point) {
      return point == '\n'
          || switch (Character.getType(point)) {
            case Character.CONTROL,
                Character.FORMAT,
                Character.LINE_SEPARATOR,
                Character.PARAGRAPH_SEPARATOR,
                Character.SURROGATE,
                Character.UNASSIGNED ->
                false;
            default -> !Characters.isBlank(point) && !Characters.isRightToLeft(point);
          };
    }
  }
}
