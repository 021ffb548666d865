package io.coterie.signer.operation;

import com.google.protobuf.ByteString;
import io.coterie.platform.protocol.ExactProtocol;
import io.coterie.proto.core.v1.Abort;
import io.coterie.proto.core.v1.AbortCause;
import io.coterie.proto.core.v1.Done;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.order.SessionPlan;
import io.coterie.signer.share.KeyShareStore;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Signs with an imported key exactly as RFC 8032 says, with a signature that its pair has prepared
 * or from the share. The nonce of a message is on disk before this party answers under it, and no
 * other nonce of that message is ever answered.
 */
final class ExactSigning implements Operation {
  private final Signing signing;
  private final KeyShareStore shares;
  private final PresignaturePool presignatures;
  private final String coordinator;

  /** Id of this party. */
  private final int self;

  /** Set by {@link #begin}, before the run. */
  private ByteString messageDigest = ByteString.EMPTY;

  /** Set by {@link #begin}, before the run. */
  private ByteString publicKey = ByteString.EMPTY;

  /** Taken out of the pool, until the run has started. */
  private @Nullable Presignature presignature;

  /**
   * @param coordinator roster name of the one that gave the order
   */
  ExactSigning(
      Signing signing,
      KeyShareStore shares,
      PresignaturePool presignatures,
      String coordinator,
      int self) {
    this.signing = signing;
    this.shares = shares;
    this.presignatures = presignatures;
    this.coordinator = coordinator;
    this.self = self;
  }

  @Override
  public Beginning begin() throws RefusedException {
    Beginning begun = signing.begin();
    if (!(begun instanceof Beginning.Claim claim) || claim.payload() == null) {
      return begun;
    }
    SessionPlan plan = signing.plan();
    ByteString message = claim.payload().toSign();
    messageDigest = sha512(message);
    publicKey = shares.held(plan.key()).keyPublic().getPublicKey();
    if (!(plan.work() instanceof SessionPlan.Work.SignPresigned(ByteString id))) {
      return begun;
    }
    int blocks = ExactProtocol.blocks(message.size());
    presignature = presignatures.take(id, plan, blocks, claim.share(), coordinator);
    return claim.with(presignature);
  }

  @Override
  public void started() {
    signing.started();
    if (presignature != null) {
      presignature = null;
      presignatures.used();
    }
  }

  @Override
  public void ended() {
    if (presignature != null) {
      presignatures.burn(presignature);
      presignature = null;
    }
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
    return exclusions(abort, signing.plan(), self);
  }

  /** The same of any session of a pair that uses its key. */
  static Set<Integer> exclusions(Abort abort, SessionPlan plan, int self) {
    boolean together =
        abort.getCause() == AbortCause.ABORT_CAUSE_OTHER_NONCE
            || abort.getCause() == AbortCause.ABORT_CAUSE_WRONG_TEST_SIGNATURE;
    return together
        ? plan.partyIds().stream().filter(party -> party != self).collect(Collectors.toSet())
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
