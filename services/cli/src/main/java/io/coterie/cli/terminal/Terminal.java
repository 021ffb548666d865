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
      if (prints((char) character)) {
        out.write(character);
      } else {
        out.write("\\u{" + Integer.toHexString(character) + "}");
      }
    }

    @Override
    public void write(char[] text, int from, int count) throws IOException {
      for (int i = from; i < from + count; i++) {
        write(text[i]);
      }
    }

    @Override
    public void write(String text, int from, int count) throws IOException {
      for (int i = from; i < from + count; i++) {
        write(text.charAt(i));
      }
    }

    private static boolean prints(char character) {
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
