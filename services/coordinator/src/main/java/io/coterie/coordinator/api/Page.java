package io.coterie.coordinator.api;

import com.google.protobuf.MessageLite;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * One page of a list.
 *
 * @param more whether another page follows
 */
record Page<M extends MessageLite>(List<M> items, boolean more) {
  private static final int DEFAULT_SIZE = 50;

  /** A page ends before the item that would make it longer: clients bound what they read. */
  private static final int MAX_BYTES = 1 << 19;

  /**
   * How many items a page has at most.
   *
   * @param asked by the client; 0: as many as usual
   * @param most that a page of this list has
   * @throws CustodyException if that is negative
   */
  static int size(int asked, int most) {
    if (asked < 0) {
      throw new CustodyException(ErrorReason.PAGE_SIZE_INVALID);
    }
    return asked == 0 ? DEFAULT_SIZE : Math.min(asked, most);
  }

  /**
   * A page of the first of the records.
   *
   * @param found one more than {@code size} if there are so many
   */
  static <R, M extends MessageLite> Page<M> of(List<R> found, int size, Function<R, M> resource) {
    List<M> items = new ArrayList<>();
    int bytes = 0;
    for (R record : found) {
      M item = resource.apply(record);
      bytes += item.getSerializedSize();
      if (items.size() == size || (!items.isEmpty() && bytes > MAX_BYTES)) {
        return new Page<>(items, true);
      }
      items.add(item);
    }
    return new Page<>(items, false);
  }

  /**
   * The token of the page that follows; empty if none does.
   *
   * @param place of an item in the order of the list
   */
  String next(Function<M, String> place) {
    return more ? PageToken.after(place.apply(items.getLast())) : "";
  }
}
