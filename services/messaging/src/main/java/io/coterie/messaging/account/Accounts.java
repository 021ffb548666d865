package io.coterie.messaging.account;

import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.LoadingCache;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The accounts, answered from memory: sending to a known account touches no database.
 *
 * <p>An entry is dropped after each change of its account, whether or not the change is known to
 * have succeeded. A load that began before the change ends before the drop, because the cache
 * orders both by key; so no entry outlives the state it was read from. Other replicas drop theirs
 * when they hear of the change through {@link AccountChanges}, and after {@link #SHARED_CACHE_TIME}
 * if they do not.
 */
public final class Accounts {
  /** A device is noted as seen at most this often. */
  private static final Duration LAST_SEEN_RESOLUTION = Duration.ofDays(1);

  /** How long an entry may be older than what another replica has written. */
  private static final Duration SHARED_CACHE_TIME = Duration.ofSeconds(10);

  private final AccountStore store;
  private final AccountChanges changes;
  private final Clock clock;
  private final LoadingCache<UUID, Optional<Account>> byAci;
  private final LoadingCache<UUID, Optional<UUID>> aciByPni;
  private final LoadingCache<UUID, Optional<AccountStore.DeletedAccount>> deletedByAci;

  /**
   * @param changes how other replicas hear of changes, and this one of theirs
   */
  public Accounts(AccountStore store, AccountChanges changes, Clock clock, int maxCached) {
    this.store = store;
    this.changes = changes;
    this.clock = clock;
    this.byAci = cache(changes, maxCached).build(store::find);
    this.aciByPni = cache(changes, maxCached).build(store::findAciByPni);
    this.deletedByAci = cache(changes, maxCached).build(store::findDeleted);
    changes.onChanged(this::forget);
  }

  private static Caffeine<Object, Object> cache(AccountChanges changes, int maxCached) {
    Caffeine<Object, Object> cache = Caffeine.newBuilder().maximumSize(maxCached);
    return changes.shared() ? cache.expireAfterWrite(SHARED_CACHE_TIME) : cache;
  }

  private void forget(UUID id) {
    byAci.invalidate(id);
    aciByPni.invalidate(id);
    deletedByAci.invalidate(id);
  }

  private void changed(UUID id) {
    forget(id);
    changes.announce(id);
  }

  /** The account at that address. */
  public Optional<Account> find(ServiceIdentifier id) {
    return switch (id.kind()) {
      case ACI -> byAci.get(id.uuid());
      case PNI -> aciByPni.get(id.uuid()).flatMap(byAci::get);
    };
  }

  /** The account that had that ACI, if it deleted itself. */
  public Optional<AccountStore.DeletedAccount> findDeleted(UUID aci) {
    return deletedByAci.get(aci);
  }

  /** The account and device that these credentials belong to. */
  public Optional<Authenticated> authenticate(Credentials credentials) {
    return byAci
        .get(credentials.aci())
        .flatMap(
            account ->
                account
                    .device(credentials.deviceId())
                    .filter(device -> device.password().matches(credentials.password()))
                    .map(device -> new Authenticated(account, device)));
  }

  /** An account that proved itself, as of the moment it did. */
  public record Authenticated(Account account, Device device) {
    public DeviceAddress address() {
      return new DeviceAddress(account.aci(), device.id());
    }
  }

  /** The account and device as they are now; empty if they are no more. */
  public Optional<Authenticated> refresh(DeviceAddress address) {
    return byAci
        .get(address.aci())
        .flatMap(a -> a.device(address.deviceId()).map(d -> new Authenticated(a, d)));
  }

  /** Like {@link #refresh}, whatever another replica has done the moment before. */
  public Optional<Authenticated> reread(DeviceAddress address) {
    if (changes.shared()) {
      byAci.invalidate(address.aci());
    }
    return refresh(address);
  }

  public AccountStore.RegistrationResult register(AccountStore.Registration registration) {
    AccountStore.RegistrationResult result = store.register(registration);
    switch (result) {
      case AccountStore.RegistrationResult.Registered(Account account, boolean replaced) -> {
        changed(account.aci());
        changed(account.pni());
      }
      case AccountStore.RegistrationResult.Repeated repeated -> {}
      case AccountStore.RegistrationResult.Refused refused -> {}
    }
    return result;
  }

  public void updateAttributes(
      DeviceAddress address,
      Device changed,
      byte @Nullable [] unidentifiedAccessKey,
      boolean unrestrictedUnidentifiedAccess) {
    try {
      store.updateAttributes(
          address, changed, unidentifiedAccessKey, unrestrictedUnidentifiedAccess);
    } finally {
      changed(address.aci());
    }
  }

  public void updateCapabilities(DeviceAddress address, Set<String> capabilities) {
    try {
      store.updateCapabilities(address, capabilities);
    } finally {
      changed(address.aci());
    }
  }

  /** Whether there was such a device. */
  public boolean removeDevice(DeviceAddress address) {
    try {
      return store.removeDevice(address);
    } finally {
      changed(address.aci());
    }
  }

  /** Deletes an account with all that belongs to it. */
  public void delete(Account account) {
    try {
      store.deleteAccount(account.aci());
    } finally {
      changed(account.aci());
      changed(account.pni());
    }
  }

  /** Notes that a device has connected. */
  public void seen(Authenticated who) {
    Instant now = clock.instant();
    if (Duration.between(who.device().lastSeen(), now).compareTo(LAST_SEEN_RESOLUTION) > 0) {
      try {
        store.updateLastSeen(who.address(), now);
      } finally {
        changed(who.account().aci());
      }
    }
  }
}
