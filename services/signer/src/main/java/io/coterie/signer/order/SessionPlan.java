package io.coterie.signer.order;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.SigningIntent;
import io.coterie.trust.Member;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An order after everything in it that can be checked without the key has been checked.
 *
 * @param parties the signing set, or all parties of the key, or all that deal or receive, in
 *     ascending order of party id
 * @param request the requester's wish; absent for presigning, which nobody asks for
 * @param target which key signs, from the intent; for presigning from the order
 * @param deadline when this party ends the session
 */
public record SessionPlan(
    SessionId id,
    Protocol protocol,
    String key,
    int epoch,
    int threshold,
    List<Member> parties,
    @Nullable Request request,
    KeyTarget target,
    Work work,
    Instant deadline) {

  /** The operation of a session, and what only it needs. */
  public sealed interface Work {
    /** Make a key. */
    record Keygen() implements Work {}

    /**
     * Take a key over.
     *
     * @param share this party's, as its owner has encrypted it; empty if the order only asks what
     *     became of the request
     * @param publicKey of the key, as the requester has signed it
     */
    record Import(ByteString share, ByteString publicKey) implements Work {}

    /** Sign from a share. */
    record Sign() implements Work {}

    /**
     * Sign with a presignature.
     *
     * @param presignatureId 32 bytes
     */
    record SignPresigned(ByteString presignatureId) implements Work {}

    /**
     * Make presignatures.
     *
     * @param count 1 to {@link Protocol#maxBatch}
     * @param incarnation of the coordinator that ordered it
     * @param messageBlocks of the messages that they are for; 0 if they are for any
     */
    record Presign(int count, ByteString incarnation, int messageBlocks) implements Work {}

    /** Replace the shares of the key at its parties. */
    record Refresh() implements Work {}

    /**
     * Share the key anew, among other parties or with another threshold.
     *
     * @param dealers ids of parties of the key that deal with their old shares, ascending
     * @param receivers ids of the parties that will hold a share, ascending
     * @param current public data of the epoch to be replaced, as the coordinator has them
     */
    record Reshare(List<Integer> dealers, List<Integer> receivers, KeyPublic current)
        implements Work {
      public Reshare {
        dealers = List.copyOf(dealers);
        receivers = List.copyOf(receivers);
      }
    }
  }

  /**
   * The request that a session serves.
   *
   * @param intentDigest SHA-256 of the signed intent's payload
   * @param keyFingerprint of the key that the requester means; empty if the intent names it
   *     otherwise
   * @param toSign the intent of a signing; absent otherwise, and once what it says is with the core
   * @param signed the intent as the requester has signed it; empty once what it says is with the
   *     core
   * @param approvals that came with it, of 416 bytes each, none of them checked; none once the
   *     request is claimed
   */
  public record Request(
      String requester,
      String requestId,
      ByteString intentDigest,
      ByteString keyFingerprint,
      @Nullable SigningIntent toSign,
      ByteString signed,
      List<ByteString> approvals) {

    public Request {
      approvals = List.copyOf(approvals);
    }

    /** Bytes of what the requester has sent. */
    public int bytes() {
      return signed.size() + approvals.size() * IntentVerifier.APPROVAL_BYTES;
    }

    static Request of(VerifiedIntent intent, List<ByteString> approvals) {
      return new Request(
          intent.requester(),
          intent.requestId(),
          intent.digest(),
          switch (intent) {
            case VerifiedIntent.Signing signing -> signing.keyFingerprint();
            case VerifiedIntent.KeyRefresh refresh -> refresh.keyFingerprint();
            // The public key itself is in it; a new key has none yet.
            case VerifiedIntent.KeyReshare _,
                VerifiedIntent.NewKey _,
                VerifiedIntent.OfGroup _,
                VerifiedIntent.Cancellation _ ->
                ByteString.EMPTY;
          },
          intent instanceof VerifiedIntent.Signing signing ? signing.intent() : null,
          intent.envelope().toByteString(),
          approvals);
    }
  }

  public SessionPlan {
    parties = List.copyOf(parties);
  }

  /** The request of a session that somebody asked for. */
  public Request asked() {
    Request known = request;
    if (known == null) {
      throw new IllegalStateException("nobody asked for session " + id);
    }
    return known;
  }

  /** The ids of {@link #parties}, ascending. */
  public List<Integer> partyIds() {
    return parties.stream().map(Member::partyId).toList();
  }

  /** Ids of the parties that will hold a share when it is done, ascending. */
  public List<Integer> holders() {
    return work instanceof Work.Reshare reshare ? reshare.receivers() : partyIds();
  }

  /** Whether a party needs its share of the key for this. */
  public boolean usesShare(int party) {
    return !(work instanceof Work.Reshare reshare) || reshare.dealers().contains(party);
  }

  /**
   * The plan as the core reads it, without payload and presignature.
   *
   * @param self id of this party
   */
  public SessionConfig.Builder config(int self) {
    SessionConfig.Builder config =
        SessionConfig.newBuilder()
            .setProtocol(protocol.id())
            .setSessionId(id.bytes())
            .setSelf(self)
            .setThreshold(threshold)
            .setKeyId(key)
            .setEpoch(epoch);
    target.into(config);
    for (Member party : parties) {
      config.addParties(
          Party.newBuilder()
              .setId(party.partyId())
              .setEvidenceKey(ByteString.copyFrom(party.evidenceKey())));
    }
    switch (work) {
      case Work.Presign presign ->
          config.setPresignatureCount(presign.count()).setMessageBlocks(presign.messageBlocks());
      case Work.Reshare reshare ->
          config
              .addAllDealers(reshare.dealers())
              .addAllReceivers(reshare.receivers())
              .setKeyPublic(reshare.current());
      case Work.Keygen _, Work.Import _, Work.Sign _, Work.SignPresigned _, Work.Refresh _ -> {}
    }
    return config;
  }

  /** The same plan, once what is to be signed is with the core: many sessions only wait then. */
  public SessionPlan withoutPayload() {
    if (request == null || request.toSign() == null) {
      return this;
    }
    return new SessionPlan(
        id,
        protocol,
        key,
        epoch,
        threshold,
        parties,
        new Request(
            request.requester(),
            request.requestId(),
            request.intentDigest(),
            request.keyFingerprint(),
            null,
            ByteString.EMPTY,
            List.of()),
        target,
        work,
        deadline);
  }
}
