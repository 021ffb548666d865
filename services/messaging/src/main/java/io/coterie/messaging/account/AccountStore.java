package io.coterie.messaging.account;

import java.time.Instant;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** Accounts, devices and enrolments, durably. */
public interface AccountStore {

  /** The fields that a registration sets. The account's identifiers are chosen here. */
  public record Registration(
      String number,
      byte[] tokenHash,
      String password,
      byte[] aciIdentityKey,
      byte[] pniIdentityKey,
      byte @Nullable [] unidentifiedAccessKey,
      boolean unrestrictedUnidentifiedAccess,
      Device primary,
      PreKey aciSignedPreKey,
      PreKey pniSignedPreKey,
      PreKey aciLastResortPreKey,
      PreKey pniLastResortPreKey) {}

  /** How a registration ended. */
  public sealed interface RegistrationResult {
    /**
     * The token is used up and the account is as asked.
     *
     * @param replaced whether the number had an account, whose devices, keys and messages are gone
     */
    record Registered(Account account, boolean replaced) implements RegistrationResult {}

    /** The very request that used this token came again; nothing was changed. */
    record Repeated(Account account) implements RegistrationResult {}

    /** No unused enrolment of the number has this token. */
    record Refused() implements RegistrationResult {}
  }

  /**
   * An account that deleted itself.
   *
   * @param unidentifiedAccessKey as it was last, so that a sender who does not know of the deletion
   *     is told, and nobody else; null if nobody could have written to the account without a name
   */
  public record DeletedAccount(byte @Nullable [] unidentifiedAccessKey, boolean unrestricted) {}

  /** Makes a token known; one that is known already stays as it is, used or not. */
  void enrol(String number, byte[] tokenHash);

  /** Uses a token up and creates, or creates anew, the account of its number: all or nothing. */
  RegistrationResult register(Registration request);

  /** The account with that ACI. */
  Optional<Account> find(UUID aci);

  /** The account that had that ACI, if it deleted itself. */
  Optional<DeletedAccount> findDeleted(UUID aci);

  /** The ACI of the account with that PNI. */
  Optional<UUID> findAciByPni(UUID pni);

  /** Sets what a device may change about itself and its account. */
  void updateAttributes(
      DeviceAddress address,
      Device changed,
      byte @Nullable [] unidentifiedAccessKey,
      boolean unrestrictedUnidentifiedAccess);

  /** Replaces the capabilities of a device. */
  void updateCapabilities(DeviceAddress address, Set<String> capabilities);

  /** Notes that a device was here. */
  void updateLastSeen(DeviceAddress address, Instant when);

  /** Removes a device with its keys and messages; whether there was one. */
  boolean removeDevice(DeviceAddress address);

  /** Deletes an account with its devices, keys and messages. Its number may register anew. */
  void deleteAccount(UUID aci);
}
