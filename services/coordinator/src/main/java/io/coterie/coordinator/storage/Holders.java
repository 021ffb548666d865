package io.coterie.coordinator.storage;

import io.coterie.coordinator.custody.key.KeyRecord;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** The parties of a key as two columns: {@code party_ids} and {@code party_names}. */
final class Holders {
  private Holders() {}

  /**
   * Sets both.
   *
   * @param index of the ids' parameter; the names are the next one
   */
  static void bind(PreparedStatement statement, int index, List<KeyRecord.Holder> parties)
      throws SQLException {
    Object[] ids = parties.stream().map(KeyRecord.Holder::partyId).toArray();
    Object[] names = parties.stream().map(KeyRecord.Holder::name).toArray();
    statement.setArray(index, statement.getConnection().createArrayOf("integer", ids));
    statement.setArray(index + 1, statement.getConnection().createArrayOf("text", names));
  }

  static List<KeyRecord.Holder> read(ResultSet row) throws SQLException {
    Integer[] ids = Sql.numbers(row, "party_ids");
    String[] names = Sql.texts(row, "party_names");
    List<KeyRecord.Holder> parties = new ArrayList<>();
    for (int i = 0; i < ids.length; i++) {
      parties.add(new KeyRecord.Holder(ids[i], names[i]));
    }
    return parties;
  }
}
