package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;

/** Where this party keeps its sealed shares. Reads are fast; writes complete when on disk. */
public interface KeyShareStore {
  /** In {@link #exclude}: not one party, but the key itself is not to be used any more. */
  int EVERY_PARTY = 0;

  /** The active share of a key, or else its provisional one. */
  Optional<KeyShare> find(String key);

  /** All provisional shares. */
  List<KeyShare> provisional();

  /**
   * Stores a new share as provisional, in place of another provisional share of the key.
   *
   * @return false, and nothing stored, if the key has an active share
   */
  CompletionStage<Boolean> storeProvisional(KeyShare share, AuditEvent completed);

  /**
   * Makes a provisional share the active one of its key and epoch.
   *
   * @return false, and nothing changed, if the share is no longer there or the key has another
   *     active one
   */
  CompletionStage<Boolean> activate(KeyShare share, AuditEvent activated);

  /** Parties this one refuses to run sessions of the key with, or {@link #EVERY_PARTY}. */
  Set<Integer> excluded(String key);

  /** Remembers an exclusion: at once in memory, durably when it completes. */
  CompletionStage<Boolean> exclude(Exclusion exclusion);

  /**
   * Parties this one will run no session of the key with.
   *
   * @param parties ids, or {@link #EVERY_PARTY}
   * @param session that showed why
   * @param epoch of the share that session used
   * @param sealed that share again, without what it had in common with those parties: takes the
   *     place of the stored one in the same transaction. Empty if it stays.
   */
  record Exclusion(
      String key, Set<Integer> parties, SessionId session, int epoch, ByteString sealed) {}
}
