package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.signer.claim.DiskShares;
import io.coterie.signer.group.TicketRecord;
import io.coterie.signer.group.TicketStore;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * The tickets that this issuer has bound, and its members. The table's keys keep a ticket, an
 * identity and a point from being used twice; a trigger keeps a result from being replaced, and a
 * run from being counted again.
 */
final class SqliteTickets implements TicketStore {
  private static final String SELECT =
      "SELECT name, epoch, ticket, identity, intent, reservation, member, part, runs, point,"
          + " acceptance FROM group_ticket WHERE name = ? AND epoch = ? AND ";

  private final PartyFile file;
  private final SqliteAudit.Chain audit;

  SqliteTickets(PartyFile file, SqliteAudit.Chain audit) {
    this.file = file;
    this.audit = audit;
  }

  @Override
  public Optional<TicketRecord> find(String group, int epoch, ByteString ticket) {
    return file.read(db -> record(db, SELECT + "ticket = ?", group, epoch, ticket.toByteArray()));
  }

  @Override
  public Optional<TicketRecord> ofIdentity(String group, int epoch, ByteString identity) {
    return file.read(
        db -> record(db, SELECT + "identity = ?", group, epoch, identity.toByteArray()));
  }

  @Override
  public List<TicketRecord> registered(String group, int epoch, ByteString after, int limit) {
    return file.read(
        db ->
            records(
                db,
                SELECT + "ticket > ? AND member IS NOT NULL ORDER BY ticket LIMIT ?",
                group,
                epoch,
                after.toByteArray(),
                limit));
  }

  @Override
  public int members(String group, int epoch) {
    return file.read(
        db ->
            Math.toIntExact(
                db.count(
                    "SELECT count(*) FROM group_ticket WHERE name = ? AND epoch = ? AND point IS"
                        + " NOT NULL",
                    group,
                    epoch)));
  }

  @Override
  public CompletionStage<Boolean> bind(TicketRecord bound, String requester, AuditEvent made) {
    return file.writer()
        .submit(
            db -> {
              boolean first =
                  db.update(
                          "INSERT OR IGNORE INTO group_ticket (name, epoch, ticket, identity,"
                              + " intent, reservation, account) VALUES (?, ?, ?, ?, ?, ?, ?)",
                          bound.group(),
                          bound.epoch(),
                          bound.ticket().toByteArray(),
                          bound.identity().toByteArray(),
                          bound.intent().toByteArray(),
                          bound.reservation().toByteArray(),
                          DiskShares.ofKeys(requester))
                      == 1;
              if (first) {
                audit.append(db, made);
              }
              return first;
            });
  }

  @Override
  public CompletionStage<Registration> register(
      TicketRecord ticket, TicketRecord.Member member, AuditEvent made) {
    return file.writer()
        .submit(
            db -> {
              // Not stored twice, and not if the point is another member's.
              boolean first =
                  db.update(
                          "UPDATE OR IGNORE group_ticket SET member = ?, part = ?, point = ?,"
                              + " acceptance = ? WHERE name = ? AND epoch = ? AND ticket = ? AND"
                              + " member IS NULL",
                          member.bytes().toByteArray(),
                          member.part().toByteArray(),
                          member.point().toByteArray(),
                          member.acceptance().toByteArray(),
                          ticket.group(),
                          ticket.epoch(),
                          ticket.ticket().toByteArray())
                      == 1;
              if (first) {
                audit.append(db, made);
                return Registration.STORED;
              }
              boolean known =
                  record(
                          db,
                          SELECT + "ticket = ?",
                          ticket.group(),
                          ticket.epoch(),
                          ticket.ticket().toByteArray())
                      .filter(stored -> stored.member() != null)
                      .isPresent();
              return known ? Registration.KNOWN : Registration.POINT_TAKEN;
            });
  }

  @Override
  public CompletionStage<Boolean> count(
      TicketRecord ticket, TicketRecord.Member counted, AuditEvent made) {
    return file.writer()
        .submit(
            db -> {
              boolean first =
                  db.update(
                          "UPDATE group_ticket SET member = ?, runs = ? WHERE name = ? AND epoch ="
                              + " ? AND ticket = ? AND member IS NOT NULL AND runs < ?",
                          counted.bytes().toByteArray(),
                          counted.runs(),
                          ticket.group(),
                          ticket.epoch(),
                          ticket.ticket().toByteArray(),
                          counted.runs())
                      == 1;
              if (first) {
                audit.append(db, made);
              }
              return first;
            });
  }

  private static Optional<TicketRecord> record(Database db, String query, Object... parameters)
      throws SQLException {
    return records(db, query, parameters).stream().findFirst();
  }

  private static List<TicketRecord> records(Database db, String query, Object... parameters)
      throws SQLException {
    List<TicketRecord> records = new ArrayList<>();
    try (ResultSet rows = db.statement(query, parameters).executeQuery()) {
      while (rows.next()) {
        records.add(record(rows));
      }
    }
    return records;
  }

  private static TicketRecord record(ResultSet rows) throws SQLException {
    byte[] member = rows.getBytes(7);
    return new TicketRecord(
        rows.getString(1),
        rows.getInt(2),
        bytes(rows, 3),
        bytes(rows, 4),
        bytes(rows, 5),
        bytes(rows, 6),
        member == null
            ? null
            : new TicketRecord.Member(
                ByteString.copyFrom(member),
                bytes(rows, 8),
                rows.getInt(9),
                bytes(rows, 10),
                bytes(rows, 11)));
  }

  private static ByteString bytes(ResultSet rows, int column) throws SQLException {
    return ByteString.copyFrom(rows.getBytes(column));
  }
}
