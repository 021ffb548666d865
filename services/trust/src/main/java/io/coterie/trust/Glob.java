package io.coterie.trust;

import java.util.regex.Pattern;

/**
 * A pattern in which {@code *} stands for any characters, also none; everything else stands for
 * itself. Takes time in proportion to the lengths, whatever the input.
 *
 * @param pattern for example {@code keys/treasury-*}
 */
public record Glob(String pattern) {
  /** Characters of a pattern. */
  public static final int MAX_LENGTH = 256;

  private static final Pattern OF_KEYS = Pattern.compile("\\*|(keys|groups)/[a-z*][a-z0-9*-]*");

  public Glob {
    if (pattern.isEmpty() || pattern.length() > MAX_LENGTH) {
      throw new IllegalArgumentException("a pattern has 1 to " + MAX_LENGTH + " characters");
    }
  }

  /**
   * A pattern of names of keys, or of groups of approvers.
   *
   * @throws IllegalArgumentException if none can have a name that fits
   */
  public static Glob ofKeys(String pattern) {
    Glob glob = new Glob(pattern);
    if (!glob.isOfKeys()) {
      throw new IllegalArgumentException(
          ("'%s' is no name or pattern of keys or groups: keys/ or groups/ and [a-z0-9-], with * for"
                  + " any text")
              .formatted(pattern));
    }
    return glob;
  }

  boolean isOfKeys() {
    return OF_KEYS.matcher(pattern).matches();
  }

  /** Whether the whole text fits. */
  public boolean matches(String text) {
    String[] parts = pattern.split("\\*", -1);
    String first = parts[0];
    String last = parts[parts.length - 1];
    if (parts.length == 1) {
      return text.equals(first);
    }
    if (!text.startsWith(first)
        || text.length() < first.length() + last.length()
        || !text.endsWith(last)) {
      return false;
    }
    // The parts between may each take the first place they find.
    int from = first.length();
    int to = text.length() - last.length();
    for (int i = 1; i < parts.length - 1; i++) {
      int found = text.indexOf(parts[i], from);
      if (found < 0 || found + parts[i].length() > to) {
        return false;
      }
      from = found + parts[i].length();
    }
    return true;
  }
}
