package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.channel.Member;
import java.time.Instant;
import java.util.List;

/**
 * An order after everything in it that can be checked without the key has been checked.
 *
 * @param parties the signing set, or all parties of a new key, in ascending order of party id
 * @param intentDigest SHA-256 of the signed intent's payload
 * @param payload what is to be signed; empty for key generation
 * @param deadline when this party gives up
 */
public record SessionPlan(
    SessionId id,
    Protocol protocol,
    String key,
    int epoch,
    int threshold,
    List<Member> parties,
    String requester,
    String requestId,
    ByteString intentDigest,
    ByteString payload,
    Instant deadline) {

  /** The same plan, once what is to be signed is with the core: many sessions only wait then. */
  SessionPlan withoutPayload() {
    return new SessionPlan(
        id,
        protocol,
        key,
        epoch,
        threshold,
        parties,
        requester,
        requestId,
        intentDigest,
        ByteString.EMPTY,
        deadline);
  }
}
