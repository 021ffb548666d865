package io.coterie.cli.signing;

import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.terminal.PartyRefusal;
import io.coterie.platform.attestation.AttestationException;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.NeverProof;
import io.coterie.platform.attestation.Refusal;
import io.coterie.platform.error.SessionFailures;
import io.coterie.platform.error.StatusErrors;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.trust.Trust;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Judges by the trust file whether receipts prove that nothing was signed. The coordinator's word
 * for it counts for nothing.
 */
record ReceiptCheck(AttestedKey key, Trust trust) {

  /**
   * The receipts of an answer, verified.
   *
   * @throws io.coterie.cli.terminal.CliException if one is not a holder's own word on that request
   */
  NeverProof proof(Signing answer, NeverProof.Request request) {
    try {
      return NeverProof.of(key, request, answer.getReceiptsList(), trust);
    } catch (AttestationException e) {
      throw AttestedKeys.refused(key.name(), "has no such signing: " + e.getMessage());
    }
  }

  /**
   * The parties that refused a request, by their own receipts, and those of which the coordinator
   * says so. It says nothing about the end of the request.
   *
   * @param failure of a call to sign, with anything in it
   */
  List<PartyRefusal> refusals(
      StatusRuntimeException failure, SignedIntent signed, NeverProof.Request request) {
    Status error = StatusProto.fromThrowable(failure);
    if (error == null) {
      return List.of();
    }
    List<PartyRefusal> refusals = new ArrayList<>();
    ByteString digest = IntentVerifier.digest(signed.getPayload());
    Refusal.of(key, request, digest, StatusErrors.refusals(error), trust)
        .forEach(refusal -> refusals.add(PartyRefusal.of(refusal)));
    Set<String> others = new TreeSet<>();
    key.holdings().stream()
        .filter(holding -> holding.reachesFloors(key.name(), trust))
        .forEach(holding -> others.addAll(holding.holders().values()));
    refusals.forEach(refusal -> others.remove(refusal.party()));
    Map<String, String> said =
        StatusErrors.info(error).map(ErrorInfo::getMetadataMap).orElse(Map.of());
    // Nothing but names that are known here is taken from it.
    others.retainAll(List.of(said.getOrDefault(StatusErrors.PARTY, "").split(",")));
    SessionFailures.refusal(said.getOrDefault(StatusErrors.CAUSE, ""))
        .ifPresent(
            reason ->
                others.forEach(
                    party -> refusals.add(new PartyRefusal(party, reason, Optional.empty()))));
    return refusals;
  }

  /** An answer without a signature, in the state that its receipts prove. */
  Signing judged(Signing answer, NeverProof.Request request) {
    return switch (answer.getState()) {
      case NOT_SIGNED, UNKNOWN ->
          answer.toBuilder()
              .setState(
                  proof(answer, request).holds() ? Signing.State.NOT_SIGNED : Signing.State.UNKNOWN)
              .build();
      default -> answer.toBuilder().clearReceipts().build();
    };
  }
}
