package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.GroupParties;
import io.coterie.proto.core.v1.KeyPublic;
import org.jspecify.annotations.Nullable;

/**
 * An epoch of a group as far as this party has made it. Nothing in it changes once it is there.
 *
 * @param group resource name, {@code groups/{group}}
 * @param origin the request that it is made for
 * @param parties its issuers and openers, as this party's roster had them then
 * @param opening this party's share of the openers' key
 * @param issuing this party's share of the issuing key
 * @param published the group's public data, as this issuer signs them; empty before
 * @param attested the group with the signatures of all issuers; empty before
 */
public record GroupRecord(
    String group,
    int epoch,
    Origin origin,
    GroupParties parties,
    @Nullable Share opening,
    @Nullable Share issuing,
    ByteString published,
    ByteString attested) {

  /**
   * A request.
   *
   * @param intentDigest SHA-256 of the signed intent's payload
   */
  public record Origin(String requester, String requestId, ByteString intentDigest) {}

  /**
   * A share of a key.
   *
   * @param sealed by this party's vault
   */
  public record Share(KeyPublic keyPublic, ByteString sealed) {
    /** Leaves the share out. */
    @Override
    public String toString() {
      return "Share[" + keyPublic.getKeyId() + "]";
    }
  }

  /** The record of an epoch that is begun. */
  public static GroupRecord begun(String group, int epoch, Origin origin, GroupParties parties) {
    return new GroupRecord(
        group, epoch, origin, parties, null, null, ByteString.EMPTY, ByteString.EMPTY);
  }
}
