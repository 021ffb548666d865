package io.coterie.messaging.storage;

import io.coterie.messaging.account.Account;
import io.coterie.messaging.account.AccountStore;
import io.coterie.messaging.account.Device;
import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.PasswordHash;
import io.coterie.messaging.account.PreKey;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.time.Clock;
import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.transaction.support.TransactionTemplate;

/** Accounts, devices and enrolments in PostgreSQL. */
public final class PostgresAccountStore implements AccountStore {
  private final JdbcClient jdbc;
  private final TransactionTemplate transaction;
  private final PostgresPreKeyStore preKeys;
  private final Clock clock;

  public PostgresAccountStore(
      JdbcClient jdbc, TransactionTemplate transaction, PostgresPreKeyStore preKeys, Clock clock) {
    this.jdbc = jdbc;
    this.transaction = transaction;
    this.preKeys = preKeys;
    this.clock = clock;
  }

  @Override
  public void enrol(String number, byte[] tokenHash) {
    jdbc.sql(
            """
            INSERT INTO enrolment (number, token_hash, created_at) VALUES (:number, :hash, :now)
            ON CONFLICT DO NOTHING
            """)
        .param("number", number)
        .param("hash", tokenHash)
        .param("now", Timestamp.from(clock.instant()))
        .update();
  }

  @Override
  public RegistrationResult register(Registration request) {
    return transaction.execute(status -> registerInTransaction(request));
  }

  private RegistrationResult registerInTransaction(Registration r) {
    Timestamp now = Timestamp.from(clock.instant());
    // One registration of a number at a time, whether or not there are rows to lock.
    jdbc.sql("SELECT pg_advisory_xact_lock(hashtextextended(:number, 0))")
        .param("number", r.number())
        .query((row, n) -> n)
        .list();
    Optional<Boolean> used =
        jdbc.sql(
                """
                SELECT used_at IS NOT NULL FROM enrolment
                WHERE number = :number AND token_hash = :hash FOR UPDATE
                """)
            .param("number", r.number())
            .param("hash", r.tokenHash())
            .query(Boolean.class)
            .optional();
    Optional<UUID> known =
        jdbc.sql("SELECT aci FROM account WHERE number = :number FOR UPDATE")
            .param("number", r.number())
            .query(UUID.class)
            .optional();
    if (used.isEmpty()) {
      return new RegistrationResult.Refused();
    }
    if (used.get()) {
      return known
          .flatMap(this::find)
          .filter(account -> isSame(account, r))
          .<RegistrationResult>map(RegistrationResult.Repeated::new)
          .orElseGet(RegistrationResult.Refused::new);
    }
    jdbc.sql("UPDATE enrolment SET used_at = :now WHERE number = :number AND token_hash = :hash")
        .param("now", now)
        .param("number", r.number())
        .param("hash", r.tokenHash())
        .update();
    UUID aci = known.orElseGet(UUID::randomUUID);
    if (known.isPresent()) {
      jdbc.sql("DELETE FROM device WHERE aci = :aci").param("aci", aci).update();
      jdbc.sql(
              """
              UPDATE account SET aci_identity_key = :aciKey, pni_identity_key = :pniKey,
                unidentified_access_key = :accessKey, unrestricted_access = :unrestricted
              WHERE aci = :aci
              """)
          .param("aciKey", r.aciIdentityKey())
          .param("pniKey", r.pniIdentityKey())
          .param("accessKey", r.unidentifiedAccessKey())
          .param("unrestricted", r.unrestrictedUnidentifiedAccess())
          .param("aci", aci)
          .update();
    } else {
      jdbc.sql(
              """
              INSERT INTO account (aci, pni, number, aci_identity_key, pni_identity_key,
                unidentified_access_key, unrestricted_access, created_at)
              VALUES (:aci, :pni, :number, :aciKey, :pniKey, :accessKey, :unrestricted, :now)
              """)
          .param("aci", aci)
          .param("pni", UUID.randomUUID())
          .param("number", r.number())
          .param("aciKey", r.aciIdentityKey())
          .param("pniKey", r.pniIdentityKey())
          .param("accessKey", r.unidentifiedAccessKey())
          .param("unrestricted", r.unrestrictedUnidentifiedAccess())
          .param("now", now)
          .update();
    }
    insertDevice(aci, r.primary());
    DeviceAddress device = new DeviceAddress(aci, r.primary().id());
    preKeys.storeRepeated(device, IdentityType.ACI, PreKey.Kind.EC, r.aciSignedPreKey());
    preKeys.storeRepeated(device, IdentityType.ACI, PreKey.Kind.KEM, r.aciLastResortPreKey());
    preKeys.storeRepeated(device, IdentityType.PNI, PreKey.Kind.EC, r.pniSignedPreKey());
    preKeys.storeRepeated(device, IdentityType.PNI, PreKey.Kind.KEM, r.pniLastResortPreKey());
    return new RegistrationResult.Registered(find(aci).orElseThrow(), known.isPresent());
  }

  private static boolean isSame(Account account, Registration r) {
    return account
        .device(r.primary().id())
        .filter(
            device ->
                device.password().matches(r.password())
                    && device.registrationId() == r.primary().registrationId()
                    && Arrays.equals(account.aciIdentityKey(), r.aciIdentityKey())
                    && Arrays.equals(account.pniIdentityKey(), r.pniIdentityKey()))
        .isPresent();
  }

  private void insertDevice(UUID aci, Device device) {
    jdbc.sql(
            """
            INSERT INTO device (aci, device_id, password_salt, password_hash, registration_id,
              pni_registration_id, name, fetches_messages, capabilities, created_at, last_seen_at)
            VALUES (:aci, :id, :salt, :hash, :registrationId, :pniRegistrationId, :name,
              :fetchesMessages, :capabilities, :created, :lastSeen)
            """)
        .param("aci", aci)
        .param("id", device.id())
        .param("salt", device.password().salt())
        .param("hash", device.password().hash())
        .param("registrationId", device.registrationId())
        .param("pniRegistrationId", device.pniRegistrationId())
        .param("name", device.name())
        .param("fetchesMessages", device.fetchesMessages())
        .param("capabilities", device.capabilities().toArray(String[]::new))
        .param("created", Timestamp.from(device.created()))
        .param("lastSeen", Timestamp.from(device.lastSeen()))
        .update();
  }

  @Override
  public Optional<Account> find(UUID aci) {
    List<Device> devices =
        jdbc.sql("SELECT * FROM device WHERE aci = :aci ORDER BY device_id")
            .param("aci", aci)
            .query((row, n) -> device(row))
            .list();
    return jdbc.sql("SELECT * FROM account WHERE aci = :aci")
        .param("aci", aci)
        .query((row, n) -> account(row, devices))
        .optional();
  }

  @Override
  public Optional<DeletedAccount> findDeleted(UUID aci) {
    return jdbc.sql("SELECT * FROM deleted_account WHERE aci = :aci")
        .param("aci", aci)
        .query(
            (row, n) ->
                new DeletedAccount(
                    row.getBytes("unidentified_access_key"), row.getBoolean("unrestricted_access")))
        .optional();
  }

  @Override
  public void deleteAccount(UUID aci) {
    transaction.executeWithoutResult(
        status -> {
          jdbc.sql(
                  """
                  INSERT INTO deleted_account
                    (aci, unidentified_access_key, unrestricted_access, deleted_at)
                  SELECT aci, unidentified_access_key, unrestricted_access, :now FROM account
                  WHERE aci = :aci
                  """)
              .param("now", Timestamp.from(clock.instant()))
              .param("aci", aci)
              .update();
          jdbc.sql("DELETE FROM account WHERE aci = :aci").param("aci", aci).update();
        });
  }

  @Override
  public Optional<UUID> findAciByPni(UUID pni) {
    return jdbc.sql("SELECT aci FROM account WHERE pni = :pni")
        .param("pni", pni)
        .query(UUID.class)
        .optional();
  }

  @Override
  public void updateAttributes(
      DeviceAddress address,
      Device changed,
      byte @Nullable [] unidentifiedAccessKey,
      boolean unrestrictedUnidentifiedAccess) {
    transaction.executeWithoutResult(
        status -> {
          jdbc.sql(
                  """
                  UPDATE device SET registration_id = :registrationId,
                    pni_registration_id = :pniRegistrationId, name = :name,
                    fetches_messages = :fetchesMessages, capabilities = :capabilities
                  WHERE aci = :aci AND device_id = :id
                  """)
              .param("registrationId", changed.registrationId())
              .param("pniRegistrationId", changed.pniRegistrationId())
              .param("name", changed.name())
              .param("fetchesMessages", changed.fetchesMessages())
              .param("capabilities", changed.capabilities().toArray(String[]::new))
              .param("aci", address.aci())
              .param("id", address.deviceId())
              .update();
          jdbc.sql(
                  """
                  UPDATE account SET unidentified_access_key = :accessKey,
                    unrestricted_access = :unrestricted WHERE aci = :aci
                  """)
              .param("accessKey", unidentifiedAccessKey)
              .param("unrestricted", unrestrictedUnidentifiedAccess)
              .param("aci", address.aci())
              .update();
        });
  }

  @Override
  public void updateCapabilities(DeviceAddress address, Set<String> capabilities) {
    jdbc.sql("UPDATE device SET capabilities = :capabilities WHERE aci = :aci AND device_id = :id")
        .param("capabilities", capabilities.toArray(String[]::new))
        .param("aci", address.aci())
        .param("id", address.deviceId())
        .update();
  }

  @Override
  public void updateLastSeen(DeviceAddress address, Instant when) {
    jdbc.sql("UPDATE device SET last_seen_at = :when WHERE aci = :aci AND device_id = :id")
        .param("when", Timestamp.from(when))
        .param("aci", address.aci())
        .param("id", address.deviceId())
        .update();
  }

  @Override
  public boolean removeDevice(DeviceAddress address) {
    return jdbc.sql("DELETE FROM device WHERE aci = :aci AND device_id = :id")
            .param("aci", address.aci())
            .param("id", address.deviceId())
            .update()
        > 0;
  }

  private static Account account(ResultSet row, List<Device> devices) throws SQLException {
    return new Account(
        row.getObject("aci", UUID.class),
        row.getObject("pni", UUID.class),
        row.getString("number"),
        row.getBytes("aci_identity_key"),
        row.getBytes("pni_identity_key"),
        row.getBytes("unidentified_access_key"),
        row.getBoolean("unrestricted_access"),
        devices);
  }

  private static Device device(ResultSet row) throws SQLException {
    return new Device(
        row.getInt("device_id"),
        new PasswordHash(row.getBytes("password_salt"), row.getBytes("password_hash")),
        row.getInt("registration_id"),
        row.getInt("pni_registration_id"),
        row.getString("name"),
        row.getBoolean("fetches_messages"),
        new LinkedHashSet<>(Arrays.asList((String[]) row.getArray("capabilities").getArray())),
        row.getTimestamp("created_at").toInstant(),
        row.getTimestamp("last_seen_at").toInstant());
  }
}
