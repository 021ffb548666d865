package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Done;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.share.KeyShareStore;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Signs with an imported key exactly as RFC 8032 says. The nonce of a message is on disk before
 * this party answers under it, and no other nonce of that message is ever answered.
 */
final class ExactSigning implements Operation {
  private final Signing signing;
  private final KeyShareStore shares;

  /** Id of this party. */
  private final int self;

  /** Set by {@link #begin}, before the run. */
  private ByteString messageDigest = ByteString.EMPTY;

  /** Set by {@link #begin}, before the run. */
  private ByteString publicKey = ByteString.EMPTY;

  ExactSigning(Signing signing, KeyShareStore shares, int self) {
    this.signing = signing;
    this.shares = shares;
    this.self = self;
  }

  @Override
  public Beginning begin() throws RefusedException {
    Beginning begun = signing.begin();
    if (begun instanceof Beginning.Claim claim && claim.payload() != null) {
      messageDigest = sha512(claim.payload().toSign());
      publicKey = shares.held(signing.plan().key()).keyPublic().getPublicKey();
    }
    return begun;
  }

  @Override
  public void started() {
    signing.started();
  }

  @Override
  public Ending complete(Done done) {
    if (done.getNoncePoint().isEmpty()) {
      return signing.complete(done);
    }
    return new Ending.NonceOpened(
        publicKey, messageDigest, done.getNoncePoint(), signing.plan().asked().requester());
  }

  /**
   * A peer that another nonce came out with, or another test signature, is left out for ever, too:
   * it has deviated, or its share and this party's are not of one key.
   */
  @Override
  public Set<Integer> exclusions(Abort abort) {
    boolean together =
        abort.getCause() == AbortCause.ABORT_CAUSE_OTHER_NONCE
            || abort.getCause() == AbortCause.ABORT_CAUSE_WRONG_TEST_SIGNATURE;
    return together
        ? signing.plan().partyIds().stream()
            .filter(party -> party != self)
            .collect(Collectors.toSet())
        : Operation.ofUse(abort);
  }

  private static ByteString sha512(ByteString message) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-512");
      digest.update(message.asReadOnlyByteBuffer());
      return ByteString.copyFrom(digest.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-512", e);
    }
  }
}
