package io.coterie.platform.intent;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;

/**
 * The request that an approval is for. An intent does not say whose it is, and another requester
 * can sign the same bytes: so that approvals of one request do not release another one, they name
 * the requester, too.
 */
public final class ApprovedRequest {
  private static final ByteString TAG = ByteString.copyFrom("coterie/approved-request/1", UTF_8);

  private ApprovedRequest() {}

  /**
   * The digest that members approve, 32 bytes.
   *
   * @param requester that has signed the intent
   * @param intentDigest SHA-256 of the signed intent's payload
   */
  public static ByteString digest(String requester, ByteString intentDigest) {
    ByteString hashed = ByteString.EMPTY;
    for (ByteString part :
        new ByteString[] {TAG, ByteString.copyFrom(requester, UTF_8), intentDigest}) {
      hashed =
          hashed
              .concat(
                  ByteString.copyFrom(
                      ByteBuffer.allocate(Integer.BYTES).putInt(part.size()).flip()))
              .concat(part);
    }
    return Dsse.sha256(hashed);
  }

  /** The digest that members of its intent's approvers approve. */
  public static ByteString digest(VerifiedIntent.Signing intent) {
    return digest(intent.requester(), intent.digest());
  }
}
