package io.coterie.messaging.api;

import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.Device;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** Accounts as they are on the wire, and what makes their attributes acceptable. */
final class AccountEntities {
  private static final int MAX_NAME_LENGTH = 225;
  private static final int MAX_CAPABILITIES = 64;
  private static final int MAX_CAPABILITY_LENGTH = 64;

  private AccountEntities() {}

  record Attributes(
      @Nullable Boolean fetchesMessages,
      @Nullable Integer registrationId,
      @Nullable Integer pniRegistrationId,
      @Nullable String name,
      @Nullable Map<String, Boolean> capabilities,
      byte @Nullable [] unidentifiedAccessKey,
      @Nullable Boolean unrestrictedUnidentifiedAccess) {

    /** 422 if a value is not acceptable. */
    void check() {
      requireRegistrationId(registrationId);
      // A member of the channel leaves it out when it changes its access key.
      if (pniRegistrationId != null) {
        requireRegistrationId(pniRegistrationId);
      }
      if (name != null && name.length() > MAX_NAME_LENGTH) {
        throw ApiException.unprocessable();
      }
      if (unidentifiedAccessKey != null
          && unidentifiedAccessKey.length != 0
          && unidentifiedAccessKey.length != Account.ACCESS_KEY_BYTES) {
        throw ApiException.unprocessable();
      }
      capabilityNames();
    }

    private static void requireRegistrationId(@Nullable Integer id) {
      if (id == null || id < 1 || id > Device.MAX_REGISTRATION_ID) {
        throw ApiException.unprocessable();
      }
    }

    int aciRegistrationId() {
      return Optional.ofNullable(registrationId).orElseThrow(ApiException::unprocessable);
    }

    int pniRegistrationIdOrAci() {
      return pniRegistrationId == null ? aciRegistrationId() : pniRegistrationId;
    }

    Set<String> capabilityNames() {
      return AccountEntities.capabilityNames(capabilities);
    }

    byte @Nullable [] accessKey() {
      return unidentifiedAccessKey == null || unidentifiedAccessKey.length == 0
          ? null
          : unidentifiedAccessKey;
    }

    boolean fetches() {
      return Boolean.TRUE.equals(fetchesMessages);
    }

    boolean unrestricted() {
      return Boolean.TRUE.equals(unrestrictedUnidentifiedAccess);
    }
  }

  /** The capabilities that are set, or 422. */
  static Set<String> capabilityNames(@Nullable Map<String, Boolean> capabilities) {
    Set<String> names = new TreeSet<>();
    if (capabilities == null) {
      return names;
    }
    if (capabilities.size() > MAX_CAPABILITIES) {
      throw ApiException.unprocessable();
    }
    capabilities.forEach(
        (name, set) -> {
          if (name.isEmpty() || name.length() > MAX_CAPABILITY_LENGTH) {
            throw ApiException.unprocessable();
          }
          if (Boolean.TRUE.equals(set)) {
            names.add(name);
          }
        });
    return names;
  }

  /** The answer to an account that asks about itself. */
  record Identity(
      UUID uuid,
      UUID pni,
      String number,
      @Nullable String usernameHash,
      boolean storageCapable,
      Entitlements entitlements) {
    static Identity of(Account account) {
      return new Identity(
          account.aci(), account.pni(), account.number(), null, false, Entitlements.NONE);
    }
  }

  record Registered(
      UUID uuid,
      UUID pni,
      String number,
      @Nullable String usernameHash,
      boolean storageCapable,
      Entitlements entitlements,
      boolean reregistration) {
    static Registered of(Account account, boolean reregistration) {
      return new Registered(
          account.aci(),
          account.pni(),
          account.number(),
          null,
          false,
          Entitlements.NONE,
          reregistration);
    }
  }

  /** The purchases of the account: none, because nothing is sold here. */
  record Entitlements(List<String> badges, @Nullable String backup) {
    static final Entitlements NONE = new Entitlements(List.of(), null);
  }
}
