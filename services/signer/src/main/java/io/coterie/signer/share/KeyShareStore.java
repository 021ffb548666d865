package io.coterie.signer.share;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;

/** Where this party keeps its sealed shares. Reads are fast; writes complete when on disk. */
public interface KeyShareStore {
  /** In {@link #exclude}: not one party, but the key itself is not to be used any more. */
  int EVERY_PARTY = 0;

  /**
   * In {@link #excluded}: this party itself, whose store went back to an earlier state. It has
   * forgotten what it did with the share since.
   */
  int ITSELF = -1;

  /** The active share of a key, or else its provisional one. */
  Optional<KeyShare> find(String key);

  /**
   * The share that {@link #find} finds.
   *
   * @throws RefusedException if this party holds none
   */
  default KeyShare held(String key) throws RefusedException {
    return find(key)
        .orElseThrow(
            () ->
                new RefusedException(
                    RefusalReason.REFUSAL_REASON_UNKNOWN_KEY,
                    "this party holds no share of the key"));
  }

  /** The provisional share of a key, beside an active one or alone. */
  Optional<KeyShare> pending(String key);

  /**
   * The shares of a name that none of another key may take the place of: the active one, and those
   * of a later epoch than the first that can still become active. Others may have destroyed theirs
   * of the epoch before. A first share that is not in use may give way, although a party with all
   * certificates may sign already: clients believe a new key only when all its parties say that
   * they use it.
   */
  List<KeyShare> lasting(String key);

  /** All shares that can still become active: the provisional ones and those abandoned. */
  List<KeyShare> undecided();

  /** Whether there is another share of the same key that is active or can still become so. */
  boolean keepsAnother(KeyShare share);

  /** The share that a session made, if it is active or can still become so. */
  Optional<KeyShare> ofSession(SessionId session);

  /**
   * Parties with which this one takes part in no session for another epoch of the key, because it
   * keeps as many abandoned shares as it may, and these have said that they had none of them.
   * {@link #EVERY_PARTY} if it can keep no more at all; empty before.
   */
  Set<Integer> decliners(String key);

  /**
   * Stores a new share as provisional, in place of another first share of the key.
   *
   * @return false, and nothing stored, if there is one of {@link #lasting}
   */
  CompletionStage<Boolean> storeProvisional(KeyShare share, AuditEvent completed);

  /**
   * Stores a share of a later epoch as provisional, beside the active one that it is to replace, if
   * there is one. A provisional one of an earlier epoch is abandoned.
   *
   * @param dealt whether this party's share of the epoch before went into it
   * @return false, and nothing stored, if the key has an active or provisional share of that epoch
   *     or a later one, if one of {@link #lasting} is of another key, if the share that was dealt
   *     with is not the active one any more, or if the session was declined, or if one of {@link
   *     #decliners} is a party of it
   */
  CompletionStage<Boolean> storeNext(KeyShare share, boolean dealt, AuditEvent completed);

  /**
   * Says for ever that this party stores no share of a session.
   *
   * @param asker id of the party that has one
   * @return false, and nothing said, if it has stored one, or has said so to that party of too many
   *     sessions
   */
  CompletionStage<Boolean> decline(String key, SessionId session, int asker);

  /**
   * Abandons a provisional share of a later epoch than the first. It is kept.
   *
   * @param decliner id of the party that has said that it has none
   * @return false if it is not provisional
   */
  CompletionStage<Boolean> abandon(KeyShare share, int decliner, AuditEvent abandoned);

  /**
   * Makes a provisional or abandoned share the active one of its key. In the same transaction all
   * shares are destroyed that are of an earlier epoch, or of the same and were stored before it,
   * and with the active one what was remembered of parties excluded from it; a key that must not be
   * used at all stays so.
   *
   * @param proof kept with the share
   * @return false, and nothing changed, if the share is no longer there or the name has an active
   *     share of another key, of a later epoch, or of the same that was stored after it
   */
  CompletionStage<Boolean> activate(KeyShare share, Certificate proof, AuditEvent activated);

  /** Parties this one refuses to run sessions of the key with, or {@link #EVERY_PARTY}. */
  Set<Integer> excluded(String key);

  /**
   * Remembers an exclusion: at once in memory, durably when it completes. If it cannot be written,
   * the key is frozen, at once in memory and on disk as soon as that can be written.
   */
  CompletionStage<Boolean> exclude(Exclusion exclusion);

  /** Lets a key be used again that is frozen; false if it is not. */
  CompletionStage<Boolean> unfreeze(String key);

  /** Everything that keeps keys from being used here as they might be, by key and party. */
  List<KeyTrouble> troubles();

  /**
   * Tells a listener, in place of an earlier one, the name of each key of which the operator has
   * had shares destroyed. The process must not use anything that it still has of those.
   */
  void onForgotten(Consumer<String> listener);

  /** Tries again what could not be written, and does what the operator has asked for. */
  void housekeep();

  /**
   * Parties this one will run no session of the key with.
   *
   * @param parties ids, or {@link #EVERY_PARTY}
   * @param session that showed why
   * @param share the session that made the share which that session used
   * @param epoch of that share
   * @param sealed that share again, without what it had in common with those parties: takes the
   *     place of the stored one in the same transaction. Empty if it stays.
   */
  record Exclusion(
      String key,
      Set<Integer> parties,
      SessionId session,
      SessionId share,
      int epoch,
      ByteString sealed) {}
}
