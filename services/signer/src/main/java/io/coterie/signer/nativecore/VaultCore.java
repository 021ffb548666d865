package io.coterie.signer.nativecore;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.ImportCall;
import io.coterie.proto.core.v1.ImportReply;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.ShareTaken;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.core.v1.TakeShare;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.GroupCore;
import io.coterie.signer.party.ProtocolCore;
import java.util.Optional;

/** Runs sessions in the native core, under this party's vault and evidence identity. */
public final class VaultCore implements ProtocolCore, GroupCore {
  private final Vault vault;
  private final byte[] sealedIdentity;
  private final ExactPairs pairs;

  /**
   * @param sealedIdentity from {@link Vault#createIdentity}
   */
  public VaultCore(Vault vault, byte[] sealedIdentity) {
    this.vault = vault;
    this.sealedIdentity = sealedIdentity.clone();
    this.pairs = new ExactPairs(vault, this.sealedIdentity, this::startOne);
  }

  @Override
  public Run start(SessionConfig config, ByteString sealedShare) throws RefusedException {
    return switch (config.getProtocol()) {
      case PROTOCOL_ID_ED25519_EXACT_PAIR -> ImportRun.start(config, sealedShare, pairs);
      case PROTOCOL_ID_ED25519_EXACT_PREPARE,
          PROTOCOL_ID_ED25519_EXACT_NONCE,
          PROTOCOL_ID_ED25519_EXACT_ANSWER ->
          PairRun.start(config, sealedShare, pairs);
      default -> startOne(config, sealedShare);
    };
  }

  private Run startOne(SessionConfig config, ByteString sealedShare) throws RefusedException {
    try {
      return new NativeRun(vault.start(config, sealedIdentity, sealedShare.toByteArray()));
    } catch (MpcException e) {
      throw ownTrouble(e);
    }
  }

  @Override
  public Optional<ShareTaken> takeShare(TakeShare call) throws RefusedException {
    try {
      ImportReply reply =
          vault.call(ImportCall.newBuilder().setTakeShare(call).build(), sealedIdentity);
      return reply.hasShareTaken() ? Optional.of(reply.getShareTaken()) : Optional.empty();
    } catch (MpcException e) {
      throw ownTrouble(e);
    }
  }

  @Override
  public void forgetPairs(String key) {
    pairs.drop(key);
  }

  @Override
  public GroupReply call(GroupCall call) throws RefusedException {
    try {
      return vault.call(call, sealedIdentity);
    } catch (MpcException e) {
      throw ownTrouble(e);
    }
  }

  /** The order agreed with everything that this party knows. */
  private static RefusedException ownTrouble(MpcException e) {
    return new RefusedException(
        RefusalReason.REFUSAL_REASON_INTERNAL, "the core refused: " + e.reason());
  }

  @Override
  public void discardPresignature(ByteString id) {
    vault.dropPresignature(id.toByteArray());
  }

  @Override
  public ByteString signStatement(ByteString statement) {
    return ByteString.copyFrom(vault.signStatement(sealedIdentity, statement.toByteArray()));
  }

  private record NativeRun(MpcSession session) implements Run {
    @Override
    public Step firstStep() {
      return session.firstStep();
    }

    @Override
    public Step handle(int sender, byte[] envelope) {
      return session.handle(sender, envelope);
    }

    @Override
    public void close() {
      session.close();
    }
  }
}
