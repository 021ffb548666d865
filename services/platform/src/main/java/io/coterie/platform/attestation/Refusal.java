package io.coterie.platform.attestation;

import com.google.protobuf.ByteString;
import io.coterie.platform.error.SessionFailures;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.Receipt;
import io.coterie.proto.custody.v1.SignedReceipt;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.trust.Trust;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * A party's own word that it refused an order for an intent. It is about that moment alone: the
 * party may have signed before, and may sign later.
 *
 * @param party its name
 * @param at by its clock
 * @param receipt that says so
 */
public record Refusal(String party, RefusalReason reason, Instant at, SignedReceipt receipt) {

  /**
   * The receipts of an error that are the word of the key's parties on an intent, one of each
   * party. All others are left out, because a coordinator can add any.
   *
   * @param intentDigest SHA-256 of the payload of the signed intent
   */
  public static List<Refusal> of(
      AttestedKey key,
      NeverProof.Request request,
      ByteString intentDigest,
      List<SignedReceipt> receipts,
      Trust trust) {
    Receipts.Refusable refused = new Receipts.Refusable(request.with(key, trust), intentDigest);
    List<Refusal> refusals = new ArrayList<>();
    Set<Integer> seen = new HashSet<>();
    int some = Math.min(receipts.size(), IntentVerifier.MAX_PARTIES);
    for (SignedReceipt envelope : receipts.subList(0, some)) {
      Receipt receipt = Receipts.read(envelope).orElse(Receipt.getDefaultInstance());
      Optional<RefusalReason> reason = SessionFailures.refusal(receipt.getReason());
      Optional<String> party = holder(key, request.reshareEpoch(), receipt.getParty(), trust);
      if (reason.isPresent()
          && party.isPresent()
          && receipt.equals(
              Receipts.refused(refused, reason.get(), receipt.getUnixMs(), receipt.getParty()))
          && Receipts.isSigned(envelope, receipt, trust.roster())
          && seen.add(receipt.getParty())) {
        Instant at = Instant.ofEpochMilli(receipt.getUnixMs());
        refusals.add(new Refusal(party.get(), reason.get(), at, envelope));
      }
    }
    return refusals;
  }

  /**
   * The name of a party that held the key when the request was made, or holds it now. Those of a
   * reshare to so few that a thief of a requester's key may have made it up are none.
   */
  private static Optional<String> holder(
      AttestedKey key, int reshareEpoch, int party, Trust trust) {
    return key.holdings().stream()
        .filter(
            holding ->
                holding.reshareEpoch() == reshareEpoch
                    || holding.reshareEpoch() == key.reshareEpoch())
        .filter(holding -> holding.reachesFloors(key.name(), trust))
        .flatMap(holding -> Optional.ofNullable(holding.holders().get(party)).stream())
        .findFirst();
  }
}
