package io.coterie.signer.storage;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.TrustFile;
import java.sql.ResultSet;
import java.util.Optional;
import java.util.function.Function;

/** The highest version of the trust file that the party has accepted. */
public final class AcceptedTrust {
  private final PartyFile file;
  private final SqliteAudit.Chain audit;

  AcceptedTrust(PartyFile file, SqliteAudit.Chain audit) {
    this.file = file;
    this.audit = audit;
  }

  /**
   * Accepts a trust file: from now on none is accepted that is older, or that other root keys have
   * signed. A newer one than the last is on disk with its audit record when this returns.
   *
   * @param event says for the audit what is new; given the version accepted before, if any
   * @throws IllegalArgumentException if the file may not follow the one accepted before, or replace
   *     it; says what to do
   * @throws StoreException if it cannot be written
   */
  public synchronized void accept(
      SignedTrust offered, Function<Optional<SignedTrust>, AuditEvent> event) {
    Optional<SignedTrust> held = find();
    if (held.isPresent() && !offered.requireNotBefore(held.get())) {
      return;
    }
    byte[] content = offered.file().encode();
    AuditEvent accepted = event.apply(held);
    file.writer()
        .submit(
            db -> {
              audit.append(db, accepted);
              return db.update(
                  "INSERT INTO accepted_trust (id, file) VALUES (1, ?)"
                      + " ON CONFLICT (id) DO UPDATE SET file = excluded.file",
                  content);
            })
        .toCompletableFuture()
        .join();
  }

  /** The trust file that was accepted last. */
  public Optional<SignedTrust> find() {
    return file.read(
            db -> {
              try (ResultSet row = db.statement("SELECT file FROM accepted_trust").executeQuery()) {
                return row.next() ? Optional.of(row.getBytes(1)) : Optional.<byte[]>empty();
              }
            })
        .map(AcceptedTrust::stored);
  }

  private static SignedTrust stored(byte[] content) {
    try {
      return TrustFile.parse(content).verified();
    } catch (IllegalArgumentException e) {
      throw new StoreException("the trust file in the party's file is damaged", e);
    }
  }
}
