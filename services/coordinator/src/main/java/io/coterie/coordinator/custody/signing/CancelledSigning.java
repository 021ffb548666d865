package io.coterie.coordinator.custody.signing;

import com.google.rpc.Status;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.custody.v1.Signing;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How a request ended that its requester cancels.
 *
 * @param record of the request, as it is stored now; null if this installation has none
 * @param state SIGNED, with the record; NOT_SIGNED or UNKNOWN
 * @param receipts NEVER receipts, in ascending order of their parties
 * @param error set when UNKNOWN
 */
public record CancelledSigning(
    VerifiedIntent.Cancellation intent,
    @Nullable SigningRecord record,
    Signing.State state,
    List<SignedReceipt> receipts,
    @Nullable Status error) {
  public CancelledSigning {
    receipts = List.copyOf(receipts);
  }

  /** The request has a signature. */
  static CancelledSigning signed(VerifiedIntent.Cancellation intent, SigningRecord record) {
    return new CancelledSigning(intent, record, Signing.State.SIGNED, List.of(), null);
  }

  /** Resource name. */
  public String name() {
    return SigningRecord.name(
        intent.key(), SigningRecord.idOf(intent.requester(), intent.requestId()));
  }
}
