package io.coterie.coordinator.custody;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/** Tells those who watch a signing about its changes in this replica. Thread-safe. */
final class Changes {
  private final ConcurrentHashMap<UUID, List<Consumer<SigningRecord>>> watchers =
      new ConcurrentHashMap<>();

  /**
   * Calls {@code watcher} for every change from now on, on the thread that makes it.
   *
   * @return ends the watching
   */
  Runnable watch(UUID id, Consumer<SigningRecord> watcher) {
    watchers.compute(
        id,
        (k, list) -> {
          List<Consumer<SigningRecord>> next =
              list == null ? new ArrayList<>() : new ArrayList<>(list);
          next.add(watcher);
          return next;
        });
    return () ->
        watchers.computeIfPresent(
            id,
            (k, list) -> {
              List<Consumer<SigningRecord>> next = new ArrayList<>(list);
              next.remove(watcher);
              return next.isEmpty() ? null : next;
            });
  }

  void publish(SigningRecord record) {
    watchers.getOrDefault(record.id(), List.of()).forEach(w -> w.accept(record));
  }
}
