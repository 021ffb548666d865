package io.coterie.coordinator.channel;

import java.time.Instant;
import java.util.Optional;

/** Where the sealed account of a replica is kept. */
public interface SealedAccounts {

  /** The sealed account of that replica, if one was saved. */
  Optional<byte[]> load(String replica);

  /**
   * Saves an account durably; never replaces one.
   *
   * @throws IllegalStateException if the replica has one
   */
  void saveOnce(String replica, byte[] sealed, Instant now);
}
