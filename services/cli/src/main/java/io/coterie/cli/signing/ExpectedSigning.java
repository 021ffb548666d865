package io.coterie.cli.signing;

import com.google.protobuf.ByteString;
import io.coterie.cli.key.AttestedKeys;
import io.coterie.cli.payload.EcdsaVerifier;
import io.coterie.cli.payload.SignedPayload;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Output;
import io.coterie.platform.attestation.AttestedKey;
import io.coterie.platform.attestation.NeverProof;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.payload.DecodedPayload;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.scheme.SchemeKeys;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;

/**
 * The answer to a signing, as far as it is known before it is asked for.
 *
 * @param publicKey verifies the signature; derived from the attested key
 * @param payload as this machine decodes it
 */
record ExpectedSigning(SigningIntent intent, ByteString publicKey, DecodedPayload payload) {

  /**
   * Derives the key, and looks whether the payload is one for it.
   *
   * @throws CliException if key and intent do not fit each other
   */
  static ExpectedSigning of(SigningIntent intent, AttestedKey key) {
    AttestedKeys.requireScheme(key, intent.getScheme());
    ByteString publicKey = AttestedKeys.verifyingKey(key, KeyTarget.of(intent));
    try {
      return new ExpectedSigning(intent, publicKey, Payloads.decode(intent, publicKey));
    } catch (IntentException e) {
      throw new CliException(
          ExitCode.REFUSED, e.getMessage() + ". No party would sign this with " + key.name() + ".");
    }
  }

  /**
   * Verifies the answer. Only what was verified is left in it, and the coordinator's word on times
   * and on the parties that took part.
   *
   * @param signed the intent as it was sent
   * @param receipts judges those of a signing without a signature
   * @throws CliException naming the first field that is not as it must be
   */
  Signing require(SignedIntent signed, ReceiptCheck receipts, Signing answer) {
    requireAnswer(intent.getKey(), intent.getRequestId(), answer);
    if (answer.getState() != Signing.State.SIGNED) {
      return receipts.judged(
          unfinished(answer),
          new NeverProof.Request(
              signed.getSignatures(0).getKeyid(), intent.getRequestId(), intent.getReshareEpoch()));
    }
    requireField("scheme", answer.getScheme() == intent.getScheme());
    requireField(
        "intent_digest",
        answer.getIntentDigest().equals(IntentVerifier.digest(signed.getPayload())));
    requireField("public_key", answer.getPublicKey().equals(publicKey));
    requireField(
        "digest",
        answer
            .getDigest()
            .equals(
                SchemeKeys.of(intent.getScheme()).signsDigests()
                    ? payload.toSign()
                    : ByteString.EMPTY));
    ByteString signature = answer.getSignature();
    requireField("signature", SignedPayload.verify(intent, publicKey, signature));
    boolean ecdsa = intent.getScheme() == Scheme.SCHEME_ECDSA_SECP256K1;
    requireField(
        "recovery_id",
        ecdsa
            ? answer.hasRecoveryId()
                && answer.getRecoveryId()
                    == EcdsaVerifier.recoveryId(publicKey, payload.toSign(), signature)
            : !answer.hasRecoveryId());
    requireField(
        "der_signature",
        answer.getDerSignature().equals(ecdsa ? EcdsaVerifier.der(signature) : ByteString.EMPTY));
    return answer.toBuilder().setDecoded(payload.toProto()).clearError().clearReceipts().build();
  }

  /** The coordinator's word on a signing without a signature. */
  private static Signing unfinished(Signing answer) {
    Signing.Builder said = answer.toBuilder();
    if (answer.hasError()) {
      said.setError(Output.withoutDetails(answer.getError()));
    }
    return said.clearSignature()
        .clearDerSignature()
        .clearRecoveryId()
        .clearPublicKey()
        .clearDigest()
        .clearDecoded()
        .build();
  }

  /**
   * Verifies that an answer is about a request.
   *
   * @throws CliException naming the field that is not as it must be
   */
  static void requireAnswer(String key, String requestId, Signing answer) {
    requireField(key, "name", answer.getName().startsWith(key + "/signings/"));
    requireField(key, "request_id", answer.getRequestId().equals(requestId));
  }

  private void requireField(String field, boolean agrees) {
    requireField(intent.getKey(), field, agrees);
  }

  private static void requireField(String key, String field, boolean agrees) {
    if (!agrees) {
      throw AttestedKeys.refused(
          key,
          "has no such signing: field "
              + field
              + " of the answer is not as it must be. Do not use it; show it to the operators of"
              + " the coordinator and the parties.");
    }
  }
}
