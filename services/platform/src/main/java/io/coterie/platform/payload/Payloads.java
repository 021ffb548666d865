package io.coterie.platform.payload;

import com.google.protobuf.ByteString;
import io.coterie.platform.intent.IntentException;
import io.coterie.platform.intent.IntentProblem;
import io.coterie.platform.intent.PayloadKind;
import io.coterie.proto.custody.v1.Scheme;
import io.coterie.proto.custody.v1.SigningIntent;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** Decodes the payload of a signing intent. */
public final class Payloads {
  /**
   * With these begins what nodes of a chain take for a transaction, though it can be text: programs
   * that approve any transaction of their signer (Algorand's logic signatures), and words before a
   * hash, which can be drawn until it is text (Internet Computer, aeternity).
   */
  private static final List<ByteString> OF_OTHER_CHAINS =
      Stream.of("Program", "MsigProgram", "\nic-request", "ae_")
          .map(ByteString::copyFromUtf8)
          .toList();

  /** Bytes of a digest: SHA-256, SHA-512/256, Keccak-256, BLAKE2b-256. */
  private static final int DIGEST_BYTES = 32;

  private Payloads() {}

  /**
   * Decodes a payload.
   *
   * @param intent of a {@link io.coterie.platform.intent.VerifiedIntent.Signing}: its sizes have
   *     been checked and its payload fits its scheme
   * @param publicKey the key that will sign: the key's own, or its child at the intent's derivation
   *     path, or its Taproot output key (ECDSA: 33 bytes, compressed; Ed25519, BIP-340: 32 bytes)
   * @throws IntentException if the payload is not what it claims to be, or is not for this key
   */
  public static DecodedPayload decode(SigningIntent intent, ByteString publicKey)
      throws IntentException {
    PayloadKind kind =
        PayloadKind.of(intent)
            .orElseThrow(() -> new IntentException(IntentProblem.MESSAGE_MISSING));
    Lines lines = new Lines();
    ByteString toSign =
        switch (kind) {
          case MESSAGE -> {
            message(intent, Optional.of(publicKey), lines);
            yield intent.getMessage();
          }
          case DIGEST -> {
            lines.addBytes("digest", intent.getDigest());
            yield intent.getDigest();
          }
          case ETHEREUM_TRANSACTION -> {
            EthereumTransaction transaction =
                EthereumTransaction.decode(intent.getEthereumTransaction());
            transaction.describe(lines);
            yield transaction.digest();
          }
          case ETHEREUM_MESSAGE -> ethereumMessage(intent.getEthereumMessage(), lines);
          case ETHEREUM_TYPED_DATA -> TypedData.digest(intent.getEthereumTypedData(), lines);
          case BITCOIN_INPUT -> {
            BitcoinPsbt psbt = BitcoinPsbt.decode(intent.getBitcoinInput().getPsbt());
            int input = intent.getBitcoinInput().getInput();
            yield intent.getScheme() == Scheme.SCHEME_BIP340_SECP256K1
                ? taprootInput(psbt, input, intent, publicKey, lines)
                : witnessInput(psbt, input, publicKey, lines);
          }
          case SOLANA_TRANSACTION -> {
            SolanaTransaction transaction = SolanaTransaction.decode(intent.getSolanaTransaction());
            ByteString message = transaction.toSign(publicKey);
            transaction.describe(lines);
            yield message;
          }
        };
    return new DecodedPayload(kind, toSign, lines.list());
  }

  /**
   * Decodes a payload for the requester who is about to ask for its signature: like {@link
   * #decode}, but without the check that the payload is one for the key.
   *
   * @throws IntentException if the payload is not what it claims to be
   */
  public static DecodedPayload preview(SigningIntent intent) throws IntentException {
    Lines lines = new Lines();
    return switch (intent.getPayloadCase()) {
      case MESSAGE -> {
        message(intent, Optional.empty(), lines);
        yield new DecodedPayload(PayloadKind.MESSAGE, intent.getMessage(), lines.list());
      }
      case BITCOIN_INPUT -> {
        BitcoinPsbt psbt = BitcoinPsbt.decode(intent.getBitcoinInput().getPsbt());
        ByteString digest = psbt.preview(lines, intent.getBitcoinInput().getInput());
        yield new DecodedPayload(PayloadKind.BITCOIN_INPUT, digest, lines.list());
      }
      case SOLANA_TRANSACTION -> {
        SolanaTransaction.decode(intent.getSolanaTransaction()).describe(lines);
        yield new DecodedPayload(
            PayloadKind.SOLANA_TRANSACTION, intent.getSolanaTransaction(), lines.list());
      }
      default -> decode(intent, ByteString.EMPTY);
    };
  }

  /**
   * A message is of no known format, so only its requester knows what it says; a rule has to allow
   * messages by name. A chain that signs its transactions unhashed takes one for a transaction: a
   * requester that may have messages signed may not have transactions signed unread. So a message
   * of an Ed25519 key is text, which people read to its end, and nothing that a chain is known to
   * take for a transaction or its hash. A BLS key has no other payload than messages.
   */
  private static void message(SigningIntent intent, Optional<ByteString> publicKey, Lines lines)
      throws IntentException {
    ByteString message = intent.getMessage();
    if (intent.getScheme() == Scheme.SCHEME_BLS12381) {
      textOrBytes(message, lines);
      return;
    }
    if (SolanaTransaction.isTransaction(message)) {
      throw new IntentException(IntentProblem.MESSAGE_IS_TRANSACTION);
    }
    if (OF_OTHER_CHAINS.stream().anyMatch(message::startsWith)) {
      throw new IntentException(IntentProblem.MESSAGE_OF_CHAIN);
    }
    if (message.size() == DIGEST_BYTES) {
      throw new IntentException(IntentProblem.MESSAGE_IS_DIGEST);
    }
    // Solana marks every versioned transaction, known today or not, by this bit, and keeps one such
    // byte for messages.
    if (!message.isEmpty() && (message.byteAt(0) & SolanaTransaction.VERSIONED) != 0) {
      SolanaOffchainMessage offchain = SolanaOffchainMessage.decode(message, publicKey);
      requireText(Optional.of(offchain.text()));
      lines.add("length", message.size());
      offchain.describe(lines);
      return;
    }
    requireText(Lines.utf8(message));
    textOrBytes(message, lines);
  }

  private static void requireText(Optional<String> text) throws IntentException {
    if (text.isEmpty()
        || text.get().startsWith("\n")
        || text.get().startsWith("\r")
        || text.get().codePoints().anyMatch(Characters::misleads)) {
      throw new IntentException(IntentProblem.MESSAGE_NOT_TEXT);
    }
  }

  /**
   * The prefix of EIP-191 makes sure that a message is never a transaction. It can still be the
   * hash of an operation, 32 bytes, and contract accounts run the operation whose hash is signed.
   */
  private static void requireEthereumText(ByteString message) throws IntentException {
    if (message.size() == DIGEST_BYTES) {
      throw new IntentException(IntentProblem.MESSAGE_IS_DIGEST);
    }
    requireText(Lines.utf8(message));
  }

  /** Adds all of it: a person who confirms a signature has to see the end as well. */
  private static void textOrBytes(ByteString message, Lines lines) throws IntentException {
    lines.add("length", message.size());
    Optional<String> text = Lines.utf8(message);
    if (text.isPresent()) {
      lines.add("text", text.get());
    } else {
      lines.addBytes("bytes", message);
    }
  }

  private static ByteString witnessInput(
      BitcoinPsbt psbt, int input, ByteString publicKey, Lines lines) throws IntentException {
    ByteString digest = psbt.digest(input, publicKey);
    psbt.describe(lines, input);
    return digest;
  }

  private static ByteString taprootInput(
      BitcoinPsbt psbt, int input, SigningIntent intent, ByteString outputKey, Lines lines)
      throws IntentException {
    // A key that is nobody's output key has no address, so nothing was ever paid to it on purpose.
    if (!intent.hasTaproot()) {
      throw new IntentException(IntentProblem.PSBT_TAPROOT);
    }
    ByteString digest = psbt.taprootDigest(input, outputKey, intent.getTaproot().getMerkleRoot());
    psbt.describe(lines, input);
    return digest;
  }

  /** EIP-191, version 0x45. */
  private static ByteString ethereumMessage(ByteString message, Lines lines)
      throws IntentException {
    requireEthereumText(message);
    textOrBytes(message, lines);
    String prefix = "\u0019Ethereum Signed Message:\n" + message.size();
    return ByteString.copyFrom(
        Keccak.hash(prefix.getBytes(StandardCharsets.US_ASCII), message.toByteArray()));
  }
}
