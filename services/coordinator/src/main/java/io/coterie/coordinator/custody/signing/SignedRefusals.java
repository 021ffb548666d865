package io.coterie.coordinator.custody.signing;

import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.platform.attestation.Receipts;
import io.coterie.platform.error.SessionFailures;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Roster;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The receipts of parties that refused one request, for its requester: the last one of each party,
 * as far as a client can believe it. Confined to one thread.
 */
final class SignedRefusals {
  private static final Logger log = LoggerFactory.getLogger(SignedRefusals.class);

  /** Bytes of all that are passed on: the trailers of a gRPC call may have 8 KiB in all. */
  static final int MAX_BYTES = 3 * 1024;

  private final VerifiedIntent.Signing intent;
  private final SortedMap<Integer, SignedReceipt> last = new TreeMap<>();

  SignedRefusals(VerifiedIntent.Signing intent) {
    this.intent = intent;
  }

  /** Takes in how a session ended. */
  void hear(SessionOutcome outcome, Roster roster) {
    if (outcome instanceof SessionOutcome.Refused refused) {
      refused
          .receipts()
          .forEach(
              (party, given) ->
                  hear(
                      party,
                      refused.by().getOrDefault(party, RefusalReason.REFUSAL_REASON_UNSPECIFIED),
                      given,
                      roster));
    }
  }

  private void hear(int party, RefusalReason reason, SignedReceipt given, Roster roster) {
    Receipts.Refusable request = Receipts.Refusable.of(intent, roster.installation());
    Receipt receipt = Receipts.read(given).orElse(Receipt.getDefaultInstance());
    if (SessionFailures.refusal(receipt.getReason()).filter(reason::equals).isPresent()
        && receipt.equals(Receipts.refused(request, reason, receipt.getUnixMs(), party))
        && Receipts.isSigned(given, receipt, roster)) {
      last.put(party, given);
    } else {
      log.warn("party {} gave a receipt of its refusal that nobody could believe", party);
    }
  }

  /** As many as fit into an error, in ascending order of their parties. */
  List<SignedReceipt> receipts() {
    List<SignedReceipt> some = new ArrayList<>();
    int bytes = 0;
    for (SignedReceipt receipt : last.values()) {
      bytes += receipt.getSerializedSize();
      if (bytes > MAX_BYTES) {
        break;
      }
      some.add(receipt);
    }
    return some;
  }
}
