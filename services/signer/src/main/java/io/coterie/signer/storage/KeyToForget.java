package io.coterie.signer.storage;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * A key whose shares the operator wants destroyed here: they keep the party out of another key of
 * the name.
 *
 * @param key resource name, {@code keys/{key}}
 * @param fingerprint the whole of it: another key of the name is left as it is
 */
record KeyToForget(String key, ByteString fingerprint) {
  /**
   * A share of the name, of this key or another, in any state.
   *
   * @param state as the file has it
   */
  record Held(byte[] session, int epoch, String state, ByteString fingerprint) {
    private String text() {
      return "%s (epoch %d %s)".formatted(KeyFingerprint.text(fingerprint), epoch, state);
    }
  }

  /**
   * Reads the name and the fingerprint, with a space between them.
   *
   * @throws IllegalArgumentException if they are none
   */
  static KeyToForget parse(String text) {
    int space = text.indexOf(' ');
    String key = space < 0 ? text : text.substring(0, space);
    if (!IntentVerifier.isKeyName(key)) {
      throw new IllegalArgumentException("'" + key + "' is not keys/KEY");
    }
    String digits = text.substring(key.length()).replace(" ", "");
    int length = 2 * IntentVerifier.FINGERPRINT_BYTES;
    if (!digits.matches("[0-9a-f]{" + length + "}")) {
      throw new IllegalArgumentException(
          "'" + digits + "' is no whole fingerprint, of " + length + " hexadecimal digits");
    }
    return new KeyToForget(key, ByteString.fromHex(digits));
  }

  /** All shares of the name. */
  List<Held> held(Database db) throws SQLException {
    List<Held> held = new ArrayList<>();
    try (ResultSet row =
        db.statement(
                "SELECT session_id, epoch, state, key_public FROM key_share WHERE key = ?"
                    + " ORDER BY epoch, stored_number",
                key)
            .executeQuery()) {
      while (row.next()) {
        held.add(
            new Held(
                row.getBytes(1),
                row.getInt(2),
                row.getString(3).toLowerCase(Locale.ROOT),
                KeyFingerprint.of(KeyPublic.parseFrom(row.getBytes(4)))));
      }
    } catch (InvalidProtocolBufferException e) {
      throw new StoreException("a stored key's public data does not decode", e);
    }
    return held;
  }

  /**
   * Deletes the shares of this key in a transaction, in any state.
   *
   * @return those that were deleted
   */
  List<Held> delete(Database db) throws SQLException {
    List<Held> deleted = new ArrayList<>();
    for (Held each : held(db)) {
      if (each.fingerprint().equals(fingerprint)) {
        db.update("DELETE FROM key_share WHERE session_id = ?", each.session());
        deleted.add(each);
      }
    }
    return deleted;
  }

  /**
   * Checks that there is something to forget.
   *
   * @param held all shares of the name
   * @throws StoreException if none is of this key; it tells which are there
   */
  void requireAmong(List<Held> held) {
    if (held.stream().noneMatch(each -> each.fingerprint().equals(fingerprint))) {
      throw new StoreException(
          "this party holds nothing of "
              + this
              + "; under that name it holds "
              + (held.isEmpty()
                  ? "nothing"
                  : held.stream().map(Held::text).collect(Collectors.joining(", "))));
    }
  }

  /** The number of shares in each state, for the audit trail. */
  static String count(List<Held> shares) {
    return shares.stream()
        .collect(Collectors.groupingBy(Held::state, TreeMap::new, Collectors.counting()))
        .entrySet()
        .stream()
        .map(each -> each.getValue() + " " + each.getKey())
        .collect(Collectors.joining(", "));
  }

  /** The fingerprint as in the audit trail, without spaces. */
  String digits() {
    return HexFormat.of().formatHex(fingerprint.toByteArray());
  }

  @Override
  public String toString() {
    return key + " with the fingerprint " + KeyFingerprint.text(fingerprint);
  }
}
