package io.coterie.coordinator.storage;

import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.custody.signing.SigningRecord;
import io.coterie.coordinator.custody.signing.SigningStore;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.DecodedPayload;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Signings in PostgreSQL: one insert when a request comes, one update when it ends. */
public final class JdbcSigningStore implements SigningStore {
  private static final String COLUMNS =
      "id, "
          + Headers.COLUMNS
          + ", key_name, scheme, state, sessions, signing_set, payload_digest, decoded, approvals,"
          + " completed_at, signature, recovery_id, public_key, presigned, error, receipts";

  private static final String CLAIM =
      "insert into signings ("
          + Headers.COLUMNS
          + ", id, key_name, scheme, state, payload_digest, decoded, worker, approvals) values ("
          + Headers.PARAMETERS
          + ", ?, ?, ?, 1, ?, ?, ?, ?) on conflict do nothing";

  private static final String REOPEN =
      "update signings set state = 1, sessions = 0, error = null, completed_at = null,"
          + " approvals = ?, worker = ?"
          + " where id = ? and state = 3 and intent_digest = ? and approvals = ? and error = ?";

  /** The values of {@code bindEnd}. */
  private static final String END =
      "update signings set state = ?, sessions = ?, signing_set = ?, completed_at = ?,"
          + " signature = ?, recovery_id = ?, public_key = ?, presigned = ?, error = ?";

  private static final String FINISH =
      END
          + " where id = ? and state = 1 and intent_digest = ? and key_name = ?"
          // A signature is one whoever found it. That there is none, only the worker can say.
          + " and (? or worker = ?)";

  private static final String SETTLE =
      END + ", receipts = ? where id = ? and intent_digest = ? and state in (1, 3, 4)";

  private static final String FIND = "select " + COLUMNS + " from signings where id = ?";

  /** As {@link #COLUMNS}, with no bytes for the intent and its approvals. */
  private static final String LISTED =
      "select "
          + COLUMNS
              .replace("signed_intent", "''::bytea as signed_intent")
              .replace("approvals", "''::bytea as approvals")
          + " from signings";

  private static final String OF_KEY = LISTED + " where key_name = ?";

  private static final String OF_REQUESTERS = OF_KEY + " and requester = any(?)";

  private static final String AFTER = " and (created_at, id) < (?, ?)";

  private static final String NEWEST_FIRST = " order by created_at desc, id desc limit ?";

  private static final String TAKE = Worker.take("signings", COLUMNS);

  private static final String TAKE_ALL = Worker.takeAll("signings", "id");

  private final Sql durable;
  private final Sql soon;
  private final Worker self;

  /**
   * A store on two pools of the same database.
   *
   * @param durable its commits wait for the disk
   * @param soon its commits do not ({@code synchronous_commit=off}): for what may be lost
   */
  public JdbcSigningStore(DataSource durable, DataSource soon, Worker self) {
    this.durable = new Sql(durable);
    this.soon = new Sql(soon);
    this.self = self;
  }

  @Override
  public Optional<SigningRecord> claimOnce(SigningRecord pending) {
    int inserted =
        soon.update(
            CLAIM,
            s -> {
              Headers.bind(s, pending.header());
              s.setObject(7, pending.id());
              s.setString(8, pending.key());
              s.setInt(9, pending.scheme().getNumber());
              s.setBytes(10, Sql.bytes(pending.payloadDigest()));
              s.setBytes(11, pending.decoded().toByteArray());
              s.setString(12, self.name());
              s.setBytes(13, joined(pending.approvals()));
            });
    return inserted == 1
        ? Optional.empty()
        : Optional.of(find(pending.id()).orElseThrow(JdbcSigningStore::gone));
  }

  @Override
  public Optional<SigningRecord> reopen(SigningRecord ended, List<ByteString> approvals) {
    int reopened =
        durable.update(
            REOPEN,
            s -> {
              s.setBytes(1, joined(approvals));
              s.setString(2, self.name());
              s.setObject(3, ended.id());
              s.setBytes(4, ended.intentDigest().toByteArray());
              s.setBytes(5, joined(ended.approvals()));
              s.setBytes(6, Sql.bytes(ended.error()));
            });
    return reopened == 1 ? Optional.of(ended.approved(approvals)) : Optional.empty();
  }

  /** All have the same length. */
  private static byte[] joined(List<ByteString> approvals) {
    return ByteString.copyFrom(approvals).toByteArray();
  }

  private static List<ByteString> approvals(ResultSet row) throws SQLException {
    ByteString joined = Sql.byteString(row, "approvals");
    return IntStream.range(0, joined.size() / IntentVerifier.APPROVAL_BYTES)
        .map(place -> place * IntentVerifier.APPROVAL_BYTES)
        .mapToObj(from -> joined.substring(from, from + IntentVerifier.APPROVAL_BYTES))
        .toList();
  }

  @Override
  public SigningRecord finish(SigningRecord finished) {
    if (update(finished)) {
      return finished;
    }
    Optional<SigningRecord> stored = find(finished.id());
    if (stored.isEmpty()) {
      // The database crashed since the request was stored, and lost it. If another intent has come
      // under its id meanwhile, that one stays as it is.
      claimOnce(finished);
      if (update(finished)) {
        return finished;
      }
      stored = find(finished.id());
    }
    return stored.orElseThrow(JdbcSigningStore::gone);
  }

  @Override
  public Optional<SigningRecord> settle(SigningRecord shown) {
    durable.update(
        SETTLE,
        s -> {
          bindEnd(s, shown);
          s.setBytes(10, shown.receipts().isEmpty() ? null : receipts(shown).toByteArray());
          s.setObject(11, shown.id());
          s.setBytes(12, shown.intentDigest().toByteArray());
        });
    return find(shown.id()).filter(stored -> stored.intentDigest().equals(shown.intentDigest()));
  }

  /** A message with nothing but the receipts. */
  private static Signing receipts(SigningRecord shown) {
    return Signing.newBuilder().addAllReceipts(shown.receipts()).build();
  }

  private boolean update(SigningRecord finished) {
    return durable.update(FINISH, s -> bindFinish(s, finished)) == 1;
  }

  private void bindFinish(PreparedStatement s, SigningRecord finished) throws SQLException {
    bindEnd(s, finished);
    s.setObject(10, finished.id());
    s.setBytes(11, finished.header().intentDigest().toByteArray());
    s.setString(12, finished.key());
    s.setBoolean(13, finished.result() != null);
    s.setString(14, self.name());
  }

  private static void bindEnd(PreparedStatement s, SigningRecord finished) throws SQLException {
    s.setInt(1, finished.state().getNumber());
    s.setInt(2, finished.sessions());
    s.setArray(3, s.getConnection().createArrayOf("text", finished.signingSet().toArray()));
    s.setObject(4, Sql.time(Objects.requireNonNull(finished.completedAt())));
    SigningRecord.Result result = finished.result();
    s.setBytes(5, result == null ? null : result.signature().toByteArray());
    if (result == null || result.recoveryId().isEmpty()) {
      s.setNull(6, Types.SMALLINT);
    } else {
      s.setInt(6, result.recoveryId().getAsInt());
    }
    s.setBytes(7, result == null ? null : result.publicKey().toByteArray());
    s.setBoolean(8, result != null && result.presigned());
    s.setBytes(9, Sql.bytes(finished.error()));
  }

  /** The database has lost it in a crash between two statements: the caller begins anew. */
  private static StoreUnavailableException gone() {
    return new StoreUnavailableException("a signing that was stored is not there");
  }

  @Override
  public Optional<SigningRecord> find(UUID id) {
    return durable.first(FIND, s -> s.setObject(1, id), JdbcSigningStore::read);
  }

  @Override
  public List<SigningRecord> list(
      String key, @Nullable Set<String> requesters, @Nullable Place after, int limit) {
    if (requesters != null && requesters.isEmpty()) {
      // Not a look at every signing of the key, whose time would tell how many there are.
      return List.of();
    }
    return durable.query(
        (requesters == null ? OF_KEY : OF_REQUESTERS) + (after == null ? "" : AFTER) + NEWEST_FIRST,
        s -> {
          int next = 1;
          s.setString(next++, key);
          if (requesters != null) {
            s.setArray(next++, s.getConnection().createArrayOf("text", requesters.toArray()));
          }
          if (after != null) {
            s.setObject(next++, Sql.time(after.createdAt()));
            s.setObject(next++, after.id());
          }
          s.setInt(next, limit);
        },
        JdbcSigningStore::read);
  }

  @Override
  public Optional<SigningRecord> take(UUID id) {
    return soon.taking(TAKE, s -> self.bindTake(s, id), JdbcSigningStore::read);
  }

  @Override
  public List<UUID> takeAll(boolean own) {
    return soon.query(TAKE_ALL, s -> self.bindTakeAll(s, own), row -> row.getObject(1, UUID.class));
  }

  private static SigningRecord read(ResultSet row) throws SQLException {
    return new SigningRecord(
        row.getObject("id", UUID.class),
        Headers.read(row),
        row.getString("key_name"),
        Objects.requireNonNull(Scheme.forNumber(row.getInt("scheme"))),
        Objects.requireNonNull(Signing.State.forNumber(row.getInt("state"))),
        row.getInt("sessions"),
        List.of(Sql.texts(row, "signing_set")),
        Sql.byteStringOrNull(row, "payload_digest"),
        Sql.message(row, "decoded", DecodedPayload.parser()),
        approvals(row),
        Sql.timeOrNull(row, "completed_at"),
        readResult(row),
        Sql.messageOrNull(row, "error", Status.parser()),
        readReceipts(row));
  }

  private static List<SignedReceipt> readReceipts(ResultSet row) throws SQLException {
    Signing stored = Sql.messageOrNull(row, "receipts", Signing.parser());
    return stored == null ? List.of() : stored.getReceiptsList();
  }

  private static SigningRecord.@Nullable Result readResult(ResultSet row) throws SQLException {
    ByteString signature = Sql.byteStringOrNull(row, "signature");
    if (signature == null) {
      return null;
    }
    Integer recoveryId = row.getObject("recovery_id", Integer.class);
    return new SigningRecord.Result(
        signature,
        recoveryId == null ? OptionalInt.empty() : OptionalInt.of(recoveryId),
        Sql.byteString(row, "public_key"),
        row.getBoolean("presigned"));
  }
}
