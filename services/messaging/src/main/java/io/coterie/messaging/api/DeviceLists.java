package io.coterie.messaging.api;

import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.Device;
import io.coterie.messaging.account.IdentityType;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;

/** Compares the devices that a sender knows with those that an account has. */
final class DeviceLists {
  private DeviceLists() {}

  /** Body of a 409, for one account. */
  record Mismatched(Set<Integer> missingDevices, Set<Integer> extraDevices) {}

  /** Body of a 410, for one account. */
  record Stale(Set<Integer> staleDevices) {}

  /** The named devices that the account has under another registration id. */
  static Set<Integer> stale(
      Account account, IdentityType identity, Map<Integer, Integer> registrationIds) {
    Set<Integer> stale = new TreeSet<>();
    registrationIds.forEach(
        (id, registrationId) ->
            account
                .device(id)
                .filter(device -> device.registrationId(identity) != registrationId)
                .ifPresent(device -> stale.add(id)));
    return stale;
  }

  /**
   * The devices that the sender misses or imagines; empty if there are none.
   *
   * @param excluded a device that the sender does not write to: its own
   */
  static Optional<Mismatched> mismatch(Account account, Set<Integer> named, OptionalInt excluded) {
    Set<Integer> missing = new TreeSet<>();
    for (Device device : account.devices()) {
      if (excluded.isEmpty() || excluded.getAsInt() != device.id()) {
        missing.add(device.id());
      }
    }
    Set<Integer> extra = new TreeSet<>(named);
    extra.removeAll(missing);
    missing.removeAll(named);
    return missing.isEmpty() && extra.isEmpty()
        ? Optional.empty()
        : Optional.of(new Mismatched(missing, extra));
  }
}
