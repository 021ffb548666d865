package io.coterie.signer.storage;

import io.coterie.platform.audit.AuditEvent;
import io.coterie.trust.SignedTrust;
import io.coterie.trust.TrustFile;
import java.sql.ResultSet;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
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
   * signed, unless the operator has permitted that very one. A newer one than the last is on disk
   * with its audit record when this returns.
   *
   * @param event says for the audit what is new; given the version accepted before, if any
   * @throws IllegalArgumentException if the file may not follow the one accepted before, or replace
   *     it; says what to do
   * @throws StoreException if it cannot be written
   */
  public synchronized void accept(
      SignedTrust offered, Function<Optional<SignedTrust>, AuditEvent> event) {
    Optional<SignedTrust> held = find();
    if (held.isPresent() && !mayReplace(offered, held.get())) {
      return;
    }
    byte[] content = offered.file().encode();
    AuditEvent accepted = event.apply(held);
    file.writer()
        .submit(
            db -> {
              audit.append(db, accepted);
              db.update("DELETE FROM permitted_trust");
              return db.update(
                  "INSERT INTO accepted_trust (id, file) VALUES (1, ?)"
                      + " ON CONFLICT (id) DO UPDATE SET file = excluded.file",
                  content);
            })
        .toCompletableFuture()
        .join();
  }

  /**
   * Whether a file takes the place of the one before; false if they are the same.
   *
   * @throws IllegalArgumentException if it may not
   */
  private boolean mayReplace(SignedTrust offered, SignedTrust held) {
    byte[] digest = offered.digest();
    boolean permitted =
        file.read(db -> db.count("SELECT count(*) FROM permitted_trust WHERE digest = ?", digest))
            == 1;
    return permitted
            && !Arrays.equals(digest, held.digest())
            && offered.installation().equals(held.installation())
        || offered.requireNotBefore(held);
  }

  /**
   * Lets one version of the trust file follow the present one although it is older, or of other
   * root keys. Its own root keys must have signed it. Ends with the next version that is accepted.
   *
   * @param digest of its content, hexadecimal
   * @return completes once it is on disk with its audit record
   */
  CompletionStage<Boolean> permit(String digest, String reason) {
    String held = find().map(each -> HexFormat.of().formatHex(each.digest())).orElse("none");
    return file.writer()
        .submitVital(
            db -> {
              audit.append(
                  db,
                  AuditEvent.of(
                      "operator",
                      "trust.permit",
                      "ok",
                      Map.of("digest", digest, "held", held, "reason", reason)));
              return db.update(
                      "INSERT INTO permitted_trust (id, digest) VALUES (1, ?)"
                          + " ON CONFLICT (id) DO UPDATE SET digest = excluded.digest",
                      HexFormat.of().parseHex(digest))
                  == 1;
            });
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
