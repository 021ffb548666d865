package io.coterie.messaging.account;

import java.util.UUID;
import java.util.function.Consumer;

/** Tells the replicas of the service that an account is no longer as they may have it in memory. */
public interface AccountChanges {

  /** Whether there are other replicas. */
  boolean shared();

  /**
   * Tells the other replicas. Does not block and does not fail.
   *
   * @param id the ACI or PNI of an account that may have changed
   */
  void announce(UUID id);

  /** The reaction to a change that another replica announces. */
  void onChanged(Consumer<UUID> listener);

  /** When there is one replica, nobody is to be told. */
  AccountChanges NONE =
      new AccountChanges() {
        @Override
        public boolean shared() {
          return false;
        }

        @Override
        public void announce(UUID id) {}

        @Override
        public void onChanged(Consumer<UUID> listener) {}
      };
}
