package io.coterie.channel.link;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;

/**
 * Room for bodies that wait until their recipients have room. A recipient takes no more of it than
 * is left for others: one whose queue stays full has half of it at most, and however many there
 * are, a body for another one finds room. A body that waits for several is kept once, so it waits
 * for all of them if one of them has room for it. Thread-safe.
 */
final class WaitingRoom {
  private final long bytes;
  private final Map<UUID, Long> taken = new HashMap<>();
  private long all;

  /**
   * The room of one body.
   *
   * @param owners recipients for which it counts
   */
  record Place(List<UUID> owners, int size) {
    Place {
      owners = List.copyOf(owners);
    }
  }

  /**
   * @param bytes of all bodies
   */
  WaitingRoom(long bytes) {
    this.bytes = bytes;
  }

  /**
   * Takes room for a body.
   *
   * @param recipients accounts that it waits for; none if it waits for the service itself
   * @return empty, and nothing is taken, if none of them has as much
   */
  synchronized Optional<Place> take(Collection<UUID> recipients, int size) {
    long free = bytes - all;
    List<UUID> owners =
        recipients.stream().filter(each -> taken.getOrDefault(each, 0L) + size <= free).toList();
    if (size > free || owners.isEmpty() && !recipients.isEmpty()) {
      return Optional.empty();
    }
    owners.forEach(each -> taken.merge(each, (long) size, Long::sum));
    all += size;
    return Optional.of(new Place(owners, size));
  }

  /** Gives back what was taken for a body. */
  synchronized void giveBack(Place place) {
    all -= place.size();
    for (UUID each : place.owners()) {
      taken.computeIfPresent(each, (_, now) -> now == place.size() ? null : now - place.size());
    }
  }
}
