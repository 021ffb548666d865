package io.coterie.signer.nativecore;

import com.google.protobuf.ByteString;
import io.coterie.mpc.MpcException;
import io.coterie.mpc.MpcSession;
import io.coterie.mpc.Vault;
import io.coterie.proto.core.v1.GroupCall;
import io.coterie.proto.core.v1.GroupReply;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.proto.core.v1.Step;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.RefusedException;
import io.coterie.signer.party.GroupCore;
import io.coterie.signer.party.ProtocolCore;

/** Runs sessions in the native core, under this party's vault and evidence identity. */
public final class VaultCore implements ProtocolCore, GroupCore {
  private final Vault vault;
  private final byte[] sealedIdentity;

  /**
   * @param sealedIdentity from {@link Vault#createIdentity}
   */
  public VaultCore(Vault vault, byte[] sealedIdentity) {
    this.vault = vault;
    this.sealedIdentity = sealedIdentity.clone();
  }

  @Override
  public Run start(SessionConfig config, ByteString sealedShare) throws RefusedException {
    try {
      return new NativeRun(vault.start(config, sealedIdentity, sealedShare.toByteArray()));
    } catch (MpcException e) {
      throw ownTrouble(e);
    }
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
