package io.coterie.coordinator.custody.signing;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/** Tells the watchers of a signing about its changes that this replica sees. Thread-safe. */
final class SigningWatchers {
  private final ConcurrentHashMap<UUID, List<SigningWatcher>> watchers = new ConcurrentHashMap<>();
  private volatile boolean stopped;

  Runnable watch(UUID id, SigningWatcher watcher) {
    watchers.compute(
        id,
        (k, list) -> {
          List<SigningWatcher> next = list == null ? new ArrayList<>() : new ArrayList<>(list);
          next.add(watcher);
          return next;
        });
    if (stopped) {
      watcher.stopping();
    }
    return () ->
        watchers.computeIfPresent(
            id,
            (k, list) -> {
              List<SigningWatcher> next = new ArrayList<>(list);
              next.remove(watcher);
              return next.isEmpty() ? null : next;
            });
  }

  boolean isWatched(UUID id) {
    return watchers.containsKey(id);
  }

  void publish(SigningRecord record) {
    watchers.getOrDefault(record.id(), List.of()).forEach(w -> w.changed(record));
  }

  void stop() {
    stopped = true;
    watchers.values().forEach(list -> list.forEach(SigningWatcher::stopping));
  }
}
