package io.coterie.signer.operation;

import io.coterie.proto.core.v1.ShareTaken;
import io.coterie.proto.core.v1.TakeShare;
import io.coterie.signer.order.RefusedException;
import java.util.Optional;

/** See {@link io.coterie.signer.party.ProtocolCore#takeShare}. */
@FunctionalInterface
public interface ShareImporter {
  Optional<ShareTaken> take(TakeShare call) throws RefusedException;
}
