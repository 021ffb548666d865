package io.coterie.cli.terminal;

import java.io.Console;
import java.io.FilterWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.Optional;

/** The person in front of the command, if there is one. */
public interface Terminal {

  /** The terminal that the process was started from. */
  Terminal OF_PROCESS =
      question -> {
        Console console = System.console();
        if (console == null || !console.isTerminal()) {
          return Optional.empty();
        }
        String line = console.readLine("%s", question);
        return Optional.of(line == null ? "" : line);
      };

  /** The line with which a question is answered; nothing if nobody can be asked. */
  Optional<String> ask(String question);

  /**
   * A writer that shows what would control a terminal, or hide or reorder what stands there, as
   * {@code \\u{1b}}. Names, errors and payloads come from others.
   */
  static PrintWriter printable(PrintWriter out) {
    return new PrintWriter(new Printable(out), true);
  }

  /** The command that was started, with the person in front of it. */
  interface Holder {
    /** The person who can be asked while the command runs. */
    Terminal terminal();
  }

  /** See {@link #printable}. */
  final class Printable extends FilterWriter {
    private Printable(Writer out) {
      super(out);
    }

    @Override
    public void write(int character) throws IOException {
      write(String.valueOf((char) character), 0, 1);
    }

    @Override
    public void write(char[] text, int from, int count) throws IOException {
      write(new String(text, from, count), 0, count);
    }

    @Override
    public void write(String text, int from, int count) throws IOException {
      // By code points: one that two characters stand for can be invisible, too.
      int end = from + count;
      for (int at = from; at < end; ) {
        int character = text.codePointAt(at);
        int next = Math.min(end, at + Character.charCount(character));
        if (prints(character)) {
          out.write(text, at, next - at);
        } else {
          out.write("\\u{" + Integer.toHexString(character) + "}");
        }
        at = next;
      }
    }

    private static boolean prints(int character) {
      return character == '\n'
          || switch (Character.getType(character)) {
            case Character.CONTROL,
                Character.FORMAT,
                Character.LINE_SEPARATOR,
                Character.PARAGRAPH_SEPARATOR ->
                false;
            default -> true;
          };
    }
  }
}
