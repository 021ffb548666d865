package io.coterie.messaging.limit;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How much of something scarce each source holds. When there is not enough for all, each source has
 * an equal share, and only those below theirs may take more; so nobody is refused because of others
 * who take too much. Not thread-safe.
 */
public final class Shares {
  private final Map<Source, Holding> bySource = new HashMap<>();
  private long items;
  private long bytes;

  private record Holding(long items, long bytes) {}

  /** Bytes that all sources hold. */
  public long bytes() {
    return bytes;
  }

  /** Notes that a source has taken an item of that size. */
  public void add(Source source, long size) {
    change(source, 1, size);
  }

  /** Notes that a source has given back an item of that size. */
  public void remove(Source source, long size) {
    change(source, -1, -size);
  }

  private void change(Source source, long moreItems, long moreBytes) {
    items += moreItems;
    bytes += moreBytes;
    bySource.compute(
        source,
        (key, held) -> {
          long heldItems = (held == null ? 0 : held.items()) + moreItems;
          long heldBytes = (held == null ? 0 : held.bytes()) + moreBytes;
          return heldItems == 0 ? null : new Holding(heldItems, heldBytes);
        });
  }

  /** Whether a source holds less than its share, in number and in size, also with one more item. */
  public boolean isBelowShare(Source source, long size) {
    @Nullable Holding held = bySource.get(source);
    int sources = bySource.size() + (held == null ? 1 : 0);
    long heldItems = held == null ? 0 : held.items();
    long heldBytes = held == null ? 0 : held.bytes();
    return sources > 1
        && (heldItems + 1) * sources <= items
        && (heldBytes + size) * sources <= Math.max(bytes, size * sources);
  }
}
