package io.coterie.cli.terminal;

import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import io.coterie.platform.attestation.Refusal;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.Base64;
import java.util.Optional;

/**
 * That a party refused a request, and who says so.
 *
 * @param party its name in the trust file
 * @param signed the party's own word; empty: the coordinator's
 */
public record PartyRefusal(String party, RefusalReason reason, Optional<Refusal> signed) {
  private static final String PREFIX = "REFUSAL_REASON_";

  /** A refusal that its party has signed for. */
  public static PartyRefusal of(Refusal refusal) {
    return new PartyRefusal(refusal.party(), refusal.reason(), Optional.of(refusal));
  }

  /** In words, as a part of a sentence. */
  public String words() {
    String refused = "party %s refused: %s".formatted(party, reason.name().replace(PREFIX, ""));
    return signed.isPresent()
        ? refused + " (signed by the party)"
        : "the coordinator says that " + refused;
  }

  /** The same for programs, with the receipt, which others can verify. */
  Value json() {
    Struct.Builder fields =
        Struct.newBuilder()
            .putFields("party", text(party))
            .putFields("reason", text(reason.name()))
            .putFields("signed", Value.newBuilder().setBoolValue(signed.isPresent()).build());
    signed.ifPresent(
        refusal ->
            fields
                .putFields("time", text(refusal.at().toString()))
                .putFields(
                    "receipt",
                    text(Base64.getEncoder().encodeToString(refusal.receipt().toByteArray()))));
    return Value.newBuilder().setStructValue(fields).build();
  }

  private static Value text(String value) {
    return Value.newBuilder().setStringValue(value).build();
  }
}
