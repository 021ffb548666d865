package io.coterie.cli.terminal;

import java.io.FilterWriter;
import java.io.IOException;
import java.io.Writer;

/** Looks at each UTF-16 unit before another writer gets it. */
abstract class UnitWriter extends FilterWriter {
  UnitWriter(Writer out) {
    super(out);
  }

  @Override
  public abstract void write(int unit) throws IOException;

  @Override
  public final void write(char[] text, int from, int count) throws IOException {
    for (int i = from; i < from + count; i++) {
      write(text[i]);
    }
  }

  @Override
  public final void write(String text, int from, int count) throws IOException {
    for (int i = from; i < from + count; i++) {
      write(text.charAt(i));
    }
  }
}
