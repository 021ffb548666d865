package io.coterie.signer.order;

import com.google.protobuf.ByteString;
import io.coterie.channel.Member;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.protocol.Protocol;
import io.coterie.platform.protocol.SessionId;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.core.v1.Party;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.custody.v1.SigningIntent;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An order after everything in it that can be checked without the key has been checked.
 *
 * @param parties the signing set, or all parties of the key, or all that deal or receive, in
 *     ascending order of party id
 * @param request who asked for it; absent for presigning, which nobody asks for
 * @param target which key signs, from the intent; for presigning from the order
 * @param presignatureId 32 bytes; empty unless a presignature is to be used
 * @param presignatureCount how many are to be made; 0 unless presigning
 * @param coordinatorIncarnation of presigning: the process of the coordinator that ordered it;
 *     empty if it does not say
 * @param terms of a reshare; absent otherwise
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
    ByteString presignatureId,
    int presignatureCount,
    ByteString coordinatorIncarnation,
    @Nullable Terms terms,
    Instant deadline) {

  /**
   * Between whom a key is shared anew.
   *
   * @param dealers ids of parties of the key that deal with their old shares, ascending
   * @param receivers ids of the parties that will hold a share, ascending
   * @param current public data of the epoch to be replaced, as the coordinator has them
   */
  public record Terms(List<Integer> dealers, List<Integer> receivers, KeyPublic current) {
    public Terms {
      dealers = List.copyOf(dealers);
      receivers = List.copyOf(receivers);
    }
  }

  /**
   * The request that a session serves.
   *
   * @param intentDigest SHA-256 of the signed intent's payload
   * @param toSign the intent of a signing; absent otherwise, and once what it says is with the core
   */
  public record Request(
      String requester, String requestId, ByteString intentDigest, @Nullable SigningIntent toSign) {

    static Request of(VerifiedIntent intent) {
      return new Request(
          intent.requester(),
          intent.requestId(),
          intent.digest(),
          intent instanceof VerifiedIntent.Signing signing ? signing.intent() : null);
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
    return terms == null ? partyIds() : terms.receivers();
  }

  /** Whether a party needs its share of the key for this. */
  public boolean usesShare(int party) {
    return terms == null || terms.dealers().contains(party);
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
            .setEpoch(epoch)
            .setPresignatureCount(presignatureCount);
    target.into(config);
    for (Member party : parties) {
      config.addParties(
          Party.newBuilder()
              .setId(party.partyId())
              .setEvidenceKey(ByteString.copyFrom(party.evidenceKey())));
    }
    if (terms != null) {
      config
          .addAllDealers(terms.dealers())
          .addAllReceivers(terms.receivers())
          .setKeyPublic(terms.current());
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
        new Request(request.requester(), request.requestId(), request.intentDigest(), null),
        target,
        presignatureId,
        presignatureCount,
        coordinatorIncarnation,
        terms,
        deadline);
  }
}
