package io.coterie.signer.storage;

import java.sql.ResultSet;
import java.util.Optional;

/** The sealed secrets of the party itself: its evidence identity, its account on the channel. */
public final class PartySecrets {
  private final PartyFile file;

  PartySecrets(PartyFile file) {
    this.file = file;
  }

  /**
   * @param sealed the secret, sealed before it came here
   * @param publicPart the public half; empty if there is none
   */
  public record Secret(byte[] sealed, byte[] publicPart) {}

  /** The secret of that name. */
  public Optional<Secret> find(String name) {
    return file.read(
        db -> {
          try (ResultSet row =
              db.statement("SELECT sealed, public FROM party_secret WHERE name = ?", name)
                  .executeQuery()) {
            return row.next()
                ? Optional.of(new Secret(row.getBytes(1), row.getBytes(2)))
                : Optional.empty();
          }
        });
  }

  /** Stores a secret durably, in place of an older one. */
  public void save(String name, Secret secret) {
    file.writer()
        .submit(
            db ->
                db.update(
                    "INSERT INTO party_secret (name, sealed, public) VALUES (?, ?, ?)"
                        + " ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed,"
                        + " public = excluded.public",
                    name,
                    secret.sealed(),
                    secret.publicPart()))
        .toCompletableFuture()
        .join();
  }
}
