package io.coterie.cli.terminal;

import java.io.IOException;
import java.io.Writer;

/**
 * Breaks lines that a terminal would wrap, and begins what goes on with {@link #MARK}: text of
 * others in a long line would else begin a line of the terminal, and look like one of the command.
 */
final class WrappedLines extends UnitWriter {
  /** The mark of a line that goes on from the one above. */
  static final String MARK = "  | ";

  private static final int FIRST_WIDE = 0x80;

  private final int columns;
  private int column;

  /**
   * @param columns that the terminal has
   */
  WrappedLines(Writer out, int columns) {
    super(out);
    this.columns = columns;
  }

  @Override
  public void write(int character) throws IOException {
    char unit = (char) character;
    if (unit == '\n') {
      column = 0;
    } else {
      int width = width(unit);
      if (column + width > columns) {
        out.write('\n' + MARK);
        column = MARK.length();
      }
      column += width;
    }
    out.write(unit);
  }

  /**
   * At least what a terminal needs: which characters fill two columns, each has its own view. The
   * second half of a character is where the first is.
   */
  private static int width(char unit) {
    if (Character.isLowSurrogate(unit)) {
      return 0;
    }
    return unit < FIRST_WIDE ? 1 : 2;
  }
}
