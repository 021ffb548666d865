package io.coterie.signer.session;

import com.google.protobuf.ByteString;
import io.coterie.signer.claim.MemoryLedger;
import io.coterie.signer.claim.MemoryShownClaims;
import io.coterie.signer.order.Holds;
import io.coterie.signer.share.MemoryShares;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/** The memory of a party, in memory. */
final class MemoryLedgers {
  private MemoryLedgers() {}

  static SessionPorts.Ledgers of(MemoryLedger ledger, MemoryShares shares, Holds holds) {
    Map<ByteString, ByteString> nonces = new ConcurrentHashMap<>();
    return new SessionPorts.Ledgers(
        ledger,
        shares,
        new MemoryShownClaims(ledger, shares),
        holds,
        (publicKey, message, point, account) ->
            CompletableFuture.completedFuture(
                nonces.computeIfAbsent(publicKey.concat(message), _ -> point)));
  }
}
