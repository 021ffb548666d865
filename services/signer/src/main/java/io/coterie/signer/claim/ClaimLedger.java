package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The once-only right to run a session. A claimed session stays claimed until its order has long
 * passed its deadline.
 */
public interface ClaimLedger {
  /** Requester and request id of a session that nobody asked for. */
  String NOBODY = "";

  /**
   * Claims a session id and binds the request id to the intent, and to the session if the claim
   * says so.
   *
   * @return completes once the claim is on disk; {@link Outcome#CLAIMED} exactly once for a session
   *     id. Fails if the store did, and then nothing is claimed.
   */
  CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted);

  /**
   * Claims a session id that serves no request; otherwise the same.
   *
   * @param account that its rows are kept for
   */
  CompletionStage<Outcome> claimSession(
      SessionId session, String account, @Nullable Multiplication multiplication);

  /**
   * Notes that a claimed session multiplies no more: soon, not at once. A process that dies before
   * has left a session of which nobody knows whether a check of it failed, and the next one counts
   * that against every peer of it.
   */
  void multiplied(SessionId session);

  /** How far this party's ledger has come: on disk, with every claim that has completed. */
  LedgerPosition position();

  /**
   * The ledger was at a position by its own memory, or has marked every share of that time already:
   * a peer that tells of it says nothing new. Reads the disk.
   */
  boolean remembers(LedgerPosition position);

  /** The ledger was at a position of any of its logs by its own memory. Reads the disk. */
  boolean recalls(LedgerPosition position);

  /** Whether a request may have been claimed, or ended, by what the store has forgotten. */
  boolean isFenced(String requestId);

  /**
   * Says for ever that a session is not run here. The party can't know that of a session that it
   * may have run before its store went back.
   *
   * @param account that its row is kept for
   * @param requestId of the request that the session serves, as its verified intent says; null if
   *     no intent was verified
   * @return false, and nothing said, if a request has claimed it, or may have; completes once it is
   *     on disk
   */
  CompletionStage<Boolean> decline(SessionId session, String account, @Nullable String requestId);

  /**
   * Forgets the contribution in the claim of a request's session that has ended before it left.
   *
   * @return completes once it is not on disk any more
   */
  CompletionStage<?> withhold(String requester, String requestId, SessionId session);

  /**
   * Says for ever that this party contributes to no signature of a request, whatever its intent.
   * That and a claim of the request exclude each other.
   *
   * @param over the session that the request is bound to, if this party has contributed to no
   *     session of the request, and that one has ended; null if no such thing is known. A request
   *     with a claim counts as signed otherwise
   * @param cancellation {@code coterie.custody.v1.SignedIntent} that asks for it, kept as the
   *     intents of claims are
   * @param digest of its payload, 32 bytes
   * @param said written with the first such word on the request
   * @return completes once it is on disk
   */
  CompletionStage<Never> never(
      String requester,
      String requestId,
      @Nullable SessionId over,
      ByteString cancellation,
      ByteString digest,
      AuditEvent said);

  /**
   * The answer of {@link #never} as far as nothing is written for it, for a requester that has no
   * room; empty if something would have to be.
   */
  Optional<Never> neverAlready(String requester, String requestId, @Nullable SessionId over);

  /** The answer of the ledger to {@link #never}. */
  sealed interface Never {
    /**
     * The word is on disk.
     *
     * @param first whether it was not there before
     */
    record Said(boolean first) implements Never {}

    /**
     * The party may have contributed to a signature.
     *
     * @param intentDigest of the intent that the request was claimed for
     */
    record Claimed(ByteString intentDigest) implements Never {}

    /** The store may have forgotten a claim of the request. */
    record Forgotten() implements Never {}
  }

  /** The bindings of requests whose intents have not expired: the newest, oldest first. */
  List<Binding> bindings(int limit);

  /**
   * Forgets requests whose ids no intent can use any more, and records whose time is over; soon,
   * and not all at once.
   *
   * @param running how long this process has run since the last call. The ledger's own time goes
   *     forward little faster than that, so a clock that jumps does not make it forget
   */
  void forgetRequests(Duration running);

  /** Has the counter outside the store follow the claims, if there is one. May block. */
  void noteOutside();

  /** Looks how much of the disk is taken and free; cheap, however much is kept. */
  Room room();

  /**
   * The disk of this ledger and of everything that is kept beside it.
   *
   * @param keptBytes by account: a requester, {@code coordinators/NAME}, or nobody
   * @param diskBytes that are free on the disk
   * @param fileBytes that are free in the ledger's file, which takes them before it grows
   * @param minFreeBytes that claims leave, so that what must not be forgotten can still be written
   */
  record Room(Map<String, Long> keptBytes, long diskBytes, long fileBytes, long minFreeBytes) {
    /** Bytes of the disk for the journal: a write into free bytes of the file needs them too. */
    private static final long JOURNAL_BYTES = 16 << 20;

    public Room {
      keptBytes = Map.copyOf(keptBytes);
    }

    /** Bytes that claims may still take; nothing or less on a disk that is nearly full. */
    public long freeBytes() {
      long journal = Math.min(JOURNAL_BYTES, minFreeBytes);
      return diskBytes < journal ? diskBytes - journal : diskBytes + fileBytes - minFreeBytes;
    }
  }

  /**
   * @param requestId unique for a requester; bound to one intent for ever
   * @param binding to the session, if a second signature of the request would be another one
   * @param instead the session that the request may be bound to now and that is over
   * @param multiplication of a session that multiplies
   * @param signedIntent {@code coterie.custody.v1.SignedIntent}, kept with the claim: it shows what
   *     the requester has asked for
   * @param again account that the session is kept for if its request is known already: not the
   *     requester's, which has signed it once; null if nobody has room for that
   */
  record Claim(
      SessionId session,
      String requester,
      String requestId,
      ByteString intentDigest,
      @Nullable Binding binding,
      @Nullable SessionId instead,
      @Nullable Multiplication multiplication,
      ByteString signedIntent,
      @Nullable String again) {}

  /**
   * With whom a session multiplies, by which share. A wrong message of a peer shows it a part of
   * this party's secret if it can learn whether the check of it failed.
   *
   * @param peers ids, ascending
   */
  record Multiplication(String key, int epoch, List<Integer> peers) {
    public Multiplication {
      peers = List.copyOf(peers);
    }
  }

  /**
   * The session in which this party contributes to a request's signature.
   *
   * @param order {@code coterie.party.v1.Order} without its signed intent
   * @param envelope this party's message in it; empty if that is not known yet
   * @param notAfter end of the intent
   */
  record Binding(
      String requester,
      String requestId,
      SessionId session,
      ByteString order,
      ByteString envelope,
      Instant notAfter) {}

  /** The answer of the ledger. */
  enum Outcome {
    /** This party has said that it never signs for the request. */
    NEVER,
    /** The store went back after the id of the request was drawn: it may have forgotten a claim. */
    FENCED,
    CLAIMED,
    SESSION_REPLAYED,
    REQUEST_ID_REUSED,
    /** The request is known, and nobody has room for one more session of it. */
    ORDERED_TOO_OFTEN,
    /** The request is bound to another session. */
    REQUEST_BOUND
  }
}
