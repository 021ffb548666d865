package io.coterie.platform.payload;

/** The characters that people cannot read, or that change how they read others. */
public final class Characters {
  private Characters() {}

  /**
   * Whether a text of this character alone would say nothing, or the text around it something else:
   * controls but tab and line ends, formatting (direction of writing, zero widths), separators of
   * lines, points that Unicode gives no character, and letters that show nothing.
   */
  static boolean misleads(int point) {
    return switch (Character.getType(point)) {
      case Character.CONTROL -> point != '\t' && point != '\n' && point != '\r';
      case Character.FORMAT,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR,
          Character.SURROGATE,
          Character.PRIVATE_USE,
          Character.UNASSIGNED ->
          true;
      default -> isBlank(point);
    };
  }

  /** Letters and numbers of scripts from right to left: terminals move what is beside them. */
  public static boolean isRightToLeft(int point) {
    return switch (Character.getDirectionality(point)) {
      case Character.DIRECTIONALITY_RIGHT_TO_LEFT,
          Character.DIRECTIONALITY_RIGHT_TO_LEFT_ARABIC,
          Character.DIRECTIONALITY_ARABIC_NUMBER ->
          true;
      default -> false;
    };
  }

  /** Letters and marks that show nothing at all, by Unicode's Default_Ignorable_Code_Point. */
  public static boolean isBlank(int point) {
    return point == 0x034F
        || point >= 0x115F && point <= 0x1160
        || point >= 0x17B4 && point <= 0x17B5
        || point >= 0x180B && point <= 0x180F
        || point == 0x2800 // of Braille, not among Unicode's
        || point == 0x3164
        || point >= 0xFE00 && point <= 0xFE0F
        || point == 0xFFA0
        || point >= 0xE0000 && point <= 0xE0FFF;
  }
}
