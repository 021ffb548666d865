package io.coterie.cli;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.payload.BitcoinPsbt;
import io.coterie.platform.payload.EthereumTransaction;
import io.coterie.platform.payload.Payloads;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Optional;

/** What is done with a payload on this machine: before it is sent, and with its signature. */
final class SignedPayload {
  private SignedPayload() {}

  /**
   * Refuses a payload that every signer would refuse.
   *
   * @throws CliException saying what is wrong with it
   */
  static void check(SigningIntent intent) {
    PayloadKind kind = PayloadKind.of(intent).orElseThrow();
    if (!kind.fits(intent.getScheme())) {
      throw CliException.local(
          "keys of scheme "
              + Output.scheme(intent.getScheme().name())
              + " do not sign payloads of kind "
              + kind.label());
    }
    if (kind == PayloadKind.DIGEST && intent.getDigest().size() != IntentVerifier.DIGEST_BYTES) {
      throw CliException.local("the digest is not " + IntentVerifier.DIGEST_BYTES + " bytes");
    }
    // An input of a PSBT is looked at when the key is known.
    if (kind != PayloadKind.BITCOIN_INPUT) {
      toSign(intent, ByteString.EMPTY);
    }
  }

  /**
   * What the scheme signs.
   *
   * @param publicKey the key that signs: the key's own, or its child's
   * @throws CliException if the payload is not what it claims to be, or not for this key
   */
  static ByteString toSign(SigningIntent intent, ByteString publicKey) {
    try {
      return Payloads.decode(intent, publicKey).toSign();
    } catch (IntentException e) {
      throw CliException.local("the payload is refused: " + e.problem().text());
    }
  }

  /** Verifies a signature of a payload; false for anything that is none. */
  static boolean verify(SigningIntent intent, ByteString publicKey, ByteString signature) {
    ByteString toSign = toSign(intent, publicKey);
    return intent.getScheme() == Scheme.SCHEME_BLS12381
        ? BlsVerifier.verify(publicKey.toByteArray(), toSign.toByteArray(), signature.toByteArray())
        : EcdsaVerifier.verify(publicKey, toSign, signature);
  }

  /**
   * The payload with its signature in it, as the chain's other tools take it: a raw Ethereum
   * transaction in hexadecimal, or a PSBT in base64. Empty for other kinds.
   *
   * @throws CliException if the signature is not one of the payload
   */
  static Optional<String> signed(SigningIntent intent, Signing signing) {
    if (intent.getScheme() == Scheme.SCHEME_ECDSA_SECP256K1
        && !verify(intent, signing.getPublicKey(), signing.getSignature())) {
      throw new CliException(
          Coterie.REFUSED, "the installation's signature does not verify: do not use it");
    }
    try {
      return switch (intent.getPayloadCase()) {
        case ETHEREUM_TRANSACTION ->
            Optional.of(
                "0x"
                    + HexFormat.of()
                        .formatHex(
                            EthereumTransaction.decode(intent.getEthereumTransaction())
                                .signed(signing.getSignature(), signing.getRecoveryId())
                                .toByteArray()));
        case BITCOIN_INPUT ->
            Optional.of(
                Base64.getEncoder()
                    .encodeToString(
                        BitcoinPsbt.decode(intent.getBitcoinInput().getPsbt())
                            .signed(
                                intent.getBitcoinInput().getInput(),
                                signing.getPublicKey(),
                                signing.getDerSignature())
                            .encoded()
                            .toByteArray()));
        default -> Optional.empty();
      };
    } catch (IntentException | IllegalArgumentException e) {
      throw new CliException(
          Coterie.BUG, "the signature cannot be put into the payload: " + e.getMessage());
    }
  }
}
