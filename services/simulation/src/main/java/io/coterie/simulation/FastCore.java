package io.coterie.simulation;

import com.google.protobuf.ByteString;
import io.coterie.proto.core.v1.SessionConfig;
import io.coterie.signer.party.ProtocolCore;
import java.util.HashMap;
import java.util.Map;

/** The core of one process of a party, without cryptography. Presignatures die with it. */
final class FastCore implements ProtocolCore {
  private final int party;
  private final Chance chance;

  /** The one-time value of each presignature. */
  private final Map<ByteString, Long> presignatures = new HashMap<>();

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
    if (presignature.isEmpty()) {
      return new FastRun(config, sealedShare, this, chance.nextLong());
    }
    Long oneTime = presignatures.remove(presignature);
    if (oneTime == null) {
      throw new IllegalStateException("a presignature that the core does not have");
    }
    return new FastRun(config, sealedShare, this, oneTime);
  }

  void keep(ByteString presignature) {
    presignatures.put(presignature, chance.nextLong());
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
