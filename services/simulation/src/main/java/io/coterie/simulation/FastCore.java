package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.signer.party.ProtocolCore;
import java.util.HashSet;
import java.util.Set;

/** The core of one process of a party, without cryptography. Presignatures die with it. */
final class FastCore implements ProtocolCore {
  private final int party;
  private final Chance chance;
  private final Set<ByteString> presignatures = new HashSet<>();

  /**
   * @param chance draws the one-time values
   */
  FastCore(int party, Chance chance) {
    this.party = party;
    this.chance = chance;
  }

  @Override
  public Run start(SessionConfig config, ByteString sealedShare) {
    ByteString presignature = config.getPresignatureId();
    if (!presignature.isEmpty() && !presignatures.remove(presignature)) {
      throw new IllegalStateException("a presignature that the core does not have");
    }
    return new FastRun(config, sealedShare, this, chance.nextLong());
  }

  void keep(ByteString presignature) {
    presignatures.add(presignature);
  }

  @Override
  public void discardPresignature(ByteString id) {
    presignatures.remove(id);
  }

  @Override
  public ByteString signStatement(ByteString statement) {
    return Identities.sign(party, statement);
  }
}
