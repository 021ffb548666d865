package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.group.GroupRecord;
import io.coterie.signer.group.GroupStore;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The groups of this party. The key of the table and a trigger on it keep an epoch from being begun
 * twice, and a result of it from being replaced.
 */
final class SqliteGroups implements GroupStore {
  private static final String SELECT =
      "SELECT name, epoch, requester, request_id, intent_digest, parties, opening_public,"
          + " opening_sealed, issuing_public, issuing_sealed, published, attested FROM group_epoch"
          + " WHERE name = ?";

  private static final String OF_EPOCH = " WHERE name = ? AND epoch = ? AND ";

  private final PartyFile file;
  private final SqliteAudit.Chain audit;

  SqliteGroups(PartyFile file, SqliteAudit.Chain audit) {
    this.file = file;
    this.audit = audit;
  }

  @Override
  public CompletionStage<Boolean> begin(GroupRecord begun) {
    GroupRecord.Origin origin = begun.origin();
    return file.writer()
        .submit(
            db ->
                db.update(
                        "INSERT INTO group_epoch (name, epoch, requester, request_id,"
                            + " intent_digest, parties, account) SELECT ?, ?, ?, ?, ?, ?, ? WHERE"
                            + " NOT EXISTS (SELECT 1 FROM group_epoch WHERE name = ? AND epoch >="
                            + " ?)",
                        begun.group(),
                        begun.epoch(),
                        origin.requester(),
                        origin.requestId(),
                        origin.intentDigest().toByteArray(),
                        begun.parties().toByteArray(),
                        DiskShares.ofKeys(origin.requester()),
                        begun.group(),
                        begun.epoch())
                    == 1);
  }

  @Override
  public Optional<GroupRecord> find(String group, int epoch) {
    return file.read(db -> records(db, SELECT + " AND epoch = ?", group, epoch)).stream()
        .findFirst();
  }

  @Override
  public List<GroupRecord> attested(String group) {
    return file.read(db -> records(db, SELECT + " AND attested IS NOT NULL ORDER BY epoch", group));
  }

  @Override
  public CompletionStage<Boolean> keepOpening(
      String group, int epoch, GroupRecord.Share share, AuditEvent made) {
    return keep(
        "UPDATE group_epoch SET opening_public = ?, opening_sealed = ?"
            + OF_EPOCH
            + "opening_public IS NULL",
        made,
        share.keyPublic().toByteArray(),
        share.sealed().toByteArray(),
        group,
        epoch);
  }

  @Override
  public CompletionStage<Boolean> keepIssuing(
      String group, int epoch, GroupRecord.Share share, AuditEvent made) {
    return keep(
        "UPDATE group_epoch SET issuing_public = ?, issuing_sealed = ?"
            + OF_EPOCH
            + "issuing_public IS NULL",
        made,
        share.keyPublic().toByteArray(),
        share.sealed().toByteArray(),
        group,
        epoch);
  }

  @Override
  public CompletionStage<Boolean> keepPublished(
      String group, int epoch, ByteString published, AuditEvent made) {
    return keep(
        "UPDATE group_epoch SET published = ?" + OF_EPOCH + "published IS NULL",
        made,
        published.toByteArray(),
        group,
        epoch);
  }

  @Override
  public CompletionStage<Boolean> keepAttested(
      String group, int epoch, ByteString attested, AuditEvent made) {
    return keep(
        "UPDATE group_epoch SET attested = ?" + OF_EPOCH + "attested IS NULL",
        made,
        attested.toByteArray(),
        group,
        epoch);
  }

  private CompletionStage<Boolean> keep(String update, AuditEvent made, Object... parameters) {
    return file.writer()
        .submit(
            db -> {
              boolean first = db.update(update, parameters) == 1;
              if (first) {
                audit.append(db, made);
              }
              return first;
            });
  }

  private static List<GroupRecord> records(Database db, String query, Object... parameters)
      throws SQLException {
    List<GroupRecord> records = new ArrayList<>();
    try (ResultSet rows = db.statement(query, parameters).executeQuery()) {
      while (rows.next()) {
        records.add(
            new GroupRecord(
                rows.getString(1),
                rows.getInt(2),
                new GroupRecord.Origin(rows.getString(3), rows.getString(4), bytes(rows, 5)),
                GroupParties.parseFrom(bytes(rows, 6)),
                share(rows, 7),
                share(rows, 9),
                bytes(rows, 11),
                bytes(rows, 12)));
      }
    } catch (InvalidProtocolBufferException e) {
      throw new StoreException("a stored group does not decode", e);
    }
    return records;
  }

  /** The share whose public data are in a column, and which itself is in the next one. */
  private static GroupRecord.@Nullable Share share(ResultSet rows, int column)
      throws SQLException, InvalidProtocolBufferException {
    ByteString keyPublic = bytes(rows, column);
    return keyPublic.isEmpty()
        ? null
        : new GroupRecord.Share(KeyPublic.parseFrom(keyPublic), bytes(rows, column + 1));
  }

  /** Empty for NULL. */
  private static ByteString bytes(ResultSet rows, int column) throws SQLException {
    byte[] bytes = rows.getBytes(column);
    return bytes == null ? ByteString.EMPTY : ByteString.copyFrom(bytes);
  }
}
