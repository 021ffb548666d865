package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** Where signings are kept. */
public interface SigningStore {

  /**
   * Stores a request as this replica's work, unless the requester used its id before, which the
   * database decides. It may be lost if the database crashes at once: then nothing was answered,
   * and the signers' own claims keep the request to its first intent.
   *
   * @param pending PENDING
   * @return empty if it was stored, else the signing that is there
   */
  Optional<SigningRecord> claimOnce(SigningRecord pending);

  /**
   * Makes a signing that ended as UNKNOWN this replica's work once more; durable when this returns.
   *
   * @param ended as it was read, UNKNOWN
   * @param approvals that it begins with now
   * @return PENDING; empty, and nothing has changed, if the signing is not any more as it was read
   */
  Optional<SigningRecord> reopen(SigningRecord ended, List<ByteString> approvals);

  /**
   * Ends a PENDING signing of the same intent; durable when this returns. A signature ends it
   * whichever replica has found it; as UNKNOWN it is ended by the replica alone whose work it is.
   *
   * @param finished SIGNED or UNKNOWN
   * @return the signing as it is stored: {@code finished}, or what is there instead: an earlier
   *     end, another replica's work, or the signing of another intent
   */
  SigningRecord finish(SigningRecord finished);

  /**
   * Gives a signing that has not ended, or ended as UNKNOWN or NOT_SIGNED, an end that its parties
   * have shown; durable when this returns.
   *
   * @param shown SIGNED or NOT_SIGNED
   * @return the signing as it is stored; empty if it is not there, which may also be because a
   *     crash of the database has lost it and the id was used for another intent since
   */
  Optional<SigningRecord> settle(SigningRecord shown);

  /** The signing of that id. */
  Optional<SigningRecord> find(UUID id);

  /** The place of a signing among those of its key, which are in the order of these places. */
  record Place(Instant createdAt, UUID id) {}

  /**
   * Signings of a key, the newest first, each without the intent that asked for it: some intents
   * are large, and a page of them would not fit into memory.
   *
   * @param requesters whose signings; null: those of all
   * @param after where the page before ended; null: from the newest
   * @return at most {@code limit}
   */
  List<SigningRecord> list(
      String key, @Nullable Set<String> requesters, @Nullable Place after, int limit);

  /**
   * Makes a PENDING signing this replica's work, unless another replica that is there works on it.
   *
   * @return as it is stored; empty if it has ended, or is another's work
   */
  Optional<SigningRecord> take(UUID id);

  /**
   * Makes every PENDING signing this replica's work that no replica works on that is there.
   *
   * @param own also what this replica works on: a process of the same name has left it
   * @return their ids
   */
  List<UUID> takeAll(boolean own);
}
