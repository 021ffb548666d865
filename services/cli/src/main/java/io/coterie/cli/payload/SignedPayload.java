package io.coterie.cli.payload;

import com.google.protobuf.ByteString;
import io.coterie.cli.terminal.CliException;
import io.coterie.cli.terminal.ExitCode;
import io.coterie.cli.terminal.Spelling;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentVerifier;
import io.coterie.platform.intent.KeyTarget;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.platform.payload.BitcoinPsbt;
import io.coterie.platform.payload.EthereumTransaction;
import io.coterie.platform.payload.Payloads;
import io.coterie.platform.payload.SolanaTransaction;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.Signing;
import io.coterie.proto.custody.v1.SigningIntent;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Optional;

/** The work on a payload on this machine: before it is sent, and with its signature. */
public final class SignedPayload {
  private SignedPayload() {}

  /**
   * Refuses a payload that every signer would refuse.
   *
   * @throws CliException saying what is wrong with it
   */
  public static void check(SigningIntent intent) {
    PayloadKind kind = PayloadKind.of(intent).orElseThrow();
    if (!kind.fits(intent.getScheme())) {
      throw CliException.local(
          "keys of scheme "
              + Spelling.scheme(intent.getScheme())
              + " do not sign payloads of kind "
              + kind.label());
    }
    if (kind == PayloadKind.DIGEST && intent.getDigest().size() != IntentVerifier.DIGEST_BYTES) {
      throw CliException.local("the digest is not " + IntentVerifier.DIGEST_BYTES + " bytes");
    }
    if (intent.hasTaproot() && intent.getScheme() != Scheme.SCHEME_BIP340_SECP256K1) {
      throw CliException.local("only keys of scheme bip340-secp256k1 have Taproot output keys");
    }
    boolean edwards =
        intent.getScheme() == Scheme.SCHEME_ED25519
            || intent.getScheme() == Scheme.SCHEME_ED25519_EXACT;
    if (edwards && intent.getDerivationPathCount() > 0) {
      throw CliException.local(
          "keys of scheme " + Spelling.scheme(intent.getScheme()) + " have no children");
    }
    if (!KeyTarget.of(intent).isWellFormed()) {
      throw CliException.local("the root of a script tree is 32 bytes");
    }
    switch (kind) {
      // Looked at when the key is known.
      case BITCOIN_INPUT -> {}
      case MESSAGE,
          DIGEST,
          ETHEREUM_TRANSACTION,
          ETHEREUM_MESSAGE,
          ETHEREUM_TYPED_DATA,
          SOLANA_TRANSACTION -> {
        try {
          Payloads.preview(intent);
        } catch (IntentException e) {
          throw refused(e);
        }
      }
    }
  }

  /** A payload that is not what it claims to be. */
  public static CliException refused(IntentException e) {
    return CliException.local("the payload is refused: " + e.text());
  }

  /**
   * The bytes that the scheme signs.
   *
   * @param publicKey the key that signs: the key's own, or its child's
   * @throws CliException if the payload is not what it claims to be, or not for this key
   */
  public static ByteString toSign(SigningIntent intent, ByteString publicKey) {
    try {
      return Payloads.decode(intent, publicKey).toSign();
    } catch (IntentException e) {
      throw refused(e);
    }
  }

  /** Verifies a signature of a payload; false for anything that is none. */
  public static boolean verify(SigningIntent intent, ByteString publicKey, ByteString signature) {
    ByteString toSign = toSign(intent, publicKey);
    return switch (intent.getScheme()) {
      case SCHEME_BLS12381 ->
          BlsVerifier.verify(
              publicKey.toByteArray(), toSign.toByteArray(), signature.toByteArray());
      case SCHEME_ECDSA_SECP256K1 -> EcdsaVerifier.verify(publicKey, toSign, signature);
      case SCHEME_ED25519, SCHEME_ED25519_EXACT ->
          SchnorrVerifier.ed25519(publicKey, toSign, signature);
      case SCHEME_BIP340_SECP256K1 -> SchnorrVerifier.bip340(publicKey, toSign, signature);
      case SCHEME_UNSPECIFIED, UNRECOGNIZED -> false;
    };
  }

  /**
   * The payload with its signature in it, as the chain's other tools take it: a raw Ethereum
   * transaction in hexadecimal, a PSBT or a Solana transaction in base64. Empty for other kinds.
   *
   * @param publicKey that the signature verifies under
   * @param signing whose fields were verified
   */
  public static Optional<String> signed(
      SigningIntent intent, ByteString publicKey, Signing signing) {
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
            Optional.of(base64(signedInput(intent, publicKey, signing).encoded()));
        case SOLANA_TRANSACTION ->
            Optional.of(
                base64(
                    SolanaTransaction.decode(intent.getSolanaTransaction())
                        .signed(publicKey, signing.getSignature())));
        default -> Optional.empty();
      };
    } catch (IntentException | IllegalArgumentException e) {
      throw new CliException(
          ExitCode.BUG, "the signature cannot be put into the payload: " + e.getMessage());
    }
  }

  private static BitcoinPsbt signedInput(
      SigningIntent intent, ByteString publicKey, Signing signing) throws IntentException {
    BitcoinPsbt psbt = BitcoinPsbt.decode(intent.getBitcoinInput().getPsbt());
    int input = intent.getBitcoinInput().getInput();
    return intent.getScheme() == Scheme.SCHEME_BIP340_SECP256K1
        ? psbt.signedTaproot(input, publicKey, signing.getSignature())
        : psbt.signed(input, publicKey, signing.getDerSignature());
  }

  private static String base64(ByteString bytes) {
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }
}
