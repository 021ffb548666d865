package io.coterie.messaging.storage;

import io.coterie.messaging.account.DeviceAddress;
import io.coterie.messaging.account.IdentityType;
import io.coterie.messaging.account.PreKey;
import io.coterie.messaging.keys.PreKeyStore;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import org.springframework.jdbc.core.JdbcOperations;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.transaction.support.TransactionTemplate;

/** Prekeys in PostgreSQL. */
public final class PostgresPreKeyStore implements PreKeyStore {
  private final JdbcClient jdbc;
  private final JdbcOperations batch;
  private final TransactionTemplate transaction;

  public PostgresPreKeyStore(
      JdbcClient jdbc, JdbcOperations batch, TransactionTemplate transaction) {
    this.jdbc = jdbc;
    this.batch = batch;
    this.transaction = transaction;
  }

  @Override
  public void store(DeviceAddress device, IdentityType identity, Upload upload) {
    transaction.executeWithoutResult(
        status -> {
          replaceOneTime(device, identity, PreKey.Kind.EC, upload.oneTimeEc());
          replaceOneTime(device, identity, PreKey.Kind.KEM, upload.oneTimeKem());
          upload.signed().ifPresent(k -> storeRepeated(device, identity, PreKey.Kind.EC, k));
          upload.lastResort().ifPresent(k -> storeRepeated(device, identity, PreKey.Kind.KEM, k));
        });
  }

  private void replaceOneTime(
      DeviceAddress device, IdentityType identity, PreKey.Kind kind, List<PreKey> keys) {
    if (keys.isEmpty()) {
      return;
    }
    jdbc.sql(
            """
            DELETE FROM one_time_prekey
            WHERE aci = :aci AND device_id = :device AND identity = :identity AND kind = :kind
            """)
        .param("aci", device.aci())
        .param("device", device.deviceId())
        .param("identity", identity.ordinal())
        .param("kind", kind.ordinal())
        .update();
    batch.batchUpdate(
        """
        INSERT INTO one_time_prekey
          (aci, device_id, identity, kind, key_id, public_key, signature)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        keys,
        keys.size(),
        (statement, key) -> {
          statement.setObject(1, device.aci());
          statement.setInt(2, device.deviceId());
          statement.setInt(3, identity.ordinal());
          statement.setInt(4, kind.ordinal());
          statement.setLong(5, key.keyId());
          statement.setBytes(6, key.publicKey());
          statement.setBytes(7, key.signature());
        });
  }

  /** Replaces the signed EC key or the last-resort KEM key. */
  void storeRepeated(DeviceAddress device, IdentityType identity, PreKey.Kind kind, PreKey key) {
    jdbc.sql(
            """
            INSERT INTO repeated_prekey
              (aci, device_id, identity, kind, key_id, public_key, signature)
            VALUES (:aci, :device, :identity, :kind, :id, :key, :signature)
            ON CONFLICT (aci, device_id, identity, kind) DO UPDATE
              SET key_id = EXCLUDED.key_id, public_key = EXCLUDED.public_key,
                signature = EXCLUDED.signature
            """)
        .param("aci", device.aci())
        .param("device", device.deviceId())
        .param("identity", identity.ordinal())
        .param("kind", kind.ordinal())
        .param("id", key.keyId())
        .param("key", key.publicKey())
        .param("signature", key.signature())
        .update();
  }

  @Override
  public Optional<PreKey> repeated(DeviceAddress device, IdentityType identity, PreKey.Kind kind) {
    return jdbc.sql(
            """
            SELECT key_id, public_key, signature FROM repeated_prekey
            WHERE aci = :aci AND device_id = :device AND identity = :identity AND kind = :kind
            """)
        .param("aci", device.aci())
        .param("device", device.deviceId())
        .param("identity", identity.ordinal())
        .param("kind", kind.ordinal())
        .query((row, n) -> preKey(row))
        .optional();
  }

  /**
   * No key is returned twice, also to concurrent callers: the row is locked, skipped by others, and
   * gone when this commits.
   */
  @Override
  public Optional<PreKey> takeOneTime(
      DeviceAddress device, IdentityType identity, PreKey.Kind kind) {
    return jdbc.sql(
            """
            DELETE FROM one_time_prekey
            WHERE aci = :aci AND device_id = :device AND identity = :identity AND kind = :kind
              AND key_id = (
                SELECT key_id FROM one_time_prekey
                WHERE aci = :aci AND device_id = :device AND identity = :identity AND kind = :kind
                ORDER BY key_id LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING key_id, public_key, signature
            """)
        .param("aci", device.aci())
        .param("device", device.deviceId())
        .param("identity", identity.ordinal())
        .param("kind", kind.ordinal())
        .query((row, n) -> preKey(row))
        .optional();
  }

  @Override
  public int countOneTime(DeviceAddress device, IdentityType identity, PreKey.Kind kind) {
    return jdbc.sql(
            """
            SELECT count(*) FROM one_time_prekey
            WHERE aci = :aci AND device_id = :device AND identity = :identity AND kind = :kind
            """)
        .param("aci", device.aci())
        .param("device", device.deviceId())
        .param("identity", identity.ordinal())
        .param("kind", kind.ordinal())
        .query(Integer.class)
        .single();
  }

  private static PreKey preKey(ResultSet row) throws SQLException {
    return new PreKey(row.getLong("key_id"), row.getBytes("public_key"), row.getBytes("signature"));
  }
}
