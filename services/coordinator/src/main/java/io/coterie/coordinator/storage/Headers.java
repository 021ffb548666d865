package io.coterie.coordinator.storage;

import io.coterie.coordinator.custody.request.RequestHeader;
import io.coterie.coordinator.storage.Sql.Binder;
import io.coterie.proto.custody.v1.SignedIntent;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.UUID;

/** The columns that every table of requests has. */
final class Headers {
  /** In the order in which {@link #bind} sets them. */
  static final String COLUMNS =
      "requester, request_id, intent_digest, signed_intent, not_after, created_at";

  /** As many parameters. */
  static final String PARAMETERS = "?, ?, ?, ?, ?, ?";

  private Headers() {}

  /** Sets {@link #PARAMETERS} as the first six parameters. */
  static void bind(PreparedStatement statement, RequestHeader header) throws SQLException {
    statement.setString(1, header.requester());
    statement.setObject(2, UUID.fromString(header.requestId()));
    statement.setBytes(3, header.intentDigest().toByteArray());
    statement.setBytes(4, header.intent().toByteArray());
    statement.setObject(5, Sql.time(header.notAfter()));
    statement.setObject(6, Sql.time(header.createdAt()));
  }

  /**
   * Sets the two parameters that name a request.
   *
   * @param owner the requester, or the resource
   */
  static Binder request(String owner, String requestId) {
    return statement -> {
      statement.setString(1, owner);
      statement.setObject(2, UUID.fromString(requestId));
    };
  }

  static RequestHeader read(ResultSet row) throws SQLException {
    return new RequestHeader(
        row.getString("requester"),
        row.getObject("request_id", UUID.class).toString(),
        Sql.byteString(row, "intent_digest"),
        Sql.message(row, "signed_intent", SignedIntent.parser()),
        Sql.time(row, "not_after"),
        Sql.time(row, "created_at"));
  }
}
