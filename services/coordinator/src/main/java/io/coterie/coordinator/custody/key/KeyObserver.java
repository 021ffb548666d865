package io.coterie.coordinator.custody.key;

/** Learns of changes that make something useless that was prepared for a key. */
public interface KeyObserver {
  /** The key has new shares, or may have. */
  void renewed(String key);

  /** A party may not take part in sessions of the key any more. */
  void excluded(String key, int partyId);
}
